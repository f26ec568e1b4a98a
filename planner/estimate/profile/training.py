"""Profile a training case: where the time of a step goes, the roofline, memory, and layouts over tp x pp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from catalog.units import GIGA
from models.arrays import Floats, sum_of
from models.training.layouts import Layouts, legal_rules
from models.training.memory import training_memory
from models.transformer.work import training_work
from planner.candidates.layouts import LayoutSearch, layout_space, layout_text, search_layouts
from planner.errors import Issue, SpecError
from planner.estimate.case import CaseFacts, requested_layouts, words_of_rule
from planner.estimate.power import training_draw
from planner.estimate.profile.roofline import operator_rows, roof
from planner.evaluate.layouts import TrainingSetup, carries, interval_of, memory_needed
from planner.evaluate.training import breakdown_of
from planner.messages import Message
from planner.spec.workloads import Training

Document = dict[str, Any]
PEAK, AGAIN, BELOW = (
    Message.of("estimate.flops_at_peak").text(),
    Message.of("estimate.recomputation").text(),
    Message.of("estimate.arithmetic_loss").text(),
)
COMPUTED = ("compute", "attention")
LEAST_S = 1e-9  # time of a cause that is listed
LARGEST_TP, LARGEST_PP = 64, 64


def training_profile(facts: CaseFacts) -> Document:
    """Profile the case in its first precision that the chip has. Raises SpecError for a case without one, or with a layout that is not legal."""
    spec, system = facts.case.workload, facts.system
    assert isinstance(spec, Training)
    able = [name for name in spec.precision if system.trains(name)]
    if not able:
        words = Message.of(
            "estimate.no_arithmetic_of_chip",
            chip=system.chip,
            names=", ".join(spec.precision),
            known=", ".join(system.recipes),
        ).text()
        raise SpecError([Issue("workload.precision", words)])
    setup = facts.training_setup(able[0])
    space = layout_space(facts.job, facts.case.chips, system)
    every = search_layouts(setup, space)
    found = every if facts.case.layout is None else _stated(facts, setup)
    rates, tokens = system.rates(able[0], facts.scaleout), float(facts.job.batch_sequences) * spec.sequence_tokens
    return {
        "kind": "training",
        "system": system.name,
        "chips": facts.case.chips,
        "precision": able[0],
        "reason": "" if len(found) else Message.of("estimate.no_layout_fits").text(),
        "at": _at_work(facts, setup, found) if len(found) else None,
        "operators": operator_rows("step", training_work(facts.architecture, tokens, spec.sequence_tokens), rates),
        "roof": roof(rates),
        "waterfall": _waterfall(facts, found) if len(found) else [],
        "memory": _memory(setup, found.layouts) if len(found) else [],
        "layouts": layout_cells(facts, setup, space, every),
    }


def _stated(facts: CaseFacts, setup: TrainingSetup) -> LayoutSearch:
    """Evaluate the layout that the case states. Raises SpecError for one that is not legal."""
    layouts = requested_layouts(facts)
    assert layouts is not None
    return search_layouts(setup, layouts)


def _speed(facts: CaseFacts) -> float:
    return training_draw(facts.power_cap, facts.system, facts.constants.power).speed


def _at_work(facts: CaseFacts, setup: TrainingSetup, found: LayoutSearch) -> Document:
    speed, step = _speed(facts), found.step
    seconds = float(step.step_s[0]) / speed
    return {
        "layout": layout_text(found.layouts.row(0)),
        "layouts": [{"tp": int(found.layouts.tp[0]), "pp": int(found.layouts.pp[0])}],
        "step_s": seconds,
        "step_80": interval_of(setup, float(found.layouts.chips[0])).around(seconds),
        "tokens_per_s": float(step.tokens_per_s[0]) * speed,
        "mfu": float(step.mfu[0]) * speed,
        "hfu": float(step.hfu[0]) * speed,
        "memory_bytes": float(found.memory_bytes[0]),
        "hbm_bytes": facts.system.hbm_bytes,
    }


def _waterfall(facts: CaseFacts, found: LayoutSearch) -> list[Document]:
    """List what a step takes beyond its FLOPs at the peak, cause by cause; MFU and HFU are the shares of the first one and two."""
    speed, seconds = _speed(facts), float(found.step.step_s[0])
    parts = breakdown_of(found.step, 0)
    peak, again = float(found.step.mfu[0]) * seconds, float(found.step.hfu[0] - found.step.mfu[0]) * seconds
    causes = {
        PEAK: peak,
        AGAIN: again,
        BELOW: sum_of(parts[name] for name in COMPUTED) - peak - again,
        **{name: part for name, part in parts.items() if name not in COMPUTED},
    }
    if speed < 1.0:
        causes[Message.of("estimate.power_cap_words").text()] = seconds / speed - seconds
    rows, reached = [], 0.0
    for cause, added in causes.items():
        reached += added
        if abs(added) > LEAST_S:
            rows.append({"cause": cause, "added_s": added, "reached_s": reached})
    return rows


def _memory(setup: TrainingSetup, layouts: Layouts) -> list[Document]:
    """Divide the memory of the fullest chip by what fills it."""
    job = setup.job
    parts = training_memory(
        job.architecture, layouts.take([0]), global_batch_sequences=job.batch_sequences,
        sequence_tokens=job.spec.sequence_tokens, constants=setup.constants.training, recipe=setup.recipe,
    )  # fmt: skip
    names = ("weights", "gradients", "optimizer", "activations", "logits", "runtime")
    sizes = {name: float(getattr(parts, name)[0]) for name in names}
    free = setup.system.hbm_bytes - sum_of(sizes.values())
    return [{"pool": "train", "part": name, "bytes": size} for name, size in {**sizes, "free": max(free, 0.0)}.items()]


# -- layouts over tp x pp ----------------------------------------------------------------------------------------------


def layout_cells(facts: CaseFacts, setup: TrainingSetup, space: Layouts, every: LayoutSearch) -> list[Document]:
    """List the fastest layout of each tensor and pipeline size: its step time, or why none can run."""
    chips, speed = facts.case.chips, _speed(facts)
    tps = [1 << i for i in range(8) if 1 << i <= min(LARGEST_TP, 2 * facts.system.scaleup_chips)]
    pps = [1 << i for i in range(8) if 1 << i <= min(LARGEST_PP, chips)]
    cells = []
    for tp in tps:
        for pp in pps:
            mine = np.flatnonzero((every.layouts.tp == tp) & (every.layouts.pp == pp))
            cell: Document = {
                "tp": tp,
                "pp": pp,
                "seconds": None,
                "tokens_per_s_per_chip": None,
                "layout": "",
                "why_not": "",
            }
            if mine.size:  # the fastest first
                first = int(mine[0])
                cell |= {
                    "seconds": float(every.step.step_s[first]) / speed,
                    "tokens_per_s_per_chip": float(every.step.tokens_per_s[first]) * speed / chips,
                    "layout": layout_text(every.layouts.row(first)),
                }
            else:
                cell["why_not"] = _why_not(facts, setup, space.take((space.tp == tp) & (space.pp == pp)), tp, pp)
            cells.append(cell)
    return cells


def _why_not(facts: CaseFacts, setup: TrainingSetup, legal: Layouts, tp: int, pp: int) -> str:
    """Say why no layout of these sizes runs: against a rule, beyond the network, or beyond the memory."""
    if len(legal):
        carried = legal.take(carries(setup, legal))
        if not len(carried):
            return Message.of("estimate.groups_not_connected").text()
        needed: Floats = memory_needed(setup, carried)
        return Message.of(
            "estimate.memory_lacking",
            least=f"{needed.min() / GIGA:.1f}",
            most=f"{facts.system.hbm_bytes / GIGA:.1f}",
        ).text()
    chips = facts.case.chips
    if chips % (tp * pp):
        return Message.of("estimate.stage_not_dividing", chips=chips).text()
    rules = legal_rules(
        facts.architecture, Layouts.of(tp=tp, pp=pp, dp=chips // (tp * pp)), global_batch_sequences=facts.job.batch_sequences,
        sequence_tokens=facts.job.spec.sequence_tokens, scaleup_chips=facts.system.scaleup_chips,
    )  # fmt: skip
    broken = [words_of_rule(rule) for rule, kept in rules if not kept[0]]
    return (
        Message.of("estimate.against_rule", rule=broken[0]).text()
        if broken
        else Message.of("estimate.no_legal_layout").text()
    )


def is_training(document: Mapping[str, Any]) -> bool:
    """Tell whether a case is of training."""
    workload = document.get("workload")
    return isinstance(workload, Mapping) and workload.get("kind") == "training"
