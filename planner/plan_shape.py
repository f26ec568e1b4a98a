"""The shape of a plan document: what stands where, and of which type. What it means is in docs/plan.md.

Whoever reads a plan may rely on it: `planner.plan.parse_plan` refuses what has another shape, with every place. Not here: whether the
values are right (`planner.verify`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.errors import Problem

STATUSES = ("optimal", "within_gap", "limit", "infeasible", "unbounded")
LARGEST = 1e300  # numbers beyond it overflow in sums
MAX_PROBLEMS = 50  # of a malformed plan


@dataclass(frozen=True, slots=True)
class Each:
    """An object with keys of any name, and values of one shape."""

    value: Any


@dataclass(frozen=True, slots=True)
class Either:
    """Null, or a value of a shape."""

    value: Any


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A value of one of several shapes, none of which is an object or a list of objects."""

    shapes: tuple[Any, ...]


NUMBER, WHOLE, TEXT, FLAG, ANY = "a number", "a whole number", "a text", "true or false", "anything"

# A key that ends in "?" may be left out. Lists have one shape for all entries.
LINE = {"component": TEXT, "site": TEXT, "system": TEXT, "how": TEXT, "amount": NUMBER}
POOL = {
    "role": TEXT, "system": TEXT, "how": TEXT, "fabric": TEXT, "fabric_size": Either(WHOLE), "offer": TEXT, "tenant?": TEXT, "precision": TEXT,
    "kv_precision?": TEXT, "waiting?": TEXT, "encoding?": TEXT, "layout": Each(WHOLE), "batch": WHOLE, "workers": WHOLE, "systems_per_replica": NUMBER, "spares?": NUMBER, "extra_power_w": NUMBER,
    "memory_bytes?": NUMBER,
}  # fmt: skip
PLACEMENT = {
    "order": [AnyOf((TEXT, [TEXT]))], "busiest_link_s": NUMBER, "in_number_order_s": Either(NUMBER), "worst_s": NUMBER, "tried": WHOLE,
    "factors?": ANY,
}  # fmt: skip
ITERATION = {
    "way": TEXT, "iteration_s": NUMBER, "iterations_per_hour": NUMBER, "tokens": NUMBER, "parts_s": Each(NUMBER), "binds": TEXT, "idle": Each(NUMBER),
    "environments?": {"slots": WHOLE, "cores": NUMBER, "price_per_h?": NUMBER},
    "rollout": Either({"precision": TEXT, "layout": Each(WHOLE), "replicas": WHOLE, "slots": WHOLE, "environment_load": NUMBER}),
    "splits": [{"precision": TEXT, "layout": Each(WHOLE), "rollout": Either({"precision": TEXT, "layout": Each(WHOLE)}), "way": TEXT, "update_systems": WHOLE, "rollout_systems": WHOLE, "iteration_s": NUMBER, "tokens_per_s": NUMBER, "binds": TEXT, "idle": Each(NUMBER)}],
}  # fmt: skip
CLASS = {"class": TEXT, "wait_s": NUMBER, "ttft_s": Each(NUMBER)}
QUEUE = {
    **CLASS,
    "priority": WHOLE,
    "share": NUMBER,
    "slo": [{"percentile": TEXT, "limit_s": NUMBER, "slack_s": NUMBER}],
}
POINT = {
    "id": TEXT, "site": TEXT, "pool": Either(TEXT), "power_cap?": NUMBER, "pools": [POOL], "capacity": NUMBER, "capacity_unit": TEXT,
    "latency_s": Each(NUMBER), "time_s": Each(NUMBER), "first_token_s?": Each(NUMBER), "call_s?": NUMBER, "classes?": [CLASS], "interval_80": Either(Each([NUMBER])), "tier": TEXT, "breakdown": Each(NUMBER),
    "mfu": NUMBER, "hfu?": NUMBER, "goodput": NUMBER, "memory_bytes": NUMBER, "iteration?": ITERATION, "placement": Either(PLACEMENT), "peak_replicas": NUMBER,
}  # fmt: skip
SESSION = {
    "slot": WHOLE, "calls_per_s": NUMBER, "tasks_per_s": NUMBER, "sessions": NUMBER, "waiting_sessions": NUMBER, "waiting_bytes": NUMBER,
    "prompt_tokens": NUMBER, "waiting": Each(NUMBER),
}  # fmt: skip
PREFIX_ROUTING = {
    "policy": TEXT, "workers": WHOLE, "systems": NUMBER, "imbalance": NUMBER,
    "points": [{"point": TEXT, "hit_rate": NUMBER, "hit_rate_other": NUMBER, "capacity_other": NUMBER}],
}  # fmt: skip
WORKLOAD = {
    "name": TEXT, "of?": TEXT, "architecture?": TEXT, "kind": TEXT, "points": [POINT], "tokens": NUMBER, "cost": NUMBER,
    "cost_per_million_tokens": Either(NUMBER), "utilisation": Either(NUMBER), "mfu": Either(NUMBER), "hfu?": Either(NUMBER), "grade?": Either(TEXT),
    "revenue?": NUMBER, "margin?": NUMBER, "iterations?": NUMBER, "cost_per_iteration?": Either(NUMBER), "session?": SESSION, "queues?": [QUEUE],
    "prefix_routing?": PREFIX_ROUTING,
    "slo": [{"metric": TEXT, "percentile": TEXT, "limit_s": NUMBER, "predicted_s": Either(NUMBER), "slack_s": Either(NUMBER)}],
}  # fmt: skip
ROUTE = {
    "origin": TEXT,
    "site": TEXT,
    "workload": TEXT,
    "slot?": WHOLE,
    "tokens_per_s": NUMBER,
    "pool": TEXT,
    "line?": TEXT,
}
FLEET = {
    "site": TEXT, "system": TEXT, "count": WHOLE, "unit?": TEXT, "how": TEXT, "phase": Either(WHOLE), "fabric": TEXT, "fabric_size": Either(WHOLE),
    "offer": TEXT, "tenant?": TEXT, "obtained?": Either(TEXT), "windows?": [WHOLE], "price?": NUMBER,
}  # fmt: skip
FABRIC = {
    "site": TEXT, "system": TEXT, "design": TEXT, "size": Either(WHOLE), "systems": WHOLE, "tiers": WHOLE, "ports": WHOLE, "switches": WHOLE,
    "links": WHOLE, "copper_links": WHOLE, "optics": WHOLE, "power_w": NUMBER, "price": NUMBER, "charged": NUMBER, "bisection_bytes_per_s": NUMBER,
    "uniform_bytes_per_s": NUMBER, "mean_hops": NUMBER, "most_hops": WHOLE, "latency_s": Either(NUMBER),
    "instead?": [{"design": TEXT, "price_per_system": NUMBER, "uniform_bytes_per_s": NUMBER}],
}  # fmt: skip
SLOT = {
    "site": TEXT, "slot": WHOLE, "phase": WHOLE, "day?": ANY, "hour_utc": WHOLE, "seconds": NUMBER, "power_w": NUMBER, "own_power_w": NUMBER,
    "energy_j": NUMBER, "price_per_j": NUMBER, "carbon_kg_per_j": NUMBER, "active": Each(NUMBER), "resident?": Each([WHOLE]), "grid_w?": NUMBER, "ppa_w?": Each(NUMBER),
    "charge_w?": NUMBER, "discharge_w?": NUMBER, "stored_j?": NUMBER,
}  # fmt: skip
DEPLOYMENT = {
    "point": TEXT, "workload": TEXT, "site": TEXT, "replicas": WHOLE, "load_s": NUMBER, "load_parts_s?": Each(NUMBER), "loads": NUMBER,
    "pools": [{"role": TEXT, "system": TEXT, "workers_per_replica": WHOLE, "systems_per_worker": NUMBER, "workers": WHOLE, "least_workers": WHOLE,
               "systems": NUMBER, "spare_workers?": WHOLE}],
}  # fmt: skip
PACKED = {
    "site": TEXT, "system": TEXT, "how": TEXT, "fabric": TEXT, "fabric_size": Either(WHOLE), "offer": TEXT, "tenant?": TEXT, "slot": WHOLE, "held": WHOLE, "nodes": WHOLE,
    "partly": WHOLE, "free_chips": WHOLE, "stranded_chips": WHOLE, "workers": WHOLE, "lost_packed": WHOLE, "lost_spread": WHOLE,
    "nodes_without_moves": Either(WHOLE), "mean_nodes": NUMBER, "mean_nodes_without_moves": Either(NUMBER),
    "shapes": [{"point": TEXT, "role": TEXT, "chips": WHOLE, "workers": WHOLE}],
}  # fmt: skip
KV_TIER = {
    "site": TEXT, "system": TEXT, "tier": TEXT, "systems": WHOLE, "bytes": NUMBER, "shared_by": WHOLE, "price": NUMBER, "power_w": NUMBER,
    "points": [{"point": TEXT, "computed_share": NUMBER, "computed_without": NUMBER, "capacity_without": NUMBER}], "systems_saved": NUMBER,
    "earns": NUMBER,
}  # fmt: skip
LIMIT = {
    "path": TEXT, "name": TEXT, "value": NUMBER, "limit": NUMBER, "unit": TEXT, "slack": NUMBER, "marginal_value": Either(NUMBER),
    "marginal_unit": Either(TEXT), "marginal_value_divisible?": Either(NUMBER), "note?": TEXT,
}  # fmt: skip
PHASE = {
    "name": TEXT, "start": TEXT, "end": TEXT, "windows": [WHOLE], "capital": NUMBER, "paid": Either(NUMBER), "residual": NUMBER, "chips": WHOLE,
    "cost": NUMBER, "tokens": Each(NUMBER), "cost_per_million_tokens": Either(NUMBER),
    "pools": [{"workload": TEXT, "role": TEXT, "system": TEXT, "chips": NUMBER}],
}  # fmt: skip
CABLE = {
    "line": TEXT, "kind": TEXT, "units": Either(WHOLE), "capacity_bytes_per_s": Either(NUMBER), "ready_s": NUMBER, "busiest_slot": WHOLE,
    "busiest_from": TEXT, "peak_bytes_per_s": NUMBER, "use": Either(NUMBER), "cost": Each(NUMBER),
    "traffic": [{"workload": TEXT, "traffic": TEXT, "bytes": NUMBER}],
}  # fmt: skip
STREAM = {
    "workload": TEXT, "traffic": TEXT, "from": TEXT, "to": TEXT, "kind": TEXT, "phases": [WHOLE], "share": NUMBER
}  # fmt: skip
METER = {
    "site": TEXT, "item": TEXT, "name": TEXT, "size": NUMBER, "unit": TEXT, "energy_j": Either(NUMBER), "cost": NUMBER, "carbon_kg": Either(NUMBER)
}  # fmt: skip
WITHOUT = {
    "without": TEXT, "status": TEXT, "architectures": [TEXT], "value": Either(NUMBER), "bound": Either(NUMBER), "difference": Either(NUMBER)
}  # fmt: skip
QUALITY = {
    "workload": TEXT, "floor": NUMBER, "source": TEXT, "mix": TEXT, "reached": NUMBER, "lowest_hour": NUMBER, "runner_up?": Either(WITHOUT),
    "architectures": [{"architecture": TEXT, "quality": NUMBER, "share": NUMBER, "name": Either(TEXT)}],
}  # fmt: skip
POSTPONED = {
    "workload": TEXT, "path": TEXT, "priority": WHOLE, "asked_s": NUMBER, "deadline_s": Either(NUMBER), "waits_for": Either([TEXT]),
    "first": Either({"postponed": Each(Either(NUMBER)), "difference": Either(NUMBER)}),
}  # fmt: skip
DISPATCH = {
    "slots": WHOLE, "cost": NUMBER, "carbon_kg": NUMBER, "difference": NUMBER, "unmet": NUMBER, "unfinished": NUMBER, "left_out": [TEXT],
    "seconds": NUMBER,
}  # fmt: skip
FACT = {"path": TEXT, "code": TEXT, "arguments": Each(AnyOf((NUMBER, TEXT))), "text": TEXT, "source": TEXT}
DIAGNOSIS = {
    "conflict_of?": TEXT, "conflict": [{"path": TEXT, "name": TEXT, "words": TEXT}],
    "repair": [{"path": TEXT, "from": ANY, "to": ANY, "unit?": Either(TEXT), "words": TEXT}], "repair_checked": FLAG,
    "reach?": [{"workload": Either(TEXT), "at_most": NUMBER}],
}  # fmt: skip
OUTCOME = {
    "worlds": WHOLE, "kept": NUMBER, "workloads": Each(NUMBER), "budget": NUMBER, "mean_undone": Each(NUMBER), "cost": Each(NUMBER), "seed?": WHOLE
}  # fmt: skip
ROBUSTNESS = {
    "confidence": NUMBER, "measure": TEXT, "sampled": {**OUTCOME, "seed": WHOLE}, "fresh": {**OUTCOME, "seed": WHOLE},
    "nominal": {**OUTCOME, "value": NUMBER}, "price": NUMBER, "worlds_in_program": WHOLE, "left_out": [TEXT],
    "prices": [{"path": TEXT, "low": NUMBER, "typical": NUMBER, "high": NUMBER, "unit": TEXT, "amount": NUMBER}],
    "uncertain": [{"what": TEXT, "of": TEXT, "metric": TEXT, "factors": [NUMBER]}], "levels": [NUMBER],
    "standing_by": [{"workload": TEXT, "site": TEXT, "power_cap?": NUMBER, "capacity?": NUMBER, "pools": [POOL]}],
}  # fmt: skip
CONFIDENCE = {
    "worlds": WHOLE, "seed": WHOLE, "kept": NUMBER, "open": NUMBER, "workloads": Each(NUMBER),
    "breaks_first": Either({"workload": TEXT, "promise": TEXT, "kept": NUMBER}),
    "surer": Either({"share": NUMBER, "cost": NUMBER, "systems": [{"site": TEXT, "system": TEXT, "how": TEXT, "count": WHOLE}]}), "left_out": [TEXT],
}  # fmt: skip
NOT_ROBUST = {"confidence": NUMBER, "reached": NUMBER, "words": TEXT}
SIMPLICITY = {
    "within": NUMBER, "deployments": WHOLE, "kinds": WHOLE, "sites": WHOLE, "fewest": FLAG,
    "ladder?": [{"deployments": WHOLE, "value": NUMBER, "above": NUMBER, "estimated": FLAG}],
    "best": {"value": NUMBER, "unit": TEXT, "gap?": Either(NUMBER), "deployments": WHOLE, "kinds": WHOLE, "sites": WHOLE},
}  # fmt: skip
LOOSER = {
    "workload": TEXT, "metric": TEXT, "percentile": TEXT, "limit_s": NUMBER, "system": TEXT, "share": NUMBER, "rate_per_chip": NUMBER,
    "steps": [{"limit_s": NUMBER, "times": NUMBER}], "worth": NUMBER,
}  # fmt: skip
SURETY = {
    "within": NUMBER, "plans": WHOLE, "kept": NUMBER, "kept_before": NUMBER, "value_before": NUMBER,
    "further": [{"site": TEXT, "system": TEXT, "how": TEXT, "count": WHOLE}],
}  # fmt: skip
OWNED = {
    "path": TEXT, "system": TEXT, "site": TEXT, "count": WHOLE, "kept": WHOLE, "moved": Each(WHOLE), "sold": WHOLE, "idle": WHOLE, "worth": NUMBER,
    "proceeds": NUMBER, "gain?": NUMBER,
}  # fmt: skip
PLAN = {
    "schema_version": WHOLE, "name": TEXT, "status": TEXT, "objective": {"sense": TEXT, "value": Either(NUMBER), "unit": TEXT},
    "bound": Either(NUMBER), "bound_of": TEXT, "gap": Either(NUMBER), "bound_divisible?": Either(NUMBER),
    "totals": Either({"cost": NUMBER, "carbon_kg": NUMBER, "energy_j": NUMBER, "tokens": NUMBER, "chips": WHOLE, "peak_power_w": NUMBER}),
    "replicas?": TEXT, "simplicity?": SIMPLICITY, "surety?": SURETY, "looser?": [LOOSER], "deployments?": [DEPLOYMENT], "packing?": [PACKED], "kv_tiers?": [KV_TIER], "lines?": [CABLE], "placements?": [STREAM],
    "fleet": [FLEET], "owned?": [OWNED], "fabrics": [FABRIC], "workloads": [WORKLOAD], "quality?": [QUALITY], "routes": [{**ROUTE, "slot": WHOLE}], "schedule": [SLOT],
    "spread?": [{"workload": TEXT, "zone": TEXT, "sites": [TEXT], "least_share": NUMBER, "largest_share": NUMBER}],
    "failures?": [{"zone": TEXT, "slot": WHOLE, "routes": [ROUTE], "active": Each(NUMBER)}], "electricity?": [METER], "phases?": [PHASE],
    "postponed?": [POSTPONED],
    "closed_loops?": [{"workload": TEXT, "sessions": NUMBER, "tasks_per_s": NUMBER, "reached": NUMBER}],
    "preemptions?": [
        {"workload": TEXT, "point": TEXT, "restart_s": NUMBER, "resumptions": NUMBER, "lost_s": NUMBER, "lost_share": NUMBER}
    ],
    "storage?": [
        {"workload": TEXT, "point": TEXT, "site": TEXT, "read_bytes_per_s": NUMBER, "checkpoint_bytes_per_s": NUMBER, "load_bytes": NUMBER,
         "load_s": NUMBER}
    ],
    "facility?": [
        {"site": TEXT, "system": TEXT, "systems": NUMBER, "racks_per_system": NUMBER, "racks": NUMBER, "rack_power_w": NUMBER, "cooling": [TEXT]}
    ],
    "dispatch?": Either(DISPATCH), "confidence?": CONFIDENCE, "robustness?": Either(Each(ANY)), "costs": Each(NUMBER), "cost_lines": [LINE], "carbon_lines": [LINE],
    "limits": [LIMIT],
    "runner_up": [
        {"site": TEXT, "system": Either(TEXT), "how": Either(TEXT), "margin": Either(NUMBER), "margin_unit": Either(TEXT), "words": TEXT}
    ],
    "dropped": Each(Each(WHOLE)),
    "notes?": [FACT], "reasons?": [FACT],
    "assumptions": [{"path": TEXT, "value": AnyOf((NUMBER, TEXT)), "unit": TEXT, "reason": TEXT, "share": Either(NUMBER)}],
    "provenance": [
        {"path": TEXT, "value": AnyOf((NUMBER, TEXT, [NUMBER])), "unit": TEXT, "source": [TEXT], "date": Either(TEXT), "confidence": TEXT, "kind": TEXT}
    ],
    "versions": Each(TEXT), "solver": Each(AnyOf((NUMBER, TEXT, FLAG))), "diagnosis": Either(DIAGNOSIS), "catalog_digest": TEXT, "spec": Each(ANY),
}  # fmt: skip


def shape_problems(document: Any) -> list[Problem]:
    """List the places of a plan document whose shape is not that of a plan, `MAX_PROBLEMS` at most."""
    found: list[Problem] = []
    for problem in _problems(document, PLAN, ""):
        found.append(problem)
        if len(found) == MAX_PROBLEMS:
            return found
    if not found and isinstance(document.get("robustness"), Mapping):
        shape = NOT_ROBUST if "reached" in document["robustness"] else ROBUSTNESS
        found += _problems(document["robustness"], shape, "robustness")
    found += [] if found else _contradictions(document)
    if not found and document["objective"]["value"] is not None and document["totals"] is None:
        found.append(Problem("totals", "expected an object, as the plan has an answer; got null"))
    return found[:MAX_PROBLEMS]


def _contradictions(document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the places at which rows of the right shape cannot be read together, whatever the plan is of."""
    if document["status"] not in STATUSES:
        yield Problem("status", f"expected one of {', '.join(STATUSES)}; got {_shown(document['status'])}")
    known = {row["slot"] for row in document["schedule"]}
    for i, row in enumerate(document["routes"]):
        if row["slot"] not in known:
            yield Problem(f"routes[{i}].slot", f"the schedule has no slot {row['slot']}")
    for i, workload in enumerate(document["workloads"]):
        for j, point in enumerate(workload["points"]):
            if workload["kind"] != "serving" and "run" not in point["time_s"]:
                yield Problem(f"workloads[{i}].points[{j}].time_s.run", "is missing; expected a number")
    if not isinstance(document["spec"].get("currency", ""), str):
        yield Problem("spec.currency", f"expected a text, got {_shown(document['spec']['currency'])}")
    horizon = document["spec"].get("horizon", {})
    if not isinstance(horizon, Mapping):
        yield Problem("spec.horizon", f"expected an object, got {_shown(horizon)}")
    elif not (_is(horizon.get("years", 1), NUMBER) and horizon.get("years", 1) >= 1):
        yield Problem("spec.horizon.years", f"expected a number of at least 1, got {_shown(horizon['years'])}")


def unknown_keys(document: Mapping[str, Any]) -> list[str]:
    """List the places that no release before this one wrote, such as "fleet[].colour"; "[]" stands for any position."""
    return sorted(set(_unknown(document, PLAN, "")))


def _problems(value: Any, shape: Any, path: str) -> Iterator[Problem]:
    if shape is ANY or (isinstance(shape, Either) and value is None):
        return
    if isinstance(shape, Either):
        yield from _problems(value, shape.value, path)
    elif isinstance(shape, AnyOf):
        if all(next(_problems(value, one, path), None) for one in shape.shapes):
            yield Problem(path, f"expected {' or '.join(map(_words, shape.shapes))}, got {_shown(value)}")
    elif isinstance(shape, str):
        if not _is(value, shape):
            yield Problem(path, f"expected {shape}, got {_shown(value)}")
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield Problem(path, f"expected a list, got {_shown(value)}")
            return
        for i, inner in enumerate(value):
            yield from _problems(inner, shape[0], f"{path}[{i}]")
    elif not isinstance(value, Mapping):
        yield Problem(path, f"expected an object, got {_shown(value)}")
    elif isinstance(shape, Each):
        for key, inner in value.items():
            yield from _problems(inner, shape.value, f"{path}.{key}")
    else:
        yield from _object_problems(value, shape, path)


def _object_problems(value: Mapping[str, Any], shape: Mapping[str, Any], path: str) -> Iterator[Problem]:
    for key, inner in shape.items():
        name = key.removesuffix("?")
        place = f"{path}.{name}".lstrip(".")
        if name in value:
            yield from _problems(value[name], inner, place)
        elif name == key:
            yield Problem(place, f"is missing; expected {_words(inner)}")


def _unknown(value: Any, shape: Any, path: str) -> Iterator[str]:
    if isinstance(shape, Either):
        shape = shape.value
    if isinstance(shape, list) and isinstance(value, list):
        for inner in value:
            yield from _unknown(inner, shape[0], f"{path}[]")
    elif isinstance(shape, Mapping) and isinstance(value, Mapping):
        for key, inner in value.items():
            place = f"{path}.{key}".lstrip(".")
            known = shape.get(key, shape.get(f"{key}?"))
            if known is None:
                yield place
            else:
                yield from _unknown(inner, known, place)


def _is(value: Any, kind: str) -> bool:
    """Tell whether a value is of a simple kind."""
    if kind is FLAG or kind is TEXT:
        return isinstance(value, bool if kind is FLAG else str)
    if isinstance(value, bool) or not isinstance(value, int if kind is WHOLE else (int, float)):
        return False
    return -LARGEST <= value <= LARGEST and math.isfinite(value)


def _words(shape: Any) -> str:
    if isinstance(shape, Either):
        return f"{_words(shape.value)} or null"
    if isinstance(shape, AnyOf):
        return " or ".join(map(_words, shape.shapes))
    if isinstance(shape, list):
        return "a list"
    return shape if isinstance(shape, str) else "an object"


def _shown(value: Any) -> str:
    """Quote a value in a few characters."""
    if isinstance(value, (Mapping, list)):
        return "an object" if isinstance(value, Mapping) else "a list"
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else None
    if text is None:
        text = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "a number of over 30 digits"
    return text if len(text) <= 60 else f"{text[:60]}..."
