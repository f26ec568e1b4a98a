"""From a parsed spec to a `Problem`: names become records, texts become SI, gaps become listed assumptions or errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from catalog.errors import CatalogError, MissingFigure
from catalog.lookup import Catalog, shipped_catalog
from catalog.records import Record
from catalog.units import YEAR_S
from models import economics
from models.training.constants import GEMM_FAMILIES
from planner.errors import Problem as SpecProblem
from planner.errors import SpecError, close_matches
from planner.problem.calendar import (
    DAYS_PER_YEAR,
    SAMPLED_DAYS,
    TYPICAL_DAY,
    TYPICAL_DAYS,
    Calendar,
    Clock,
    build_calendar,
    sampled_days,
)
from planner.problem.facts import (
    Economics,
    OfferFacts,
    PhaseFacts,
    Problem,
    QualityFacts,
    ServingFacts,
    SiteFacts,
    SystemFacts,
    TrainingFacts,
    TreeFacts,
    permitted,
)
from planner.problem.phases import borders, demand_growth
from planner.problem.price_levels import at_stated_levels, stated_level
from planner.resolve import apis, lines, wan
from planner.resolve import phases as phase_facts
from planner.resolve import quality as quality_resolve
from planner.resolve.architectures import shape_of, weights_bytes
from planner.resolve.constants import model_constants
from planner.resolve.demand import demand_by_hour
from planner.resolve.electricity import electricity_facts
from planner.resolve.electricity_prices import carbon_by_hour, price_by_hour
from planner.resolve.ledger import Ledger
from planner.resolve.names import WrongName, find_record, residency_zones, unknown_names, wrong_zone
from planner.resolve.porting import resolved_porting
from planner.resolve.power_caps import measured_curve
from planner.resolve.representative_days import representative
from planner.resolve.systems import least_prices, network_facts, system_facts
from planner.spec.model import PlanSpec, Serving, Site, Training, parse_spec


def resolve_document(document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> Problem:
    """A spec as read from JSON, resolved. Raises SpecError with the problems of its form and of its names at once."""
    try:
        spec = parse_spec(document)
    except SpecError as error:
        told = {problem.path for problem in error.problems}
        raise SpecError(
            [*error.problems, *(p for p in unknown_names(document, overlays) if p.path not in told)]
        ) from None
    return resolve(spec, overlays)


def resolve(spec: PlanSpec, overlays: Sequence[Path] = (), recorded: Mapping[str, Mapping] | None = None) -> Problem:
    """Every name of `spec` looked up, every figure in SI and in the spec's currency.

    `recorded`: figures that take the place of the catalog's and of `overrides`, by their path. Raises SpecError with all unknown names and missing figures at once.
    """
    problem = _Resolver(spec, catalog_of(spec, overlays, recorded or {})).problem()
    return representative(problem, spec.horizon.days) if spec.horizon.calendar == TYPICAL_DAYS else problem


def catalog_of(spec: PlanSpec, overlays: Sequence[Path], recorded: Mapping[str, Mapping]) -> Catalog:
    try:
        catalog = Catalog.load(overlays, [spec.catalog]) if overlays or spec.catalog else shipped_catalog()
        overrides = {
            **{path: override.model_dump(exclude_none=True) for path, override in spec.overrides.items()},
            **recorded,
        }
        return catalog.with_overrides(overrides) if overrides else catalog
    except CatalogError as error:
        raise SpecError(SpecProblem(path, message) for path, message in error.problems) from None


@dataclass(slots=True)
class _Resolver:
    """Walks the spec once; problems are collected, so that one report names them all."""

    spec: PlanSpec
    catalog: Catalog
    ledger: Ledger = field(init=False)
    clock: Clock = field(init=False)
    stands_for: np.ndarray | None = field(init=False)
    phases: tuple[PhaseFacts, ...] = ()
    quality: list[QualityFacts] = field(default_factory=list)
    problems: list[SpecProblem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.catalog, self.spec.prices)
        self.spec = at_stated_levels(self.spec, self._wrong)
        horizon = self.spec.horizon
        stands_for = sampled_days(horizon.days) if horizon.calendar == SAMPLED_DAYS else np.arange(DAYS_PER_YEAR)
        self.clock = Clock(horizon.start, horizon.calendar != TYPICAL_DAY, tuple(np.unique(stands_for).tolist()))
        self.stands_for = stands_for if self.clock.whole_year else None

    def problem(self) -> Problem:
        spec = self.spec
        self._block_assumptions()
        money = self._economics()
        serving, training = self._workloads()
        self.phases = phase_facts.phase_facts(spec, self._convert, self._wrong)
        sites = self._sites(money)
        offers = self._offers(sites)
        systems = self._systems(offers)
        self._unmeasured(training, systems)
        places = self._apis(sites)
        sites += [site for site, _, _ in places]
        offers += [offer for _, offer, _ in places]
        systems |= {system.name: system for _, _, system in places}
        self._check_objective()
        self._check_levels()
        porting = resolved_porting(
            spec, (*serving, *training), systems, self.ledger, self._find, self._convert, self._wrong
        )
        offered = lines.offered_lines(spec, self.ledger, self._find, self._convert, self._wrong)
        licences = self._licences()
        budget, capital = self._limit("budget"), self._limit("capital")
        per_usd = {code: self._per_usd(code, "currency") for code in {"USD", spec.currency}}
        self._stop_if_wrong()
        calendar = build_calendar(
            spec.horizon.years,
            money.discount_rate,
            (
                *(edge for job in training for edge in (job.spec.start, job.spec.deadline)),
                *lines.borders(offered),
                *self._borders(offers, sites, money),
            ),
            spec.horizon.start,
            self.stands_for,
        )
        serving = [self._growing(workload, calendar) for workload in serving]
        paths, trees, network = self._network(sites, serving, calendar, offered)
        self._stop_if_wrong()
        limits = spec.limits.model_copy(update={"licences": licences})
        return Problem(
            spec=spec.model_copy(update={"limits": limits}),
            calendar=calendar,
            economics=money,
            per_usd=per_usd,
            sites=tuple(sites),
            systems=systems,
            offers=tuple(offers),
            serving=tuple(serving),
            training=tuple(training),
            paths=paths,
            trees=trees,
            budget=budget,
            capital=capital,
            carbon_kg=math.inf if limits.carbon is None else limits.carbon,
            bytes_per_token=self.ledger.default(
                "text_bytes_per_token", "traffic.bytes_per_token", "bytes of text per token", ("egress", "*", "*")
            ),
            constants=model_constants(self.ledger, bool(training)),
            assumptions=tuple(sorted(self.ledger.assumptions.values(), key=lambda a: a.path)),
            citations=tuple(sorted(self.ledger.citations.values(), key=lambda c: c.path)),
            catalog_digest=self.catalog.digest,
            lines=network,
            phases=self.phases,
            porting=porting,
            quality=tuple(self.quality),
        )

    # -- time ------------------------------------------------------------------------------------------------------

    def _borders(self, offers: Sequence[OfferFacts], sites: Sequence[SiteFacts], money: Economics) -> Iterable[float]:
        growing = any(
            isinstance(workload, Serving) and workload.demand.growth_per_year for workload in self.spec.workloads
        )
        return borders(self.phases, offers, sites, money, growing)

    def _growing(self, workload: ServingFacts, calendar: Calendar) -> ServingFacts:
        demand = workload.spec.demand
        factors = phase_facts.factors(demand, workload.path, self.phases, self._wrong)
        growth = demand_growth(calendar, demand.growth_per_year, self.phases, factors)
        return workload if growth is None else replace(workload, growth=growth)

    # -- money -----------------------------------------------------------------------------------------------------

    def _per_usd(self, code: str, path: str) -> float:
        """Units of `code` for one US dollar: stated in the spec, or the catalog's cited mean."""
        if code == "USD":
            return 1.0
        if code in self.spec.exchange:
            stated = self.spec.exchange[code]
            reason = f"stated in the spec{f', {stated.date}' if stated.date else ''}"
            self.ledger.assume(f"exchange.{code}.per_usd", stated.per_usd, "1", reason)
            return stated.per_usd
        name = f"exchange_{code.lower()}"
        if name in self.catalog.names("defaults"):
            return self.ledger.default(name, f"exchange.{code}.per_usd", "rate not stated in the spec")
        self._wrong(path, f'no rate for {code}; state one: "exchange": {{"{code}": {{"per_usd": ...}}}}')
        return 1.0

    def _convert(self, amount: float, currency: str, path: str = "exchange") -> float:
        return amount / self._per_usd(currency, path) * self._per_usd(self.spec.currency, path)

    def _limit(self, name: str) -> float:
        given = getattr(self.spec.limits, name)
        return math.inf if given is None else self._convert(*given, path=f"limits.{name}")

    def _economics(self) -> Economics:
        everywhere = tuple((component, "*", "*") for component in ("systems", "fabric", "facility"))
        rate = self.spec.horizon.discount_rate
        if rate is None:
            rate = self.ledger.default("discount_rate", "horizon.discount_rate", "not stated in the spec", *everywhere)
        life = (
            self.ledger.default("system_life_s", "systems.life", "service life of systems and fabric", *everywhere[:2])
            / YEAR_S
        )
        facility_life = (
            self.ledger.default("facility_life_s", "facility.life", "service life of the building", everywhere[2])
            / YEAR_S
        )
        years = self.spec.horizon.years
        return Economics(
            discount_rate=rate,
            years=years,
            system_life_years=life,
            facility_life_years=facility_life,
            capital_share=float(economics.horizon_share(rate, life, years)),
            facility_share=float(economics.horizon_share(rate, facility_life, years)),
        )

    # -- records ---------------------------------------------------------------------------------------------------

    def _find(self, kind: str, name: str, path: str) -> Record | None:
        """The record, or None and a problem."""
        try:
            return find_record(self.catalog, kind, name, self.spec.overrides)
        except WrongName as error:
            self._wrong(path, str(error))
            return None

    def _wrong(self, path: str, message: str) -> None:
        self.problems.append(SpecProblem(path, message))

    def _stop_if_wrong(self) -> None:
        if self.problems:
            raise SpecError(self.problems)

    def _block_assumptions(self) -> None:
        """Records defined in the spec's `catalog` block are the user's own word: each figure is listed."""
        for kind, records in self.spec.catalog.items():
            for entry in records:
                record = self.catalog.get(kind, entry["name"])
                for name in entry.get("figures", {}):
                    figure = record.figure(name)
                    self.ledger.assume(
                        f"{kind}/{record.name}/{name}", figure.printed, figure.unit, figure.note or "stated in the spec"
                    )

    # -- workloads -------------------------------------------------------------------------------------------------

    def _workloads(self) -> tuple[list[ServingFacts], list[TrainingFacts]]:
        serving, training = [], []
        for index, workload in enumerate(self.spec.workloads):
            path = f"workloads[{index}]"
            record = self._find("architectures", workload.architecture, f"{path}.architecture")
            self._check_residency(workload, path)
            if isinstance(workload, Training) and workload.deadline > self.spec.horizon.years * YEAR_S:
                self._wrong(
                    f"{path}.deadline",
                    f"lies after the horizon of {self.spec.horizon.years} years; lengthen the horizon or bring it forward",
                )
            origins = (
                [self._find("regions", o.region, f"{path}.origins[{i}].region") for i, o in enumerate(workload.origins)]
                if isinstance(workload, Serving)
                else []
            )
            self._each_once(origins, f"{path}.origins", "add its shares up in one entry")
            if record is None or None in origins:
                continue
            try:
                shape = shape_of(record, self.ledger)
            except (MissingFigure, ValueError) as error:
                self._wrong(f"{path}.architecture", str(error))
                continue
            if isinstance(workload, Training):
                job = TrainingFacts(path, workload, shape)
                if job.batch_sequences * workload.sequence_tokens != workload.batch_tokens:
                    reason = "batch rounded to whole sequences that divide among replicas"
                    self.ledger.assume(
                        f"{path}.batch_tokens", float(job.batch_sequences * workload.sequence_tokens), "token", reason
                    )
                for name, stated, unit in (
                    ("preemption.restart", workload.preemption and workload.preemption.restart, "s"),
                    ("token_bytes", workload.token_bytes, "byte"),
                ):
                    if stated is not None:
                        self.ledger.assume(f"{path}.{name}", stated, unit, workload.note or "stated in the spec")
                training.append(job)
            else:
                serving.append(replace(self._serving(path, workload, shape, origins), runs=record.name))
                if workload.quality_floor is not None:
                    serving[-1:], facts = quality_resolve.members_of(
                        serving[-1], workload, self.spec, self._find, self.ledger, self._wrong
                    )
                    self.quality += facts
        return serving, training

    def _serving(self, path: str, workload: Serving, shape, origins: Sequence[Record]) -> ServingFacts:
        demand = workload.demand
        rate = (
            demand.requests_per_s
            if demand.requests_per_s is not None
            else demand.output_tokens / workload.lengths.output
        )
        by_hour = [
            rate * origin.share * demand_by_hour(demand, region.text["timezone"], self.clock)
            for origin, region in zip(workload.origins, origins)
        ]
        for side in ("input_cv", "output_cv"):
            if side not in workload.lengths.model_fields_set:
                cv = getattr(workload.lengths, side)
                self.ledger.assume(
                    f"{path}.lengths.{side}",
                    cv,
                    "1",
                    "spread of the lengths not stated: as wide as an exponential distribution's",
                )
        for i, tier in enumerate(workload.cache.tiers if workload.cache else []):
            if tier.price is not None:
                self._wrong(
                    f"{path}.cache.tiers[{i}].price",
                    "counts in `estimate` only; remove it and add it to the price of the system's offer",
                )
        source = workload.weights_from or origins[0].name
        if (
            workload.weights_from is not None
            and (found := self._find("regions", source, f"{path}.weights_from")) is not None
        ):
            source = found.name
        named = [origin.model_copy(update={"region": region.name}) for origin, region in zip(workload.origins, origins)]
        workload = workload.model_copy(update={"origins": named})  # an alias is a region's own name from here on
        sold_at = None
        if (price := workload.selling_price) is not None:
            prompt = workload.lengths.input / workload.lengths.output
            sold_at = self._convert(*price.output, path=f"{path}.selling_price.output") + prompt * self._convert(
                *price.input, path=f"{path}.selling_price.input"
            )
        return ServingFacts(
            path, workload, shape, np.array(by_hour), weights_bytes(shape, workload.precision), source, sold_at=sold_at
        )

    def _check_residency(self, workload: Serving | Training, path: str) -> None:
        zones = residency_zones(self.catalog)
        for i, name in enumerate(workload.residency or []):
            if message := wrong_zone(name, zones):
                self._wrong(f"{path}.residency[{i}]", message)

    def _check_objective(self) -> None:
        """A throughput is that of serving workloads, of a named one or of all."""
        asked = self.spec.objective
        names = [workload.name for workload in self.spec.workloads if isinstance(workload, Serving)]
        if asked.workload is not None and asked.workload not in names:
            self._wrong(
                "objective.workload",
                f'unknown serving workload "{asked.workload}"{close_matches(asked.workload, names)}; state one of the spec',
            )
        elif asked.maximise is not None and not names:
            self._wrong("objective.maximise", 'the spec has no serving workload; write {"minimise": "cost"} or add one')

    def _check_levels(self) -> None:
        if (
            self.spec.prices is not None
            and self.spec.prices.moved
            and self.spec.robust is not None
            and self.spec.robust.prices
        ):
            self._wrong(
                "prices",
                'says which figures count, while "robust" samples them; set robust.prices to false, or remove "prices"',
            )

    def _licences(self) -> list[str]:
        """The chips and systems that have an export licence, by the names of their records."""
        found = []
        for i, name in enumerate(self.spec.limits.licences):
            record = next(
                (self.catalog.get(kind, name) for kind in ("chips", "systems") if self.catalog.has(kind, name)), None
            )
            if record is None:
                known = [*self.catalog.names("chips"), *self.catalog.names("systems")]
                self._wrong(f"limits.licences[{i}]", f'unknown chip or system "{name}"{close_matches(name, known)}')
            else:
                found.append(record.name)
        return found

    def _each_once(self, regions: Sequence[Record | None], path: str, remedy: str) -> None:
        """A region may stand once in a list, whatever it is called there."""
        first: dict[str, int] = {}
        for i, region in enumerate(regions):
            if region is not None and first.setdefault(region.name, i) != i:
                self._wrong(
                    f"{path}[{i}].region", f'"{region.name}" stands at {path}[{first[region.name]}] already; {remedy}'
                )

    # -- places and things -----------------------------------------------------------------------------------------

    def _sites(self, money: Economics) -> list[SiteFacts]:
        sites = []
        regions = [self._find("regions", site.region, f"sites[{i}].region") for i, site in enumerate(self.spec.sites)]
        self._each_once(regions, "sites", "join the two sites")
        for index, site in enumerate(self.spec.sites):
            path = f"sites[{index}]"
            region = regions[index]
            network = self._find("fabrics", site.network, f"{path}.network")
            named = [self._find("systems", name, f"{path}.systems[{i}]") for i, name in enumerate(site.systems or [])]
            if site.tariff is not None and self._find("tariffs", site.tariff, f"{path}.tariff") is None:
                continue
            if region is None or network is None or None in named:
                continue
            try:
                sites.append(self._site(site, path, region, network, tuple(record.name for record in named), money))
            except MissingFigure as error:
                self._wrong(path, str(error))
            except SpecError as error:
                self.problems += error.problems
        return sites

    def _site(
        self, site: Site, path: str, region: Record, network: Record, systems: tuple[str, ...], money: Economics
    ) -> SiteFacts:
        here = region.name
        pue = site.pue if site.pue is not None else self.ledger.optional("regions", here, "pue")
        if pue is None:
            pue = self.ledger.default(
                "pue_default", f"{path}.pue", "no PUE is published for this region", ("energy", here, "*")
            )
        hall = 0.0
        if site.colocation is not None:  # in place of a building
            building, hall = 0.0, self._convert(*site.colocation, path=f"{path}.colocation")
            reason = (site.note or "stated in the spec") + stated_level(
                self.spec.prices, f"{path}.colocation", "colocation"
            )
            self.ledger.assume(
                f"{path}.colocation", hall, f"{self.spec.currency}/W s", reason, ("colocation", here, "*")
            )
        else:
            building = self.ledger.optional("regions", here, "construction_cost")
        if building is None:
            reason = "no construction cost is published for this region"
            building = self.ledger.default(
                "facility_cost", f"{path}.construction_cost", reason, ("facility", here, "*")
            )
        return SiteFacts(
            path=path,
            region=here,
            price_per_j=price_by_hour(site, region, self.ledger, self._convert, path, self.clock, self.spec.series),
            carbon_kg_per_j=carbon_by_hour(site, region, self.ledger, path, self.clock, self.spec.series),
            pue=pue,
            facility_cost_per_w=self._convert(building, "USD"),
            fixed_cost_per_s=0.0 if site.fixed_cost is None else self._convert(*site.fixed_cost),
            systems=systems,
            fabrics=tuple(dict.fromkeys(site.fabrics)),
            network=replace(network_facts(network, self.ledger, self._convert), used_share=site.network_share),
            export_zone=region.text.get("export_zone", "none"),
            zones=tuple(filter(None, (region.text.get("residency"), region.text.get("country")))),
            fails_with=site.zone or here,
            power_caps=tuple(sorted(set(site.power_caps), reverse=True)),
            cap_curve=measured_curve(self.ledger, path) if site.power_caps else None,
            electricity=electricity_facts(
                site.electricity,
                region,
                self.ledger,
                self._convert,
                path,
                self.clock,
                self.spec.series,
                money.discount_rate,
                money.years,
                money.system_life_years,
                site.tariff,
            ),
            from_s=phase_facts.site_from_s(site, path, self.spec, self._wrong),
            hall_per_w_s=hall,
            storage_bytes_per_s=math.inf if site.storage_bandwidth is None else site.storage_bandwidth,
            **phase_facts.site_power(site, path, self.phases, self._wrong),
        )

    def _offers(self, sites: Sequence[SiteFacts]) -> list[OfferFacts]:
        """The spec's offers; without any, all ways in the catalog to obtain a system that a site names."""
        if self.spec.offers is None:
            wanted = {name for site in sites for name in site.systems}
            ways = dict.fromkeys((r.text["system"], r.text["how"]) for r in self.catalog.records("offers"))
            found = [
                (f"offers/{system}/{how}", system, how)
                for system, how in ways
                if how != "spot" and (not wanted or system in wanted)
            ]
            offers = [
                OfferFacts(path, system, how, least_prices(self.ledger, system, how, sites, self._convert), math.inf)
                for path, system, how in found
            ]
            return [offer for offer in offers if offer.prices]
        offers = []
        for index, offer in enumerate(self.spec.offers):
            path = f"offers[{index}]"
            system = self._find("systems", offer.system, f"{path}.system")
            regions = [
                self._find("regions", name, f"{path}.regions[{i}]") for i, name in enumerate(offer.regions or [])
            ]
            if system is None or None in regions:
                continue
            allowed = {region.name for region in regions}
            here = [site for site in sites if not allowed or site.region in allowed]
            amount, scope = offer.amount(), ("systems" if offer.how == "buy" else "rent", "*", system.name)
            if amount is None:
                prices = least_prices(self.ledger, system.name, offer.how, here, self._convert)
                if not prices and here:
                    self._wrong(
                        f"{path}.price",
                        f'the catalog has no {offer.how} price for "{system.name}" at these sites; state one such as {_example_price(offer.how)}',
                    )
            else:
                price = self._convert(*amount, path=f"{path}.price")
                prices = {site.region: price for site in here}
                level = stated_level(self.spec.prices, f"{path}.price", offer.how)
                self.ledger.assume(
                    f"{path}.price", offer.price, "", (offer.note or "stated in the spec") + level, scope
                )
            facts = OfferFacts(path, system.name, offer.how, prices, math.inf if offer.supply is None else offer.supply)
            for term in sorted(offer.model_fields_set & {"interruption_interval", "restart", "headroom"}):
                self.ledger.assume(
                    f"{path}.{term}",
                    getattr(offer, term),
                    "1" if term == "headroom" else "s",
                    offer.note or "stated in the spec",
                    scope,
                )
            if offer.price_change_per_year:
                self.ledger.assume(
                    f"{path}.price_change_per_year",
                    offer.price_change_per_year,
                    "1",
                    offer.note or "stated in the spec",
                    scope,
                )
            for phase, price in offer.price_by_phase.items():
                level = stated_level(self.spec.prices, f"{path}.price_by_phase.{phase}", offer.how)
                self.ledger.assume(
                    f"{path}.price_by_phase.{phase}", price, "", (offer.note or "stated in the spec") + level, scope
                )
            offers.append(phase_facts.offer_in_time(facts, offer, self.spec, self.phases, self._convert, self._wrong))
        return offers

    def _apis(self, sites: Sequence[SiteFacts]) -> list[tuple[SiteFacts, OfferFacts, SystemFacts]]:
        for i, api in enumerate(self.spec.apis or ()):
            for kind in api.model_fields_set & {"input", "output"}:
                amount, currency = getattr(api, kind)
                level = stated_level(self.spec.prices, f"apis[{i}].{kind}", "api")
                self.ledger.assume(
                    f"apis[{i}].{kind}",
                    amount,
                    f"{currency}/token",
                    (api.note or "stated in the spec") + level,
                    ("api", api.name, "*"),
                )
            self.ledger.assume(
                f"apis[{i}].carbon", 0.0, "kg/token", "what its tokens emit is not stated and not counted"
            )
        taken = [*self.catalog.names("regions"), *self.catalog.names("systems")]
        return apis.api_places(self.spec, self.clock.hours, taken, self._find, self._convert, self._wrong)

    def _systems(self, offers: Iterable[OfferFacts]) -> dict[str, SystemFacts]:
        systems: dict[str, SystemFacts] = {}
        for offer in offers:
            if offer.system in systems:
                continue
            try:
                systems[offer.system] = system_facts(self.catalog.get("systems", offer.system), self.ledger)
            except MissingFigure as error:
                self._wrong(f"{offer.path}.system", str(error))
        return systems

    def _unmeasured(self, training: Sequence[TrainingFacts], systems: Mapping[str, SystemFacts]) -> None:
        """Training efficiency differs by chip family; one without a measured run takes that of the others, an assumption."""
        for family in {system.family for system in systems.values()} - set(GEMM_FAMILIES) if training else ():
            reason = "no training run on this chip family was measured: the share of the peak that other families reach is taken"
            other = self.ledger.value("constants", "training.generation_other", "value")
            self.ledger.assume(f"training.generation_{family or 'unknown'}", other, "1", reason)

    # -- network ---------------------------------------------------------------------------------------------------

    def _network(
        self,
        sites: Sequence[SiteFacts],
        serving: Sequence[ServingFacts],
        calendar: Calendar,
        offered: Sequence[lines.Offered] | None,
    ):
        from solvers.wan_graph import distribution_tree, wan_graph

        regions = sorted(
            {site.place for site in sites}
            | {o.region for w in serving for o in w.spec.origins}
            | {w.weights_from for w in serving}
        )
        edges = wan.edges_between(regions, self.ledger, self._convert)
        if offered is not None:
            return {}, {}, lines.line_network(offered, edges, sites, serving, self.ledger)
        graph = wan_graph(edges)
        paths, trees = {}, {}
        worth = float((calendar.window_seconds() / YEAR_S * calendar.window_discount()).sum())
        for workload in serving:
            allowed = [s.region for s in sites if s.api is None and permitted(workload, s)]
            reached = list(dict.fromkeys(s.place for s in sites if permitted(workload, s)))
            origins = [origin.region for origin in workload.spec.origins]

            def through(region: str, reached=reached, origins=origins, workload=workload) -> bool:
                return workload.spec.residency is None or region in reached or region in origins

            found = wan.best_paths(graph, origins, reached, through)
            paths |= {(workload.name, o, s): path for (o, s), path in found.items() if s in allowed}
            paths |= apis.api_paths(workload, found, sites)
            tree = distribution_tree(graph, workload.weights_from, allowed, weight="price_per_byte")
            per_edge = workload.weights_bytes * workload.spec.weight_updates_per_year * worth
            trees[workload.name] = TreeFacts(
                edges=tuple(tree.edges),
                edge_cost=tuple(per_edge * graph.edges[edge]["price_per_byte"] for edge in tree.edges),
                edges_above=tree.edges_above,
            )
        return paths, trees, None


def _example_price(how: str) -> str:
    return '"310000 USD"' if how == "buy" else '"55.04 USD/h"'
