"""The harness of consistency itself: it finds a bound that claims too much, and laws hold on two small questions. Long: `make fuzz FUZZ=consistency`."""

from __future__ import annotations

import math
import random

import pytest

from planner.plan import Plan
from tests.conftest import ALL_CASES, long_run
from tests.fuzz import consistency, questions
from tests.fuzz.consistency import Answer, Law, laws
from tests.plans.test_plan_properties import BOUGHT

NO_PLAN = Plan({})
SEEDS = range(3, 3 + (20 if ALL_CASES else 0))
SMALL = {
    "workloads": 1,
    "sites": 1,
    "offers": 1,
}


def answer(value: float, bound: float) -> Answer:
    return Answer(value, bound, NO_PLAN)


@pytest.mark.parametrize(
    ("one", "other", "factor", "also", "holds"),
    [
        ((1.0, 1.0), (1.0, 0.5), 1.0, 0.0, True),
        ((1.1, 1.1), (1.0, 0.5), 1.0, 0.0, False),
        ((1.1, 1.1), (1.0, 0.5), 1.0, 0.2, True),
        ((1.9, 1.9), (1.0, 1.0), 2.0, 0.0, True),
        ((2.1, 2.1), (1.0, 1.0), 2.0, 0.0, False),
        ((math.inf, math.inf), (1.0, 0.5), 1.0, 0.0, False),  # proven to have no plan, and there is one
        ((math.inf, -math.inf), (1.0, 0.5), 1.0, 0.0, True),  # found none in time, which proves nothing
        ((1.0, 1.0), (math.inf, math.inf), 1.0, 0.0, True),
        ((1.0, 1.0), (math.inf, -math.inf), 1.0, 0.0, True),
    ],
)
def test_a_bound_above_the_value_of_another_plan_breaks_a_law(one, other, factor, also, holds):
    assert Law("", answer(*one), answer(*other), factor, also).holds == holds


def first_small(start: int) -> tuple[questions.Spec, random.Random]:
    """Draw until a question has one record of each kind, so that its many solves take little time."""
    for seed in range(start, start + 1000):
        rng = random.Random(seed)
        spec = questions.question(rng)
        if all(len(spec[name]) == count for name, count in SMALL.items()):
            return spec, rng
    raise AssertionError("no small question")


@long_run
@pytest.mark.parametrize("start", [0, 500])
def test_the_laws_hold_on_a_small_question(start):
    found = list(laws(*first_small(start)))
    assert [str(law) for law in found if not law.holds] == []
    assert len({law.name for law in found}) > 15


@pytest.mark.parametrize("by", [1.01, 0.99])
def test_answers_of_one_path_that_are_off_break_a_law(by, monkeypatch):
    """One path is a hundredth too dear, or claims a plan that is a hundredth too cheap."""

    def solved(spec, **solver):
        value = by if solver.get("method") == "branch" else 1.0
        return answer(value, value)

    spec, _ = first_small(0)
    monkeypatch.setattr(consistency, "solved", solved)
    broken = {law.name for law in consistency._of_the_same(spec, answer(1.0, 1.0)) if not law.holds}
    assert broken == {f"branch, bound of the {'other' if by > 1 else 'first'}"}


def test_the_same_question_in_other_words_states_the_same_figures():
    """Resolved, demand, limits, work and prices are those of the question."""
    from planner.resolve.resolver import resolve_document

    for seed in range(10):
        spec = questions.question(random.Random(seed))
        mine, theirs = (resolve_document(each) for each in (spec, questions.in_other_units(spec)))
        for one, other in zip(mine.serving, theirs.serving, strict=True):
            assert one.peak_requests_per_s == pytest.approx(other.peak_requests_per_s, rel=1e-12)
            assert [limit.seconds for limit in one.spec.limits()] == pytest.approx(
                [limit.seconds for limit in other.spec.limits()]
            )
        assert [job.spec.deadline for job in mine.training] == pytest.approx(
            [job.spec.deadline for job in theirs.training]
        )
        for one, other in zip(mine.offers, theirs.offers, strict=True):
            assert dict(one.prices) == pytest.approx(dict(other.prices))


def test_halves_have_the_demand_of_the_whole():
    from planner.resolve.resolver import resolve_document

    for seed in range(5):
        spec = questions.question(random.Random(seed))
        whole, two = (
            sum(w.peak_requests_per_s for w in resolve_document(each).serving)
            for each in (spec, questions.in_halves(spec))
        )
        assert two == pytest.approx(whole, rel=1e-12)


def of_rate(requests_per_s: float) -> questions.Spec:
    """Ask for a rate of a small model on one kind of system at one site."""
    chat = {
        "name": "chat", "kind": "serving", "architecture": "Llama-3.2-1B", "demand": {"requests_per_s": requests_per_s},
        "lengths": {"input": 278, "output": 141}, "origins": [{"region": "us-virginia", "share": 1}], "weights_from": "us-texas",
        "slo": {"ttft": {"p95": "300 ms"}, "tpot": {"p95": "10 ms"}}, "precision": ["bf16"], "disaggregation": "never",
    }  # fmt: skip
    return {
        "name": "one", "objective": {"minimise": "cost"}, "workloads": [chat], "sites": [{"region": "us-virginia"}], "offers": [BOUGHT],
        "simplicity": {"within": 0}, "solver": {"gap": 1e-6, "replicas": "divisible"},
    }  # fmt: skip


@pytest.mark.parametrize("requests_per_s", [48.0, 300.0, 5945.0])
def test_halves_are_dearer_by_their_weights_and_by_smaller_batches_alone(requests_per_s):
    """A half that fills its replicas costs what it does in the whole; one that does not takes more energy. No other cost differs."""
    spec = of_rate(requests_per_s)
    whole, halves = (consistency.solved(each) for each in (spec, questions.in_halves(spec)))
    more = {name: halves.plan["costs"][name] - amount for name, amount in whole.plan["costs"].items()}
    assert more.pop("weights") == pytest.approx(whole.plan["costs"]["weights"])
    fills = consistency._fills_replicas(spec, whole.plan)
    batches = {point["pools"][0]["batch"] for row in halves.plan["workloads"] for point in row["points"]}
    mine = {point["pools"][0]["batch"] for row in whole.plan["workloads"] for point in row["points"]}
    assert fills == (requests_per_s > 1000) == (batches == mine)
    assert (
        more.pop("energy") == pytest.approx(0.0, abs=1e-3) if fills else more["energy"] > 1 and max(batches) < max(mine)
    )
    assert all(amount == pytest.approx(0.0, abs=1e-3) for name, amount in more.items() if name != "energy")


@pytest.mark.parametrize("seed", SEEDS)
@long_run
def test_the_laws_hold(seed):
    consistency.check_consistency(random.Random(seed))
