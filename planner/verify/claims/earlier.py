"""Figures and rules that earlier releases had not, at the values with which their plans come out as they were made."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from models.formats import checkpoint_of
from models.serving.constants import factor_names
from models.transformer.architecture import Architecture
from planner.problem.electricity import ON_SITE
from planner.problem.engine import EngineSettings
from planner.problem.facts import ResolvedSpec
from planner.problem.intervals import LABELS
from planner.problem.reinforcement import ReinforcementFacts
from planner.verify.claims.unchecked import pools_of
from planner.version import RELEASE, release

AS_RECORDED = "as recorded in the plan"
NOT_THEN = "not known to the release that made the plan"
RETIRED = frozenset({"constants/reinforcement.host_response_s/value"})  # figures of laws that today's models have not
GROWTH = "defaults/facility_cost_growth/value"
IMBALANCE = "constants/serving.rank_imbalance/value"
RESERVES = ("/memory_reserve/value", "/reserved_bytes")  # ends of paths that plans record since engines have reserves
EIGHT_BIT_CACHES = ("fp8", "fp4")  # formats of weights beside which earlier releases kept caches in 8 bit


def made_by_another(document: Mapping[str, Any]) -> bool:
    """Tell whether another release made a plan, or a version that led to one; release 0.1 was called tokenwatt."""
    version: str | None = document["versions"].get("flopwatt")
    return version is None or release(version) != RELEASE


def recorded_figures(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Collect the figures that a plan recorded, by path, and neutral ones of those that it could not know.

    Factors of engines and chip generations are 1 where the plan recorded other constants of serving but not these, that of a generation on MoE
    layers what it recorded for all layers, and one law for recorded graphs and kernels started one by one; delivery of electricity costs
    nothing where it recorded none, and its prices hold what they were taken to hold.
    """
    dated = any(row["path"] == GROWTH for row in document["provenance"])  # else building costs stood as they were
    found = {
        row["path"]: {
            "value": row["value"],
            "unit": row["unit"],
            "note": AS_RECORDED,
            "date": row["date"] if dated else None,
        }
        for row in document["provenance"]
        if row["path"] not in RETIRED
    }
    if (
        IMBALANCE in found and found[IMBALANCE]["value"] < 1.0
    ):  # the excess alone, of releases that did not tell chance apart
        found[IMBALANCE]["value"] += 1.0
    return {**{path: figure for path, figure in _neutral(document) if path not in found}, **found}


def _neutral(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    recorded = {row["path"]: row["value"] for row in document["provenance"]}
    if any(path.startswith("constants/serving.") for path in recorded):
        for name, (part, of) in factor_names().items():
            all_layers = recorded.get(f"constants/serving.launch_{of}/value", 1.0) if part == "experts" else 1.0
            yield f"constants/serving.{name}/value", {"value": all_layers, "unit": "1", "note": NOT_THEN}
        yield "constants/serving.eager_launch/value", {"value": 1.0, "unit": "1", "note": NOT_THEN}
    for model, labels in LABELS.items():
        for label in labels:  # intervals did not grow outside what was fitted
            yield f"constants/{model}_reach/{label}", {"value": 1.0, "unit": "1", "note": NOT_THEN}
    yield "constants/serving_load/power", {"value": 1.0, "unit": "1", "note": NOT_THEN}  # nor with the load
    for site in document["spec"]["sites"]:
        path = f"regions/{site['region']}/electricity_delivery"
        yield path, {"value": 0.0, "unit": "USD/kWh", "note": NOT_THEN}
    if not _states_contents(document):
        yield from _without_contents(document)


def _states_contents(document: Mapping[str, Any]) -> bool:
    """Tell whether a plan says what its prices of electricity hold; the same releases tell contracts on site from others."""
    return any(row["path"].endswith(".contents") for row in document["assumptions"])


def with_earlier_contracts(problem: ResolvedSpec, document: Mapping[str, Any]) -> ResolvedSpec:
    """Put every contract behind the meter, as releases did that knew no other kind."""
    if _states_contents(document):
        return problem
    sites = []
    for site in problem.sites:
        if (meter := site.electricity) is not None:
            behind = (replace(contract, kind=ON_SITE, delivered_per_j=0.0) for contract in meter.contracts)
            site = replace(site, electricity=replace(meter, contracts=tuple(behind)))
        sites.append(site)
    return replace(problem, sites=tuple(sites))


def _without_contents(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what takes prices of electricity as releases did that knew no contents: demand charges stood beside all, multipliers floated all."""
    apart = {"delivery": "energy separate, delivery included", "price": "energy included, delivery unknown"}
    texts = {name: f"{parts}, demand unknown, levies unknown" for name, parts in apart.items()}
    for site in document["spec"]["sites"]:
        for name, text in texts.items():
            yield f"regions/{site['region']}/electricity_{name}_contents", {"value": text, "note": NOT_THEN}
    yield "defaults/china_electricity_price/contents", {"value": texts["price"], "note": NOT_THEN}
    share = {"value": 1.0, "unit": "1", "note": NOT_THEN}
    yield "defaults/china_purchase_share/value", share
    for row in document["assumptions"]:
        if row["path"].endswith(".tariff"):
            yield f"tariffs/{row['value']}/floating_share", share


def with_earlier_engines(problem: ResolvedSpec, document: Mapping[str, Any]) -> ResolvedSpec:
    """Set engines as earlier releases did.

    Plans up to release 0.2 state no memory by pool: the fitted share of the memory, and the usual limit on running requests. Plans that
    record no reserve of an engine: the share of all engines, with the runtime alone beside weights and caches; and caches in 8 bit beside
    weights in FP8 and FP4, unless the spec or the checkpoint states their format.
    """
    recorded = {row["path"]: row["value"] for row in document["provenance"]}
    if all("memory_bytes" in pool for _, pool in pools_of(document)):
        if any(path.endswith(RESERVES) for path in recorded):
            return problem
        return replace(
            problem,
            serving=tuple(replace(each, architecture=_narrow_caches(each.architecture), engine=_plain(each.engine, each.spec.memory_utilisation, recorded)) for each in problem.serving),
            training=tuple(
                replace(each, engine=_plain(each.engine, None, recorded)) if isinstance(each, ReinforcementFacts) else each
                for each in problem.training
            ),
        )  # fmt: skip
    engine = EngineSettings(problem.constants.serving.usable_memory, limit_factor=1.0)
    serving = (replace(each, engine=engine, architecture=_narrow_caches(each.architecture)) for each in problem.serving)
    return replace(problem, serving=tuple(serving))


def with_earlier_checkpoints(problem: ResolvedSpec, document: Mapping[str, Any]) -> ResolvedSpec:
    """Set checkpoints as releases did that recorded one rate of storage for runs of any size, and read nothing back at a restart."""
    recorded = {row["path"]: row["value"] for row in document["provenance"]}
    rate = recorded.get("defaults/checkpoint_storage_bytes_per_s/value")
    if rate is None or "defaults/chip_checkpoint_bytes_per_s/value" in recorded:
        return problem
    reliability = replace(
        problem.constants.reliability,
        chip_checkpoint_bytes_per_s=math.inf,
        site_checkpoint_bytes_per_s=float(rate),
        reads_back=False,
    )
    return replace(problem, constants=replace(problem.constants, reliability=reliability))


def _narrow_caches(architecture: Architecture) -> Architecture:
    """Keep caches in 8 bit beside weights in FP8 and FP4, as releases did that knew no format of a cache by checkpoint; stated formats stay."""
    known = dict(architecture.checkpoints)
    for name in EIGHT_BIT_CACHES:
        each = checkpoint_of(architecture.checkpoints, name)
        known[name] = replace(each, cache=each.cache or "fp8")
    return replace(architecture, checkpoints=tuple(known.items()))


def _plain(engine: EngineSettings, stated: float | None, recorded: Mapping[str, Any]) -> EngineSettings:
    """Return settings that fill the stated or recorded share with weights, caches and runtime alone."""
    share = recorded.get("defaults/memory_utilisation/value", engine.memory_utilisation) if stated is None else stated
    return replace(engine, memory_utilisation=share, memory_rule="plain", reserved_bytes=None)
