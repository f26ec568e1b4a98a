"""Characterise the workloads of a case or a spec: what each asks of any chip, then which systems can carry it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.lookup import Catalog
from catalog.units import GIGA, KILO, MEGA, MICRO, PETA, TERA
from planner.design.characterise.chips import able_systems
from planner.design.characterise.needs import (
    TOLERATED,
    on_networks,
    reinforcement_needs,
    serving_needs,
    training_needs,
)
from planner.errors import Issue, SpecError
from planner.estimate.case import resolve_case, without_demand
from planner.estimate.limits import SearchLimits
from planner.messages import Message
from planner.report.words import amount
from planner.resolve.names import catalog_of
from planner.resolve.resolver import parsed
from planner.spec.old_keys import OF_CASES, with_new_keys
from planner.spec.reinforcement import Reinforcement
from planner.spec.workloads import Training

REFERENCE = "DGX H100"  # resolved for the shape of a workload of a spec; none of its figures are used
NOTE = (
    "bandwidths and rates are those of all chips of a replica or job together; no efficiency of a real chip is in them"
)


def characterise(
    document: Mapping[str, Any], overlays: Sequence[Path] = (), limits: SearchLimits | None = None
) -> dict[str, Any]:
    """Characterise every workload of a case or spec, as far as the limits let it. Raises SpecError with all problems at once, or LimitReached."""
    limits = limits or SearchLimits()
    if "workloads" in document:
        found, digest = _of_spec(document, overlays, limits)
    else:
        found, digest = _of_case(document, overlays, limits)
    tried = [row["tried"] for workload in found for row in workload["systems"]]
    if not any(tried):
        limits.check()
    return {
        "kind": "characterisation",
        **limits.left_out("systems", tried.count(False), len(tried)),
        "workloads": found,
        "note": NOTE,
        "tolerated_share": TOLERATED,
        "catalog_digest": digest,
    }


def _of_case(
    document: Mapping[str, Any], overlays: Sequence[Path], limits: SearchLimits
) -> tuple[list[dict[str, Any]], str]:
    facts = resolve_case(document, overlays)
    catalog = facts.ledger.catalog
    today, _ = with_new_keys(document, OF_CASES)
    plain = {name: value for name, value in today.items() if name in ("workload", "topology", "fabric")}
    return [_characterised("workload", plain, catalog, catalog.names("systems"), limits)], catalog.digest


def _of_spec(
    document: Mapping[str, Any], overlays: Sequence[Path], limits: SearchLimits
) -> tuple[list[dict[str, Any]], str]:
    """Characterise each workload on the systems that the spec names, or on all where it names none."""
    spec = parsed(document, overlays)
    catalog = catalog_of(spec, overlays, {})
    named = [offer.system for offer in spec.offers or ()] + [name for site in spec.sites for name in site.systems or ()]
    problems = [Issue("sites", f'unknown system "{name}"') for name in named if not catalog.has("systems", name)]
    if problems:
        raise SpecError(problems)
    systems = list(dict.fromkeys(catalog.get("systems", name).name for name in named)) or list(catalog.names("systems"))
    found = [
        _characterised(f"workloads[{i}]", {"workload": without_demand(workload)}, catalog, systems, limits)
        for i, workload in enumerate(document["workloads"])
    ]
    return found, catalog.digest


def _characterised(
    path: str, case: Mapping[str, Any], catalog: Catalog, systems: Sequence[str], limits: SearchLimits
) -> dict[str, Any]:
    try:
        facts = resolve_case({**case, "system": REFERENCE, "chips": 1}, catalog=catalog)
    except SpecError as error:
        raise SpecError(
            Issue(problem.path.replace("workload", path, 1), problem.message) for problem in error.problems
        ) from None
    workload = facts.case.workload
    if isinstance(workload, Reinforcement):
        needs = reinforcement_needs(facts.learning)
    else:
        needs = training_needs(facts.job) if isinstance(workload, Training) else serving_needs(facts.serving)
    return {
        "name": workload.name,
        "kind": workload.kind,
        "architecture": workload.architecture,
        **needs,
        "networks": on_networks(catalog, needs["collectives"]),
        "systems": able_systems(case, catalog, systems, limits),
    }


# -- for people --------------------------------------------------------------------------------------------------------


def sections(answer: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """List the tables of an answer as (heading, rows)."""
    found: list[tuple[str, list[dict[str, Any]]]] = []
    for workload in answer["workloads"]:
        name = f"{workload['name']} ({workload['architecture']})"
        found.append(
            (
                Message.of("characterise.phases", workload=name).text(),
                [_phase_row(phase) for phase in workload["phases"]],
            )
        )
        found += [
            (
                Message.of("characterise.operators", workload=name, phase=p["phase"]).text(),
                [_operator_row(o) for o in p["operators"]],
            )
            for p in workload["phases"][:2]
        ]
        if "bandwidth" in workload:
            found.append(
                (
                    Message.of("characterise.bandwidth", workload=name).text(),
                    [_bandwidth_row(row) for row in workload["bandwidth"]],
                )
            )
        elif "iteration_flop" in workload:
            found.append((Message.of("characterise.iteration", workload=name).text(), [_iteration_row(workload)]))
        else:
            found.append((Message.of("characterise.by_deadline", workload=name).text(), [_job_row(workload)]))
        share = f"{answer['tolerated_share']:.0%}"
        found.append(
            (
                Message.of("characterise.collectives", workload=name, share=share).text(),
                [_collective_row(row) for row in workload["collectives"]],
            )
        )
        if workload["networks"]:
            found.append(
                (
                    Message.of("characterise.all_reduce", workload=name).text(),
                    [_network_row(row) for row in workload["networks"]],
                )
            )
        found.append(
            (
                Message.of("characterise.precisions", workload=name).text(),
                [_precision_row(row) for row in workload["precisions"]],
            )
        )
        if "ranks" in workload:
            found.append(
                (
                    Message.of("characterise.per_rank", workload=name).text(),
                    [_rank_row(row) for row in workload["ranks"]],
                )
            )
        for heading, rows in _by_ability(workload["systems"]):
            found.append((Message.of(heading, workload=name).text(), rows))
        value = [_value_row(row) for row in answer.get("value", ()) if row["workload"] == workload["name"]]
        if value:
            found.append((Message.of("characterise.value", workload=name).text(), value))
    return found


def _by_ability(systems: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    able = [_system_row(row) for row in systems if row["can"]]
    others = [{"system": row["system"], "why not": row["why_not"]} for row in systems if not row["can"]]
    return [part for part in (("characterise.able", able), ("characterise.unable", others)) if part[1]]


def _phase_row(phase: Mapping[str, Any]) -> dict[str, Any]:
    most = max(phase["operators"], key=lambda row: row["bytes"])
    return {
        "phase": phase["phase"],
        "TFLOP": phase["flop"] / TERA,
        "GB moved": phase["bytes"] / GIGA,
        "FLOP/byte": phase["flop_per_byte"],
        "most bytes": f"{most['operator']} ({most['share_of_bytes']:.0%})",
    }


def _operator_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operator": row["operator"],
        "TFLOP": row["flop"] / TERA,
        "GB moved": row["bytes"] / GIGA,
        "FLOP/byte": row["flop_per_byte"],
        "of FLOP": f"{row['share_of_flop']:.1%}",
        "of bytes": f"{row['share_of_bytes']:.1%}",
    }


def _bandwidth_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "batch": row["batch"],
        "GB per step": row["bytes_per_step"] / GIGA,
        "GB per token": row["bytes_per_token"] / GIGA,
        "TB/s needed": _scaled(row["peak_bytes_per_s"], TERA),
        "TFLOP/s needed": _scaled(row["peak_flop_per_s"], TERA),
    }


def _job_row(workload: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "steps": workload["steps"],
        "seconds per step": workload["step_s"],
        "PFLOP/s sustained": workload["sustained_flop_per_s"] / PETA,
        "weights, gradients, optimizer (GB)": workload["state_bytes"] / GIGA,
    }


def _iteration_row(workload: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "iterations": workload["iterations"],
        "seconds of one": workload["iteration_s"],
        "PFLOP of one": workload["iteration_flop"] / PETA,
        "PFLOP/s sustained": _scaled(workload["sustained_flop_per_s"], PETA),
        "weights, gradients, optimizer (GB)": workload["state_bytes"] / GIGA,
    }


def _collective_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "collective": row["collective"],
        "per step": row["per_step"],
        "MB": row["bytes"] / MEGA,
        "may take (us)": _scaled(row["tolerated_s"], MICRO),
        "GB/s for that": _scaled(row["bytes_per_s"], GIGA),
    }


def _network_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "network": row["network"] + (" (claimed)" if row["claimed"] else ""),
        "collective": row["collective"].partition(", ")[2],
        "latency (us)": row["latency_s"] / MICRO,
        "algorithm": row["algorithm"],
        "takes (us)": row["seconds"] / MICRO,
        "waiting": f"{row['waiting']:.0%}",
        "tolerated": {True: "yes", False: "no", None: ""}[row["tolerated"]],
        "jitter for the claimed stalls (us)": _scaled(row["jitter_for_claim_s"], MICRO),
    }


def _precision_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "precision": row["precision"],
        "weights (GB)": row["weight_bytes"] / GIGA,
        "over BF16": row["over_bf16"],
        "KV cache": row["kv_precision"],
        "kept wider": f"{row['kept_wider']:.1%}",
        "in the way": row["in_the_way"] or "nothing in its shape",
    }


def _rank_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "parallel": f"{row['parallel']}{row['width']}",
        "weights (GB)": row["weight_bytes"] / GIGA,
        "KV cache of a request (GB)": row["kv_bytes_per_request"] / GIGA,
        "makes sense": "yes" if row["sensible"] else row["why_not"],
    }


def _system_row(row: Mapping[str, Any]) -> dict[str, Any]:
    shown = {
        "system": row["system"],
        "systems": row["systems"],
        "precision": row["precision"],
        "layout": " ".join(f"{name}{size}" for name, size in row["layout"].items() if size > 1) or "1 chip",
        "ridge (FLOP/byte)": row["ridge_flop_per_byte"],
    }
    if "tokens_per_s_per_chip" in row:
        return shown | {
            "compute-bound from batch": row["critical_tokens"],
            "tokens/s per chip": row["tokens_per_s_per_chip"],
        }
    if "way" in row:
        shown |= {"way": row["way"], "iteration (s)": row["iteration_s"]}
    return shown | {"memory (GB per chip)": row["memory_bytes"] / GIGA, "peak (PFLOP/s)": row["peak_flop_per_s"] / PETA}


def _value_row(row: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"system": row["system"], "how": row["how"]}
    if row["tokens_per_s"] is None:
        return {**shown, "site": Message.of("characterise.no_point").text()}
    per_price = row["tokens_per_s_per_price"]
    return {
        **shown,
        "site": row["site"],
        "tokens/s": row["tokens_per_s"],
        "80 % of runs": " to ".join(amount(bound) for bound in row["interval_80"]),
        "tokens/s per 1,000 of price": None if per_price is None else per_price * KILO,
        "cost per hour": row["cost_per_h"],
        "M tokens per unit of cost": row["tokens_per_cost"] / MEGA,
        "tokens/s per W": row["tokens_per_j"],
    }


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit
