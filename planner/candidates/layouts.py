"""Search the parallel layouts of a training job on a number of chips: enumerate, prune by memory, time the rest, rank.

The search serves the candidates of a plan (`planner.candidates.training`) and the command `flopwatt layouts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.arrays import Floats, Ints
from models.training.layouts import RECOMPUTE, Layouts, LayoutSpace, divisors, enumerate_layouts
from models.training.step import TrainingStep
from planner.evaluate.layouts import TrainingSetup, carries, evaluate_layouts, memory_needed
from planner.problem.facts import TrainingFacts
from planner.problem.intervals import Interval

PARALLEL = ("tp", "pp", "dp", "cp", "ep", "vpp")
LONG_SEQUENCE_TOKENS = 16384  # from this length on a plan considers context parallelism


@dataclass(frozen=True, slots=True)
class LayoutSearch:
    """Layouts that fit, fastest first, with their steps, and how many there were before pruning."""

    layouts: Layouts
    step: TrainingStep
    memory_bytes: Floats  # needed, also at the narrowest width that the job may shrink to
    legal: int
    fitting: int
    carried: int  # legal layouts whose groups the network connects

    def __len__(self) -> int:
        return len(self.layouts)


def layout_space(job: TrainingFacts, chips: int, scaleup_chips: int, *, every: bool) -> Layouts:
    """Enumerate legal layouts on a number of chips: all of them, or without `every` the choices that matter in a plan, for speed."""
    if every:
        chunks = [int(v) for v in divisors(job.architecture.layers)]
        choices = LayoutSpace(micro_batches=(1, 2, 3, 4, 6, 8, 12, 16), interleaves=chunks, zeros=(0, 1, 2, 3))
    else:
        long = job.spec.sequence_tokens >= LONG_SEQUENCE_TOKENS
        choices = LayoutSpace(
            micro_batches=(1, 2, 4), interleaves=(1, 2, 4), largest_cp=16 if long else 1, largest_pp=16
        )
    return enumerate_layouts(
        job.architecture,
        chips,
        job.batch_sequences,
        sequence_tokens=job.spec.sequence_tokens,
        scaleup_chips=scaleup_chips,
        space=choices,
    )


def search_layouts(
    setup: TrainingSetup, layouts: Layouts, *, shrink: int = 1, most: int | None = None, memory: Floats | None = None
) -> LayoutSearch:
    """Rank the layouts that fit in memory and that the network carries by step time, and keep the `most` fastest.

    `shrink`: memory must suffice when only 1 / shrink of the data-parallel replicas run. `memory` [layout]: the memory
    needed in that case [byte], where the caller has computed it already.
    """
    carried = carries(setup.plant, layouts)
    needed = memory_needed(setup.job, layouts, setup.constants, shrink) if memory is None else memory
    fits = carried & (needed <= setup.system.hbm_bytes)
    fitting = layouts.take(fits)
    step = evaluate_layouts(setup, fitting)
    order = np.argsort(step.step_s, kind="stable")[:most]
    return LayoutSearch(
        layouts=fitting.take(order),
        step=steps_at(step, order),
        memory_bytes=needed[fits][order],
        legal=len(layouts),
        fitting=int(fits.sum()),
        carried=int(carried.sum()),
    )


def steps_at(step: TrainingStep, index: Ints) -> TrainingStep:
    """Select steps by index."""
    return TrainingStep(
        step_s=step.step_s[index], tokens_per_s=step.tokens_per_s[index], mfu=step.mfu[index], hfu=step.hfu[index],
        memory_bytes=step.memory_bytes[index], breakdown={name: part[index] for name, part in step.breakdown.items()},
    )  # fmt: skip


def layout_rows(found: LayoutSearch, count: int, interval: Interval) -> list[dict[str, Any]]:
    """Write the best layouts with the breakdown of their step and why each is slower than the fastest."""
    result = []
    for i in range(min(count, len(found))):
        layout = found.layouts.row(i)
        parts = {name: float(part[i]) for name, part in found.step.breakdown.items()}
        result.append(
            {
                "layout": layout,
                "step_s": float(found.step.step_s[i]),
                "interval_80": {"step_s": interval.around(float(found.step.step_s[i]))},
                "tier": interval.tier,
                "tokens_per_s": float(found.step.tokens_per_s[i]),
                "mfu": float(found.step.mfu[i]),
                "hfu": float(found.step.hfu[i]),
                "memory_bytes": float(found.memory_bytes[i]),
                "breakdown_s": parts,
                "why": "fastest" if i == 0 else _why(found, i),
            }
        )
    return result


def _why(found: LayoutSearch, i: int) -> str:
    """Name the part of the step that loses most against the fastest layout."""
    extra = {name: float(part[i] - part[0]) for name, part in found.step.breakdown.items()}
    slower = found.step.step_s[i] / found.step.step_s[0] - 1
    name = max(extra, key=lambda part: extra[part])
    if extra[name] <= 0:
        return f"equal to the fastest within {slower:.2%}"
    return f"{slower:.2%} slower: {name.replace('_', ' ')} +{extra[name] / found.step.step_s[0]:.1%} of the step"


def layout_text(layout: Mapping[str, int]) -> str:
    """Abbreviate a layout, leaving out sizes of one."""
    parts = [f"{name}{layout[name]}" for name in PARALLEL if layout[name] != 1]
    parts.append(f"micro-batch {layout['micro_batch']}")
    if layout["zero"]:
        parts.append(f"ZeRO-{layout['zero']}")
    if layout["recompute"]:
        parts.append(f"{RECOMPUTE[layout['recompute']]} recompute")
    return " ".join(parts)


def layout_table(result: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Format the rows as a table."""
    return [
        {
            "layout": layout_text(row["layout"]),
            "step": f"{row['step_s']:.3f} s",
            "80 % of runs": "{:.3f} to {:.3f} s".format(*row["interval_80"]["step_s"]),
            "tokens/s": f"{row['tokens_per_s']:,.0f}",
            "MFU": f"{row['mfu']:.1%}",
            "HFU": f"{row['hfu']:.1%}",
            "memory": f"{row['memory_bytes'] / 1e9:.1f} GB",
            "time goes to": ", ".join(
                f"{name.replace('_', ' ')} {seconds / row['step_s']:.0%}"
                for name, seconds in _largest(row["breakdown_s"])
            ),
            "why": row["why"],
        }
        for row in result
    ]


def _largest(parts: Mapping[str, float], count: int = 4) -> list[tuple[str, float]]:
    """List the largest parts of a step, those of at least half a percent."""
    total = sum(parts.values())
    ordered = sorted(parts.items(), key=lambda item: -item[1])
    return [(name, seconds) for name, seconds in ordered[:count] if seconds >= 0.005 * total]
