"""Choose the sizes of the tiers of KV cache of a serving case, at least cost: `flopwatt kv-tiers`.

Each combination of sizes is evaluated as `flopwatt estimate` evaluates it, on one system at the most requests per second within the latency
limits; hit rates follow from the sizes. No combination carries more than a cache that takes no memory, holds every prefix and loads it in
no time: combinations are tried in the order of their price, until none that is left can cost less than the best one found. A first one to
compare with is found by changing one size at a time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from catalog.units import GIGA, MILLION, TERA
from models.arrays import sum_of
from planner.design.prices import converted, energy_price, held_per_s
from planner.errors import Issue, SpecError
from planner.estimate.aggregated_search import search_one_pool
from planner.estimate.case import CaseFacts, resolve_case
from planner.estimate.limits import SearchLimits
from planner.estimate.serving_configuration import MAX, Load, ServingConfiguration, draw_of_pools
from planner.estimate.serving_details import cache_tiers
from planner.messages import Message
from planner.problem.provenance import assumption_rows
from planner.spec.base import problems_of
from planner.spec.old_keys import OF_CASES, in_written_keys, with_new_keys
from planner.spec.quantities import is_purchase, offer_price
from planner.spec.serving import HBM, CacheTier, PrefixSharing
from planner.spec.stack.kv_tiers import TierOffer
from planner.spec.stack.kv_tiers_case import KvTiers, KvTiersCase
from planner.spec.workloads import Serving
from planner.ways_in.kinds import CASE, TIERS, wrong_kind

SLACK = 1e-9  # relative difference of costs that is none
MOST_ROUNDS = 4  # rounds of single changes through all tiers

Sizes = tuple[float, ...]
"""Bytes of one system: of HBM, then of each tier on offer."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A combination of sizes that carries load."""

    sizes: Sizes
    requests_per_s: float  # rate of one system
    systems: float  # for the demand; 1 without one
    cost_per_s: float  # cost of all systems
    tokens_per_s: float

    @property
    def cost_per_million(self) -> float:
        """Cost per million output tokens."""
        return self.cost_per_s / self.tokens_per_s * MILLION


@dataclass(frozen=True, slots=True)
class Search:
    """The cheapest combination, None where none carries anything; and what each that was not tried costs at least, where a limit ended the search."""

    best: Choice | None
    least_per_million: float | None = None


@dataclass(slots=True)
class TierStudy:
    """A case with its prices, and the combinations evaluated so far."""

    facts: CaseFacts
    block: KvTiers
    system_per_s: float
    tier_per_s_byte: tuple[float, ...]  # by tier: of a byte of one system, power included
    energy_per_j: float  # at the meter
    known: dict[Sizes, Choice | None]

    def choice(self, sizes: Sizes) -> Choice | None:
        """Evaluate one combination; None where it carries nothing within the limits."""
        if sizes not in self.known:
            self.known[sizes] = self._carried(sizes, _cache(self.block, sizes))
        return self.known[sizes]

    def configuration(self, sizes: Sizes) -> ServingConfiguration | None:
        """Search how a combination is served; None where it carries nothing within the limits."""
        facts = self.with_tiers(sizes)
        return search_one_pool(facts, Load(MAX), facts.case.layout).best

    def _carried(self, sizes: Sizes, cache: PrefixSharing | None) -> Choice | None:
        facts = self.with_cache(cache)
        found = search_one_pool(facts, Load(MAX), facts.case.layout).best
        if found is None:
            return None
        output = facts.serving.spec.lengths.output
        watts = draw_of_pools(facts, found).system_w[0]
        systems = self.systems_for(found.requests_per_s)
        rate = found.requests_per_s if self.block.demand is None else self.block.demand
        each = self.system_per_s + self.added_per_s(sizes) + watts * self.energy_per_j
        return Choice(sizes, found.requests_per_s, systems, systems * each, rate * output)

    def with_tiers(self, sizes: Sizes) -> CaseFacts:
        """Give the case the tiers of a combination."""
        return self.with_cache(_cache(self.block, sizes))

    def with_cache(self, cache: PrefixSharing | None) -> CaseFacts:
        """Give the case a prefix cache."""
        workload = self.facts.case.workload.model_copy(update={"cache": cache})
        return replace(self.facts, case=self.facts.case.model_copy(update={"workload": workload}))

    def added_per_s(self, sizes: Sizes) -> float:
        """Cost of the tiers of one system per second."""
        return sum_of(size * price for size, price in zip(sizes[1:], self.tier_per_s_byte, strict=True))

    def systems_for(self, requests_per_s: float) -> float:
        """Systems for the demand, a whole number; 1 without a demand."""
        return 1.0 if self.block.demand is None else float(math.ceil(self.block.demand / requests_per_s * (1 - SLACK)))

    def axes(self, without: int | None = None) -> list[list[float]]:
        """List the sizes of HBM and of each tier, none among them; `without`: number of one that may have no size."""
        every = [
            sorted({0.0, *self.block.hbm}),
            *([0.0, *sorted(set(_of_one(tier)) - {0.0})] for tier in self.block.tiers),
        ]
        return [[0.0] if number == without else sizes for number, sizes in enumerate(every)]

    def combinations(self) -> int:
        """Count all combinations, those without any tier among them."""
        return math.prod(map(len, self.axes()))

    def best(self, limits: SearchLimits, without: int | None = None) -> Search:
        """Find the cheapest combination, as far as the limits let it; `without`: the number of a tier that is left out."""
        most = self._ideal()
        if most is None:
            return Search(None)
        idle = self.facts.system.idle_w * self.energy_per_j
        seed = self._by_single_changes(limits, without)
        best: Choice | None = None
        for sizes in sorted(product(*self.axes(without)), key=lambda sizes: (self.added_per_s(sizes), sizes)):
            least = most.systems * (self.system_per_s + self.added_per_s(sizes) + idle) / most.tokens_per_s * MILLION
            if any(known is not None and least >= known.cost_per_million for known in (seed, best)):
                break
            if limits.ended_by():
                return Search(min(filter(None, (seed, best)), key=lambda c: c.cost_per_million, default=None), least)
            found = self.choice(sizes)
            if found is not None and (best is None or found.cost_per_million < best.cost_per_million * (1 - SLACK)):
                best = found
        return Search(best or seed)

    def _by_single_changes(self, limits: SearchLimits, without: int | None) -> Choice | None:
        """Take the best size of one tier after another, from no cache on, until none improves; None where nothing was found."""
        axes = self.axes(without)
        sizes: Sizes = tuple(0.0 for _ in axes)
        best = self.choice(sizes)
        for _ in range(MOST_ROUNDS):
            before = sizes
            for axis, known in enumerate(axes):
                tried = ((*sizes[:axis], size, *sizes[axis + 1 :]) for size in known)
                for found in map(self.choice, limits.within(tried)):
                    if found is not None and (best is None or found.cost_per_million < best.cost_per_million):
                        best = found
                sizes = best.sizes if best is not None else sizes
            if sizes == before:
                break
        return best

    def _ideal(self) -> Choice | None:
        """Evaluate a cache that takes no memory, holds every prefix and loads it in no time: no combination carries more."""
        requests = self.block.reuse.requests
        hits = 1.0 if requests is None else 1.0 - 1.0 / requests
        cache = PrefixSharing.model_construct(
            prefix_tokens=self.block.prefix_tokens, hit_rate=hits, reuse=None, tiers=[]
        )
        return self._carried(tuple(0.0 for _ in range(len(self.block.tiers) + 1)), cache)


def kv_tiers(
    document: Mapping[str, Any], overlays: Sequence[Path] = (), limits: SearchLimits | None = None
) -> dict[str, Any]:
    """Choose the tiers of a case, as far as its limits let it. Raises SpecError with all problems at once, or LimitReached."""
    limits = limits or SearchLimits()
    study = resolve_study(document, overlays)
    search = study.best(limits)
    best, count, tried = search.best, study.combinations(), len(study.known)
    left = 0 if search.least_per_million is None else count - tried
    if best is None and left:
        limits.check()
    axes = study.axes()
    alone = [(size, *(0.0 for _ in axes[1:])) for size in axes[0]]
    none = study.choice(alone[0])
    of_hbm = min(filter(None, map(study.choice, alone)), key=lambda choice: choice.cost_per_million, default=None)
    return {
        "kind": "kv_tiers",
        "status": "infeasible" if best is None else "limit" if left else "optimal",
        "currency": study.block.currency,
        "combinations": count,
        **limits.left_out("combinations", left, count, least=search.least_per_million or 0.0, currency=study.block.currency),
        "evaluated": len(study.known),
        "chosen": None if best is None else _choice(study, best),
        "without": None if none is None else _choice(study, none),
        "hbm_only": None if of_hbm is None else _choice(study, of_hbm),
        "throughput_factor": None if best is None or of_hbm is None else best.requests_per_s / of_hbm.requests_per_s,
        "tiers": [] if best is None else _earnings(study, best, limits),
        "assumptions": assumption_rows(study.facts.ledger.assumptions.values()),
        "catalog_digest": study.facts.ledger.catalog.digest,
    }  # fmt: skip


def resolve_study(document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> TierStudy:
    """Check a case and price its tiers. Raises SpecError with all problems at once."""
    try:
        today, renamed = with_new_keys(document, OF_CASES)
        case = KvTiersCase.model_validate(today)
    except ValidationError as error:
        other = wrong_kind(today, TIERS, CASE)
        raise SpecError(other or in_written_keys(problems_of(error, KvTiersCase), renamed)) from None
    workload, block = case.workload, case.kv_tiers
    problems = []
    if not isinstance(workload, Serving):
        problems.append(Issue("workload.kind", Message.of("resolve.serving_expected").text()))
    elif workload.cache is not None:
        problems.append(Issue("workload.cache", Message.of("resolve.cache_chosen_here").text()))
    problems += [
        Issue(name, Message.of("resolve.not_of_tiers").text())
        for name in ("pools", "power_cap", "load", "rollout_chips")
        if getattr(case, name) is not None
    ]
    if block.demand == 0:
        problems.append(Issue("kv_tiers.demand", Message.of("spec.rate_above_zero").text()))
    if problems:
        raise SpecError(problems)
    plain = {name: value for name, value in document.items() if name != "kv_tiers"}
    facts = resolve_case({**plain, "workload": {**plain["workload"], "disaggregation": "never"}}, overlays)
    if case.chips != facts.system.chips:
        raise SpecError(
            [Issue("chips", Message.of("resolve.tiers_of_one_system", chips=str(facts.system.chips)).text())]
        )
    ledger = facts.ledger
    price, pue = energy_price(block.electricity, block.pue, ledger, "kv_tiers")
    per_j = converted(price, block.currency, ledger, "kv_tiers.electricity") * pue
    bought = is_purchase(block.price)
    ledger.assume("kv_tiers.price", block.price, "", Message.of("assumed.in_case").text())
    price_of_one = offer_price(block.price, bought, facts.system.chips)
    system = converted(price_of_one, block.currency, ledger, "kv_tiers.price")
    rates = [
        held_per_s(converted(tier.price, block.currency, ledger, f"kv_tiers.tiers[{i}].price"), True, ledger)
        + (tier.power_per_tb or 0.0) / TERA * per_j
        for i, tier in enumerate(block.tiers)
    ]
    return TierStudy(facts, block, held_per_s(system, bought, ledger), tuple(rates), per_j, {})


def _of_one(tier: TierOffer) -> list[float]:
    """List the sizes of a tier as what one system pays for."""
    return [size / tier.shared_by for size in tier.sizes]


def _cache(block: KvTiers, sizes: Sizes) -> PrefixSharing | None:
    """Build the prefix cache of a combination.

    Of a pool, a system sees its share where sessions stay on their system, and all of it where all systems draw the same prefixes.
    Its systems share the rate of a pool.
    """
    tiers = (
        [CacheTier.model_construct(name=HBM, capacity=sizes[0], bandwidth=None, latency=0.0, price=None)]
        if sizes[0]
        else []
    )
    for offer, size in zip(block.tiers, sizes[1:], strict=True):
        if not size:
            continue
        seen = size if block.reuse.prefixes is None else size * offer.shared_by
        rate = min(offer.bandwidth, (offer.pool_bandwidth or math.inf) / offer.shared_by)
        tiers.append(
            CacheTier.model_construct(name=offer.name, capacity=seen, bandwidth=rate, latency=offer.latency, price=None)
        )
    if not tiers:
        return None
    return PrefixSharing.model_construct(
        prefix_tokens=block.prefix_tokens, hit_rate=None, reuse=block.reuse, tiers=tiers
    )


def _choice(study: TierStudy, choice: Choice) -> dict[str, Any]:
    """Document a combination."""
    facts, point = study.with_tiers(choice.sizes), study.configuration(choice.sizes)
    assert point is not None
    found = cache_tiers(facts, Load(MAX), point)
    return {
        "sizes_bytes": dict(zip([HBM, *(tier.name for tier in study.block.tiers)], choice.sizes, strict=True)),
        "systems": choice.systems if study.block.demand is not None else None,
        "requests_per_s_per_system": point.requests_per_s,
        "cost_per_million_tokens": choice.cost_per_million,
        "added_per_system_s": study.added_per_s(choice.sizes),
        "hit_rate": 0.0 if found is None else found["hit_rate"],
        "ttft_s": point.latency("ttft", "mean"),
        "tpot_s": point.latency("tpot", "mean"),
        "precision": point.precision,
        "layout": {name: int(getattr(point.layouts[0], name)) for name in ("tp", "pp", "dp", "ep")},
        "hits": [] if found is None else [
            {name: row[name] for name in ("tier", "hit_rate", "load_s", "recompute_s", "loaded_share", "decision")} for row in found["tiers"]
        ],
    }  # fmt: skip


def _earnings(study: TierStudy, best: Choice, limits: SearchLimits) -> list[dict[str, Any]]:
    """State for each tier what the choice would cost without it, the other sizes chosen again or as they are, and with its largest size."""
    rows = []
    for i, (name, sizes) in enumerate(
        zip([HBM, *(tier.name for tier in study.block.tiers)], study.axes(), strict=True)
    ):
        left = study.choice((*best.sizes[:i], 0.0, *best.sizes[i + 1 :]))
        again = study.best(limits, without=i) if best.sizes[i] else Search(best)
        largest = study.choice((*best.sizes[:i], sizes[-1], *best.sizes[i + 1 :]))
        spent = best.sizes[i] * (study.tier_per_s_byte[i - 1] if i else 0.0) * best.systems
        rows.append({
            "tier": name,
            "size_bytes": best.sizes[i],
            "costs_per_million_tokens": spent / best.tokens_per_s * MILLION,
            "earns_per_million_tokens": _more(again.best, best),
            "earns_with_others_as_chosen": _more(left, best),
            "largest_costs_more": _more(largest, best),
            "words": _words(best.sizes[i], again, left, best),
        })  # fmt: skip
    return rows


def _more(other: Choice | None, best: Choice) -> float | None:
    """Return by how much another choice costs more per million tokens; None where it carries nothing."""
    return None if other is None else other.cost_per_million - best.cost_per_million


def _words(size: float, again: Search, left: Choice | None, best: Choice) -> str:
    """Say what a tier is worth: once the other sizes are chosen again, and beside it with them as they are, where the two differ."""
    if not size:
        return Message.of("tier.none").text()
    if again.best is None:
        return Message.of("tier.needed").text()
    worth = {"again": f"{again.best.cost_per_million / best.cost_per_million - 1.0:.1%}"}
    if again.least_per_million is not None:  # a limit ended the search: a cheaper choice may be left
        return Message.of("tier.at_most", **worth).text()
    if left is None:
        return Message.of("tier.alone_nothing", **worth).text()
    if abs(left.cost_per_million - again.best.cost_per_million) <= SLACK * best.cost_per_million:
        return Message.of("tier.worth", **worth).text()
    return Message.of("tier.both", left=f"{left.cost_per_million / best.cost_per_million - 1.0:.1%}", **worth).text()


def sections(answer: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """List the tables of an answer as (heading, rows)."""
    if answer["chosen"] is None:
        return []
    money = answer["currency"]
    chosen = [
        {
            "": label, **{f"{name} (GB)": size / GIGA for name, size in row["sizes_bytes"].items()}, "hits": f"{row['hit_rate']:.1%}",
            "requests/s": row["requests_per_s_per_system"], "systems": row["systems"], f"{money}/1M tokens": row["cost_per_million_tokens"],
            "TTFT (ms)": row["ttft_s"] * 1000.0, "TPOT (ms)": row["tpot_s"] * 1000.0,
        }
        for label, row in (("chosen", answer["chosen"]), ("HBM only", answer["hbm_only"]), ("no cache", answer["without"])) if row is not None
    ]  # fmt: skip
    earns = [
        {
            "tier": row["tier"], "GB of a system": row["size_bytes"] / GIGA, f"costs ({money}/1M)": row["costs_per_million_tokens"],
            f"earns ({money}/1M)": row["earns_per_million_tokens"], "": row["words"],
        }
        for row in answer["tiers"]
    ]  # fmt: skip
    return [
        (Message.of("estimate.head_sizes").text(), chosen),
        (Message.of("estimate.head_tiers").text(), earns),
        (Message.of("estimate.head_hits").text(), answer["chosen"]["hits"]),
    ]
