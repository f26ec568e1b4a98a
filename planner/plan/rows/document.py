"""The plan document: its tables and totals. Meaning of each key: docs/plan.md."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

from planner.plan.rows.adapt import Adaptation
from planner.plan.rows.fleet import Deployment, Fabric, FacilityRow, FleetRow, KvTier, Owned, Packed, Rented, StorageRow
from planner.plan.rows.framing import Assumption, Coverage, Diagnosis, FactRow, Objective, Provenance
from planner.plan.rows.length_pools import LengthPools
from planner.plan.rows.money import CostLine, Limit, Meter, Phase, PriceContents, Totals
from planner.plan.rows.quality import Dispatch, Looser, Postponed, Quality, RunnerUp, Simplicity
from planner.plan.rows.robust import Confidence, ConfidenceGain, NotRobust, Robustness
from planner.plan.rows.time import ClosedLoop, Failure, Line, PreemptionRow, Slot, SlotRoute, Spread, Stream
from planner.plan.rows.values import Coded, Flag, Number, Text, Whole
from planner.plan.rows.workloads import Workload


class _EitherPromise:
    """Tell pydantic the row of a promise that is kept from that of one which no plan keeps."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        rows = {"kept": Robustness, "missed": NotRobust}
        choices = {tag: handler.generate_schema(row) for tag, row in rows.items()}
        return {"type": "tagged-union", "choices": choices, "discriminator": _tag}


def _tag(value: Any) -> str:
    return "missed" if isinstance(value, dict) and "reached" in value else "kept"


Promise = Annotated[Robustness | NotRobust, _EitherPromise()]


class PlanDocument(TypedDict):
    """Hold a whole plan, as `flopwatt plan --format json` prints it."""

    schema_version: Whole
    """Version of this schema."""
    name: Text
    """Name of the spec."""
    status: Text
    """`optimal`, `within_gap`, `limit` (stopped before the asked gap was reached), `infeasible`, `unbounded`."""
    objective: Objective
    """`sense` (min, max), `value`, `unit`."""
    bound: Number | None
    """A value that no plan can beat; null where none is known."""
    bound_of: Text
    """For which problem the bound holds: the `full` one, the `reduced` one on typical days, or the one with at least the `fleet` of a robust plan
    ([plan.md](plan.md))."""
    gap: Number | None
    """|value - bound| / |value|; a fraction; null without a plan or a bound."""
    bound_divisible: NotRequired[Number | None]
    """Only after slot-wise decomposition: the bound that the limits' shadow prices ([plan.md](plan.md)) prove on their own, with sites and counts
    fractional. Always at or below `bound`."""
    totals: Totals | None
    """`cost`, `carbon_kg`, `energy_j` (at the meter), `tokens` (served output and trained), `chips` (the most at any time), `peak_power_w`."""
    replicas: NotRequired[Text]
    """Whether serving replicas are `whole` or `divisible`."""
    simplicity: NotRequired[Simplicity]
    """`deployments`, `kinds` (kinds of systems at sites) and `sites` of the plan; `best`: `value`, `unit`, the same counts and the `gap` of the best
    plan found (its distance from `bound`, which is compared with the gap asked for), to which the plan may lose a share `within`; `fewest`:
    whether it is proven that no plan that good has fewer. See docs/deployments.md."""
    confidence_gain: NotRequired[ConfidenceGain]
    """Only where another plan than the one found first was chosen within the band of `simplicity`, because its confidence is higher: `within`, `plans` compared,
    `kept` and `kept_before` (shares of the scenarios of `confidence`), `value_before`, and the `further` systems added (`site`, `system`, `how`,
    `count`). See decision [0115](decisions/0115-the-surest-plan-within-the-band.md)."""
    looser: NotRequired[list[Looser]]
    """Only where a latency limit that is at most 25 % looser lets a chip at work do at least twice as much: `workload`, `metric`, `percentile`,
    `limit_s`, `system`, `share` of the workload's work that is done on it alone, `rate_per_chip` (requests/s, best of the candidates); `steps`
    (the least such `limit_s` and the loosest, with the `times` as much that a chip does in one pool); `worth`: the cost of the chips saved at the
    last step in proportion to the work, the most that a smaller fleet may save Latencies rise with the batch in steps, and a limit just above one
    shuts out all larger batches."""
    deployments: NotRequired[list[Deployment]]
    """For each serving point with workers that hold their weights: `point`, `workload`, `site`, whole `replicas` (the most at once), `pools`
    (`role`, `system`, `workers_per_replica`, `systems_per_worker`, `workers` and `least_workers` at once, `systems` that they occupy, `relay_cost` of a worker that loads its weights, and `loads` of workers over the horizon), `load_s`
    (from the start of an engine until the weights lie in the chips, and with `scale_up` what a cold cache costs; then also its parts
    `load_parts_s`: `start`, `load`, `warm_up`) and `loads` (workers that load their weights over the horizon), and where loads have a price `weights_path` (`kind`: `storage`, `bytes_per_s` at which one worker reads, `used_bytes_per_s` that all loads read on average, and their `share`). Only with whole replicas. See
    docs/deployments.md."""
    packing: NotRequired[list[Packed]]
    """Of whole replicas: how full the systems are, by fleet option ([packing.md](packing.md))."""
    kv_tiers: NotRequired[list[KvTier]]
    """Of systems bought with tiers of KV cache: what each tier holds, costs, saves and earns ([kv-tiers.md](kv-tiers.md#in-a-plan))."""
    lines: NotRequired[list[Line]]
    """With `lines` in the spec, each line that is rented or used: `line` (its two ends), `kind` (line type), `units` rented (null where it is not
    sold by capacity), `capacity_bytes_per_s` in each direction, `ready_s`, the busiest hour and direction (`busiest_slot`, `busiest_from`,
    `peak_bytes_per_s`, `use`), `cost` by part (units, and the bytes of each kind of traffic), `traffic` (workload, kind, bytes over the horizon)."""
    placements: NotRequired[list[Stream]]
    """With `lines` in the spec, the traffic other than requests: `workload`, `traffic` (control, telemetry, weights), `from`, `to`, `kind` of line,
    `windows`, `share`. Shares of a stream add up to 1; shares of weights form trees from the source over the sites that hold them."""
    fleet: list[FleetRow]
    """What to obtain: `site`, `system`, `count`, `how`, `window` (its number, null = throughout), `topology`, `network_size` (the most systems that
    the network as built joins; null where the network is not our own), `offer` (path in the spec). Where dates matter, also `obtained` (name of
    the phase, null without phases), `windows` (first and last in which it is held) and `price` of a system at that time. `how` may also be
    `spot`, or `api` with output tokens per second as `count` and `unit` "token/s"; all other rows count systems. With `sharing` "kind" or "none"
    also `tenant`, the owner of the systems."""
    owned: NotRequired[list[Owned]]
    """For each entry of the spec's `owned`: `path`, `system`, `site`, `count`, how many are `kept`, `moved` (by site), `sold` and `idle`, what one
    is `worth` at the start, `proceeds` of the sale, and `gain` over the books where those are stated. See docs/owning.md."""
    rented: NotRequired[list[Rented]]
    """For each entry of the spec's `rented`: `path`, `system`, `site`, `count`, `until` (end of the contract), how many are `kept` until then, or
    to the end of the horizon; `given_back` before, with `count`, `day` and what that `saves` beside keeping them; `extended` beyond, with `count`,
    `day` and what that `costs`. Amounts are present values, and the fee of an early exit is counted. See docs/owning.md."""
    fabrics: list[Fabric]
    """The networks between our own systems: `site`, `system`, `design`, `size` (as `network_size`), `systems` on it and, for these systems, in whole
    parts: `tiers`, NIC `ports`, `switches`, `links` (of which `copper_links`), `optics` (transceivers), `power_w`, `price`, `charged` (the
    systems' shares, which enter the plan's cost: see below), `bisection_bytes_per_s` (one direction), `uniform_bytes_per_s` (per chip, when each
    port sends equally to all others), `mean_hops` and `most_hops` (links between two ports), `latency_s` of the longest path (null where the
    network's latencies are unknown); `instead`: for each other design that the site allows, `design`, `price_per_system` and
    `uniform_bytes_per_s` of as many systems."""
    workloads: list[Workload]
    """For each workload: `points`, `tokens`, `cost`, `cost_per_million_tokens`, `slo`, `utilisation` (chip time at work over chip time held, of the
    systems that it runs on, whoever uses them), `mfu`; with a `selling_price` also `revenue` and `margin`; for a job also `hfu` (recomputed FLOPs
    counted); for reinforcement learning also `iterations` and `cost_per_iteration` (as discounted as the price of a token); with `classes` also
    `queues` ([classes.md](classes.md)); with a `session` also `session` ([sessions.md](sessions.md#how-many-at-once)); with `routing` of prefixes
    also `prefix_routing` ([kv-tiers.md](kv-tiers.md#routing-by-prefix))."""
    quality: NotRequired[list[Quality]]
    """For each workload with a quality floor: `workload`, `floor`, `source`, `mix`, `reached` (mean over all requests), `lowest_hour` (mean over the
    requests of the worst hour), `architectures` (each alternative with `quality`, `share` of the requests, and the `name` of its row, null where
    it does not answer), `runner_up` (the best plan `without` the architecture that answers most: `architectures`, `value`, `bound`, `difference`,
    `status`; null where no other may answer, and in studies). See docs/quality.md."""
    routes: list[SlotRoute]
    """Output tokens per second from `site` to `origin` for a workload in a `slot`."""
    schedule: list[Slot]
    """For each site and slot: `power_w`, `own_power_w` (counts against the site's limit), `energy_j`, prices, `active` replicas by point, with whole
    replicas also `resident` workers by point, one number for each of its pools; `day` where there are several. With `electricity` at the site
    also `grid_w`, `ppa_w` by contract, `charge_w`, `discharge_w` and `stored_j` (at the start of the slot, the least that the cycle allows)."""
    spread: NotRequired[list[Spread]]
    """With a `spread` in the spec: for each workload and zone, the smallest and the largest share of any hour's requests."""
    failures: NotRequired[list[Failure]]
    """Where a workload must survive the failure of a zone: for each zone and busiest hour of a phase, the `routes` and `active` replicas of the
    workloads that must go on."""
    electricity: NotRequired[list[Meter]]
    """With `electricity` at a site: purchases (`grid`), the charged `peak` of each month, contracts (`ppa`) and `battery` with `size`, `unit`,
    `energy_j` over the horizon, `cost`, `carbon_kg`."""
    price_contents: NotRequired[list[PriceContents]]
    """For each site of whose price of electricity a part is unknown: `energy`, `delivery`, `demand` and `levies`, each included, separate or unknown,
    the mean price, what industry pays there on average with all of them (`industrial_per_j`, its figure in `industrial_source`), `energy_j` bought
    from the grid, `cost` of the plan, and `cost_at_industrial`, the cost of the same plan at that average."""
    phases: NotRequired[list[Phase]]
    """Only where the spec has phases; for each: `name`, `start`, `end`, `windows`, `capital` (purchase price of the systems and fabric delivered in
    it), `paid` (all payments in it, undiscounted, see docs/phases.md; null where electricity is a decision), `residual` (value of these purchases
    at the end of the horizon), `chips`, `cost` (present value of the costs due in it), `tokens` by workload, `cost_per_million_tokens`, `pools`
    (peak number of chips at work by workload, role and system)."""
    postponed: NotRequired[list[Postponed]]
    """Where jobs wait by `priority`: `workload`, `path`, `priority`, the deadline as asked (`asked_s`) and as kept (`deadline_s`, null where the job
    is left out), `waits_for` (jobs; null where time was up), `first` (if the job went first: `postponed` deadlines by job, `difference` of the
    objective; null likewise). All else in the plan is of the later deadlines
    ([preemption.md](preemption.md#which-job-waits-where-there-is-no-room-for-all))."""
    closed_loops: NotRequired[list[ClosedLoop]]
    """Where a demand is a number of sessions: `workload`, `sessions` asked for and `reached` in the busiest hour, and the mean `tasks_per_s` that
    they send, for which all else is planned ([sessions.md](sessions.md#so-many-at-once))."""
    length_pools: NotRequired[LengthPools]
    """Where a workload has `pools` by prompt length: each of them as asked, with its `boundaries` and `pools` (empty where one pool costs less); the
    plan `undivided`, what the division saves of its value (`saving`, `proven` where the value is below the bound without), the boundaries `tried` with
    bound and value, and how many were left `untried` for want of time. Each pool is a workload of this plan and of its `spec` ([length-pools.md](length-pools.md))."""
    preemptions: NotRequired[list[PreemptionRow]]
    """For each job whose spec has `preemption`: `workload`, `point`, `restart_s`, `resumptions` (full-width equivalents over the horizon), `lost_s`
    at full width, `lost_share` of its time (docs/preemption.md)."""
    storage: NotRequired[list[StorageRow]]
    """For each operating point at a site with `storage_bandwidth`: `read_bytes_per_s` and `checkpoint_bytes_per_s` at full width (0 for serving),
    `load_bytes` (weights of a replica, state of a job) and `load_s`, the time to load them with nothing else using the storage."""
    facility: NotRequired[list[FacilityRow]]
    """For each kind of bought system at a site that limits its hall: `systems` (most at once), `racks_per_system`, `racks`, `rack_power_w`
    (nameplate of the fullest rack) and `cooling` that serves it there (docs/facility.md)."""
    dispatch: NotRequired[Dispatch | None]
    """For a reduced plan, the same fleet run through all hours of the year ([plan.md](plan.md)): `slots`, `cost`, `carbon_kg`, `difference` of the cost from the
    plan's (a fraction), `unmet` share of the requests, `unfinished` share of the worst job's work, `left_out`, `seconds`."""
    confidence: NotRequired[Confidence]
    """How sure the plan is ([plan.md](plan.md)): in 200 sampled scenarios (`scenarios`, `seed`), the share in which all promises are kept (`kept`) and those of each
    workload (`workloads`); `open`: share that was not settled, counted as not kept; `breaks_first`: the `workload` whose promise is kept in
    fewest scenarios, and the `promise` (a latency limit, `demand` or `deadline`); `upgrade`: further `systems` of the kinds held with which a
    `share` of 0.8 is kept, and their `cost`, an upper bound; `left_out`."""
    robustness: NotRequired[Promise | None]
    """With `robust` in the spec, the plan's promise ([plan.md](plan.md)): `confidence`, `measure`; how it fared in the scenarios for which the fleet was chosen
    (`sampled`) and in others (`fresh`), and how the plan without the block fares in the latter (`nominal`, with the `value` of its objective);
    `price` of the promise, in the unit of the objective; `scenarios_in_program` (number of scenarios in the program); `prices` (low, typical, high,
    and the `amount` of the cost that depends on each); `uncertain` (factors at `levels`); `standing_by` (layouts for scenarios with slower
    chips); `left_out`."""
    adaptation: NotRequired[Adaptation | None]
    """With `adapt` in the spec ([adapt.md](adapt.md)): the `promise` and `risk` asked for; `dates` of decision; what to `sign` at the start; what to keep `open`;
    `triggers`; the size of the program (`leaves`, `slots`), its expected cost and the share of its scenarios that are kept (`tree_cost`, `tree_kept`);
    `unserved_factor` (multiple of the stated price of what is unserved below which it is served, so that the promise is kept); `fresh` (1,000 other
    scenarios: share kept, mean cost and its standard error, 10th and 90th percentile); `fixed` (the plan that decides everything at the start, for
    the same promise); `values` of adapting, of the stochastic solution over the plain plan, of perfect information, of performance and of demand
    alone; `gap` (statistical; null with "cvar"); `other_cost` (cost of the plan as predicted that the program does not hold, a part of all costs
    above); `plain_cost` (of the plan as predicted)."""
    costs: dict[str, Number]
    """Present value by component."""
    cost_lines: list[CostLine]
    """Present value by component, site, system and way to obtain it."""
    carbon_lines: list[CostLine]
    """Carbon in kg, in the same rows as `cost_lines`."""
    limits: list[Limit]
    """Every limit with `value`, `limit`, `slack`, `unit` and its marginal value ([plan.md](plan.md))."""
    runner_up: list[RunnerUp]
    """For each site with a fleet, the unused system that comes closest to being used: `system`, `how`, `margin` (how much less it would have to cost
    or emit per system over the horizon; for throughput, by how much one of it lowers the factor), `margin_unit`, `words`."""
    dropped: dict[str, dict[str, Whole]]
    """Number of candidates left out, by workload and reason."""
    dropped_message: NotRequired[dict[str, Coded]]
    """Code and arguments of each of these reasons, by its text."""
    coverage: NotRequired[Coverage]
    """What `bound` covers: `points` (operating points in the program, with all that they dominate), and the candidates `left_out` by rules that prove nothing,
    which it does not cover; `reasons`: `count` of each such `reason` of `dropped`, over all workloads."""
    notes: NotRequired[list[FactRow]]
    """How the spec was understood, and what in it is at odds with what is known: place, code, arguments, English text, source; left out where there
    are none."""
    reasons: NotRequired[list[FactRow]]
    """Why there is no plan, where that is known: of each workload that nothing on offer can carry the figure that it misses (least latency, most
    iterations per hour, shortest run); where a limit of time or memory ended the search, what took it and the change that helps most. Rows as in
    `notes`."""
    assumptions: list[Assumption]
    """Figures that are not published for exactly this item, with the reason and the share of the objective computed from them."""
    provenance: list[Provenance]
    """Every catalog figure used, with source, date, confidence and kind."""
    versions: dict[str, Text]
    """Versions of the packages that made the plan."""
    solver: dict[str, Number | Text | Flag]
    """Method, limits, seed, effort and end of the search."""
    diagnosis: Diagnosis | None
    """When infeasible: `conflict_of` (`limits`, or `amounts` where everything else was kept as stated), `conflict` (`path`, `name`, `words`),
    `repair` (`path`, `from`, `to`, `unit`, `words`), `repair_checked` (whether the repaired spec was found to have a plan), `reach` (the most of
    the demand that any plan serves: of all workloads, `workload` null, and of each one beside all of the others; an upper bound over divisible
    systems)."""
    catalog_digest: Text
    """Digest of the catalog that the plan was made with."""
    spec: dict[str, Any]
    """The spec as stated, from which the plan can be repeated."""
