"""Which whole numbers of prefill and decode workers are found: as an enumeration of all numbers finds, on drawn sides with plain rules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.group_selection import LOADS, fewest_systems
from planner.candidates.worker_numbers import DECODE_WORKERS, MOST_WORKERS, NumbersSearch, Question, Sides

MARGIN = np.array([1.0, 1.25])  # by round trip: prefill workers for each that the load alone takes
FEWEST = np.array([1, 3])  # by round trip: decode workers of a group


def sides_of(seed: int, layouts: int = 4, shapes: int = 5) -> Sides:
    """Draw sides: a decode worker serves a little more beside others."""
    rng = np.random.default_rng(seed)
    alone_s = rng.uniform(0.05, 3.0, shapes)
    return Sides(
        prefill=np.arange(layouts),
        prompt_s=rng.uniform(0.02, 2.0, layouts),
        first=rng.choice([0.125, 0.25, 0.5, 1.0, 2.0], layouts),
        decode=np.arange(shapes),
        batch=np.zeros(shapes, dtype=np.int64),
        answer_s=0.9 * alone_s,
        alone_s=alone_s,
        second=rng.choice([0.125, 0.25, 0.5, 1.0, 2.0, 4.0], shapes),
        able=rng.uniform(size=(2, layouts, shapes)) < 0.8,
    )


def rule(sides: Sides, prefill: Any, shape: Any, n_p: Any, n_d: Any) -> tuple[Any, Any]:
    """State the rates of groups, and by round trip which keep its limits."""
    rate = n_d / (sides.alone_s[shape] * (0.9 + 0.1 / n_d))
    needed = rate * sides.prompt_s[prefill]
    kept = (n_p > MARGIN[:, None] * needed) & (n_d >= FEWEST[:, None]) & sides.able[:, prefill, shape]
    return rate, kept


def searched(sides: Sides, questions: list[Question]) -> NumbersSearch:
    search = NumbersSearch(sides, questions, lambda *groups: (SimpleNamespace(), *rule(sides, *groups)))
    search.run()
    return search


def enumerated(sides: Sides, question: Question) -> float:
    """Enumerate the least cost of all numbers of workers."""
    shape = len(sides.prefill), len(sides.decode), MOST_WORKERS, len(DECODE_WORKERS)
    p, s, n_p, d = (part.ravel() for part in np.indices(shape))
    n_p, n_d = n_p + 1, DECODE_WORKERS[d]
    rate, kept = rule(sides, p, s, n_p, n_d)
    cost = question.cost(sides.first[p], sides.second[s], n_p / rate, n_d / rate, (n_p, n_d))
    able = kept[question.round_trip] & (rate <= question.most_rate * (1 + 1e-9))
    return float(cost[able].min(initial=np.inf))


def asked(seed: int) -> list[Question]:
    """Draw questions at two round trips: the least per request, and at some loads."""
    rng = np.random.default_rng(seed)
    prices = [(1.0, 1.0), (1.0, float(rng.uniform(0.2, 1.0)))]
    loads = [np.inf, 0.0, *rng.uniform(0.1, 80.0, 3)]
    return [Question(trip, each, float(load)) for trip in (0, 1) for each in prices for load in loads]


@given(st.integers(0, 100_000))
def test_no_group_of_any_numbers_costs_less(seed):
    sides, questions = sides_of(seed), asked(seed)
    search = searched(sides, questions)
    for question, best in zip(questions, search.best, strict=True):
        assert best == pytest.approx(enumerated(sides, question), rel=1e-9)


@given(st.integers(0, 100_000))
def test_more_layouts_are_never_dearer(seed):
    sides, questions = sides_of(seed), asked(seed)
    fewer = Sides(
        sides.prefill[1:], sides.prompt_s[1:], sides.first[1:], sides.decode, sides.batch, sides.answer_s, sides.alone_s, sides.second,
        sides.able[:, 1:],
    )  # fmt: skip
    assert (searched(sides, questions).best <= searched(fewer, questions).best * (1 + 1e-9)).all()


@given(st.integers(0, 100_000))
def test_a_group_is_kept_for_each_share_of_the_demand_or_counted(seed):
    sides = sides_of(seed)
    questions = [Question(0, (1.0, 1.0), np.inf), *(Question(0, (1.0, 1.0), 40.0 * share) for share in LOADS)]
    search = searched(sides, questions)
    kept, beyond = fewest_systems(search, questions, most=1, further=100)
    assert beyond == 0
    for question, best in zip(questions, search.best, strict=True):
        assert not kept or search.costs(question)[kept].min() <= best * (1 + 1e-9)
    few, beyond = fewest_systems(search, questions, most=1, further=1)
    assert few == kept[: len(few)] and len(few) + beyond >= min(len(kept), 2)


def test_a_pair_that_needs_too_many_workers_is_counted():
    sides = sides_of(1)
    sides.prompt_s[:] = MOST_WORKERS * sides.alone_s.max() * 2
    search = searched(sides, asked(1))
    assert search.pairs[0] == 0 < search.pairs[1] and search.found.rate.size == 0
