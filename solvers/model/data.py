"""Input of the joint program: index sets and arrays in SI units. Not here: formulation and solvers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from solvers.arrays import Bools, Floats, Functionals, Ints, no_bools, no_floats, no_ints
from solvers.model.block_data.choice import ChoiceData
from solvers.model.block_data.electricity import Chronology, MeterData
from solvers.model.block_data.exchange import ExchangeData
from solvers.model.block_data.hourly import HourlyData
from solvers.model.block_data.joint_network import JointNetworks
from solvers.model.block_data.least_fleet import LeastFleet
from solvers.model.block_data.lines import LineData
from solvers.model.block_data.parts import PartLimits
from solvers.model.block_data.porting import PortData
from solvers.model.block_data.power_stages import PowerStages
from solvers.model.block_data.relays import RelayData
from solvers.model.block_data.scenarios import ScenarioData
from solvers.model.block_data.spread import SpreadData
from solvers.model.checks import negative_values, wrong_costs, wrong_indices, wrong_shapes

THROUGHPUT, COST = "throughput", "cost"


@dataclass(frozen=True, slots=True)
class Limit:
    """An upper bound on a functional; `path`: the place in the spec that asks for it."""

    path: str
    functional: str
    upper: float


@dataclass(frozen=True, slots=True)
class Objective:
    """Minimise `functional`; or, for "throughput", maximise the factor lambda on demand of one `workload`, or of all (-1)."""

    functional: str = "cost"
    workload: int = -1

    @property
    def maximises(self) -> bool:
        """Whether throughput is maximised."""
        return self.functional == THROUGHPUT


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanData:
    """Input of the joint program; every index is a position.

    Sizes: R sites, K fleet options, U holdings, S supplies, P operating points, Q pools, A arcs, W serving workloads, O origins, J jobs,
    T slots, V windows, E tree edges.

    A fleet option is systems of one kind, obtained one way, at one site, on one fabric. A holding is a fleet option over one window, over
    all (-1), or from one to a last one; its count is an integer of its own. A pool is the set of points that may serve a set of arcs.
    """

    # time: the window of each slot, and the seconds that it stands for over the horizon
    slot_window: Ints
    slot_hours_s: Floats

    # sites
    site_power_limit_w: Floats
    power_stages: PowerStages | None = None  # None: the limits above apply throughout
    site_fixed: Functionals = field(default_factory=dict)  # [R]

    # fleet options: group = (site, system); fabric = network design within the group, -1 = no choice (rented)
    option_site: Ints = field(default_factory=lambda: no_ints(0))
    option_group: Ints = field(default_factory=lambda: no_ints(0))
    option_fabric: Ints = field(default_factory=lambda: no_ints(0))

    # holdings
    holding_option: Ints = field(default_factory=lambda: no_ints(0))
    holding_window: Ints = field(default_factory=lambda: no_ints(0))  # the first; -1: all
    holding_last: Ints | None = None  # None: each over one window, or over all
    holding_upper: Floats = field(default_factory=lambda: no_floats(0))
    holding_lower: Floats | None = None  # None: no least count
    holding_cost: Functionals = field(default_factory=dict)  # [U]
    holding_power_w: Floats = field(default_factory=lambda: no_floats(0))

    # holdings that are counted, and paid for, slot by slot; None: each is held throughout its windows
    hourly: HourlyData | None = None

    # supply: a limit in every window on the member holdings (rows of `supply_member`: supply, holding) that cover it
    supply_limit: Floats = field(default_factory=lambda: no_floats(0))
    supply_member: Ints = field(default_factory=lambda: no_ints(0, 2))
    supply_used: Bools | None = None  # [U] holdings of which a supply counts what points use in each slot; None: none

    # points: serving ones have a pool, training ones a job, the other is -1
    point_pool: Ints = field(default_factory=lambda: no_ints(0))
    point_job: Ints = field(default_factory=lambda: no_ints(0))
    point_uses: Ints = field(default_factory=lambda: no_ints(0, 2))  # rows (point, fleet option)
    point_uses_systems: Floats = field(default_factory=lambda: no_floats(0))  # systems per replica, for each row above
    point_capacity: Floats = field(default_factory=lambda: no_floats(0))  # requests/s, or work units/s
    point_power_w: Floats = field(default_factory=lambda: no_floats(0))
    point_cost: Functionals = field(default_factory=dict)  # [P, T]

    point_deployment: Ints | None = None  # [P] points of one number are one deployment; None: each is one of its own
    keep_dominated: bool = False  # dominated points stay: fewer parts may be enough with them, at no lower cost

    # whole replicas (`solvers.model.residency`); None: replicas of every point are divisible
    point_whole: Bools | None = None  # [P] serving points whose replicas are whole
    point_load_s: Floats | None = None  # [P] time to load the weights of a replica; None: no time
    use_workers: Ints | None = None  # [rows of `point_uses`] workers of a role per replica; None: one of each
    use_spares: Ints | None = None  # [rows of `point_uses`] workers of a role held beyond those at work; None: none
    relays: RelayData | None = None  # price and ceiling of loads; None: they only take their time
    resident_group: Ints | None = None  # [T] slots of one group have the same residents; None: each slot its own
    least_fleet: LeastFleet | None = None  # systems that whole replicas hold at least; None: not derived

    # arcs
    arc_workload: Ints = field(default_factory=lambda: no_ints(0))
    arc_origin: Ints = field(default_factory=lambda: no_ints(0))
    arc_site: Ints = field(default_factory=lambda: no_ints(0))
    arc_pool: Ints = field(default_factory=lambda: no_ints(0))
    arc_cost: Functionals = field(default_factory=dict)  # [A, T] per request/s
    demand: Floats = field(default_factory=lambda: no_floats(0, 0, 0))  # [W, O, T] requests/s

    # hosting, and the tree along which a workload's weights reach its hosts
    host_cost: Functionals = field(default_factory=dict)  # [W, R]
    edge_workload: Ints = field(default_factory=lambda: no_ints(0))
    edge_cost: Functionals = field(default_factory=dict)  # [E]
    tree_path: Ints = field(default_factory=lambda: no_ints(0, 3))  # rows (workload, site, edge)

    # jobs: the slots in which each may run
    job_work: Floats = field(default_factory=lambda: no_floats(0))
    job_window_mask: Bools = field(default_factory=lambda: no_bools(0, 0))
    point_restart_s: Floats | None = None  # [P] lost per unit of width that returns; None: nothing is lost
    point_least_run_s: Floats | None = None  # [P] for which width that returned stays; None: it may go at once

    # bandwidth that jobs take of their site's storage; None: not considered
    point_storage: Floats | None = None  # [P] bytes/s at full width, 0 for serving points
    site_storage: Floats | None = None  # [R] bytes/s, inf: unlimited

    # rack positions of a site, and racks that one system of a holding takes; None: not considered
    site_racks: Floats | None = None  # [R] inf: unlimited
    holding_racks: Floats | None = None  # [U] 0 where the systems stand elsewhere, as rented ones do

    # rented lines between places, and how serving is spread over zones; None: not considered
    lines: LineData | None = None
    spread: SpreadData | None = None
    exchange: ExchangeData | None = None  # points with pools at two sites; None: each stands at one

    # electricity that is bought, contracted and stored, and slots that requests may wait; both need the order of slots
    meters: MeterData | None = None
    wait_slots: Ints | None = None  # [W]
    order: Chronology | None = None

    # scenarios in each of which the fleet must serve everything
    scenarios: ScenarioData | None = None

    joint: JointNetworks | None = None  # networks that kinds of systems share; None: points use one kind each
    # limits on sites, kinds of systems at a site and systems of a kind
    parts: PartLimits | None = None

    # payments without which points of a group may not run
    ports: PortData | None = None

    # demand that any of several workloads may serve; None: each serves its own
    choice: ChoiceData | None = None

    limits: tuple[Limit, ...] = ()
    objective: Objective = Objective()

    def divisible(self) -> PlanData:
        """Return the same input with divisible replicas, whose program relaxes this one."""
        if self.point_whole is None:
            return self
        return replace(self.relaxation(), least_fleet=None)

    def relaxation(self, hourly: bool = False) -> PlanData:
        """Return the same input with divisible replicas, on at least the fleet of whole ones (`solvers.model.least_fleet`); `hourly`: on whole hourly systems."""
        data = self if hourly else self.by_use()
        return replace(
            data, point_whole=None, point_load_s=None, use_workers=None, use_spares=None, relays=None,
            resident_group=None,
        )  # fmt: skip

    def by_use(self) -> PlanData:
        """Return the same input with fractions of hourly systems, paid for by the points that use them and free to start: it relaxes this one."""
        if self.hourly is None:
            return self
        point, option = self.point_uses.T
        covers, cost = self.covers()[:, self.slot_window], dict(self.point_cost)
        for functional, values in self.hourly.cost.items():
            each = np.zeros((len(self.option_site), self.slots))
            np.add.at(each, self.holding_option, np.where(covers & self.hourly.holding[:, None], values, 0.0))
            total = cost.get(functional, np.zeros((len(self.point_pool), self.slots))).copy()
            np.add.at(total, point, self.point_uses_systems[:, None] * each[option])
            cost[functional] = total
        used = self.hourly.holding if self.supply_by_slot().any() else None
        return replace(self, hourly=None, point_cost=cost, supply_used=used)

    def supply_by_slot(self) -> Bools:
        """[S]: supplies that are counted slot by slot, for what several holdings take in it."""
        limits, member = len(self.supply_limit), self.supply_member
        if self.hourly is not None:
            return self.hourly.supplies(self.covers(), limits, member)
        found = np.zeros(limits, dtype=bool)
        if self.supply_used is not None:
            found[member[self.supply_used[member[:, 1]], 0]] = True
        return found

    def deployments(self) -> Ints:
        """[P]: the deployment of each point."""
        return np.arange(len(self.point_pool)) if self.point_deployment is None else self.point_deployment

    @property
    def sites(self) -> int:
        """Number of sites."""
        return len(self.site_power_limit_w)

    @property
    def slots(self) -> int:
        """Number of slots."""
        return len(self.slot_window)

    @property
    def windows(self) -> int:
        """Number of windows."""
        return int(self.slot_window.max(initial=-1)) + 1

    @property
    def pools(self) -> int:
        """Number of pools."""
        return int(max(self.point_pool.max(initial=-1), self.arc_pool.max(initial=-1))) + 1

    @property
    def chronology(self) -> Chronology:
        """Order of slots, for blocks that need it."""
        if self.order is None:
            raise ValueError("order: missing")
        return self.order

    def covers(self) -> Bools:
        """[U, V]: the holding is there in the window."""
        first, window = self.holding_window[:, None], np.arange(self.windows)
        last = first if self.holding_last is None else self.holding_last[:, None]
        return (first < 0) | ((first <= window) & (window <= last))

    def power_limit(self) -> tuple[Floats, Ints]:
        """[R, V]: power limit of a site in each window [W], and the number of that limit: the site's, or sites + that of its stage."""
        limit = np.repeat(self.site_power_limit_w.astype(float)[:, None], self.windows, axis=1)
        number = np.repeat(np.arange(self.sites)[:, None], self.windows, axis=1)
        if (stages := self.power_stages) is not None:
            for s, (r, first, last) in enumerate(zip(stages.site, stages.first, stages.last)):
                limit[r, first : last + 1], number[r, first : last + 1] = stages.limit_w[s], self.sites + s
        return limit, number

    def point_site(self) -> Ints:
        """[P]: site of the fleet options that a point uses; of the last of them, to which requests come, where pools stand at two."""
        site = np.full(len(self.point_pool), -1)
        site[self.point_uses[:, 0]] = self.option_site[self.point_uses[:, 1]]
        return site

    def role_workers(self) -> Floats:
        """[rows of `point_uses`]: workers of each role per replica."""
        return np.ones(len(self.point_uses)) if self.use_workers is None else self.use_workers.astype(float)

    def role_spares(self) -> Floats:
        """[rows of `point_uses`]: workers of each role held beyond those at work."""
        return np.zeros(len(self.point_uses)) if self.use_spares is None else self.use_spares.astype(float)

    def arc_asked(self) -> Ints:
        """[A]: workload whose demand an arc serves."""
        return self.arc_workload if self.choice is None else self.choice.leads()[self.arc_workload]

    def scaled(self) -> Floats:
        """[W]: 1 where lambda multiplies the workload's demand, else 0."""
        workloads = self.demand.shape[0]
        if not self.objective.maximises:
            return np.zeros(workloads)
        return np.where((self.objective.workload < 0) | (np.arange(workloads) == self.objective.workload), 1.0, 0.0)

    def functionals(self) -> tuple[str, ...]:
        """Names of all functionals, sorted."""
        parts = [self.site_fixed, self.holding_cost, self.point_cost, self.arc_cost, self.host_cost, self.edge_cost]
        parts += self.lines.parts() if self.lines is not None else ()
        parts += self.meters.parts() if self.meters is not None else ()
        parts += [self.ports.cost] if self.ports is not None else []
        parts += self.hourly.parts() if self.hourly is not None else ()
        parts += [self.relays.cost] if self.relays is not None else []
        return tuple(sorted({name for part in parts for name in part}))

    def counted(self) -> frozenset[str]:
        """Functionals that influence a solution: the objective, those that are limited, and cost, which breaks ties."""
        return frozenset({limit.functional for limit in self.limits} | {self.objective.functional, COST}) & set(
            self.functionals()
        )

    def metered(self) -> Bools:
        """[R]: electricity of the site is a decision."""
        return np.zeros(self.sites, dtype=bool) if self.meters is None else self.meters.metered(self.sites)

    def __post_init__(self) -> None:
        problems = list(_problems(self))
        if problems:
            raise ValueError("; ".join(problems))


def _problems(data: PlanData) -> Iterator[str]:
    """Describe every broken shape, index or number: mistakes of the caller, not of its user."""
    yield from _shape_problems(data)
    yield from _index_problems(data)
    yield from _value_problems(data)
    yield from _point_problems(data)
    yield from _block_problems(data)
    yield from _functional_problems(data)


def _shape_problems(data: PlanData) -> Iterator[str]:
    R, K, U, E = data.sites, len(data.option_site), len(data.holding_option), len(data.edge_workload)
    P, A, J, T = len(data.point_pool), len(data.arc_workload), len(data.job_work), data.slots
    W, O = data.demand.shape[:2]
    shapes: dict[str, tuple[int, ...]] = {
        "slot_hours_s": (T,),
        "option_group": (K,),
        "option_fabric": (K,),
        "holding_window": (U,),
        "holding_upper": (U,),
        "holding_power_w": (U,),
        "point_job": (P,),
        "point_capacity": (P,),
        "point_power_w": (P,),
        "point_uses_systems": (len(data.point_uses),),
        "arc_origin": (A,),
        "arc_site": (A,),
        "arc_pool": (A,),
    }
    if W:
        shapes["demand"] = (W, O, T)
    if J:
        shapes["job_window_mask"] = (J, T)
    yield from wrong_shapes(data, shapes)
    signed = {
        "holding_cost": (data.holding_cost, (U,)),
        "point_cost": (data.point_cost, (P, T)),
        "arc_cost": (data.arc_cost, (A, T)),
    }
    fixed = {
        "site_fixed": (data.site_fixed, (R,)),
        "host_cost": (data.host_cost, (W, R)),
        "edge_cost": (data.edge_cost, (E,)),
    }
    yield from wrong_costs(signed)
    yield from wrong_costs(fixed, least=0.0)


def _index_problems(data: PlanData) -> Iterator[str]:
    R, K, U, S = data.sites, len(data.option_site), len(data.holding_option), len(data.supply_limit)
    P, J, V, E = len(data.point_pool), len(data.job_work), data.windows, len(data.edge_workload)
    W, O = data.demand.shape[:2]
    ranges = (
        ("slot_window", data.slot_window, 0, V),
        ("option_site", data.option_site, 0, R),
        ("holding_option", data.holding_option, 0, K),
        ("holding_window", data.holding_window, -1, V),
        ("supply_member", data.supply_member[:, 0], 0, S),
        ("supply_member", data.supply_member[:, 1], 0, U),
        ("point_uses", data.point_uses[:, 0], 0, P),
        ("point_uses", data.point_uses[:, 1], 0, K),
        ("point_job", data.point_job, -1, J),
        ("arc_workload", data.arc_workload, 0, W),
        ("arc_origin", data.arc_origin, 0, O),
        ("arc_site", data.arc_site, 0, R),
        ("arc_pool", data.arc_pool, 0, data.pools),
        ("edge_workload", data.edge_workload, 0, W),
        ("tree_path", data.tree_path[:, 0], 0, W),
        ("tree_path", data.tree_path[:, 1], 0, R),
        ("tree_path", data.tree_path[:, 2], 0, E),
    )
    yield from wrong_indices(ranges)
    last = data.holding_last
    if last is not None and (last.shape != (U,) or (last < data.holding_window).any() or (last >= V).any()):
        yield f"holding_last: expected {U} windows that do not come before the first"


def _value_problems(data: PlanData) -> Iterator[str]:
    names = (
        "slot_hours_s",
        "holding_upper",
        "holding_power_w",
        "point_uses_systems",
        "point_capacity",
        "point_power_w",
        "demand",
        "job_work",
    )
    yield from negative_values({name: getattr(data, name) for name in names})
    if np.isnan(data.site_power_limit_w).any() or np.isnan(data.supply_limit).any():
        yield "limits: not a number"
    P, R, W, U = len(data.point_pool), data.sites, data.demand.shape[0], len(data.holding_option)
    optional = (
        ("point_restart_s", data.point_restart_s, P),
        ("point_least_run_s", data.point_least_run_s, P),
        ("point_load_s", data.point_load_s, P),
        ("point_storage", data.point_storage, P),
        ("site_storage", data.site_storage, R),
        ("site_racks", data.site_racks, R),
        ("holding_racks", data.holding_racks, U),
    )
    for name, values, size in optional:
        if values is not None and (values.shape != (size,) or np.isnan(values).any() or values.min(initial=0.0) < 0):
            yield f"{name}: expected {size} values of at least 0"
    if data.point_whole is not None and data.point_whole.shape != (P,):
        yield f"point_whole: expected {P} values"
    workers = data.use_workers
    if workers is not None and (workers.shape != (len(data.point_uses),) or workers.min(initial=1) < 1):
        yield f"use_workers: expected {len(data.point_uses)} integers of at least 1"
    spares = data.use_spares
    if spares is not None and (spares.shape != (len(data.point_uses),) or spares.min(initial=0) < 0):
        yield f"use_spares: expected {len(data.point_uses)} integers of at least 0"
    group = data.resident_group
    if group is not None and (group.shape != (data.slots,) or group.min(initial=0) < 0):
        yield f"resident_group: expected {data.slots} integers of at least 0"
    if data.wait_slots is not None and (data.wait_slots.shape != (W,) or (data.wait_slots < 0).any()):
        yield f"wait_slots: expected {W} integers of at least 0"


def _point_problems(data: PlanData) -> Iterator[str]:
    if ((data.point_pool < 0) == (data.point_job < 0)).any():
        yield "point_pool, point_job: a point has either a pool or a job"
    if (np.bincount(data.point_uses[:, 0], minlength=len(data.point_pool)) == 0).any():
        yield "point_uses: a point that uses no fleet option"
    elif (_elsewhere(data) & ~_may_stand_apart(data)[data.point_uses[:, 0]]).any():
        yield "point_uses: a point that uses fleet options of two sites"
    if (data.site_racks is None) != (data.holding_racks is None):
        yield "site_racks, holding_racks: one without the other"
    if (data.point_storage is None) != (data.site_storage is None):
        yield "point_storage, site_storage: one without the other"
    elif data.point_storage is not None and data.point_storage[data.point_job < 0].any():
        yield "point_storage: more than 0 for a serving point"


def draws(data: PlanData) -> tuple[Ints, Ints, Floats]:
    """(point, site, W of a replica or a job at full width) of all that points draw above idle."""
    point, site, power_w = np.arange(len(data.point_pool)), data.point_site(), data.point_power_w
    if (other := data.exchange) is None:
        return point, site, power_w
    parts = (point, other.point), (site, other.site), (power_w, other.power_w)
    return np.concatenate(parts[0]), np.concatenate(parts[1]), np.concatenate(parts[2])


def _elsewhere(data: PlanData) -> Bools:
    """[rows of `point_uses`]: the fleet option is at another site than the point."""
    found: Bools = data.point_site()[data.point_uses[:, 0]] != data.option_site[data.point_uses[:, 1]]
    return found


def _may_stand_apart(data: PlanData) -> Bools:
    """[P]: the point may have pools at two sites."""
    points = len(data.point_pool)
    return np.zeros(points, dtype=bool) if data.exchange is None else data.exchange.of(points)


def _block_problems(data: PlanData) -> Iterator[str]:
    """Describe the faults of the input of optional blocks."""
    R, A, T, V, W = data.sites, len(data.arc_workload), data.slots, data.windows, data.demand.shape[0]
    if data.power_stages is not None:
        yield from data.power_stages.problems(R, V, data.site_power_limit_w)
    if data.lines is not None:
        yield from data.lines.problems(W, R, A, V)
    if data.exchange is not None:
        yield from data.exchange.problems(len(data.point_pool), R, data.lines)
    if data.spread is not None:
        yield from data.spread.problems(W, R, T)
    if data.parts is not None:
        yield from data.parts.problems(len(data.holding_option))
    if data.joint is not None:
        yield from data.joint.problems(len(data.holding_option), len(data.point_uses))
    if data.ports is not None:
        yield from data.ports.problems(len(data.point_pool))
    if data.least_fleet is not None:
        yield from data.least_fleet.problems(len(data.option_site), V)
    if data.choice is not None:
        yield from data.choice.problems(W, data.demand)
    if data.hourly is not None:
        yield from data.hourly.problems(len(data.holding_option), T, data.order is not None)
    if data.relays is not None:
        yield from data.relays.problems(len(data.point_uses), T, data.order is not None)
    if data.meters is not None:
        yield from data.meters.problems(R, T)
    if data.order is not None:
        yield from data.order.problems(T)
    elif data.meters is not None or data.wait_slots is not None or data.point_restart_s is not None:
        yield "order: missing"


def _functional_problems(data: PlanData) -> Iterator[str]:
    known = set(data.functionals())
    for limit in data.limits:
        if limit.functional not in known:
            yield f"limits: unknown functional {limit.functional!r}"
    if not data.objective.maximises and data.objective.functional not in known:
        yield f"objective: unknown functional {data.objective.functional!r}"
