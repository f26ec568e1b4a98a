"""Problems of an input are listed in the order in which a reader meets their places."""

from __future__ import annotations

import itertools

from planner.errors import Issue, SpecError

PLACES = (
    "a2[0]",
    "a10",
    "a.csv line 2, column 9",
    "a.csv line 2, column 10",
    "a.csv line 10",
    "a.csv line 999",
    "a.csv line 1,000",
    "a.csv line 20,000",
    f"sites[{'7' * 5000}]",
    f"sites[{'8' * 5000}]",
    "sites[x]",
)


def test_numbers_of_places_are_sorted_by_value():
    for order in (PLACES, PLACES[::-1]):
        assert [problem.path for problem in SpecError(Issue(place, "wrong") for place in order).problems] == [*PLACES]


def test_problems_of_one_place_are_sorted_by_their_words():
    issues = [Issue("line 2", "b"), Issue("line 02", "a"), Issue("line 2", "a")]
    orders = {tuple(SpecError(order).problems) for order in itertools.permutations(issues)}
    assert len(orders) == 1 and next(iter(orders))[-1] == Issue("line 2", "b")
