"""Which reasons for leaving candidates out prove nothing, and how many candidates they left out."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

from planner.candidates.unproven import UNPROVEN_OF_WHOLE, left_out, points_considered
from planner.interpret.framing import coverage
from planner.messages import Message


def said(code: str) -> str:
    return Message.of(f"dropped.{code}").text()


CANDIDATES = SimpleNamespace(
    pools=[SimpleNamespace(points=(1, 2, 3)), SimpleNamespace(points=(4,))],
    training={"tune": (5, 6)},
    dropped={
        "chat": Counter({said("no_fewer_systems"): 40, said("too_slow"): 500, said("dominated_point"): 7}),
        "code": Counter({said("no_fewer_systems"): 2, said("further_corners"): 3, said("numbers_between"): 0}),
        "tune": Counter({said("slower_layout"): 900, said("width_not_offered"): 5}),
    },
)


def test_candidates_left_out_without_proof_are_added_up_over_workloads():
    reasons = {"no_fewer_systems": 42, "width_not_offered": 5, "further_corners": 3}
    assert left_out(CANDIDATES, whole=False) == [(said(code), count) for code, count in reasons.items()]
    assert left_out(CANDIDATES, whole=True)[1] == (said("dominated_point"), 7)
    assert points_considered(CANDIDATES) == 6


def test_the_section_of_a_plan_holds_points_sum_and_reasons():
    row = coverage(CANDIDATES, whole=True)["coverage"]
    assert (row["points"], row["left_out"]) == (6, 42 + 7 + 5 + 3)
    assert row["reasons"][0]["reason_message"] == {"code": "dropped.no_fewer_systems", "arguments": {}}


def test_every_code_is_a_reason_that_is_said():
    assert all(Message.of(code).text() for code in UNPROVEN_OF_WHOLE)
