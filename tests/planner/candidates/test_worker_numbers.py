"""Which whole numbers of prefill and decode workers are found: as an enumeration of all numbers finds, on drawn sides with plain rules."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.group_selection import BETWEEN, LOADS, fewest_systems, open_between
from planner.candidates.load_steps import MOST_STEPS, at_ends, find_steps
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
    every = fewest_systems(search, questions, most=1, further=100)
    kept = every.kept
    assert every.beyond == 0
    for question, best in zip(questions, search.best, strict=True):
        assert not kept or search.costs(question)[kept].min() <= best * (1 + 1e-9)
    few = fewest_systems(search, questions, most=1, further=1)
    assert few.kept == kept[: len(few.kept)] and len(few.kept) + few.beyond >= min(len(kept), 2)


def test_a_pair_that_needs_too_many_workers_is_counted():
    sides = sides_of(1)
    sides.prompt_s[:] = MOST_WORKERS * sides.alone_s.max() * 2
    search = searched(sides, asked(1))
    assert search.pairs[0] == 0 < search.pairs[1] and search.found.rate.size == 0


def groups_of(sides: Sides, numbers: Any) -> Any:
    """List every group with some numbers of decode workers: prefill, shape, workers of both roles."""
    shape = len(sides.prefill), len(sides.decode), MOST_WORKERS, len(numbers)
    p, s, n_p, d = (part.ravel() for part in np.indices(shape))
    return p, s, n_p + 1, np.asarray(numbers)[d]


@given(st.integers(0, 100_000))
def test_every_untried_number_that_would_help_is_counted(seed):
    """Enumerate the numbers of decode workers between those tried: so many pairs and numbers at least are counted as beat the best group found."""
    sides, questions = sides_of(seed), asked(seed)
    search = searched(sides, questions)
    p, s, n_p, n_d = groups_of(sides, np.setdiff1d(np.arange(1, MOST_WORKERS + 1), DECODE_WORKERS))
    rate, kept = rule(sides, p, s, n_p, n_d)
    better = set()
    for question, best in zip(questions, search.best, strict=True):
        cost = question.cost(sides.first[p], sides.second[s], n_p / rate, n_d / rate, (n_p, n_d))
        able = kept[question.round_trip] & (cost < best * (1 - 1e-6))
        better |= set(zip(p[able].tolist(), s[able].tolist(), n_d[able].tolist(), strict=True))
    assert len(better) <= search.untried()


@given(st.integers(0, 100_000))
def test_pairs_that_take_less_between_the_shares_are_told(seed):
    sides = sides_of(seed)
    questions = [Question(0, (1.0, 1.0), np.inf), *(Question(0, (1.0, 1.0), 40.0 * share) for share in LOADS)]
    search = searched(sides, questions)
    kept = fewest_systems(search, questions, most=1, further=100).kept
    told = open_between(search, questions, kept)
    assert not set(BETWEEN) & set(LOADS) and (kept or not told.any())
    p, s, n_p, n_d = groups_of(sides, DECODE_WORKERS)
    rate, able = rule(sides, p, s, n_p, n_d)
    for share in BETWEEN if kept else ():
        question = Question(0, (1.0, 1.0), 40.0 * share)
        cost = question.cost(sides.first[p], sides.second[s], n_p / rate, n_d / rate, (n_p, n_d))
        better = able[0] & (cost < search.costs(question)[kept].min() * (1 - 1e-6))
        assert told[p[better], s[better]].all()


def test_corners_of_the_hull_besides_those_kept_are_counted():
    """Five groups take 1 and 16, 2 and 8, 4 and 4, 8 and 2, 16 and 1 systems per request: all are corners, and the middle one with its neighbours is kept."""
    each = np.arange(5)
    search = SimpleNamespace(
        sides=SimpleNamespace(first=2.0**each, second=2.0 ** (4 - each)),
        found=SimpleNamespace(rate=np.ones(5), prefill=each, shape=each, workers=(np.ones(5, int), np.ones(5, int))),
        costs=lambda question: np.ones(5),
    )
    questions = [Question(0, (1.0, 1.0), np.inf)]
    three = fewest_systems(search, questions, most=100, further=0)
    assert sorted(three.kept) == [1, 2, 3] and three.corners == 2
    one = fewest_systems(search, questions, most=1, further=0)
    assert one.kept == [2] and one.corners == 4


@given(st.integers(0, 100_000), st.sampled_from([3, 100]))
def test_up_to_the_last_step_the_groups_kept_cost_what_enumeration_finds_at_any_load(seed, sought):
    sides, rng = sides_of(seed), np.random.default_rng(seed)
    questions = [Question(0, (1.0, 1.0), np.inf), *(Question(0, (1.0, 1.0), 15.0 * share) for share in LOADS)]
    search = searched(sides, questions)
    (steps,) = find_steps(search, [questions], sought)
    kept = fewest_systems(search, [*questions, *at_ends(questions[0], steps)], most=1, further=200).kept
    assert len(steps.ends) <= min(sought, MOST_STEPS) and (steps.ends or not kept)
    for load in [*rng.uniform(0.0, steps.reach, 3), *rng.choice(steps.ends or [0.0], 3)]:
        here = Question(0, (1.0, 1.0), float(load))
        assert not kept or search.costs(here)[kept].min() == pytest.approx(enumerated(sides, here), rel=1e-9)


@given(st.integers(0, 100_000))
def test_a_step_ends_where_one_request_more_takes_another_worker(seed):
    sides = sides_of(seed)
    questions = [Question(0, (1.0, 1.0), np.inf), Question(0, (1.0, 1.0), 15.0), Question(0, (1.0, 1.0), 0.0)]
    search = searched(sides, questions)
    (steps,) = find_steps(search, [questions], 6)
    for end in steps.ends:
        at, past = (enumerated(sides, Question(0, (1.0, 1.0), end * more)) for more in (1.0, 1.0 + 1e-6))
        assert at < past or end == 15.0


def test_divisible_replicas_have_no_steps():
    search = searched(sides_of(1), [Question(0, (1.0, 1.0), np.inf)])
    assert find_steps(search, [search.questions], 100)[0].ends == ()
