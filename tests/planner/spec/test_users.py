"""Users as demand become a rate of requests and its shape, by Little's law, and a plan says which."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.errors import SpecError
from planner.resolve.resolver import resolve_document
from planner.spec.load.users import Users
from planner.spec.model import parse_spec
from planner.verify.plan import verify_plan
from tests.planner.facts.base import spec

OPEN = {"count": 36_000, "share_at_once": 0.1, "requests_per_hour": 10}  # 3,600 at once, 10 requests an hour: 10/s


def asked(users: dict, **demand) -> dict:
    document = spec()
    document["workloads"][0]["demand"] = {"users": users, **demand}
    return copy.deepcopy(document)


def by_hour(document: dict) -> list[float]:
    """Return the requests per second in each hour of the typical day, all origins together."""
    [workload] = resolve_document(document).serving
    return workload.requests_per_s.sum(axis=0).tolist()


def test_open_users_send_what_they_are_said_to():
    assert Users(**OPEN).peak_requests_per_s == pytest.approx(10.0)
    assert by_hour(asked(OPEN)) == pytest.approx([10.0] * 24)


def test_closed_users_send_once_in_think_and_response_time():
    # 3,600 users, 28 s to think and 8 s to be answered: 3,600/36 s = 100 requests/s
    users = {"count": 3600, "think_time": "28 s", "response_time": "8 s"}
    assert Users(**users).peak_requests_per_s == pytest.approx(100.0)
    # a service of no time at all bounds the rate by 3,600/28
    assert Users(**users | {"response_time": "1 us"}).peak_requests_per_s == pytest.approx(3600 / 28, rel=1e-6)


def test_the_shape_has_its_peak_and_its_least_share():
    users = OPEN | {"peak_hour": 20, "least_share_at_once": 0.02}
    weights = Users(**users).weights()
    assert weights[20] == max(weights) == pytest.approx(1.0) and weights[8] == min(weights) == pytest.approx(0.2)
    assert weights[14] == pytest.approx(0.6) and weights[2] == pytest.approx(
        0.6
    )  # six hours away: half way, (1 + 0.2)/2
    found = by_hour(asked(users))
    # the mean of the cosine is half way too: 6 requests/s; Virginia is 5 hours behind UTC at the start of the year
    assert sum(found) / 24 == pytest.approx(6.0) and max(found) == pytest.approx(10.0)
    assert found.index(max(found)) == (20 + 5) % 24


def test_a_profile_states_the_shape_and_users_its_peak():
    profile = [1.0] * 12 + [3.0] * 12
    found = by_hour(asked(OPEN, profile=profile))
    assert max(found) == pytest.approx(10.0) and min(found) == pytest.approx(10.0 / 3)


def test_users_of_sessions_ask_for_tasks():
    document = asked(OPEN)
    document["workloads"][0]["session"] = {"calls": 5, "growth": 100}
    assert by_hour(document) == pytest.approx([50.0] * 24)


def test_the_plan_of_users_is_that_of_their_rate_and_says_so():
    document = asked(OPEN, profile=[1.0] * 24)
    document["workloads"][0] |= {"precision": ["fp8"], "disaggregation": "never"}
    rate = copy.deepcopy(document)
    rate["workloads"][0]["demand"] = {"requests_per_s": 10}
    plan = planner.solve(document, threads=1)
    assert plan.objective["value"] == pytest.approx(planner.solve(rate, threads=1).objective["value"], rel=1e-9)
    [note] = [note for note in plan.document["notes"] if note["code"] == "users.rate"]
    assert note["path"] == "workloads[0].demand.users" and note["arguments"]["peak"] == pytest.approx(10.0)
    assert "3,600 users at once" in note["text"] or "3600 users at once" in note["text"]
    assert not list(verify_plan(plan))


def test_more_users_than_people_are_named():
    notes = resolve_document(asked(OPEN | {"count": 9e9, "share_at_once": 1e-7})).notes
    assert [note.path for note in notes if note.message.code == "users.more_than_people"] == [
        "workloads[0].demand.users.count"
    ]


@pytest.mark.parametrize(
    ("users", "demand", "code"),
    [
        ({"count": 10}, {}, "exactly one"),
        ({"count": 10, "requests_per_hour": 6, "think_time": "30 s", "response_time": "8 s"}, {}, "exactly one"),
        ({"count": 10, "think_time": "30 s"}, {}, 'demand.users: add "response_time" beside "think_time".*as measured'),
        ({"count": 10, "requests_per_hour": 6, "response_time": "8 s"}, {}, 'belongs to "think_time"'),
        (OPEN | {"peak_hour": 20}, {}, "stated together"),
        (OPEN | {"peak_hour": 20, "least_share_at_once": 0.2}, {}, "above the largest"),
        (OPEN | {"peak_hour": 20, "least_share_at_once": 0.05}, {"profile": [1.0] * 24}, "remove one"),
        (OPEN, {"requests_per_s": 4}, "exactly one"),
    ],
)  # fmt: skip
def test_what_is_missing_or_stated_twice_is_refused_with_the_remedy(users, demand, code):
    with pytest.raises(SpecError, match=code):
        parse_spec(asked(users, **demand))
