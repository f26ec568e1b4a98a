"""Search the parallel layouts of a training job on a number of chips: enumerate, prune by memory, time the rest, rank.

One space of layouts serves the candidates of a plan (`planner.candidates.training`), `flopwatt layouts` and `flopwatt estimate`. A plan
needs the fastest layout only, which `fastest_layout` finds without timing all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from models.arrays import Bools, Floats, Ints, sum_of
from models.training.layouts import OFFLOAD, RECOMPUTE, Layouts, LayoutSpace, joined, parallel_layouts, with_levels
from models.training.pipeline import SCHEDULES
from models.training.step import TrainingStep
from planner.evaluate.layouts import TrainingSetup, carries, evaluate_layouts, fits, memory_needed
from planner.evaluate.training import breakdown_of
from planner.problem.facts import SystemFacts, TrainingFacts
from planner.problem.intervals import Interval

MOST_LEADERS = 256  # sizes that are timed on a slower network before all are
SHORTER_TOL = 0.01  # relative: by less is a step ever shorter on a slower network, where a longer exchange hides more of another one
SIZES_AT_ONCE = 10_000  # parallel sizes whose levels of ZeRO, recompute and offload are searched at once
PARALLEL = ("tp", "pp", "dp", "cp", "ep", "vpp")


@dataclass(frozen=True, slots=True)
class LayoutSearch:
    """Layouts that fit, fastest first, with their steps, and how many there were before pruning."""

    layouts: Layouts
    step: TrainingStep
    memory_bytes: Floats  # needed
    legal: int
    carried: int  # legal layouts whose groups the network connects
    fitting: int  # layouts tried that fit in memory
    tried: int  # carried layouts whose memory was computed; the others cannot be faster than the fastest
    least_bytes: float = math.inf  # where none fits: that any carried layout needs whose host holds what is offloaded

    def __len__(self) -> int:
        return len(self.layouts)


def layout_choices(system: SystemFacts) -> LayoutSpace:
    """Return the choices that layouts on a system cross: all, with offload where link and memory of the host are known."""
    offloads = tuple(range(len(OFFLOAD))) if system.host_bytes_per_s and system.host_bytes else (0,)
    return LayoutSpace(offloads=offloads)


def legal_sizes(job: TrainingFacts, chips: int, system: SystemFacts) -> Layouts:
    """Enumerate the legal parallel sizes and schedules of a job on a number of chips, before ZeRO, recompute and offload."""
    return parallel_layouts(
        job.architecture,
        chips,
        job.batch_sequences,
        sequence_tokens=job.spec.sequence_tokens,
        scaleup_chips=system.scaleup_chips,
        space=layout_choices(system),
    )


def layout_space(job: TrainingFacts, chips: int, system: SystemFacts) -> Layouts:
    """Enumerate all legal layouts of a job on a number of chips of a system."""
    return with_levels(legal_sizes(job, chips, system), layout_choices(system))


@dataclass(frozen=True, slots=True)
class LayoutParts:
    """The legal layouts of a job, some at a time in their order: the sizes, and the axes crossed into them."""

    sizes: Layouts
    space: LayoutSpace

    def __len__(self) -> int:
        return int(_levels(self.sizes, self.space).sum())

    def __iter__(self) -> Iterator[Layouts]:
        for start in range(0, len(self.sizes), SIZES_AT_ONCE):
            end = min(start + SIZES_AT_ONCE, len(self.sizes))
            yield with_levels(self.sizes.take(np.arange(start, end)), self.space)


def layout_parts(job: TrainingFacts, chips: int, system: SystemFacts) -> LayoutParts:
    """Enumerate all legal layouts of a job on a number of chips of a system, to be searched some at a time."""
    return LayoutParts(legal_sizes(job, chips, system), layout_choices(system))


def best_of(first: LayoutSearch | None, second: LayoutSearch, count: int) -> LayoutSearch:
    """Keep the `count` fastest layouts of two parts of a space, and add up what was tried."""
    if first is None:
        first, second = second, replace(
            second, layouts=second.layouts.take(np.arange(0)), step=steps_at(second.step, np.arange(0)),
            memory_bytes=second.memory_bytes[:0], legal=0, carried=0, fitting=0, tried=0,
        )  # fmt: skip
    layouts, step = joined([first.layouts, second.layouts]), _joined_steps(first.step, second.step)
    order = np.argsort(step.step_s, kind="stable")[:count]
    memory = np.concatenate([first.memory_bytes, second.memory_bytes])[order]
    counts = {name: getattr(first, name) + getattr(second, name) for name in ("legal", "carried", "fitting", "tried")}
    least = min(first.least_bytes, second.least_bytes)
    return LayoutSearch(layouts.take(order), steps_at(step, order), memory, **counts, least_bytes=least)


def _joined_steps(first: TrainingStep, second: TrainingStep) -> TrainingStep:
    """Put steps one after another."""
    names = ("step_s", "tokens_per_s", "mfu", "hfu", "memory_bytes")
    breakdown = {name: np.concatenate([part, second.breakdown[name]]) for name, part in first.breakdown.items()}
    columns = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in names}
    return TrainingStep(**columns, breakdown=breakdown)


def search_layouts(setup: TrainingSetup, layouts: Layouts) -> LayoutSearch:
    """Rank the layouts that fit in memory and that the network carries by step time."""
    carried = layouts.take(carries(setup, layouts))
    needed = memory_needed(setup, carried)
    within = fits(setup, carried, needed)
    fitting = carried.take(within)
    step = evaluate_layouts(setup, fitting)
    order = np.argsort(step.step_s, kind="stable")
    return LayoutSearch(
        layouts=fitting.take(order),
        step=steps_at(step, order),
        memory_bytes=needed[within][order],
        legal=len(layouts),
        carried=len(carried),
        fitting=len(fitting),
        tried=len(carried),
        least_bytes=math.inf if within.any() else _least_bytes(setup, carried, needed),
    )


def _least_bytes(setup: TrainingSetup, layouts: Layouts, needed: Floats) -> float:
    """Return the least memory that any layout needs of a chip, of those whose host holds what they offload [byte]."""
    return float(needed[fits(setup, layouts, np.zeros(len(layouts)))].min(initial=math.inf))


def fastest_layout(setup: TrainingSetup, sizes: Layouts) -> LayoutSearch:
    """Find the fastest layout of `legal_sizes` with any ZeRO level, recompute and offload: the first of `search_layouts`."""
    [found] = fastest_layouts(setup, sizes)
    return found


def fastest_layouts(setup: TrainingSetup, sizes: Layouts) -> list[LayoutSearch]:
    """Find the fastest layout on each number of chips of some `legal_sizes`, by ascending numbers; see `fastest_layout`.

    Recompute and offload never shorten a step, so all sizes are timed without them first. Only those that do not fit and are faster
    than the fastest that fits can gain by them.
    """
    found, _ = with_leaders(setup, sizes)
    return found


@dataclass(frozen=True, slots=True)
class Leaders:
    """The fastest sizes on each of some numbers of chips, and the time below which no other size has a step on a slower network either.

    Left out are sizes that fit at no level of recompute and offload, which no network changes.
    """

    plain: Layouts  # without recompute and offload
    chips: Ints  # [width] ascending
    others_s: Floats  # [width] the least step of any other size; infinite where there is none

    def on(self, chips: int) -> Leaders:
        """Take the leaders on a number of chips."""
        here = self.chips == chips
        return Leaders(self.plain.take(self.plain.chips == chips), self.chips[here], self.others_s[here])


def joined_leaders(parts: Sequence[Leaders]) -> Leaders:
    """Put leaders on ascending numbers of chips one after another."""
    chips, others_s = (np.concatenate([getattr(part, name) for part in parts]) for name in ("chips", "others_s"))
    return Leaders(joined([part.plain for part in parts]), chips, others_s)


def with_leaders(setup: TrainingSetup, sizes: Layouts) -> tuple[list[LayoutSearch], Leaders]:
    """Find the fastest layouts of `fastest_layouts`, and the sizes that may be fastest on a slower network."""
    widths = _Widths(np.unique(sizes.chips))
    plain = _without_relief(setup, sizes.take(carries(setup, sizes)))
    timed = _timed(setup, plain, widths)
    return _best_of(setup, sizes, timed, widths), _leaders(timed, widths)


def fastest_of_leaders(setup: TrainingSetup, sizes: Layouts, leaders: Leaders) -> list[LayoutSearch | None]:
    """Find what `fastest_layouts` finds among the leaders on a network at least as fast; None where another size may be faster.

    A step is no shorter on a slower network, but for `SHORTER_TOL`. So sizes that lose there lose here too, once a leader is faster than
    all of them were.
    """
    widths = _Widths(leaders.chips)
    timed = _timed(setup, leaders.plain.take(carries(setup, leaders.plain)), widths)
    return [
        search if others_s == np.inf or (len(search) and search.step.step_s[0] < (1 - SHORTER_TOL) * others_s) else None
        for search, others_s in zip(_best_of(setup, sizes, timed, widths), leaders.others_s, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Timed:
    """Sizes without recompute and offload, timed, and those relieved by them that fit."""

    plain: Layouts
    step: TrainingStep
    within: Bools  # plain ones that fit
    shortest_s: Floats  # the step of plain ones that fit or were not relieved, else the least one relieved; infinite where none fits
    relieved: Layouts
    further: TrainingStep  # relieved layouts
    tried: Ints  # [width]


def _without_relief(setup: TrainingSetup, sizes: Layouts) -> Layouts:
    return with_levels(sizes, replace(layout_choices(setup.system), recomputes=(0,), offloads=(0,)))


def _timed(setup: TrainingSetup, plain: Layouts, widths: _Widths) -> _Timed:
    """Time sizes, and relieve those that do not fit and are faster than the fastest that fits."""
    step = evaluate_layouts(setup, plain)
    within = fits(setup, plain, step.memory_bytes)
    best = widths.first(plain, step, within)
    least_s = np.array([np.inf if i < 0 else step.step_s[i] for i in best])
    wanting = np.flatnonzero(~within & (step.step_s < least_s[widths.of(plain)]))
    relieved, parent = _relieved(plain.take(wanting), layout_choices(setup.system))
    tried = widths.count(plain) + widths.count(relieved)
    shortest_s = step.step_s.copy()
    shortest_s[wanting] = np.inf
    further = step
    if len(relieved):
        inside = fits(setup, relieved, memory_needed(setup, relieved))
        relieved = relieved.take(inside)
        further = evaluate_layouts(setup, relieved)
        np.minimum.at(shortest_s, wanting[parent[inside]], further.step_s)
    return _Timed(plain, step, within, shortest_s, relieved, further, tried)


def _best_of(setup: TrainingSetup, sizes: Layouts, timed: _Timed, widths: _Widths) -> list[LayoutSearch]:
    """Take the fastest layout on each number of chips, relieved where that is faster."""
    space = layout_choices(setup.system)
    legal = _count(widths, sizes, space)
    carried = _count(widths, sizes.take(carries(setup, sizes)), space)
    fitting = widths.count(timed.plain.take(timed.within)) + widths.count(timed.relieved)
    best = widths.first(timed.plain, timed.step, timed.within)
    better = np.full(len(best), -1)
    if len(timed.relieved):
        better = widths.first(timed.relieved, timed.further, np.ones(len(timed.relieved), bool))
    found = []
    for width, (first, second) in enumerate(zip(best, better, strict=True)):
        layouts, steps, place = timed.plain, timed.step, first
        least_s = np.inf if first < 0 else timed.step.step_s[first]
        if second >= 0 and timed.further.step_s[second] < least_s:
            layouts, steps, place = timed.relieved, timed.further, second
        index = np.array([] if place < 0 else [place], dtype=np.int64)
        chosen = steps_at(steps, index)
        counts = (int(each[width]) for each in (legal, carried, fitting, timed.tried))
        found.append(LayoutSearch(layouts.take(index), chosen, chosen.memory_bytes, *counts))
    return found


def _leaders(timed: _Timed, widths: _Widths) -> Leaders:
    """Keep the `MOST_LEADERS` fastest sizes on each number of chips."""
    able = np.flatnonzero(timed.shortest_s < np.inf)
    width = widths.of(timed.plain)[able]
    order = np.lexsort((timed.shortest_s[able], width))
    able, width = able[order], width[order]
    rank = np.arange(len(able)) - np.searchsorted(width, width)
    others_s = np.full(len(widths.chips), np.inf)
    following = rank == MOST_LEADERS
    others_s[width[following]] = timed.shortest_s[able[following]]
    return Leaders(timed.plain.take(np.sort(able[rank < MOST_LEADERS])), widths.chips, others_s)


@dataclass(frozen=True, slots=True)
class _Widths:
    """Numbers of chips, ascending, by which layouts are told apart."""

    chips: Ints

    def of(self, layouts: Layouts) -> Ints:
        """Return the place of each layout's number of chips."""
        return np.searchsorted(self.chips, layouts.chips)

    def count(self, layouts: Layouts, each: Ints | int = 1) -> Ints:
        """Add up the layouts, or a number of layouts for each, on each number of chips."""
        found = np.zeros(len(self.chips), dtype=np.int64)
        np.add.at(found, self.of(layouts), each)
        return found

    def first(self, layouts: Layouts, step: TrainingStep, within: Bools) -> Ints:
        """Return the place of the fastest layout among some on each number of chips, the first of equal ones; -1 where there are none."""
        able = np.flatnonzero(within)
        width = self.of(layouts)[able]
        order = np.lexsort((step.step_s[able], width))
        found = np.full(len(self.chips), -1)
        there, start = np.unique(width[order], return_index=True)
        found[there] = able[order[start]]
        return found


def _relieved(layouts: Layouts, space: LayoutSpace) -> tuple[Layouts, Ints]:
    """Cross layouts with the levels of recompute and offload that relieve their memory; returns also which layout each stems from."""
    levels = [level for level in product(sorted(space.recomputes), sorted(space.offloads)) if any(level)]
    parent = np.repeat(np.arange(len(layouts)), len(levels))
    parent = parent[np.argsort(layouts.zero[parent], kind="stable")]
    recompute, offload = np.tile(np.array(levels, dtype=np.int64).reshape(-1, 2), (len(layouts), 1)).T
    return replace(layouts.take(parent), recompute=recompute, offload=offload), parent


def _count(widths: _Widths, sizes: Layouts, space: LayoutSpace) -> Ints:
    """Count the layouts that the sizes make with all levels of a space, on each number of chips."""
    return widths.count(sizes, _levels(sizes, space))


def _levels(sizes: Layouts, space: LayoutSpace) -> Ints:
    """Count the layouts that each of the sizes makes with all levels of a space."""
    levels = len(space.recomputes) * len(space.offloads)
    shallow, deep = len(space.zeros), sum(zero <= 1 for zero in space.zeros)
    return levels * np.where(sizes.pp == 1, shallow, deep)


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
        parts = breakdown_of(found.step, i)
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
    if layout.get("schedule"):  # plans of earlier releases state no schedule and no offload
        parts.append(SCHEDULES[layout["schedule"]].name)
    if layout.get("offload"):
        parts.append(f"{OFFLOAD[layout['offload']]} on the host")
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
    """List the largest parts of a step, each at least half a percent."""
    total = sum_of(parts.values())
    ordered = sorted(parts.items(), key=lambda item: -item[1])
    return [(name, seconds) for name, seconds in ordered[:count] if seconds >= 0.005 * total]
