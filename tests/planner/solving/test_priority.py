"""Priorities among jobs: who waits is what arithmetic says, plans hold it, and checks find rows that do not."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from catalog.units import DAY_S, HOUR_S, YEAR_S
from planner.errors import SpecError
from planner.plan import Plan
from planner.report.jobs import waiting
from planner.report.page import one_page
from planner.resolve.resolver import resolve
from planner.solving.priority import PART, _admit, _waits_for
from planner.spec.document import edited
from planner.spec.model import parse_spec
from planner.spec.requirements.priority import put_off, queue_of
from planner.verify.plan import verify_plan
from tests.conftest import ALL_CASES
from tests.plans.serving_enumeration import DAY

RATE = 1.0  # work/s of the one system of the arithmetic below


def job(name: str, tokens: str, priority: int | None, deadline: str = "60 d") -> dict[str, Any]:
    return {
        "name": name, "kind": "training", "architecture": "Llama-3.1-8B", "tokens": tokens, "deadline": deadline,
        **({} if priority is None else {"priority": priority}),
    }  # fmt: skip


SPEC: dict[str, Any] = {
    "name": "one system",
    "workloads": [
        job("research", "300B tokens", 2),
        job("product", "400B tokens", 1),
        job("fixed", "20B tokens", None),
        job("vast", "5T tokens", 3),
    ],
    "sites": [{"region": "us-texas", "electricity_price": "60 USD/MWh"}],
    "offers": [{"system": "DGX H100", "how": "buy", "supply": 1}],
    "solver": {"replicas": "divisible", "time_limit": "60 s"},
    "simplicity": {"within": 0},
}


# -- against arithmetic ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """A job as the spec states it; `work` in seconds of the system."""

    priority: int | None
    deadline: float
    work: float
    start: float = 0.0


@dataclass(frozen=True)
class Listed:
    """A job of a problem."""

    name: str
    path: str
    spec: Job


@dataclass(frozen=True)
class Question:
    """What the search reads of a problem."""

    training: tuple[Listed, ...]
    spec: Any
    serving: tuple[()] = ()


class OneSystem:
    """Answers about jobs that share one system in any proportion: all are done if those due by each deadline fit before it."""

    def __init__(self, jobs: tuple[Listed, ...]):
        self.jobs = {each.path: each for each in jobs}

    def has_plan(self, names: frozenset[str], edits: Any) -> bool:
        late = {path.removesuffix(".deadline"): float(hours.split()[0]) * HOUR_S for path, hours in edits}
        return fits(
            [(late.get(path, e.spec.deadline), e.spec.work) for path, e in self.jobs.items() if e.name in names]
        )


def fits(due: list[tuple[float, float]]) -> bool:
    """Tell whether the work due by each deadline fits before it, all jobs having started at 0."""
    return all(sum(work for by, work in due if by <= end) <= RATE * end + 1e-6 for end, _ in due)


def soonest(taken: list[tuple[float, float]], each: Job, horizon_h: int) -> int | None:
    """Try every hour after the deadline."""
    hours = range(int(each.deadline // HOUR_S) + 1, horizon_h + 1)
    return next((h for h in hours if fits([*taken, (h * HOUR_S, each.work)])), None)


jobs = st.lists(
    st.builds(
        Job,
        st.one_of(st.none(), st.integers(1, 3)),
        st.integers(24, 2000).map(lambda hours: hours * HOUR_S),
        st.integers(1, 1500).map(lambda hours: hours * HOUR_S),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=1000 if ALL_CASES else 60)
@given(jobs, st.integers(2000, 3000))
def test_who_waits_is_what_trying_every_hour_finds(drawn, horizon_h):
    listed = tuple(Listed(f"job {i}", f"workloads[{i}]", each) for i, each in enumerate(drawn))
    horizon = type("Horizon", (), {"years": horizon_h * HOUR_S / YEAR_S})()
    question: Any = Question(listed, type("Spec", (), {"horizon": horizon})())
    trials: Any = OneSystem(listed)
    queue = queue_of(listed)
    admitted = _admit(trials, question, queue)
    taken = [(each.deadline, each.work) for each in drawn if each.priority is None]
    if not fits(taken):
        assert admitted is None
        return
    ahead = {each.name: each.spec for each in listed if each.spec.priority is None}
    for each in sorted(listed, key=lambda one: (one.spec.priority or 0, one.name)):
        if each.spec.priority is None:
            continue
        if fits([*taken, (each.spec.deadline, each.spec.work)]):
            assert each.name not in admitted.deadlines and each.name in admitted.names
            done = each.spec.deadline
        else:
            best = soonest(taken, each.spec, horizon_h)
            found = admitted.deadlines[each.name]
            assert (found is None) == (best is None) and (each.name in admitted.names) == (best is not None)
            if found is None:
                continue
            near = max(int(each.spec.deadline / (PART * HOUR_S)), 1)
            assert best <= found / HOUR_S <= best + near  # type: ignore[operator]
            alone = _waits_for(trials, question, each, sorted(ahead), admitted)
            for name in ahead:  # without it alone, all others done when they are
                others = [
                    (admitted.deadlines.get(one) or ahead[one].deadline, ahead[one].work)
                    for one in ahead
                    if one != name
                ]
                if fits([*others, (each.spec.deadline, each.spec.work)]):
                    assert name in alone
            done = found
        taken.append((done, each.spec.work))
        ahead[each.name] = each.spec


# -- plans -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planner.solve(SPEC)


def test_the_higher_class_is_on_time_and_the_lower_waits_as_long_as_arithmetic_says(plan):
    rate = {w["name"]: max(p["capacity"] for p in w["points"]) for w in plan["workloads"]}
    research, vast = plan.document["postponed"]
    assert (research["workload"], research["priority"], research["waits_for"]) == ("research", 2, ["product"])
    needed_s = 720e9 / rate["research"]  # one after the other, on one system
    assert needed_s <= research["deadline_s"] * (1 + 1e-9) and research["deadline_s"] <= needed_s + 61 * DAY_S / PART
    assert (vast["workload"], vast["deadline_s"], vast["waits_for"]) == ("vast", None, [])
    assert [w["name"] for w in plan["workloads"]] == ["research", "product", "fixed"]
    assert research["first"]["postponed"].keys() == {"product", "vast"}
    assert plan["spec"] == SPEC


def test_the_plan_says_who_waits_for_whom(plan):
    said = " ".join(waiting(plan))
    assert "research (priority 2) is done" in said and "it waits for product" in said
    assert "If research went first, product would be done on day" in said and "vast would be left out" in said
    assert "vast (priority 3) is left out: the limits leave no room for it" in said
    assert "Which jobs wait" in one_page(plan)


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("postponed[0].asked_s", 1.0, "postponed[0]"),
        ("postponed[0].priority", 1, "postponed[0]"),
        ("postponed[0].workload", "fixed", "postponed[0]"),
        ("postponed[0].deadline_s", 60 * DAY_S, "postponed[0]"),
        ("postponed[0].deadline_s", 2 * YEAR_S, "postponed[0]"),
        ("postponed[0].waits_for", ["vast"], "postponed[0].waits_for"),
        ("postponed[0].deadline_s", None, "workloads"),
        ("postponed[1].deadline_s", 364 * DAY_S, "workloads"),
    ],
)
def test_rows_that_do_not_hold_are_found(plan, path, value, place):
    assert any(found.path.startswith(place) for found in verify_plan(Plan(edited(plan.document, ((path, value),)))))


def test_rows_of_a_plan_in_which_nothing_waits_are_found(plan):
    bent = copy.deepcopy(plan.document)
    del bent["postponed"]
    assert verify_plan(Plan(bent))
    bent["postponed"] = []
    assert any(found.path == "postponed" for found in verify_plan(Plan(bent)))


def test_a_plan_with_room_for_all_is_the_same_with_priorities():
    roomy = edited(SPEC, (("workloads", SPEC["workloads"][:3]), ("offers[0].supply", 4)))
    plain = edited(roomy, tuple((f"workloads[{i}].priority", None) for i in range(3)))
    plan = planner.solve(roomy)
    assert "postponed" not in plan.document
    assert plan.objective["value"] == planner.solve(plain).objective["value"]


def test_a_rate_of_iterations_keeps_its_work_when_put_off():
    spec = parse_spec(edited(SPEC, (("workloads", [LEARNING]),)))
    edits = put_off("workloads[0]", spec.workloads[0], 40 * DAY_S)
    assert edits == (
        ("workloads[0].deadline", "960 h"), ("workloads[0].iterations_per_hour", None), ("workloads[0].iterations", 1440),
    )  # fmt: skip


LEARNING = {
    "name": "rl", "kind": "reinforcement", "architecture": "Llama-3.1-8B", "iterations_per_hour": 2, "deadline": "30 d", "priority": 1,
    "prompts": 64, "samples": 8, "lengths": {"prompt": 100, "response": 500, "limit": 2000},
}  # fmt: skip


def test_where_priorities_do_not_count_they_are_refused():
    with pytest.raises(SpecError, match=r"workloads\[0\]\.priority: jobs wait by priority in plans of least cost"):
        resolve(parse_spec(edited(SPEC, (("robust", {"confidence": 0.8}),))))


# -- making room -------------------------------------------------------------------------------------------------------


def returning(first: int, second: int) -> dict[str, Any]:
    """Two equal jobs beside a service that leaves room for one and a half of them at its peak."""
    chat = {
        "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "precision": ["fp8"], "kv_precision": ["fp8"],
        "demand": {"requests_per_s": 150, "profile": DAY}, "lengths": {"input": 1000, "output": 300},
        "origins": [{"region": "us-texas", "share": 1}], "slo": {"tpot": {"p95": "40 ms"}}, "disaggregation": "never",
    }  # fmt: skip
    jobs = [
        {**job(name, "250B tokens", priority), "preemption": {"restart": "30 min"}}
        for name, priority in (("one", first), ("other", second))
    ]
    return {
        **SPEC, "workloads": [chat, *jobs], "simplicity": {"within": 0}, "solver": {"replicas": "divisible", "gap": 0.01},
        "offers": [{"system": "DGX H100", "how": "buy", "supply": 2}],
    }  # fmt: skip


def test_jobs_of_the_first_class_are_interrupted_less():
    lost = {}
    for order in ((1, 2), (2, 1)):
        plan = planner.solve(returning(*order))
        assert plan.gap is not None and plan.gap <= 0.01
        lost[order] = {row["workload"]: row["resumptions"] for row in plan["preemptions"]}
    for first, other, order in (("one", "other", (1, 2)), ("other", "one", (2, 1))):
        assert lost[order][first] < 0.01 and lost[order][other] > 10.0
