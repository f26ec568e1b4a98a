"""Dispatch worlds by linear programs of the checks' own (scipy, HiGHS): what runs where in each hour, and the orders that are still free.

Columns of a world: units of each commitment, systems at work by way and hour, requests/s not served by class and hour, systems of each job by option and
hour, and the share of each job that is not done. Rows: demand, systems there, power, supply, returns, and progress.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import coo_array

from models.arrays import Bools, Floats, Ints

COLUMNS = 6000  # in one program, which holds as many worlds as fit
DONE_TOL = 1e-6  # share of a demand or job; less counts as done


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What all worlds share. C classes, G ways, K options, U commitments, H job uses, J jobs, T hours, R sites, Q supplies."""

    seconds: Floats  # [T]
    demand: Floats  # [C, T] requests/s as planned
    lack_price: Floats  # [C, T] of one request/s that is not served
    way_class: Ints  # [G]
    way_option: Ints  # [G]
    way_watts: Floats  # [G] above idle
    way_price: Floats  # [G, T] of one system at work
    request_price: Floats  # [G, T] of one request/s
    option_site: Ints  # [K]
    by_use: Bools  # [K]
    use_price: Floats  # [K, T] inf where it is not on offer
    option: Ints  # [U]
    there: Floats  # [U, T] systems there by one unit: 1, 0, or -1 for a return
    returns: Bools  # [U]
    price: Floats  # [U]
    most: Floats  # [U]
    idle_watts: Floats  # [K]
    room_watts: Floats  # [R, T]
    supply: Floats  # [Q]
    supply_of: Ints  # [K] position in supply, -1: unlimited
    job_of: Ints  # [H]
    job_option: Ints  # [H]
    job_watts: Floats  # [H]
    job_price: Floats  # [H, T]
    job_work: Floats  # [J]
    job_mask: Bools  # [J, T]
    undone_price: Floats  # [J]


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcome by world: cost at the stated price of work left undone, whether all is done, and units of each commitment [world, U]."""

    cost: Floats
    kept: Bools
    held: Floats


@dataclass(slots=True)
class _Rows:
    """Entries of the rows of one world; `rate`: position of a coefficient among the rates of the world, -1 for a constant."""

    row: list[Ints] = field(default_factory=list)
    column: list[Ints] = field(default_factory=list)
    value: list[Floats] = field(default_factory=list)
    rate: list[Ints] = field(default_factory=list)
    count: int = 0

    def add(self, row: Ints, column: Ints, value: Floats | float, rate: Ints | int = -1) -> None:
        """Add entries whose arrays go together."""
        parts = np.broadcast_arrays(row, column, value, rate)
        for kept, part in zip((self.row, self.column, self.value, self.rate), parts, strict=True):
            kept.append(part.ravel())  # type: ignore[attr-defined]

    def block(self, count: int, hours: int) -> Ints:
        """Number further rows, [count, hour]."""
        found = self.count + np.arange(count * hours).reshape(count, hours)
        self.count += count * hours
        return found


class Dispatch:
    """The program of one world, repeated for as many as there are."""

    def __init__(self, fleet: Fleet):
        self.fleet = f = fleet
        hours = len(f.seconds)
        sizes = {
            "n": len(f.option),
            "x": f.way_price.size,
            "m": f.demand.size,
            "y": f.job_price.size,
            "e": len(f.job_work),
        }
        begins = np.concatenate([[0], np.cumsum(list(sizes.values()))])
        at = {name: np.arange(begins[i], begins[i + 1]) for i, name in enumerate(sizes)}
        self.n, self.e, self.columns = at["n"], at["e"], int(begins[-1])
        self.x, self.m, self.y = at["x"].reshape(-1, hours), at["m"].reshape(-1, hours), at["y"].reshape(-1, hours)
        self.rows = _Rows()
        self.high: list[Floats] = []
        self._demand()
        self._there()
        self._limits()
        self._progress()

    def _demand(self) -> None:
        """Demand: served and not served add up to it; the bound is that of each world."""
        f = self.fleet
        self.demand_rows = self.rows.block(len(f.demand), len(f.seconds))
        ways = np.arange(len(f.way_class))
        self.rows.add(self.demand_rows[f.way_class], self.x, -1.0, ways[:, None])
        self.rows.add(self.demand_rows, self.m, -1.0)
        self.high.append(np.zeros(self.demand_rows.size))

    def _there(self) -> None:
        """Systems at work are there, unless they are paid for by use."""
        f = self.fleet
        row = self.rows.block(len(f.option_site), len(f.seconds))
        self.rows.add(row[f.way_option], self.x, 1.0)
        self.rows.add(row[f.job_option], self.y, 1.0)
        self.rows.add(row[f.option], self.n[:, None], -f.there)
        self.high.append(np.repeat(np.where(f.by_use, np.inf, 0.0), len(f.seconds)))

    def _limits(self) -> None:
        """Power of each site, supply of each offer, and returns of systems that are there."""
        f = self.fleet
        row = self.rows.block(len(f.room_watts), len(f.seconds))
        self.rows.add(row[f.option_site[f.way_option]], self.x, f.way_watts[:, None])
        self.rows.add(row[f.option_site[f.job_option]], self.y, f.job_watts[:, None])
        self.rows.add(row[f.option_site[f.option]], self.n[:, None], f.there * f.idle_watts[f.option][:, None])
        self.high.append(f.room_watts.ravel())
        row = self.rows.block(len(f.supply), len(f.seconds))
        limit = f.supply_of
        held, ways, jobs = limit[f.option] >= 0, limit[f.way_option] >= 0, limit[f.job_option] >= 0
        ways, jobs = ways & f.by_use[f.way_option], jobs & f.by_use[f.job_option]
        self.rows.add(row[limit[f.option[held]]], self.n[held][:, None], f.there[held])
        self.rows.add(row[limit[f.way_option[ways]]], self.x[ways], 1.0)
        self.rows.add(row[limit[f.job_option[jobs]]], self.y[jobs], 1.0)
        self.high.append(np.repeat(f.supply, len(f.seconds)))
        mine = np.isin(f.option, f.option[f.returns])
        row = self.rows.block(len(f.option_site), 1)[:, 0]
        self.rows.add(row[f.option[mine]], self.n[mine], np.where(f.returns[mine], 1.0, -1.0))
        self.high.append(np.zeros(len(f.option_site)))

    def _progress(self) -> None:
        """Jobs are done, but for the share left undone."""
        f = self.fleet
        row = self.rows.block(len(f.job_work), 1)[:, 0]
        uses = len(f.way_class) + np.arange(len(f.job_of))
        share = f.seconds / f.job_work[f.job_of][:, None] if len(f.job_of) else np.zeros((0, len(f.seconds)))
        self.rows.add(row[f.job_of][:, None], self.y, -share, uses[:, None])
        self.rows.add(row, self.e, -1.0)
        self.high.append(np.full(len(f.job_work), -1.0))

    def run(self, growth: Floats, rates: Floats, given: Floats, factor: float) -> Outcomes:
        """Dispatch worlds.

        `growth` [world, C, T] factor on demand; `rates` [world, G + H] requests/s or work/s of one system; `given` [world, U] units that are settled,
        nan where they are decided in the world; `factor` on the price of work left undone, at which it is left.
        """
        each = max(COLUMNS // self.columns, 1)
        parts = [
            self._solve(growth[i : i + each], rates[i : i + each], given[i : i + each], factor)
            for i in range(0, len(growth), each)
        ]
        return Outcomes(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("cost", "kept", "held")))

    def _solve(self, growth: Floats, rates: Floats, given: Floats, factor: float) -> Outcomes:
        from scipy.optimize import Bounds, LinearConstraint, milp

        f, rows, count = self.fleet, self.rows, len(growth)
        row, column, value, rate = (np.concatenate(part) for part in (rows.row, rows.column, rows.value, rows.rate))
        values = (
            np.where(rate >= 0, value * rates[:, np.maximum(rate, 0)], value)
            if rates.shape[1]
            else np.tile(value, (count, 1))
        )
        asked = f.demand * growth
        high = np.tile(np.concatenate(self.high), (count, 1))
        high[:, self.demand_rows.ravel()] = -asked.reshape(count, -1)
        steps = np.arange(count)[:, None]
        finite = np.isfinite(high.ravel())
        shape = count * rows.count, count * self.columns
        matrix = coo_array(
            (values.ravel(), ((row + steps * rows.count).ravel(), (column + steps * self.columns).ravel())), shape=shape
        ).tocsr()[finite]
        cost, lack = self._costs(rates, factor)
        upper = self._upper(rates, given)
        lower = np.zeros_like(upper)
        settled = np.isfinite(given)
        lower[:, self.n] = np.where(settled, given, 0.0)
        limits = LinearConstraint(matrix, -np.inf, high.ravel()[finite])
        found = milp(cost.ravel(), bounds=Bounds(lower.ravel(), upper.ravel()), constraints=limits)
        if found.x is None:
            raise ValueError(str(found.message))
        x = found.x.reshape(count, self.columns)
        unserved = x[:, self.m.ravel()].reshape(asked.shape) / np.maximum(asked, 1e-30)
        kept = np.asarray((unserved <= DONE_TOL).all(axis=(1, 2)) & (x[:, self.e] <= DONE_TOL).all(axis=1), dtype=bool)
        money = (x * cost).sum(axis=1) - (x * lack).sum(axis=1) * (1.0 - 1.0 / factor)
        return Outcomes(money, kept, x[:, self.n])

    def _costs(self, rates: Floats, factor: float) -> tuple[Floats, Floats]:
        """Price all columns [world, column], and of these the work that is left undone."""
        f = self.fleet
        cost = np.zeros((len(rates), self.columns))
        lack = np.zeros(self.columns)
        lack[self.m], lack[self.e] = factor * f.lack_price, factor * f.undone_price
        used = np.where(np.isfinite(f.use_price), f.use_price, 0.0)
        ways = rates[:, : len(f.way_class), None] * f.request_price
        cost[:, self.n] = f.price
        cost[:, self.x.ravel()] = (ways + f.way_price + used[f.way_option]).reshape(len(rates), -1)
        cost[:, self.y.ravel()] = (f.job_price + used[f.job_option]).ravel()
        return cost + lack, lack

    def _upper(self, rates: Floats, given: Floats) -> Floats:
        f = self.fleet
        upper = np.full((len(rates), self.columns), np.inf)
        upper[:, self.n] = np.where(np.isfinite(given), given, f.most)
        on_offer = ~f.by_use[:, None] | np.isfinite(f.use_price)
        able = (rates[:, : len(f.way_class), None] > 0) & on_offer[f.way_option]
        upper[:, self.x.ravel()] = np.where(able, np.inf, 0.0).reshape(len(rates), -1)
        able = (rates[:, len(f.way_class) :, None] > 0) & on_offer[f.job_option] & f.job_mask[f.job_of]
        upper[:, self.y.ravel()] = np.where(able, np.inf, 0.0).reshape(len(rates), -1)
        upper[:, self.e] = 1.0
        return upper
