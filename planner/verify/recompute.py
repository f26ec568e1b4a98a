"""What `planner.verify.plan` computes anew: used points one by one in plain numbers, and all amounts by plain addition."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from catalog.units import YEAR_S
from models.network.group_links import Plant
from models.serving.decode import ServingLayouts
from models.serving.percentiles import latency_s
from planner.candidates import disaggregated as disaggregated_points
from planner.candidates import serving as serving_points
from planner.candidates import training as training_points
from planner.candidates.power_caps import capped_at, stretched
from planner.evaluate.rank_placement import placement_of
from planner.problem.fabrics import bands, reach_of, scaleout_bytes_per_s, share_a_network, uneven
from planner.problem.facts import (
    NO_TREE,
    OfferFacts,
    Problem,
    ServingFacts,
    SiteFacts,
    SystemFacts,
    TrainingFacts,
)
from planner.problem.intervals import serving_bounds, serving_tier, training_bounds
from planner.spec.fabrics import PROVIDER
from planner.verify.electricity import ElectricityCheck
from planner.verify.phases import InTime

Key = tuple[str, str, str, str, int | None, str]  # site, system, how, fabric, its size, offer


@dataclass(frozen=True, slots=True)
class CheckedLot:
    """One system of a fleet row: prices in the spec's currency, power of the system with its share of the fabric."""

    site: SiteFacts
    system: SystemFacts
    offer: OfferFacts
    fabric: str
    owned: bool
    capital: float
    fabric_capital: float
    facility_capital: float
    rent_per_s: float
    idle_it_w: float
    plant: Plant | None
    largest: float
    nameplate_w: float = 0.0  # of one system of our own and its share of the fabric

    @property
    def scaleout_bytes_per_s(self) -> float:
        return scaleout_bytes_per_s(self.plant) if self.owned else self.system.nic_bytes_per_s


class Lots:
    """Looks up what a fleet row means; a row that the spec does not offer raises KeyError."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.sites = {site.region: site for site in problem.sites}
        self.offers = {offer.path: offer for offer in problem.offers}
        self._known: dict[Key, CheckedLot] = {}

    def __getitem__(self, key: tuple) -> CheckedLot:
        key = key[:6]  # whoever holds it
        if key not in self._known:
            self._known[key] = self._lot(*key)
        return self._known[key]

    def _lot(self, region: str, system_name: str, how: str, fabric: str, size: int | None, offer_path: str) -> CheckedLot:
        site, offer = self.sites[region], self.offers[offer_path]
        system = self.problem.systems[system_name]
        if offer.system != system_name or offer.how != how or (site.systems and system_name not in site.systems):
            raise KeyError(f"{system_name} ({how}) is not offered in {region}")
        price = offer.prices[region]
        if how != "buy":
            if fabric != PROVIDER or size is not None:
                raise KeyError(f"a rented system stands on the provider's fabric, not on {fabric}")
            return CheckedLot(site, system, offer, fabric, False, 0.0, 0.0, 0.0, price, system.idle_w, None, math.inf)
        if fabric not in site.fabrics:
            raise KeyError(f"{fabric} is not a fabric of {region}")
        known = bands(fabric, system, site.network, reach_of(site, offer, system))
        band = next((band for band in known if size == (band.plant.systems if band.plant else None)), None)
        if band is None:
            raise KeyError(f"no {fabric} network of {system_name} is built for {size} systems")
        return CheckedLot(
            site=site, system=system, offer=offer, fabric=fabric, owned=True,
            capital=price,
            fabric_capital=band.price,
            facility_capital=(system.power_w + band.power_w) * site.facility_cost_per_w,
            rent_per_s=0.0,
            idle_it_w=system.idle_w + band.power_w,
            plant=band.plant,
            largest=band.largest,
            nameplate_w=system.power_w + band.power_w,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A used point, evaluated again; `stated` is what the plan must say of it.

    The rest is what it does say, since all that follows is added up from that.
    """

    workload: str
    stated: Mapping[str, Any]
    fits: bool
    capacity: float
    latency: Mapping[str, float]
    chips: float
    mfu: float
    hfu: float  # 0 but for a job
    systems: Sequence[float]  # per replica, by pool
    extra: Sequence[tuple[CheckedLot, float]]  # IT watts above idle per replica, by pool


def evaluate_point(problem: Problem, lots: Lots, workload: ServingFacts | TrainingFacts, row: Mapping[str, Any]) -> Evaluated:
    """The row of a plan as one evaluation of the closed forms. Raises KeyError or ValueError for a row that makes no sense."""
    pools = row["pools"]
    for pool in pools:
        sizes = [pool["batch"], pool["workers"], *pool["layout"].values()]
        if not all(type(size) is int and size >= 0 for size in sizes):
            raise ValueError(f"{row['id']}: layout, batch and workers are whole numbers, got {sizes}")
    held = [lots[row["site"], pool["system"], pool["how"], pool["fabric"], pool["fabric_size"], pool["offer"]] for pool in pools]
    found = _evaluate(problem, workload, held, row)
    cap = row.get("power_cap")
    if cap is None:
        return found
    site = held[0].site
    if cap not in site.power_caps or not all(lot.owned for lot in held):
        raise ValueError(f"{row['id']}: a power cap of {cap} is not offered there")
    plain = found.stated["pools"].values()
    capped = capped_at(cap, site.cap_curve, [(lot.system, pool["systems_per_replica"], pool["extra_power_w"]) for lot, pool in zip(held, plain, strict=True)])
    if capped is None:
        raise ValueError(f"{row['id']}: a power cap of {cap} does not slow it down, or is too low")
    return replace(found, stated=stretched(found.stated, capped))


def _evaluate(problem: Problem, workload: ServingFacts | TrainingFacts, held: Sequence[CheckedLot], row: Mapping[str, Any]) -> Evaluated:
    pools = row["pools"]
    if isinstance(workload, TrainingFacts):
        return _training(problem, workload, held[0], row)
    if [pool["role"] for pool in pools] == ["serve"]:
        return _one_pool(problem, workload, held[0], row)
    if [pool["role"] for pool in pools] == ["api"]:
        return _bought(workload, held[0], row)
    if [pool["role"] for pool in pools] == ["prefill", "decode"]:
        return _two_pools(problem, workload, held, row)
    raise ValueError(f"pools {[pool['role'] for pool in pools]} are not those of a serving point")


def _layout(pool: Mapping[str, Any], workload: ServingFacts) -> ServingLayouts:
    layout = ServingLayouts(**pool["layout"])
    if min(pool["layout"].values()) < 1 or workload.architecture.heads % layout.tp:
        raise ValueError(f"layout {pool['layout']} is not legal")
    return layout


def systems_of(lot: CheckedLot, pool: Mapping[str, Any]) -> float:
    """Systems that one replica of the pool blocks."""
    layout = pool["layout"]
    stage, chips, domain = layout["tp"] * layout["dp"], lot.system.chips, lot.system.scaleup_chips
    # beyond a scale-up domain only whole systems, with one chip per attention rank
    spread = layout["tp"] == layout["pp"] == 1 and domain == chips and stage % chips == 0
    leaves = layout["pp"] > 1 or stage > chips
    if (stage > min(domain, chips) and not spread) or (leaves and lot.scaleout_bytes_per_s <= 0):
        raise ValueError(f"layout {layout} does not fit {lot.system.name} on {lot.fabric}")
    each = layout["pp"] * max(stage / chips, 1.0) if leaves else 1.0 / (chips // stage)
    return each * pool["workers"]


def _ready(lot: CheckedLot) -> float:
    """Systems held over those at work, where some may be taken away. Raises ValueError where nothing may be served."""
    spot = lot.offer.spot
    if spot is not None and spot.headroom is None:
        raise ValueError(f"{lot.system.name} on the spot market serves nothing without headroom")
    return 1.0 + spot.headroom if spot is not None else 1.0


def _one_pool(problem: Problem, workload: ServingFacts, lot: CheckedLot, row: Mapping[str, Any]) -> Evaluated:
    pool = row["pools"][0]
    if pool["workers"] != 1:
        raise ValueError("a single pool has one worker per replica")
    layout, rates = _layout(pool, workload), lot.system.rates(pool["precision"], lot.scaleout_bytes_per_s)
    found = serving_points.evaluate(
        workload, lot.system, lot.scaleout_bytes_per_s, layout, float(pool["batch"]), pool["precision"], problem.constants.serving
    )
    shares = {name: float(share) for name, share in found.shares.items()}
    systems = systems_of(lot, pool)
    extra = systems * serving_points.extra_power_w(lot.system, shares, problem.constants.power)
    return _evaluated(
        workload, row, [lot], [systems * _ready(lot)], [extra], bool(found.fits), float(found.requests_per_s), _latency(found, workload), shares,
        serving_points.mfu(workload, float(found.requests_per_s), [(rates, float(layout.chips))], float(found.computed_share)), float(found.memory_bytes),
        **_spread(problem, row, [lot], float(found.requests_per_s), _latency(found, workload)),
    )  # fmt: skip


def _two_pools(problem: Problem, workload: ServingFacts, held: Sequence[CheckedLot], row: Mapping[str, Any]) -> Evaluated:
    first, second = row["pools"]
    if first["batch"] != 1 or first["precision"] != second["precision"]:
        raise ValueError("a prefill worker takes one prompt at a time, and both pools have one precision")
    if not share_a_network(*held) or min(lot.scaleout_bytes_per_s for lot in held) <= 0:
        raise ValueError("both pools must share a network")
    layouts = (_layout(first, workload), _layout(second, workload))
    found = disaggregated_points.evaluate(
        workload, (held[0].system, held[1].system), (held[0].scaleout_bytes_per_s, held[1].scaleout_bytes_per_s), layouts,
        float(second["batch"]), (first["workers"], second["workers"]), first["precision"], problem.constants.serving,
    )  # fmt: skip
    sides = [{n: float(v) for n, v in shares.items()} for shares in (found.prefill_shares, found.point.shares)]
    systems = [systems_of(lot, pool) for lot, pool in zip(held, row["pools"])]
    extra = [n * disaggregated_points.pool_power_w(shares, lot.system, problem) for n, shares, lot in zip(systems, sides, held)]
    rate = float(found.point.requests_per_s)
    chips = [(lot.system.rates(p["precision"]), float(layout.chips) * p["workers"]) for lot, p, layout in zip(held, row["pools"], layouts)]
    return _evaluated(
        workload, row, held, [n * _ready(lot) for n, lot in zip(systems, held)], extra, bool(found.point.fits), rate, _latency(found.point, workload), sides[1],
        serving_points.mfu(workload, rate, chips, float(found.point.computed_share)), float(found.point.memory_bytes),
        **_spread(problem, row, held, rate, _latency(found.point, workload)),
    )  # fmt: skip


def _bought(workload: ServingFacts, lot: CheckedLot, row: Mapping[str, Any]) -> Evaluated:
    """A request per second from an API: what it promises, in tokens per second."""
    api, pool = lot.site.api, row["pools"][0]
    if api is None or not api.serves(workload) or pool["layout"] or pool["batch"] or pool["workers"] != 1 or pool["precision"]:
        raise ValueError(f"{row['id']}: is no way to buy tokens")
    latency = {f"{metric}.{p}": api.latency[f"{metric}.{p}"] for metric, p, _ in workload.spec.slo.limits()}
    return _evaluated(workload, row, [lot], [float(workload.spec.lengths.output)], [0.0], True, 1.0, latency, {}, 0.0, 0.0)


def tokens_price(site: SiteFacts, workload: ServingFacts, begin_s: float) -> float:
    """Of one request that an API answers in a window that begins then; nothing at a site of our own."""
    if site.api is None:
        return 0.0
    lengths = workload.spec.lengths
    return (site.api.input_price * lengths.input + site.api.output_price * lengths.output) * (1 + site.api.price_change) ** (begin_s / YEAR_S)


def _training(problem: Problem, job: TrainingFacts, lot: CheckedLot, row: Mapping[str, Any]) -> Evaluated:
    pool = row["pools"][0]
    if len(row["pools"]) != 1 or pool["role"] != "train" or pool["workers"] != 1 or pool["batch"] != 0:
        raise ValueError("a training point has one pool")
    width = training_points.evaluate_one(job, lot.system, lot.scaleout_bytes_per_s, pool["layout"], pool["precision"], problem, row["tier"], uneven(lot.plant), lot.offer.spot, lot.site.storage_bytes_per_s, lot.owned)
    working = math.ceil(width.chips / lot.system.chips)
    if working > 1 and lot.scaleout_bytes_per_s <= 0:
        raise ValueError(f"{working} systems of {lot.system.name} need a network")
    spares = training_points.spares_of(job, width.chips, lot.system, lot.owned, problem.constants.reliability)
    if "spares" in pool and pool["spares"] != spares:
        raise ValueError(f"{spares:g} systems are spares, not {pool['spares']:g}")
    extra = working * training_points.extra_power_w(lot.system, problem)
    return _evaluated(
        job, row, [lot], [working + spares], [extra], width.fits, width.tokens_per_s, {}, width.breakdown, width.mfu, width.memory_bytes, width.goodput,
        width.time_s, training_bounds(width.interval, width.time_s, width.tokens_per_s), width.interval.tier,
        placement_of(job, lot.system, lot.plant, width.layout, pool["precision"], problem.constants), {"hfu": width.hfu} if "hfu" in row else {},  # plans of earlier versions do not say it
    )  # fmt: skip


def _spread(problem: Problem, row: Mapping[str, Any], lots: Sequence[CheckedLot], capacity: float, latency: Mapping[str, float]) -> dict[str, Any]:
    """The 80 % interval of a serving point, of the tier that the row states or, where it states none, of its own."""
    known = problem.constants.measured_serving
    tier = row["tier"] or serving_tier(known, [(lot.system.chip, pool["precision"]) for lot, pool in zip(lots, row["pools"], strict=True)])
    return {"interval": serving_bounds(known, tier, latency, capacity), "tier": tier}


def _latency(found, workload: ServingFacts) -> dict[str, float]:
    quantiles = serving_points.QUANTILES
    return {f"{metric}.{p}": float(latency_s(found, metric, quantiles[p])) for metric, p, _ in workload.spec.slo.limits()}


def _evaluated(
    workload, row, lots, systems, extra, fits, capacity, latency, breakdown, mfu, memory, goodput=1.0, time_s: Mapping[str, float] = {}, interval: Mapping[str, Any] | None = None,
    tier: str = "", placement: Mapping[str, Any] | None = None, of_job: Mapping[str, Any] = {},
) -> Evaluated:  # fmt: skip
    pools = [
        {**pool, "systems_per_replica": n, "extra_power_w": watts}
        for pool, n, watts in zip(row["pools"], systems, extra)
    ]  # fmt: skip
    return Evaluated(
        workload=workload.name,
        stated={
            "pools": dict(enumerate(pools)), "capacity": capacity, "latency_s": latency, "breakdown": breakdown, "mfu": mfu,
            "memory_bytes": memory, "goodput": goodput, "time_s": time_s, "interval_80": interval, "tier": tier,
            "placement": placement, **of_job,
        },
        fits=fits, capacity=row["capacity"], latency=row["latency_s"], mfu=row["mfu"], hfu=row["hfu"] if of_job else 0.0,
        systems=[pool["systems_per_replica"] for pool in row["pools"]],
        chips=sum(pool["systems_per_replica"] * lot.system.chips for pool, lot in zip(row["pools"], lots)),
        extra=[(lot, pool["extra_power_w"]) for pool, lot in zip(row["pools"], lots)],
    )  # fmt: skip


@dataclass(slots=True)
class Sums:
    """Amounts by (component, site, system, how), and by workload."""

    lines: dict[tuple[str, str, str, str], float]
    carbon: dict[tuple[str, str, str, str], float]
    by_workload: dict[str, float]
    energy_j: float


def add_up(
    problem: Problem,
    lots: Lots,
    fleet: Sequence[Mapping[str, Any]],
    active: Mapping[str, Sequence[float]],
    points: Mapping[str, tuple[Mapping[str, Any], Evaluated]],
    traffic: Mapping[str, Mapping[tuple[str, str], float]],
    electricity: ElectricityCheck | None = None,
    times: Sequence[InTime] = (),
) -> Sums:
    """Every cost, every kilogram and every joule of the plan, hour by hour; `traffic`: egress cost by workload, site and line.

    `electricity`: what the meters come to; None where electricity is no decision. `times`: when each row of the fleet is held.
    """
    calendar, money = problem.calendar, problem.economics
    hours = [
        (t, int(calendar.window[t]), int(calendar.hour[t]), float(calendar.seconds[t]), float(calendar.discount[t]))
        for t in range(calendar.slots)
    ]
    lines: dict[tuple[str, str, str, str], float] = defaultdict(float)
    carbon: dict[tuple[str, str, str, str], float] = defaultdict(float)
    use: dict[tuple[str, tuple[str, str, str]], float] = defaultdict(float)
    energy = 0.0

    for row, when in zip(fleet, times, strict=True):
        lot, n = lots[row["site"], row["system"], row["how"], row["fabric"], row["fabric_size"], row["offer"]], row["count"]
        place = row["site"], row["system"], row["how"]
        if row["how"] == "api":
            continue  # its tokens are paid, which is in `traffic`
        if lot.owned:
            lines["systems", *place] += n * when.price * when.share
            lines["fabric", *place] += n * lot.fabric_capital * when.share
            lines["facility", *place] += n * lot.facility_capital * when.facility_share
        for _, window, hour, seconds, discount in hours:
            if window not in when.windows:
                continue
            joules = n * lot.idle_it_w * lot.site.pue * seconds
            if lot.owned and lot.site.meter is not None:
                joules = 0.0  # settled at the meter, as part of the whole site
            energy += joules
            carbon["operation", *place] += joules * float(lot.site.carbon_kg_per_j[hour])
            carbon["embodied", *place] += n * lot.system.embodied_kg * seconds / lot.offer.life_s(money)
            if lot.owned:
                lines["energy", *place] += joules * float(lot.site.price_per_j[hour]) * discount
                if lot.site.hall_per_w_s:
                    lines["colocation", *place] += n * lot.nameplate_w * lot.site.hall_per_w_s * seconds * discount
            else:
                lines["rent", *place] += n * when.price * seconds * discount

    for name, replicas in active.items():
        row, computed = points[name]
        for pool, systems, (lot, extra) in zip(row["pools"], computed.systems, computed.extra):
            place = row["site"], pool["system"], pool["how"]
            for t, _, hour, seconds, discount in hours:
                joules = replicas[t] * extra * lot.site.pue * seconds
                if lot.owned and lot.site.meter is not None:
                    joules = 0.0
                energy += joules
                carbon["operation", *place] += joules * float(lot.site.carbon_kg_per_j[hour])
                if lot.owned:
                    lines["energy", *place] += joules * float(lot.site.price_per_j[hour]) * discount
                use[computed.workload, place] += replicas[t] * systems * seconds

    names = [w.name for w in (*problem.serving, *problem.training)]
    by_workload = _shares(lines, use, names)
    used_sites = {row["site"] for row in fleet}
    at_site = {site: _shares({k: v for k, v in lines.items() if k[1] == site}, use, names) for site in used_sites}
    for site in problem.sites:
        if site.fixed_cost_per_s and site.region in used_sites:
            amount = site.fixed_cost_per_s * worth_of(problem, site)
            lines["site", site.region, "", ""] += amount
            total = sum(at_site[site.region].values())
            for name in names:
                by_workload[name] += amount * (at_site[site.region][name] / total if total else 1 / len(names))
    for (component, region), amount in (electricity.costs if electricity else {}).items():
        lines[component, region, "", ""] += amount
        shares = at_site.get(region, {})
        total = sum(shares.values())
        for name in names:
            by_workload[name] += amount * (shares[name] / total if total else 1 / len(names))
    for (component, region), amount in (electricity.carbon if electricity else {}).items():
        carbon[component, region, "", ""] += amount
    energy += electricity.drawn_j if electricity else 0.0
    bought = {site.region for site in problem.sites if site.api is not None}
    for name, sites in traffic.items():
        for (site, kind), amount in sites.items():
            if amount:
                lines["api" if site in bought else "egress", site, kind, ""] += amount
                by_workload[name] += amount
    for workload in problem.serving:
        tree = problem.trees.get(workload.name, NO_TREE)
        hosts = {row["site"] for row, computed in points.values() if computed.workload == workload.name}
        for edge in {edge for site in hosts for edge in tree.edges_above.get(site, ())}:
            lines["weights", tree.edges[edge][1], "", ""] += tree.edge_cost[edge]
            by_workload[workload.name] += tree.edge_cost[edge]
    for facts in problem.porting:
        users = {computed.workload for row, computed in points.values() if any(problem.systems[pool["system"]].family == facts.family for pool in row["pools"])}
        users &= set(facts.workloads)
        for name in users:
            lines["porting", "", facts.label, ""] = facts.cost
            by_workload[name] += facts.cost / len(users)
    return Sums(dict(lines), dict(carbon), by_workload, energy)


def worth_of(problem: Problem, site: SiteFacts) -> float:
    """Present worth of a unit per second from when the site is there [s]."""
    calendar = problem.calendar
    there = [bool(calendar.edges_s[w] >= site.from_s - 1e-6) for w in range(calendar.windows)]
    return sum(float(s * d) for s, d, w in zip(calendar.seconds, calendar.discount, calendar.window) if there[int(w)])


def _shares(lines: Mapping[tuple[str, str, str, str], float], use: Mapping[tuple[str, tuple[str, str, str]], float], names: Sequence[str]) -> dict[str, float]:
    """Each line split over the workloads by the system-seconds that they keep at work in its place."""
    result = dict.fromkeys(names, 0.0)
    for (_, *place), amount in lines.items():
        busy = {name: use.get((name, tuple(place)), 0.0) for name in names}
        total = sum(busy.values())
        for name in names:
            result[name] += amount * (busy[name] / total if total else 1 / len(names))
    return result
