"""Rows of the fleet and around it: fleet, networks, deployments, packing, tiers of KV cache, halls."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from planner.plan.rows.values import Number, Text, Whole


class FleetRow(TypedDict):
    """State what to obtain: systems of one kind at one site, by one way to obtain them."""

    site: Text
    system: Text
    count: Whole
    unit: NotRequired[Text]
    how: Text
    window: Whole | None
    topology: Text
    network_size: Whole | None
    offer: Text
    tenant: NotRequired[Text]
    obtained: NotRequired[Text | None]
    windows: NotRequired[list[Whole]]
    price: NotRequired[Number]
    running: NotRequired[list[Whole]]
    """Systems that run, and are paid for, in each slot of `window`: of those on demand or spot, of which `count` run at most."""


class OtherFabric(TypedDict):
    """State price and bandwidth of a network that the site also allows."""

    design: Text
    price_per_system: Number
    uniform_bytes_per_s: Number


class Fabric(TypedDict):
    """Describe the network between systems of our own at a site."""

    site: Text
    system: Text
    design: Text
    size: Whole | None
    systems: Whole
    members: NotRequired[dict[str, Whole]]
    taken: NotRequired[Number]
    tiers: Whole
    ports: Whole
    switches: Whole
    links: Whole
    copper_links: Whole
    optics: Whole
    power_w: Number
    price: Number
    charged: Number
    bisection_bytes_per_s: Number
    uniform_bytes_per_s: Number
    mean_hops: Number
    most_hops: Whole
    latency_s: Number | None
    instead: NotRequired[list[OtherFabric]]


class DeployedPool(TypedDict):
    """Count the workers of one pool of a deployment."""

    role: Text
    system: Text
    workers_per_replica: Whole
    systems_per_worker: Number
    workers: Whole
    least_workers: Whole
    systems: Number
    spare_workers: NotRequired[Whole]
    relay_cost: NotRequired[Number]
    loads: NotRequired[Number]


class WeightsPath(TypedDict):
    """State the path from which each worker reads its weights when it loads: bandwidth, what the deployment reads of it over the horizon, and that share."""

    kind: Text
    bytes_per_s: Number
    used_bytes_per_s: Number
    share: Number


class Deployment(TypedDict):
    """State the whole replicas of a serving point that hold their weights at a site."""

    point: Text
    workload: Text
    site: Text
    replicas: Whole
    load_s: Number
    load_parts_s: NotRequired[dict[str, Number]]
    loads: Number
    weights_path: NotRequired[WeightsPath]
    pools: list[DeployedPool]


class PackedShape(TypedDict):
    """State chips and number of the workers of one shape."""

    point: Text
    role: Text
    chips: Whole
    workers: Whole


class Packed(TypedDict):
    """State how full the systems of one fleet option are in its fullest slot."""

    site: Text
    system: Text
    how: Text
    topology: Text
    network_size: Whole | None
    offer: Text
    tenant: NotRequired[Text]
    slot: Whole
    held: Whole
    nodes: Whole
    partly: Whole
    free_chips: Whole
    stranded_chips: Whole
    workers: Whole
    lost_packed: Whole
    lost_spread: Whole
    nodes_without_moves: Whole | None
    mean_nodes: Number
    mean_nodes_without_moves: Number | None
    shapes: list[PackedShape]


class KvTierPoint(TypedDict):
    """Compare an operating point with and without the tier."""

    point: Text
    computed_share: Number
    computed_without: Number
    capacity_without: Number


class KvTier(TypedDict):
    """State what a tier of KV cache holds, costs, saves and earns."""

    site: Text
    system: Text
    tier: Text
    systems: Whole
    bytes: Number
    shared_by: Whole
    price: Number
    power_w: Number
    points: list[KvTierPoint]
    systems_saved: Number
    earns: Number


class Owned(TypedDict):
    """State what the plan does with one entry of the owned systems."""

    path: Text
    system: Text
    site: Text
    count: Whole
    kept: Whole
    moved: dict[str, Whole]
    sold: Whole
    idle: Whole
    worth: Number
    proceeds: Number
    gain: NotRequired[Number]


class GivenBack(TypedDict):
    """State how many rented systems go back on a day before the end of the contract."""

    count: Whole
    day: Text
    saves: Number


class Extended(TypedDict):
    """State how many rented systems are kept beyond the end of the contract, and until when."""

    count: Whole
    day: Text
    costs: Number


class Rented(TypedDict):
    """State what the plan does with one entry of the rented systems."""

    path: Text
    system: Text
    site: Text
    count: Whole
    until: Text
    kept: Whole
    given_back: list[GivenBack]
    extended: list[Extended]


class StorageRow(TypedDict):
    """State what an operating point reads from and writes to the storage of its site, at full width."""

    workload: Text
    point: Text
    site: Text
    read_bytes_per_s: Number
    checkpoint_bytes_per_s: Number
    load_bytes: Number
    load_s: Number


class FacilityRow(TypedDict):
    """State racks and cooling of one kind of bought system in a hall."""

    site: Text
    system: Text
    systems: Number
    racks_per_system: Number
    racks: Number
    rack_power_w: Number
    cooling: list[Text]
