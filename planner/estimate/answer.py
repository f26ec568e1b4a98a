"""Answer one case, of training, serving or reinforcement learning, as a document and as tables: `flopwatt estimate`.

Cases are read in `planner.estimate.case`, serving cases are answered in `planner.estimate.serving`,
cases of reinforcement learning in `planner.estimate.reinforcement`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.units import GIGA, KILO, MILLI, MWH_J
from models.training.layouts import OFFLOAD, RECOMPUTE, Layouts
from models.training.pipeline import SCHEDULES
from planner.errors import Issue, SpecError
from planner.estimate import reinforcement
from planner.estimate.case import CaseFacts, best_layouts, nothing_fits, resolve_case
from planner.estimate.goodput import loss_table
from planner.estimate.limits import SearchLimits
from planner.estimate.memory import memory_table, shortfall
from planner.estimate.power import power_document, training_draw
from planner.estimate.routing import training_routing
from planner.estimate.serving import answer_serving
from planner.estimate.sessions import session_table
from planner.evaluate.interruptions import goodput_losses_of, goodput_of
from planner.facts import Fact
from planner.facts import rows as fact_rows
from planner.messages import Message, named
from planner.problem.facts import ServingFacts, TrainingFacts
from planner.problem.provenance import assumption_rows
from planner.report.notes import HEADING
from planner.report.words import cap_words, with_unit
from planner.resolve.stack.anchors import anchor_facts
from planner.resolve.stack.formats import format_facts
from planner.resolve.stack.own import architecture_facts, unused_run_facts
from planner.spec.reinforcement import Reinforcement
from planner.spec.serving import BY_PREFIX
from planner.spec.workloads import Serving, Training

SERVING, TRAINING = "serving", "training"


@dataclass(frozen=True, slots=True)
class Estimate:
    """The answer as plain values, or None with the reason why nothing fits."""

    answer: dict[str, Any] | None
    reason: str = ""
    lack: dict[str, Any] | None = None  # memory lacking in the layout that lacks least


def estimate(
    document: Mapping[str, Any], overlays: Sequence[Path] = (), limits: SearchLimits | None = None
) -> Estimate:
    """Answer one case, as far as its limits let it. Raises SpecError with all problems at once, or LimitReached."""
    limits = limits or SearchLimits()
    facts = resolve_case(document, overlays)
    limits.check()
    found = _answer(document, facts, overlays, limits)
    if isinstance(found, str):
        return Estimate(None, found, shortfall(facts) if isinstance(facts.case.workload, Serving) else None)
    found["assumptions"] = assumption_rows(facts.ledger.assumptions.values())
    outside = [Fact("system", message) for message in found.pop("outside", ())]
    found["notes"] = fact_rows([*_notes(facts), *outside])
    found["catalog_digest"] = facts.ledger.catalog.digest
    return Estimate(found)


def _notes(facts: CaseFacts) -> list[Fact]:
    """List what of a case is at odds with known figures, how figures of the user's own were read, and which own runs it does not use."""
    case, catalog = facts.case, facts.ledger.catalog
    name = case.workload.architecture
    read = architecture_facts(catalog.get("architectures", name), facts.architecture)
    if isinstance(case.workload, Reinforcement):
        workload: ServingFacts | TrainingFacts = facts.learning
    else:
        workload = facts.job if isinstance(case.workload, Training) else facts.serving
    found = [*facts.notes, *unused_run_facts(catalog, "workload", workload, facts.sides), *read]
    if isinstance(workload, ServingFacts):
        found += [*format_facts(workload, name, facts.sides), *anchor_facts(catalog, "workload", workload, facts.sides)]
    return found


def _answer(
    document: Mapping[str, Any], facts: CaseFacts, overlays: Sequence[Path], limits: SearchLimits
) -> dict[str, Any] | str:
    """Answer a case by its kind, or state that nothing fits."""
    workload = facts.case.workload
    if not isinstance(workload, Reinforcement):
        _only(facts, reinforcement.KIND, "rollout_chips")
    if isinstance(workload, Reinforcement):
        _only(facts, SERVING, "load", "pools")
        return reinforcement.answer_reinforcement(facts)
    return _training(document, facts, overlays, limits) if isinstance(workload, Training) else answer_serving(facts)


# -- training ----------------------------------------------------------------------------------------------------------


def _training(
    document: Mapping[str, Any], facts: CaseFacts, overlays: Sequence[Path], limits: SearchLimits
) -> dict[str, Any] | str:
    """Answer a training case by its fastest layout, or state that none fits."""
    _only(facts, SERVING, "load", "pools")
    rows, counts = best_layouts(document, overlays, 1, limits)
    if not rows:
        return nothing_fits(facts, counts)
    best, job, system = rows[0], facts.job, facts.system
    draw = training_draw(facts.power_cap, system, facts.constants.power)
    it_w = math.ceil(facts.case.chips / system.chips) * draw.system_w[0]
    goodput = goodput_of(job, facts.case.chips, facts.constants.reliability)
    tokens_per_s = best["tokens_per_s"] * goodput
    run_s, spread = job.spec.tokens / tokens_per_s, best["interval_80"]["step_s"]
    return {
        "kind": TRAINING,
        "system": facts.system.name,
        "chips": facts.case.chips,
        "precision": best["precision"],
        "layout": best["layout"],
        "layouts": counts,
        "step_s": best["step_s"],
        "run_s": run_s,
        "interval_80": {"step_s": spread, "run_s": [run_s * bound / best["step_s"] for bound in spread]},
        "tier": best["tier"],
        "tokens_per_s": best["tokens_per_s"],
        "mfu": best["mfu"],
        "hfu": best["hfu"],
        "goodput": goodput,
        "goodput_losses": goodput_losses_of(job, facts.case.chips, facts.constants.reliability),
        **power_document(facts.power_cap, draw.speed, it_w, tokens_per_s),
        "it_energy_j": it_w * run_s,
        "memory_bytes": best["memory_bytes"],
        "hbm_bytes": facts.system.hbm_bytes,
        "breakdown_s": best["breakdown_s"],
        **training_routing(facts.architecture, Layouts.of(**best["layout"]), facts.job.spec.sequence_tokens),
    }


def _routed(tiers: Mapping[str, Any]) -> str:
    """Write how prefixes are routed; empty where nothing is stated."""
    if "routing" not in tiers:
        return ""
    code = "estimate.routed_by_prefix" if tiers["routing"] == BY_PREFIX else "estimate.routed_at_random"
    return Message.of(code, count=tiers["workers"], load=f"{tiers['imbalance']:.2f}").text()


def _only(facts: CaseFacts, kind: str, *names: str) -> None:
    """Raise SpecError where a case states fields that mean nothing for its kind of workload."""
    if given := [name for name in names if getattr(facts.case, name) is not None]:
        raise SpecError(Issue(name, Message.of("estimate.key_of_another_kind", kind=kind).text()) for name in given)


# -- for people --------------------------------------------------------------------------------------------------------


def sections(answer: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """List the tables of an answer as (heading, rows)."""
    understood = [
        {"about": row["path"], "note": row["text"] + (f" [{row['source']}]" if row["source"] else "")}
        for row in answer["notes"]
    ]
    return [*([(HEADING, understood)] if understood else []), *_sections(answer)]


def _sections(answer: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    if answer["kind"] == reinforcement.KIND:
        return reinforcement.sections(answer)
    if answer["kind"] == TRAINING:
        low, high = answer["interval_80"]["step_s"]
        head = {
            "step": f"{answer['step_s']:.4g} s", "80 % of runs": f"{low:.4g} to {high:.4g} s", "MFU": f"{answer['mfu']:.1%}", "HFU": f"{answer['hfu']:.1%}",
            "tokens/s": f"{answer['tokens_per_s']:,.0f}", "goodput": f"{answer['goodput']:.1%}", "memory": _memory(answer),
        }  # fmt: skip
        sizes = answer["layout"]
        layout = sizes | {
            "recompute": RECOMPUTE[sizes["recompute"]], "schedule": SCHEDULES[sizes["schedule"]].name, "offload": OFFLOAD[sizes["offload"]],
            "precision": answer["precision"],
        }  # fmt: skip
        parts = [
            {"part": named("part", name), "seconds": seconds, "share": f"{seconds / answer['step_s']:.1%}"}
            for name, seconds in answer["breakdown_s"].items()
        ]
        return [
            ("Step", [head]),
            ("Layout", [layout]),
            (Message.of("estimate.head_power").text(), [_power_row(answer)]),
            (Message.of("estimate.head_step").text(), parts),
            loss_table(answer["goodput_losses"]),
        ]
    head = {
        "mode": answer["mode"], "precision": answer["precision"], "requests/s": answer["requests_per_s"], "tokens/s": answer["tokens_per_s"],
        "per chip": answer["tokens_per_s_per_chip"], "batch": answer["batch"], "MFU": f"{answer['mfu']:.1%}", "memory": _memory(answer),
    }  # fmt: skip
    latencies = [
        {
            "latency (ms)": metric,
            **{name: value / MILLI for name, value in row.items()},
            "80 % of runs, mean": _span(answer["interval_80"][metric]["mean"]),
        }
        for metric, row in answer["latency_s"].items()
    ]
    found = [
        (Message.of("estimate.head_answer").text(), [head]),
        ("Pools", [_pool_row(pool) for pool in answer["pools"]]),
        (Message.of("memory.heading").text(), memory_table(answer["memory"])),
        ("Latencies", latencies),
        (
            Message.of("estimate.head_first_token").text(),
            [
                {"part": row["part"], "ms": f"{row['mean_s'] / MILLI:,.3f}", "share": f"{row['share']:.1%}"}
                for row in answer["first_token"]
            ],
        ),
        (Message.of("estimate.head_power").text(), [_power_row(answer)]),
    ]
    if answer["slo"]:
        found.append(("Limits (s)", answer["slo"]))
    if "session" in answer:
        found.append(("Sessions", session_table(answer["session"])))
    for row in answer.get("queues", ()):
        first = {f"first token, {name} (ms)": seconds / MILLI for name, seconds in row["ttft_s"].items()}
        found.append((f"Class {row['class']}", [{"mean wait (ms)": row["wait_s"] / MILLI, **first}]))
    if answer["tiers"]:
        found.append(
            (
                Message.of(
                    "estimate.head_cache", share=f"{answer['tiers']['hit_rate']:.1%}", routed=_routed(answer["tiers"])
                ).text(),
                [_tier_row(row) for row in answer["tiers"]["tiers"]],
            )
        )
    if answer["speculation"]:
        found.append((Message.of("estimate.head_speculation").text(), answer["speculation"]["by_batch"]))
    found.append(
        (Message.of("estimate.head_waterfall").text(), [
            {"cause": row["cause"], "adds (ms)": row["added_s"] / MILLI, "tokens/s reached": row["tokens_per_s"]} for row in answer["waterfall"]
        ])
    )  # fmt: skip
    return [*found, (Message.of("estimate.head_pools").text(), [{"answer": answer["disaggregation"]["answer"]}])]


def _pool_row(pool: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in pool.items() if not name.endswith(("_bytes", "_w"))}
    return shown | {"layout": _sizes(pool["layout"]), "memory": _memory(pool), "power (kW)": pool["it_power_w"] / KILO}


def _power_row(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Write the power of the systems, and how fast they are under their cap where one is stated."""
    shown = {"power (kW)": answer["it_power_w"] / KILO, "energy (J/token)": answer["it_energy_j_per_token"]}
    if "it_energy_j" in answer:
        shown["energy of the run (MWh)"] = answer["it_energy_j"] / MWH_J
    if answer["power_cap"] is None:
        return shown
    return {"power cap": cap_words(answer.get("power_cap")), "speed under it": f"{answer['speed']:.1%}", **shown}


def _tier_row(row: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in row.items() if value is not None}
    return shown | {"price": with_unit(row["price"]["total"], row["price"]["currency"])} if row["price"] else shown


def _span(bounds: Sequence[float | None]) -> str:
    low, high = (None if bound is None else f"{bound / MILLI:.4g}" for bound in bounds)
    return f"{low} to {high}" if high else Message.of("estimate.no_upper_bound", low=low or "").text()


def _memory(answer: Mapping[str, Any]) -> str:
    return f"{answer['memory_bytes'] / GIGA:.1f} of {answer['hbm_bytes'] / GIGA:.0f} GB"


def _sizes(layout: Mapping[str, int]) -> str:
    return " ".join(f"{name}{size}" for name, size in layout.items() if size != 1) or "1 chip"
