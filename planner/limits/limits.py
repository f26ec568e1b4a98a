"""The limits that a spec states: where each stands, what it says in words, and how it could give way.

Not here: which of them are in conflict and how far one must give (`planner.solving.infeasibility`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from catalog.errors import MissingFigure
from catalog.lookup import Catalog
from catalog.units import DAY_S, YEAR_S, parse, parse_money, show
from planner.candidates.fleet_options import build_fleet_options
from planner.problem.fabrics import largest_of
from planner.problem.facts import Problem, ServingFacts, TrainingFacts, exportable, permitted
from planner.problem.phases import power_limits
from planner.resolve.ledger import Ledger
from planner.resolve.systems import system_facts
from planner.spec.document import Edits, at
from planner.spec.edits import either, written_up
from planner.spec.fabrics import DEFAULT_FABRICS, FABRIC_DESIGNS
from planner.spec.model import PRECISIONS

UNLIMITED_SUPPLY = 10_000_000  # the largest that a spec may state
LONGEST_YEARS = 30
EARLIER = (0.9, 0.75, 0.5, 0.25)  # of the time until a job may begin, tried in turn
NETWORK_PARTS = (
    "radix",
    "port_bytes_per_s",
    "switch_price",
    "link_price_one_tier",
    "link_price_two_tier",
    "switch_power_w",
    "optic_power_w",
)
WAYS = {
    "buy": "bought",
    "reserved": "reserved",
    "on_demand": "rented on demand",
    "spot": "rented on the spot market",
    "api": "had, in output tokens per second",
}
METRICS = {"ttft": "the first token of {name}", "tpot": "an output token of {name}", "e2e": "a whole answer of {name}"}


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """One limit. `loose`: edits that take it away (none for rows of the program, which are taken away there).

    Numbers have `unit`, `amount` (in that unit) and may grow; all else has `choices`, each of which gives way a little.
    """

    path: str
    name: str
    words: str
    written: Any
    is_row: bool = False
    loose: Edits = ()
    network_of: int | None = None  # the site whose networks may then be of any size
    unit: str | None = None
    amount: float = math.nan
    most: float = math.inf  # the amount may not grow beyond
    horizon_years: int = 0  # of the spec, for a deadline
    scale: float = 1.0  # unit of the program's row in units of the amount (currencies differ)
    choices: tuple[Edits, ...] = ()

    @property
    def is_number(self) -> bool:
        return self.unit is not None

    def grown(self, amount: float) -> Edits:
        """Edits that set the limit to `amount`, rounded up to three digits as the user would write it."""
        value = written_up(self.written, amount, self.unit or "")
        if not self.path.endswith(".deadline"):
            return ((self.path, value),)
        seconds = min(parse(value, "s"), self.most)
        if seconds == self.most:
            value = f"{seconds / DAY_S:.12g} d"
        years = math.ceil(seconds / YEAR_S - 1e-9)
        return ((self.path, value), *((("horizon.years", years),) if years > self.horizon_years else ()))


# -- the limits of a spec ----------------------------------------------------------------------------------------------


def limits_of(document: Mapping[str, Any], problem: Problem, catalog: Catalog, names: Collection[str]) -> list[Limit]:
    """What the spec states that limits these workloads, amounts first."""
    return [
        *_totals(document, problem),
        *_power(document, problem),
        *_supplies(document, problem),
        *_workloads(document, problem, names),
        *_export(document, problem, catalog),
        *_places(problem, catalog),
    ]


def beyond_horizon(limit: Limit) -> Limit:
    """A deadline that may lie after the horizon, which then grows with it; any other limit as it is."""
    if not limit.path.endswith(".deadline"):
        return limit
    longest = LONGEST_YEARS * YEAR_S
    return replace(
        limit, loose=((limit.path, f"{longest / DAY_S:g} d"), ("horizon.years", LONGEST_YEARS)), most=longest
    )


def nothing_runs(problem: Problem, names: Collection[str]) -> Limit:
    """What is left to say where no change of the limits gives a plan."""
    workload = next(w for w in (*problem.serving, *problem.training) if w.asked in names)
    return Limit(
        f"{workload.path}.architecture",
        f"architecture of {workload.asked}",
        _fit_words(problem, names),
        workload.spec.architecture,
    )


def last_resorts(problem: Problem, names: Collection[str]) -> list[Limit]:
    """What is left to change when taking away all limits does not help: the precisions."""
    found = []
    for workload in of_the_spec((*problem.serving, *problem.training)):
        if workload.asked not in names:
            continue
        asked, path = list(workload.spec.precision), f"{workload.path}.precision"
        wider = tuple(((path, [*asked, p]),) for p in PRECISIONS if p not in asked)
        words = f"{workload.name} may be computed in {either(asked)} only"
        found.append(
            Limit(path, f"precision of {workload.name}", words, asked, loose=((path, list(PRECISIONS)),), choices=wider)
        )
    return found


def further_offers(problem: Problem, catalog: Catalog) -> list[dict[str, str]]:
    """Offers that the spec could make as well, at the catalog's price: the cheapest system first."""
    return _catalog_ways(problem, catalog, lambda system: True)


def nothing_fits(document: Mapping[str, Any], problem: Problem, names: Collection[str], offer: Edits) -> Limit:
    """What is on offer, as a limit that gives way to one more `offer`."""
    return Limit(
        "offers", "systems on offer", _fit_words(problem, names), document["offers"], loose=offer, choices=(offer,)
    )


def _totals(document: Mapping[str, Any], problem: Problem) -> Iterator[Limit]:
    for key, name, words, held in (
        ("budget", "present value of all costs", "all costs together may be at most {}", problem.budget),
        ("capital", "purchase price of systems and fabric", "what is bought may cost at most {}", problem.capital),
        ("carbon", "carbon", "the plan may cause at most {} of CO2", problem.carbon_kg),
    ):
        written = at(document, f"limits.{key}")
        if written is None:
            continue
        amount, unit = (held, "kg") if key == "carbon" else parse_money(written)
        if not amount and unit != "kg":
            written, unit = f"0 {problem.spec.currency}", problem.spec.currency
        scale = amount / held if held else 1.0
        yield Limit(
            f"limits.{key}", name, words.format(written), written, is_row=True, unit=unit, amount=amount, scale=scale
        )


def _power(document: Mapping[str, Any], problem: Problem) -> Iterator[Limit]:
    for limit in power_limits(problem):
        words = f"bought systems in {problem.sites[limit.site].region} may draw at most {show(limit.most_w, 'W')} at the meter{limit.when}"
        yield Limit(limit.path, limit.name, words, at(document, limit.path), is_row=True, unit="W", amount=limit.most_w)


def _supplies(document: Mapping[str, Any], problem: Problem) -> Iterator[Limit]:
    for offer in problem.offers:
        if math.isfinite(offer.supply):
            path = f"{offer.path}.supply"
            words = f"at most {offer.supply:,.0f} {offer.system} can be {WAYS[offer.how]}"
            # a job may only be as wide as the supply, so its points change too
            loose = ((path, UNLIMITED_SUPPLY),) if problem.training else ()
            yield Limit(
                path,
                f"supply of {offer.system} ({offer.how})",
                words,
                at(document, path),
                is_row=True,
                loose=loose,
                unit="system",
                amount=offer.supply,
            )


def _workloads(document: Mapping[str, Any], problem: Problem, names: Collection[str]) -> Iterator[Limit]:
    for workload in of_the_spec((*problem.training, *problem.serving)):
        if workload.asked in names:
            yield from (
                _dates(document, problem, workload) if isinstance(workload, TrainingFacts) else _slo(document, workload)
            )
            if workload.spec.residency is not None:
                yield from _residency(problem, workload)
            if isinstance(workload, ServingFacts) and workload.spec.disaggregation == "always":
                path = f"{workload.path}.disaggregation"
                allow = ((path, "allowed"),)
                words = f"{workload.name} must have separate pools for prefill and decode"
                yield Limit(path, f"pools of {workload.name}", words, "always", loose=allow, choices=(allow,))


def of_the_spec(workloads: Iterable[ServingFacts | TrainingFacts]) -> Iterator[ServingFacts | TrainingFacts]:
    """One for each workload of the spec, under its name there: its architectures keep the same limits."""
    seen: set[str] = set()
    for workload in workloads:
        if workload.asked not in seen:
            seen.add(workload.asked)
            yield (
                workload
                if workload.name == workload.asked
                else replace(workload, spec=workload.spec.model_copy(update={"name": workload.asked}))
            )


def _slo(document: Mapping[str, Any], workload: ServingFacts) -> Iterator[Limit]:
    for limit in workload.spec.slo.limits():
        metric, percentile, seconds = limit
        path, name = f"{workload.path}.slo.{limit.key}", f"{metric.upper()} {percentile} of {workload.name}"
        thing = METRICS[metric].format(name=workload.name)
        share = "on average" if percentile == "mean" else f"in {percentile[1:]} of 100 cases"
        words = f"{thing} may take at most {show(seconds, 's')} {share}" + (
            ", round trip included" if limit.counts_round_trip else ""
        )
        yield Limit(path, name, words, at(document, path), loose=((path, None),), unit="s", amount=seconds)


def _dates(document: Mapping[str, Any], problem: Problem, job: TrainingFacts) -> Iterator[Limit]:
    if job.spec.start:
        path = f"{job.path}.start"
        earlier = tuple(((path, f"{job.spec.start * share / DAY_S:.4g} d"),) for share in EARLIER)
        words = f"{job.name} must not begin before {show(job.spec.start, 's')} after the start of the horizon"
        yield Limit(
            path,
            f"start of {job.name}",
            words,
            at(document, path),
            loose=((path, "0 s"),),
            choices=(*earlier, ((path, "0 s"),)),
        )
    path, spec = f"{job.path}.deadline", job.spec
    words = f"{job.name} must be done {show(spec.deadline, 's')} after the start of the horizon"
    latest = problem.spec.horizon.years * YEAR_S
    loose = ((path, f"{latest / DAY_S:g} d"),)
    name, years = f"deadline of {job.name}", problem.spec.horizon.years
    yield Limit(
        path,
        name,
        words,
        at(document, path),
        loose=loose,
        unit="s",
        amount=spec.deadline,
        most=latest,
        horizon_years=years,
    )


def _residency(problem: Problem, workload: ServingFacts | TrainingFacts) -> Iterator[Limit]:
    path, rule = f"{workload.path}.residency", list(workload.spec.residency or ())
    barred = [site.region for site in problem.sites if not permitted(workload, site)]
    if barred:
        words = f"{workload.name} may run in {either(rule)} only" if rule else f"{workload.name} may run nowhere"
        choices = tuple(((path, [*rule, region]),) for region in barred)
        yield Limit(path, f"residency of {workload.name}", words, rule, loose=((path, None),), choices=choices)


def _places(problem: Problem, catalog: Catalog) -> Iterator[Limit]:
    own = [site for site in problem.sites if site.api is None]
    offered = list(
        dict.fromkeys(offer.system for offer in problem.offers if any(site.region in offer.prices for site in own))
    )
    for i, site in enumerate(own):
        path, missing = f"{site.path}.systems", [name for name in offered if site.systems and name not in site.systems]
        if missing:
            choices = tuple(((path, [*site.systems, name]),) for name in missing)
            yield Limit(
                path,
                f"systems in {site.region}",
                f"only {either(site.systems)} may stand in {site.region}",
                list(site.systems),
                loose=((path, None),),
                choices=choices,
            )
        yield _network(problem, catalog, i)
    regions = [site.region for site in own]
    for i, offer in enumerate(problem.spec.offers or ()):
        missing = [region for region in regions if offer.regions and region not in problem.offers[i].prices]
        if missing:
            path = f"offers[{i}].regions"
            choices = tuple(((path, [*offer.regions, region]),) for region in missing)
            yield Limit(
                path,
                f"regions of {offer.system} ({offer.how})",
                f"{offer.system} can be {WAYS[offer.how]} in {either(offer.regions)} only",
                list(offer.regions),
                loose=((path, None),),
                choices=choices,
            )


def _network(problem: Problem, catalog: Catalog, i: int) -> Limit:
    """Designs that a site may use, and how many systems one of them joins."""
    site = problem.sites[i]
    path, missing = f"{site.path}.fabrics", [design for design in FABRIC_DESIGNS if design not in site.fabrics]
    sizes: dict[tuple[str, float], dict[str, None]] = {}
    for option in build_fleet_options(problem)[0]:
        if option.site is site and option.plant is not None and site.network is not None:
            sizes.setdefault((option.fabric, largest_of(option.fabric, option.system, site.network)), {})[
                option.system.name
            ] = None
    joins = "; ".join(f"{design}: at most {most:,.0f} {either(systems)}" for (design, most), systems in sizes.items())
    words = f"bought systems in {site.region} may stand on {either(site.fabrics)} only" + (
        f" ({joins})" if joins else ""
    )
    radix = math.inf if site.network is None else site.network.radix
    larger = [name for name in catalog.names("fabrics") if _is_larger(catalog, name, radix)]
    choices = (
        *(((path, [*site.fabrics, design]),) for design in missing),
        *(((f"{site.path}.network", name),) for name in larger),
    )
    return Limit(
        path,
        f"networks in {site.region}",
        words,
        list(site.fabrics),
        loose=((path, list(dict.fromkeys((*site.fabrics, *DEFAULT_FABRICS, *FABRIC_DESIGNS)))),),
        network_of=i,
        choices=choices,
    )


def _is_larger(catalog: Catalog, name: str, radix: float) -> bool:
    record = catalog.get("fabrics", name)
    return all(record.get(part) for part in NETWORK_PARTS) and record.value("radix") > radix


def _export(document: Mapping[str, Any], problem: Problem, catalog: Catalog) -> Iterator[Limit]:
    limits = problem.spec.limits
    barred = {
        (system.name, system.export_cn): site.region
        for site in problem.sites
        for offer in problem.offers
        if site.region in offer.prices
        and (system := problem.systems[offer.system])
        and not exportable(system, site, limits)
    }
    if not barred:
        return
    path, held = "limits.licences", list(limits.licences)
    licensable = [system for system, status in barred if status == "licence"]
    choices: list[Edits] = [((path, [*held, system]),) for system in licensable]
    if len(licensable) > 1:
        choices.append(((path, [*held, *licensable]),))
    if document.get("offers") is not None:

        def free(system: str) -> bool:
            return catalog.get("chips", catalog.get("systems", system).text["chip"]).text.get("export_cn") in (
                "domestic",
                "allowed",
            )

        choices += [(("offers", [*document["offers"], way]),) for way in _catalog_ways(problem, catalog, free)]
    switch = (("limits.export_control", False),)
    words = f"export control bars {either([system for system, _ in barred], 'and')} from {either(dict.fromkeys(barred.values()), 'and')}"
    yield Limit("limits.export_control", "export control", words, True, loose=switch, choices=(*choices, switch))


def _catalog_ways(problem: Problem, catalog: Catalog, wanted: Callable[[str], bool]) -> list[dict[str, str]]:
    """Offers of the catalog, priced at some site of the spec, that the spec does not make: the cheapest first."""
    made = {(offer.system, offer.how) for offer in problem.offers}
    prices: dict[tuple[str, str], float] = {}
    for record in catalog.records("offers"):
        system, how = record.text["system"], record.text["how"]
        here = [
            s
            for s in problem.sites
            if record.words("region") in ("", s.region) and record.words("zone") in ("", *s.zones)
        ]
        if how != "spot" and (system, how) not in made and here and wanted(system) and _is_whole(catalog, system):
            price = record.value("price") * (1.0 if how == "buy" else YEAR_S)
            prices[system, how] = min(prices.get((system, how), math.inf), price)
    return [{"system": system, "how": how} for system, how in sorted(prices, key=prices.__getitem__)]


def _is_whole(catalog: Catalog, system: str) -> bool:
    """Whether every figure of the system that a plan needs is known."""
    try:
        system_facts(catalog.get("systems", system), Ledger(catalog))
    except MissingFigure:
        return False
    return True


def _fit_words(problem: Problem, names: Collection[str]) -> str:
    workload = next(w for w in (*problem.serving, *problem.training) if w.asked in names)
    system = max(problem.systems.values(), key=lambda s: s.hbm_bytes * s.chips, default=None)
    if system is None:
        return "nothing is offered at any site"
    memory = f"the one with most memory, {system.name}, has {show(system.hbm_bytes * system.chips, 'byte')}"
    weights = (
        f", and its weights alone take {show(workload.weights_bytes, 'byte')}"
        if isinstance(workload, ServingFacts)
        else ""
    )
    return f"no system on offer can run {workload.asked} ({workload.spec.architecture}): {memory}{weights}"
