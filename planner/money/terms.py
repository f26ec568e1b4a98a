"""Terms of a plan's amounts: an amount of one component per unit of each of several decisions, and sums over such terms.

    amount = sum over terms and rows i of  coefficient_i x decision_{at_i}

Every reading of money is a sum over terms with other coefficients: the present value (the objective, the limit on cost, the books), what
falls due in a phase (`in_phase`), what belongs to a window (`in_window`), and purchase prices (`purchases`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Floats, Ints, sum_of
from planner.money.components import COMPONENTS, DATED

COST, CARBON, ENERGY, CAPITAL = "cost", "carbon_kg", "energy_j", "capital"

Place = tuple[str, str, str]  # site, system or line, how it is obtained


@dataclass(frozen=True, slots=True)
class Dates:
    """When amounts fall due: slots T, windows V and phases of the horizon."""

    window: Ints  # [T] window of each slot
    seconds: Floats  # [T]
    discount: Floats  # [T]
    year_worth: Floats  # [V] present value of one unit per year that flows during the window
    phases: Ints  # [phases, 2] first and last window

    def inside(self, p: int) -> Floats:
        """Mark the slots [T] of a phase with 1, the others with 0."""
        first, last = self.phases[p]
        marks: Floats = ((self.window >= first) & (self.window <= last)).astype(float)
        return marks

    def covered(self, windows: Ints) -> Floats:
        """Mark the windows [n, V] from the first to the last of each row of `windows` [n, 2] with 1."""
        v = np.arange(len(self.year_worth))
        marks: Floats = ((v >= windows[:, :1]) & (v <= windows[:, 1:])).astype(float)
        return marks

    def by_window(self, profile: Floats) -> Floats:
        """Add up amounts [K, T] of slots by window, [K, V]."""
        count = len(self.year_worth)
        return np.array([np.bincount(self.window, weights=row, minlength=count) for row in profile]).reshape(-1, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """n terms of one component.

    `component`: its key, or that of its line of carbon. `functional`: what the amounts add up to. `decision`: of which each unit costs
    something, at the positions `at` [n]. `places` [n] and `workload` [n] label the rows; no workload where `workload` is empty.
    `for_bytes`: whether the amounts pay for bytes on the routes of requests, or of KV caches, which a component may hold beside tokens.
    """

    component: str
    decision: str
    at: Ints
    places: tuple[Place, ...]
    dates: Dates
    functional: str = COST
    workload: tuple[str, ...] = ()
    for_bytes: bool = False

    def __post_init__(self) -> None:
        if self.functional == COST and self.decision not in COMPONENTS[self.component].paid_for:
            raise ValueError(f"{self.component} is not paid for each {self.decision}")
        if len(self.places) != len(self.at) or (self.workload and len(self.workload) != len(self.at)):
            raise ValueError(f"{self.component}: one place, and one workload or none, for each row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flowing(Terms):
    """Terms that are paid slot by slot: coefficient_{i,t} = per_unit_i x profile_{follows_i, t}.

    `profile` [K, T] counts seconds; a profile of money is at present value. A decision without slots is paid for from the first to the last of
    its `windows` [n, 2]; None for a decision in each slot.
    """

    per_unit: Floats  # [n]
    profile: Floats  # [K, T]
    follows: Ints  # [n] row of `profile`
    windows: Ints | None = None

    def coefficients(self, size: int) -> Floats:
        """Add up the coefficients of `size` decisions, [size, T] or [size]."""
        if self.windows is not None:
            return np.bincount(self.at, weights=self._throughout(), minlength=size).astype(float)
        result = np.zeros((size, self.profile.shape[1]))
        for k in np.unique(self.follows).tolist():
            mine = self.follows == k
            amount = np.bincount(self.at[mine], weights=self.per_unit[mine], minlength=size)
            rows = np.flatnonzero(amount)
            result[rows] += amount[rows, None] * self.profile[k]
        return result

    def amounts(self, decided: Floats) -> Floats:
        """Compute the amount of each row, [n]; `decided` [size, T] or [size]."""
        if self.windows is not None:
            return self._throughout() * decided[self.at]
        result = np.zeros(len(self.at))
        rows = np.flatnonzero(np.any(decided != 0, axis=1)[self.at])
        result[rows] = self.per_unit[rows] * (decided[self.at[rows]] * self.profile[self.follows[rows]]).sum(axis=1)
        return result

    def in_phase(self, p: int) -> Flowing:
        """Return the terms of what falls due in a phase, not discounted."""
        return replace(self, profile=self.profile / self.dates.discount * self.dates.inside(p))

    def in_window(self, v: int) -> Flowing:
        """Return the terms of a window, at present value."""
        if self.decision not in DATED:
            return replace(self, per_unit=self.per_unit * _even(self.dates, v))
        return replace(self, profile=self.profile * (self.dates.window == v))

    def _throughout(self) -> Floats:
        """Compute the coefficients [n] of decisions without slots."""
        assert self.windows is not None
        profile: Floats = self.dates.by_window(self.profile)[self.follows] * self.dates.covered(self.windows)
        return np.asarray(self.per_unit * profile.sum(axis=1), dtype=float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated(Terms):
    """Terms with dates: present value `worth` [n], and payments `paid` in each phase [n, phases], not discounted.

    `capital` [n]: the part that is paid on delivery, in phase `phase` [n]; None where nothing is bought. An amount belongs to the `windows`
    [n, 2] for which something is held, as payments in proportion to `year_worth` [V], equal ones where it is None; no `windows` for all alike.
    """

    worth: Floats
    paid: Floats
    capital: Floats | None = None
    phase: Ints | None = None
    windows: Ints | None = None
    year_worth: Floats | None = None

    def coefficients(self, size: int) -> Floats:
        """Add up the coefficients of `size` decisions, [size]."""
        return np.bincount(self.at, weights=self.worth, minlength=size).astype(float)

    def amounts(self, decided: Floats) -> Floats:
        """Compute the amount of each row, [n]; `decided` [size]."""
        return self.worth * decided[self.at]

    def in_phase(self, p: int) -> Dated:
        """Return the terms of what falls due in a phase, not discounted."""
        return replace(self, worth=self.paid[:, p])

    def in_window(self, v: int) -> Dated:
        """Return the terms of a window, at present value."""
        if self.decision not in DATED or self.windows is None:
            return replace(self, worth=self.worth * _even(self.dates, v))
        yearly = self.dates.year_worth if self.year_worth is None else self.year_worth
        worth = self.dates.covered(self.windows) * yearly
        return replace(self, worth=self.worth * worth[:, v] / worth.sum(axis=1))

    def bought(self, p: int | None = None) -> Dated | None:
        """Return the terms of purchase prices, of all phases or of one; None where nothing is bought."""
        if self.capital is None:
            return None
        if p is None or self.phase is None:
            return replace(self, worth=self.capital)
        return replace(self, worth=self.capital * (self.phase == p))


AnyTerms = Flowing | Dated


def _even(dates: Dates, v: int) -> float:
    """Compute the share of a window in the horizon, at present value."""
    worth = dates.seconds * dates.discount
    return float(worth[dates.window == v].sum() / worth.sum())


def in_phase(terms: Iterable[AnyTerms], p: int) -> list[AnyTerms]:
    """Return the costs that fall due in a phase, not discounted."""
    return [term.in_phase(p) for term in terms if term.functional == COST]


def in_window(terms: Iterable[AnyTerms], v: int) -> list[AnyTerms]:
    """Return the costs that belong to a window, at present value."""
    return [term.in_window(v) for term in terms if term.functional == COST]


def purchases(terms: Iterable[AnyTerms], p: int | None = None) -> list[Dated]:
    """Return purchase prices: of all phases, or of one."""
    return [found for term in terms if isinstance(term, Dated) and (found := term.bought(p)) is not None]


def coefficients(terms: Iterable[AnyTerms], decision: str, shape: Sequence[int]) -> Floats:
    """Add up the coefficients of a decision, in an array of its `shape`: [size] or [size, T]."""
    result = np.zeros(tuple(shape))
    for term in terms:
        if term.decision == decision and len(term.at):
            result += term.coefficients(int(shape[0]))
    return result


def total(terms: Iterable[AnyTerms], decided: Mapping[str, Floats]) -> float:
    """Add up the amounts of terms for values of the decisions; a decision that is not made has none."""
    return float(
        sum_of(
            term.amounts(decided[term.decision]).sum() for term in terms if term.decision in decided and len(term.at)
        )
    )


def by_position(terms: Iterable[AnyTerms], decision: str, decided: Mapping[str, Floats]) -> Floats:
    """Add up the amounts that each unit of a decision causes, by position."""
    result = np.zeros(len(decided[decision]))
    for term in terms:
        if term.decision == decision:
            result += np.bincount(term.at, weights=term.amounts(decided[decision]), minlength=len(result))
    return result
