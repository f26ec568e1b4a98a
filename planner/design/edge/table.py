"""Put the options of a question about the edge into arrays, priced per year, with what one device and one place of a tier have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from catalog.units import YEAR_S
from models.arrays import sum_of
from planner.design.edge.options import Option, Options
from planner.design.edge.program import DeviceLimits, EdgeData, TierLimits
from planner.design.edge.reasons import alone_on_device, alone_on_tier
from planner.design.prices import converted, energy_price, held_per_s
from planner.messages import Message
from planner.resolve.ledger import Ledger
from planner.spec.quantities import is_purchase, offer_price


def edge_data(options: Options, ledger: Ledger) -> EdgeData:
    """Put the options into arrays, and price them per year; what cannot run on a tier though no other task does is not able."""
    spec = options.spec
    shape = (len(spec.tasks), len(spec.tiers) + 1)
    table = [[options.of(t, k) for k in range(shape[1])] for t in range(shape[0])]
    price, pue = energy_price(spec.electricity, spec.pue, ledger, "edge")
    per_j = converted(price, spec.currency, ledger, "electricity")
    fleets = {fleet.name: f for f, fleet in enumerate(spec.fleets)}
    rate = np.array([task.requests_per_s for task in spec.tasks])
    busy = rate * np.array([row[0].busy_s for row in table])
    power = busy * np.array([row[0].power_w for row in table])
    cost = np.zeros(shape)
    for t, task in enumerate(spec.tasks):
        fleet = spec.fleets[fleets[task.fleet]]
        cost[t, 0] = power[t] * fleet.count * fleet.duty * per_j * YEAR_S
        for k, tier in enumerate(spec.tiers):
            option = table[t][k + 1]
            data_price = (
                0.0
                if tier.data_price is None
                else converted(tier.data_price, spec.currency, ledger, f"tiers[{k}].data_price")
            )
            cost[t, k + 1] = (
                option.systems * option.power_w * pue * per_j + option.data_bytes_per_s * data_price
            ) * YEAR_S
    clash = np.zeros((shape[0], shape[0]), dtype=bool)
    for i, first in enumerate(spec.tasks):
        for j, second in enumerate(spec.tasks):
            together = i != j and first.fleet == second.fleet
            clash[i, j] = together and table[i][0].latency_s + table[j][0].longest_s > first.deadline
    data = EdgeData(
        able=np.array([[not option.why_not for option in row] for row in table]),
        cost=cost,
        busy=busy,
        memory_bytes=np.array([max(row[0].memory_bytes - row[0].runtime_bytes, 0.0) for row in table]),
        power_w=power,
        uplink=np.array([[option.uplink_bytes_per_s for option in row] for row in table]),
        systems=np.array([[option.systems for option in row] for row in table]),
        clash=clash,
        devices=tuple(_device_limits(options, table, f) for f in range(len(spec.fleets))),
        tiers=tuple(_tier_limits(options, ledger, per_j * pue, k) for k in range(len(spec.tiers))),
        fixed=sum_of(_device_cost(options, ledger, per_j, f) for f in range(len(spec.fleets))),
    )
    why = reasons(options, data)
    return replace(data, able=np.array([[not words for words in row] for row in why]))


def reasons(options: Options, data: EdgeData) -> list[list[str]]:
    """Say of each task and tier why it cannot run there, though no other task does; empty where it can."""
    found = [[option.why_not for option in row] for row in options.table]
    for f, limits in enumerate(data.devices):
        for t in limits.tasks:
            found[t][0] = found[t][0] or alone_on_device(options, f, limits, t, float(data.power_w[t]))
    for k, tier in enumerate(data.tiers, start=1):
        for t, row in enumerate(found):
            row[k] = row[k] or alone_on_tier(options, tier, t, k)
    return found


def _device_limits(options: Options, table: Sequence[Sequence[Option]], f: int) -> DeviceLimits:
    fleet, system = options.spec.fleets[f], options.devices[f]
    mine = tuple(t for t, task in enumerate(options.spec.tasks) if task.fleet == fleet.name)
    rooms = [table[t][0].usable_bytes - table[t][0].runtime_bytes for t in mine if not table[t][0].why_not]
    limit = fleet.power_limit_w()
    return DeviceLimits(
        tasks=mine,
        busy=options.spec.utilisation,
        memory_bytes=min(rooms, default=math.inf),
        power_w=math.inf if limit is None else max(limit - system.idle_w, 0.0),
        uplink_bytes_per_s=fleet.uplink or math.inf,
    )


def _tier_limits(options: Options, ledger: Ledger, per_j: float, k: int) -> TierLimits:
    tier, system = options.spec.tiers[k], options.systems[k]
    bought = is_purchase(tier.price)
    path = f"tiers[{k}].price"
    ledger.assume(path, tier.price, "", Message.of("assumed.stated_in_spec").text())
    price = offer_price(tier.price, bought, system.chips)
    held = held_per_s(converted(price, options.spec.currency, ledger, path), bought, ledger)
    by_power = math.inf if tier.power is None else math.floor(tier.power / system.power_w)
    return TierLimits(tier.places, (held + system.idle_w * per_j) * YEAR_S, min(tier.most or math.inf, by_power))


def _device_cost(options: Options, ledger: Ledger, per_j: float, f: int) -> float:
    """Cost per year of the devices of a fleet, whatever runs on them: their price where it is stated, and idle power at work."""
    fleet, system = options.spec.fleets[f], options.devices[f]
    held = 0.0
    if fleet.price is not None:
        price = converted(fleet.price, options.spec.currency, ledger, f"fleets[{f}].price")
        held = held_per_s(price, True, ledger)
    return fleet.count * (held + system.idle_w * fleet.duty * per_j) * YEAR_S
