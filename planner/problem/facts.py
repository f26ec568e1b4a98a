"""The problem: the spec with every name resolved and every quantity in SI, as `planner.resolve.resolver` builds it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalog.units import YEAR_S
from models.arrays import Floats
from models.formats import OPERAND_BITS, RECIPE_FORMATS, arithmetic_of, computes_in, kind_of
from models.roofline import AS_PUBLISHED, ChipRates, Reached
from models.transformer.architecture import Architecture
from planner.facts import Fact
from planner.facts.exports import CHINA
from planner.messages import Message
from planner.problem.batches import rounded_batch
from planner.problem.calendar import SAMPLED_DAYS, SLOTS_PER_DAY, TYPICAL_DAY, TYPICAL_DAYS, Calendar
from planner.problem.constants import ModelConstants
from planner.problem.economics import Economics
from planner.problem.electricity import NOT_BOUGHT, CapCurve, ElectricityFacts, PriceContents
from planner.problem.engine import EngineSettings
from planner.problem.facility import AIR, NOTHING, OPEN, Assured, Effectiveness, HallFacts, RackFacts
from planner.problem.intervals import SERVING_LABEL, network
from planner.problem.kv_tiers import KvTierSet
from planner.problem.lines import Carrier, LineNetwork, PathFacts, TreeFacts
from planner.problem.owned import OwnedFacts, RentedFacts, SpotFacts
from planner.problem.porting import PortingFacts
from planner.problem.provenance import Assumption, Citation
from planner.spec.model import Limits, PlanSpec
from planner.spec.reinforcement import Reinforcement
from planner.spec.robust import Robust
from planner.spec.workloads import Serving, Training, Workload

FULL, REDUCED, FLEET = "full", "reduced", "fleet"  # fleet: of a robust plan, with at least its fleet


@dataclass(frozen=True, slots=True)
class ScaleOut:
    """What a network between systems gives each chip."""

    bytes_per_s: float  # 0 without a network
    latency_s: float = 0.0  # a message's mean way through the switches, beyond its start-up


NO_NETWORK = ScaleOut(0.0)


@dataclass(frozen=True, slots=True)
class SystemFacts:
    """A server or rack sold as one unit of `chips` equal chips; rates are per chip and one direction."""

    name: str
    chip: str
    family: str
    chips: int
    flop_per_s: Mapping[str, float]  # by arithmetic
    flop16_per_s: float  # attention
    hbm_bytes: float
    hbm_bytes_per_s: float
    scaleup_bytes_per_s: float
    scaleup_chips: int
    nic_bytes_per_s: float
    power_w: float
    idle_w: float
    embodied_kg: float
    export_cn: str
    cooling: tuple[str, ...] = (AIR,)  # any of them will do
    rack: RackFacts | None = None  # None where no hall limits what stands in it
    attention8_flop_per_s: float = 0.0  # attention over a KV cache of 8 bit; 0: computed in 16 bit
    host_bytes_per_s: float = 0.0  # a chip to the memory of its host; 0 where it is not known
    host_bytes: float = 0.0  # memory of the host, a chip's share; 0 where it is not known
    host_chips: int = 1  # chips without links of their own that exchange in serving over those of one host
    host_crowding: float = 0.0  # how the rate of these falls with the chips of a group, as (g / 2)^-c
    block_scaled: tuple[str, ...] = ()  # formats whose block scales its matrix units apply
    kv_tiers: KvTierSet | None = None  # with which it is bought, power included; None without
    reached: Reached = AS_PUBLISHED  # by its kernels beside those of other chips
    vendor: str = ""  # maker of its chips

    def __hash__(self) -> int:
        return hash((self.name, self.chips, self.nic_bytes_per_s, self.power_w))

    @property
    def plain_name(self) -> str:
        """Return the name without tiers of KV cache, on which the times of training do not depend."""
        return self.name if self.kv_tiers is None else self.kv_tiers.base

    def serves(self, precision: str, arithmetic: str | None = None) -> bool:
        """Tell whether it multiplies weights of a format, widened where it must; `arithmetic`: the one that the workload states."""
        return arithmetic_of(precision, self.flop_per_s, arithmetic or "") is not None

    def trains(self, precision: str) -> bool:
        """Tell whether it computes in a format itself, block scales included, as a recipe of training must."""
        return computes_in(precision, self.flop_per_s, self.block_scaled)

    @property
    def recipes(self) -> tuple[str, ...]:
        """List the formats that it `trains` in."""
        return tuple(name for name in RECIPE_FORMATS if self.trains(name))

    def rates(
        self, precision: str, scaleout: ScaleOut | None = None, arithmetic: str | None = None, hosted: bool = False
    ) -> ChipRates:
        """Return the rates for weights of a format that it `serves`; without a network the NIC's, without latency. `hosted`: links of a host join chips."""
        network = ScaleOut(self.nic_bytes_per_s) if scaleout is None else scaleout
        used = arithmetic_of(precision, self.flop_per_s, arithmetic or "") or precision
        rates = ChipRates(
            flop_per_s=self.flop_per_s[used],
            gemm_bits=float(OPERAND_BITS[used]),
            flop16_per_s=self.flop16_per_s,
            hbm_bytes_per_s=self.hbm_bytes_per_s,
            hbm_bytes=self.hbm_bytes,
            scaleup_bytes_per_s=self.scaleup_bytes_per_s,
            scaleup_chips=max(self.scaleup_chips, self.host_chips) if hosted else self.scaleup_chips,
            scaleup_crowding=self.host_crowding if hosted else 0.0,
            scaleout_bytes_per_s=network.bytes_per_s,
            scaleout_latency_s=network.latency_s,
            tdp_w=self.power_w / self.chips,
            attention8_flop_per_s=self.attention8_flop_per_s,
            host_bytes_per_s=self.host_bytes_per_s,
        )
        return self.reached.on(rates)


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """Parts of a scale-out network; prices in the spec's currency, links (with both ends) per NIC port. Unknown latencies are None."""

    name: str
    radix: int
    port_bytes_per_s: float
    switch_price: float
    link_price_one_tier: float
    link_price_two_tier: float
    switch_power_w: float
    optic_power_w: float
    alpha_s: float | None = None  # start-up of a message between systems
    hop_latency_s: float | None = None  # a switch with its cable
    copper_link_price: float | None = None  # a link within a rack; None: all links are optical
    rack_systems: int = 1
    used_share: float = 1.0  # share of the links' rate that messages reach


@dataclass(frozen=True, slots=True)
class OfferFacts:
    """A way to obtain a system. `prices` by region: per system (buy) or per system and second (rent), spec's currency."""

    path: str
    system: str
    how: str
    prices: Mapping[str, float]
    supply: float  # inf where nothing limits it
    least: int = 1  # systems, if any are obtained
    from_s: float = 0.0  # first delivery, from the start of the horizon
    until_s: float = math.inf  # no delivery from then on
    lead_s: tuple[float, float, float] | None = (
        None  # low, typical and high time from an order to its delivery; None: not stated
    )
    life_years: float | None = None  # None: that of all systems
    price_change: float = 0.0  # per year
    phase_prices: tuple[float | None, ...] = ()  # by phase, in place of `prices`
    phase_supply: tuple[float, ...] = ()  # by phase
    spot: SpotFacts | None = None  # None: what is obtained stays
    assured: Assured = NOTHING  # rented systems, or an API
    term_s: float = 0.0  # least time for which it is rented
    start_s: float = 0.0  # paid for before a system serves, each time that it starts; on demand and spot
    least_run_s: float = 0.0  # least time for which a system runs once it has started; on demand and spot
    exit_fee: float = 0.0  # share of the rent for the rest of the term
    owned: OwnedFacts | None = None  # systems that are owned already; `prices` are then those when new
    rented: RentedFacts | None = None  # systems that are rented already, all of `supply`
    stated_at: str = ""  # path of the offer whose supply it shares, of systems with tiers of KV cache; else empty
    with_software: bool = False  # whether licences and support are in the price

    @property
    def is_late(self) -> bool:
        """Tell whether its deliveries may come later than typical."""
        return self.lead_s is not None and self.lead_s[2] > self.lead_s[1]

    @property
    def order(self) -> str:
        """Return the path of the spec's offer whose supply and least count it counts against."""
        return self.stated_at or self.path

    def ready_s(self, site: SiteFacts) -> float:
        """Return the first moment at which systems may run at a site [s]; moved systems take their time."""
        return max(self.from_s, site.from_s, 0.0 if self.owned is None else self.owned.runs_from_s(site.region))

    def life_s(self, money: Economics) -> float:
        """Return the service life of a system [s]."""
        return (money.system_life_years if self.life_years is None else self.life_years) * YEAR_S


@dataclass(frozen=True, slots=True)
class ApiFacts:
    """Tokens bought from an API. Prices per token at the start of the horizon; `latency`: "ttft.p95" -> seconds in its region."""

    region: str
    input_price: float
    output_price: float
    price_change: float  # per year
    latency: Mapping[str, float]
    workloads: tuple[str, ...]
    architecture: str = ""  # the record's name; empty: that which each workload names

    def serves(self, workload: ServingFacts) -> bool:
        """Tell whether the API lists a workload and serves its architecture."""
        alike = workload.runs == self.architecture if self.architecture else workload.is_own
        return workload.asked in self.workloads and alike


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """A place where systems may stand, or an API; prices in the spec's currency."""

    path: str
    region: str
    power_limit_w: float  # inf where nothing limits it; where it changes, the most that it ever is
    price_per_j: Floats  # by hour of the calendar's period, spec's currency
    carbon_kg_per_j: Floats  # by hour of the calendar's period
    pue: Effectiveness
    facility_cost_per_w: float  # an ordinary building
    fixed_cost_per_s: float
    crew_per_s: float  # staff of the site at any size, at the start of the horizon
    systems: tuple[str, ...]
    topologies: tuple[str, ...]
    fabric: NetworkFacts | None
    export_zone: str
    zones: tuple[str, ...]  # codes that a residency rule may name
    fails_with: str = ""  # zone of `spread`
    contents: PriceContents = NOT_BOUGHT  # parts that the price by hour holds
    electricity: ElectricityFacts | None = None  # None: each joule costs the price of its hour
    power_caps: tuple[float, ...] = ()  # shares of nameplate
    cap_curve: CapCurve | None = None  # None without caps
    from_s: float = 0.0  # nothing stands there before
    facility_premium: float = 0.0  # a building for AI, as a share of the cost of an ordinary one
    hall_per_w_s: float = 0.0  # rent of a hall, by nameplate; there is no building then
    storage_bytes_per_s: float = math.inf  # all that runs there
    api: ApiFacts | None = None  # None: a site of our own
    phase_power_w: tuple[float | None, ...] = ()  # by phase, the limit from then on; None where nothing changes
    first_power_w: float = math.inf  # before any of them
    hall: HallFacts = OPEN  # in which our own systems stand
    assured: Assured = NOTHING  # that hall

    @property
    def place(self) -> str:
        """Return the region of the catalog in which the site lies."""
        return self.region if self.api is None else self.api.region

    @property
    def own_network(self) -> NetworkFacts:
        """Return the parts of the networks between our own systems. Raises ValueError for an API, which has none."""
        if self.fabric is None:
            raise ValueError(Message.of("problem.api_without_network", region=self.region).text())
        return self.fabric


@dataclass(frozen=True, slots=True)
class WorkloadFacts:
    """Facts that serving and training workloads share; `path`: place in the spec."""

    path: str
    spec: Workload
    architecture: Architecture

    @property
    def name(self) -> str:
        """Return the workload's name in the problem."""
        return self.spec.name

    @property
    def asked(self) -> str:
        """Return the name of the spec's workload that it answers."""
        return self.spec.name

    @property
    def demanded(self) -> Assured:
        """Return what must be assured of the places where it runs."""
        return Assured(self.spec.sole_tenant, tuple(self.spec.audit))


@dataclass(frozen=True, slots=True)
class ServingFacts(WorkloadFacts):
    """A serving workload, on one architecture."""

    spec: Serving
    requests_per_s: Floats  # [origin, hour of the calendar's period]
    weights_bytes: float
    weights_from: str
    engine: EngineSettings
    growth: Floats | None = None  # [window] what the demand is multiplied by; None: the same throughout
    sold_at: float | None = None  # per output token, with the prompt that belongs to it, in the spec's currency
    runs: str = ""  # name of the architecture's record
    is_own: bool = True  # whether that is the architecture which the workload names, and no alternative to it
    part_of: str = ""  # workload of the spec of which this is one of several architectures

    @property
    def asked(self) -> str:
        """Return the name of the spec's workload whose demand it answers, alone or beside other architectures."""
        return self.part_of or self.spec.name

    @property
    def peak_requests_per_s(self) -> float:
        """Compute the demand of all origins in the busiest hour [request/s]."""
        return float(self.requests_per_s.sum(axis=0).max() * (1.0 if self.growth is None else self.growth.max()))

    def measured_as(self, chip: str, precision: str) -> tuple[str, str]:
        """Return the chip and the kind of weights by which own measured runs of it are known: the weights of its checkpoint."""
        return chip, kind_of(self.architecture.checkpoints, precision)

    def requests_by_slot(self, calendar: Calendar) -> Floats:
        """Return the demand [request/s] as an array [origin, slot]."""
        flat = self.requests_per_s[:, calendar.hour]
        return flat if self.growth is None else flat * self.growth[calendar.window]


@dataclass(frozen=True, slots=True)
class TrainingFacts(WorkloadFacts):
    """A training job, or the update of reinforcement learning (`planner.problem.reinforcement`)."""

    spec: Training | Reinforcement

    @property
    def batch_sequences(self) -> int:
        """Compute the sequences of a step, a large batch rounded so that it divides among replicas."""
        return rounded_batch(self.spec.batch_tokens / self.spec.sequence_tokens)


@dataclass(frozen=True, slots=True)
class QualityFacts:
    """The architectures that may answer a workload with a quality floor. `scores`: of all alternatives, by their records' names, in
    the spec's order; `members`: serving workloads of the problem, by the architecture that each runs."""

    path: str
    workload: str
    least: float
    source: str
    mix: str
    scores: Mapping[str, float]
    members: Mapping[str, str]

    def is_able(self, architecture: str) -> bool:
        """Tell whether an architecture may answer: alone, or in a mix whose mean keeps the floor."""
        return (max(self.scores.values()) if self.mix in ("hour", "mean") else self.scores[architecture]) >= self.least


@dataclass(frozen=True, slots=True)
class PhaseFacts:
    """A stretch of the build-out. Ceilings in it, or inf: `capital` on the price of deliveries, `budget` on payments, not discounted."""

    name: str
    path: str
    start_s: float
    end_s: float
    capital: float
    budget: float = math.inf


@dataclass(frozen=True, slots=True)
class ResolvedSpec:
    """A resolved spec: everything that the later stages read."""

    spec: PlanSpec
    calendar: Calendar
    economics: Economics
    per_usd: Mapping[str, float]
    sites: tuple[SiteFacts, ...]
    systems: Mapping[str, SystemFacts]
    offers: tuple[OfferFacts, ...]
    serving: tuple[ServingFacts, ...]
    training: tuple[TrainingFacts, ...]
    paths: Mapping[tuple[str, str, str], PathFacts]  # (workload, origin, site)
    trees: Mapping[str, TreeFacts]  # by serving workload
    budget: float
    capital: float
    carbon_kg: float
    bytes_per_token: float
    constants: ModelConstants
    assumptions: tuple[Assumption, ...]
    citations: tuple[Citation, ...]
    catalog_digest: str
    lines: LineNetwork | None = None  # None: no choice of lines, `paths` and `trees` say how traffic goes
    phases: tuple[PhaseFacts, ...] = ()  # empty where all is obtained at the start
    porting: tuple[PortingFacts, ...] = ()
    derating: Derating | None = None  # what a robust plan counts on instead of predictions
    quality: tuple[QualityFacts, ...] = ()  # workloads with a quality floor
    notes: tuple[Fact, ...] = ()  # how the spec was understood, and what in it is at odds with what is known

    @property
    def robust(self) -> Robust:
        """Return the block `robust` of the spec. Raises ValueError for a spec without one."""
        if self.spec.robust is None:
            raise ValueError(Message.of("problem.no_robust_block").text())
        return self.spec.robust

    @property
    def bound_of(self) -> str:
        """Name the scope of the program: the full problem ("full"), or fewer hours than its series have ("reduced")."""
        if self.calendar.kind not in (TYPICAL_DAY, TYPICAL_DAYS):
            return FULL
        shaped = any(w.spec.demand.week or w.spec.demand.months for w in self.serving)
        profiles = (c.profile for site in self.spec.sites if site.electricity for c in site.electricity.ppa)
        return REDUCED if shaped or any(p != "flat" for p in profiles) or self._has_other_hours() else FULL

    def _has_other_hours(self) -> bool:
        """Tell whether series hold more hours than the calendar; sampled days may be just the days of the series."""
        if self.spec.horizon.calendar != SAMPLED_DAYS:
            return self.calendar.kind == TYPICAL_DAYS or any(site.hourly for site in self.spec.sites)
        hours = len(self.calendar.days) * SLOTS_PER_DAY
        files = (self.spec.series[site.hourly.series] for site in self.spec.sites if site.hourly)
        given = (values for file in files for values in file.columns.values())
        return any(sum(value is not None for value in values) > hours for values in given)

    def tenant_of(self, workload: WorkloadFacts) -> str:
        """Name the tenant of the systems that a workload runs on; empty where all workloads share them."""
        return {"all": "", "kind": workload.spec.kind, "none": workload.asked}[self.spec.sharing]

    def demands(self) -> tuple[ServingFacts, ...]:
        """List one serving workload for each of the spec, whatever architecture it runs."""
        return tuple({workload.asked: workload for workload in reversed(self.serving)}.values())[::-1]

    def tenants(self) -> tuple[str, ...]:
        """List the tenants of systems, each once."""
        return tuple(dict.fromkeys(self.tenant_of(workload) for workload in (*self.serving, *self.training)))

    def routes(self, workload: str, origin: str, site: str) -> Mapping[str, PathFacts | Carrier]:
        """Return the routes of requests from an origin to a site by kind of line; the kind is empty where there is no choice."""
        if self.lines is not None:
            return {way.kind: way for way in self.lines.requests.get((workload, origin, site), ())}
        path = self.paths.get((workload, origin, site))
        return {} if path is None else {"": path}

    def prompt_bytes(self, workload: ServingFacts) -> float:
        """Return the bytes that come to the site for one request: the prompt as text."""
        return workload.spec.prompt_tokens * self.bytes_per_token

    def egress_bytes(self, workload: ServingFacts) -> float:
        """Return the bytes that leave the site for one request: the answer as text."""
        return workload.spec.lengths.output * self.bytes_per_token


def permitted(workload: WorkloadFacts, site: SiteFacts) -> bool:
    """Tell whether residency allows the workload at the site."""
    rule = workload.spec.residency
    return rule is None or site.region in rule or any(zone in rule for zone in site.zones)


def assured_at(site: SiteFacts, offer: OfferFacts) -> Assured:
    """Return the assurances of the systems of an offer at a site: of bought ones by the site, of all others by the offer."""
    return site.assured if offer.how == "buy" else offer.assured


def is_assured(workload: WorkloadFacts, site: SiteFacts, offer: OfferFacts) -> bool:
    """Tell whether all that the workload demands is assured of the systems of an offer at a site."""
    return assured_at(site, offer).covers(workload.demanded)


def hall_refusal(system: SystemFacts, site: SiteFacts, offer: OfferFacts) -> str:
    """Say why a system cannot stand in the hall of the site; empty where it can, or where it stands in its provider's."""
    return "" if offer.how != "buy" or system.rack is None else site.hall.refusal(system.rack)


def racks_per_system(system: SystemFacts, site: SiteFacts, offer: OfferFacts) -> float:
    """Compute the rack positions of the site that one system takes; 0 where it stands elsewhere."""
    return 0.0 if offer.how != "buy" or system.rack is None else site.hall.racks_per_system(system.rack)


def exportable(system: SystemFacts, site: SiteFacts, limits: Limits) -> bool:
    """Tell whether export control allows the system at the site (see docs/decisions/0121-unknown-export-status.md)."""
    if not limits.export_control or site.export_zone != CHINA:
        return True
    licensed = system.chip in limits.licences or system.name in limits.licences
    return system.export_cn in ("domestic", "allowed", "unknown") or (system.export_cn == "licence" and licensed)


@dataclass(frozen=True, slots=True)
class Derating:
    """Pessimistic factors at one level of all errors: on latencies, step times and demand at least 1, on rates at most 1."""

    level: float
    demand: Mapping[str, float]  # by serving workload
    serving: Mapping[str, Mapping[str, float]]  # chip -> tpot, ttft, throughput
    training: Mapping[str, Mapping[str, float]]  # chip -> dense, moe

    def capacity(self, workload: WorkloadFacts, systems: Iterable[SystemFacts]) -> float:
        """Return the share of a point's predicted capacity that the plan counts on."""
        chips = {system.chip for system in systems}
        if isinstance(workload, TrainingFacts):
            label = network(workload.architecture.experts)
            return 1.0 / max((self.training[chip][label] for chip in chips if chip in self.training), default=1.0)
        rate = min((self.serving[chip]["throughput"] for chip in chips if chip in self.serving), default=1.0)
        return rate / self.demand.get(workload.name, 1.0)

    def stretch(self, systems: Iterable[SystemFacts]) -> dict[str, float]:
        """Return the factor on each latency metric of a point on these systems."""
        known = [self.serving[system.chip] for system in systems if system.chip in self.serving]
        return {
            metric: max((errors[label] for errors in known), default=1.0)
            for metric, label in SERVING_LABEL.items()
            if metric != "capacity"
        }
