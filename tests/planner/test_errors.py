"""Problems of an input are listed in the order in which a reader meets their places."""

from __future__ import annotations

import itertools

from planner.errors import MOST_CHARACTERS, MOST_SHOWN, BrokenPlanError, Issue, SpecError, cut_list

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


def test_findings_are_cut_as_problems_are():
    texts = [f"fleet[{i}]: {'x' * 3 * MOST_CHARACTERS}" for i in range(3 * MOST_SHOWN)]
    shown = cut_list(texts)
    assert len(shown) == MOST_SHOWN + 1 and max(map(len, shown)) == MOST_CHARACTERS
    assert shown[-1] == f"and {2 * MOST_SHOWN} more problems; correct these first"
    problems = [Issue(*text.split(": ")) for text in texts]
    assert str(SpecError(problems)).splitlines() == shown
    error = BrokenPlanError(texts)
    assert error.findings == texts and len(str(error)) < (MOST_SHOWN + 1) * (MOST_CHARACTERS + 2) + 100
    assert cut_list(["a\x1b[2Jb"]) == ["a\\x1b[2Jb"] and cut_list([]) == []
