"""Search plans whose deployments keep one layout through each of two parts of the day, with the fleet open.

Whole residents that are decided slot by slot load weights wherever two slots come out differently. Loads have a price and a limit, so that plans of few
layouts are as good; and their program is small enough for one search, since the residents of a part of the day are one column.

    parts      the slots of a day cut where systems change most: what each part holds for all its slots is least
    rounded    whole residents of each part (`solvers.search.slot_rounding`)
    searched   all parts at once, from there
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.interface import Options
from solvers.model.build import build
from solvers.model.data import PlanData
from solvers.program import Program
from solvers.search.consolidation import restricted
from solvers.search.direct import solve_direct
from solvers.search.hourly import with_starts, without_starts
from solvers.search.slot_rounding import round_replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class DayPartSettings:
    """Sizes of the search."""

    parts: int = 2
    """Parts of a day: three services on one network cost 26.12M CNY a year with two parts and 16 loads a day, 26.59M with one part, and no less with three."""
    hours: int = 24
    """Slots of a day."""
    columns: int = 40_000
    """Most columns of the program."""
    rounding_share: float = 0.4
    """Of the time, for the plan to start from."""


SETTINGS = DayPartSettings()
BY_GROUP = ("residents", "deployments")  # blocks with a group of slots as their last index


def with_day_parts(
    data: PlanData, values: Mapping[str, Floats], kept: Bools, options: Options
) -> tuple[Program, dict[str, Floats]] | None:
    """Return (program of `data`, the best plan found whose residents change between parts of the day only); None where there is none.

    `values`: a plan with divisible replicas, whose systems by slot say where to cut the day. `kept` [P]: the points that may serve.
    """
    begin, part = time.perf_counter(), restricted(data, kept)
    grouped = replace(part, resident_group=day_parts(systems_of(data, values), data.slot_window, SETTINGS.parts))
    program = build(grouped)
    if "residents" not in program.columns or program.column_count > SETTINGS.columns:
        return None
    options = replace(options, progress=None, enough_gap=None)
    first = replace(options, time_limit_s=SETTINGS.rounding_share * options.time_limit_s)
    rounded = with_starts(grouped, round_replicas(without_starts(grouped), values, first), first)
    start = None if rounded is None else rounded[1]
    left = replace(options, time_limit_s=max(options.left_s(begin), 0.0))
    found = solve_direct(grouped, left, start=start).values or start
    return None if found is None else (build(part), spread(found, grouped, part))


def day_parts(systems: Floats, window: Ints, number: int) -> Ints:
    """[T]: the part of its window in which a slot lies; days of one window are cut at the same hours.

    `systems` [Q, T]: what serves in each slot, kind by kind. The cuts make the most systems of all parts, each with what it needs of every kind
    at its fullest, least; of equally good ones, the systems added up over the day.
    """
    group = np.zeros(len(window), dtype=np.int64)
    for w in np.unique(window).tolist():
        slots = np.flatnonzero(window == w)
        hour = np.arange(len(slots)) % SETTINGS.hours
        by_hour = np.zeros((len(systems), int(hour.max()) + 1))
        np.maximum.at(by_hour.T, hour, systems[:, slots].T)
        group[slots] = number * w + _cut(by_hour, min(number, by_hour.shape[1]))[hour]
    found: Ints = np.unique(group, return_inverse=True)[1].reshape(-1)
    return found


def _cut(systems: Floats, number: int) -> Ints:
    """[H]: the part of each hour of a day that repeats."""
    hours = systems.shape[1]
    if number <= 1:
        return np.zeros(hours, dtype=np.int64)
    twice = np.concatenate([systems, systems], axis=1)
    held = np.array([[twice[:, a : a + length].max(axis=1).sum() for length in range(1, hours)] for a in range(hours)])

    def worth(starts: tuple[int, ...]) -> tuple[float, float]:
        lengths = [(b - a) % hours for a, b in zip(starts, (*starts[1:], starts[0]), strict=True)]
        needs = [held[a, length - 1] for a, length in zip(starts, lengths, strict=True)]
        return max(needs), float(np.dot(needs, lengths))

    cuts = min(itertools.combinations(range(hours), number), key=worth)
    part: Ints = (np.searchsorted(np.array(cuts), np.arange(hours), side="right") - 1) % number
    return part


def systems_of(data: PlanData, values: Mapping[str, Floats]) -> Floats:
    """[Q, T]: systems at work for each pool of a plan with divisible replicas."""
    point = data.point_uses[:, 0]
    found = np.zeros((data.pools, data.slots))
    serves = data.point_pool[point] >= 0
    used = values["x"][point[serves]] * data.point_uses_systems[serves, None]
    np.add.at(found, data.point_pool[point[serves]], used)
    return found


def spread(values: Mapping[str, Floats], grouped: PlanData, data: PlanData) -> dict[str, Floats]:
    """Return a plan of grouped residents as one of the residents that `data` has, each of which stays through a part of the day."""
    assert grouped.resident_group is not None
    own = np.arange(data.slots) if data.resident_group is None else data.resident_group
    at = grouped.resident_group[np.unique(own, return_index=True)[1]]
    return {block: mine[:, at] if block in BY_GROUP else mine for block, mine in values.items()}
