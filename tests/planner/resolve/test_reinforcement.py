"""Resolving jobs of reinforcement learning: what is refused, and where; what is assumed."""

from __future__ import annotations

import copy

import pytest

from catalog.units import YEAR_S
from planner.errors import SpecError
from planner.resolve.resolver import resolve_document
from planner.spec.workloads import WORK

SPEC = {
    "name": "learning",
    "workloads": [
        {
            "name": "learn", "kind": "reinforcement", "architecture": "Llama-3.1-8B", "iterations_per_hour": 60, "prompts": 32, "samples": 8,
            "lengths": {"prompt": 200, "response": 800, "limit": 4096},
        }
    ],
    "sites": [{"region": "us-texas"}],
    "offers": [{"system": "DGX H100", "how": "buy"}],
}  # fmt: skip


def spec(**changed):
    found = copy.deepcopy(SPEC)
    for key, value in changed.items():
        (found if key in ("robust",) else found["workloads"][0])[key] = value
    return found


@pytest.mark.parametrize(
    ("changed", "path", "words"),
    [
        ({"iterations": 1000}, "workloads[0]", "exactly one of"),
        ({"iterations_per_hour": None}, "workloads[0]", "exactly one of"),
        ({"deadline": "2 years"}, "workloads[0].deadline", "horizon"),
        ({"start": "20 d", "deadline": "10 d"}, "workloads[0]", "before the start"),
        ({"algorithm": "ppo", "critic": "Llama-9"}, "workloads[0].critic", "unknown"),
        ({"reward": "Llama-9"}, "workloads[0].reward", "unknown"),
        ({"robust": {}}, "workloads[0]", "robust"),
        ({"kind": "rl"}, "workloads[0].kind", '"reinforcement"'),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_planned_is_refused_in_place(changed, path, words):
    with pytest.raises(SpecError) as error:
        resolve_document(spec(**changed))
    assert any(p.path == path and words in p.message for p in error.value.problems), error.value.problems


def test_a_rate_holds_until_the_end_of_the_horizon():
    job = resolve_document(spec()).training[0].spec
    assert job.deadline == YEAR_S and job.all_iterations == pytest.approx(60 * 8760)
    assert job.tokens == pytest.approx(60 * 8760 * 256 * 1000)
    by_then = resolve_document(spec(start="10 d", deadline="20 d")).training[0].spec
    assert by_then.all_iterations == pytest.approx(60 * 240)


def test_unstated_lengths_are_assumptions_and_constants_are_cited():
    problem = resolve_document(spec())
    assumed = {row.path for row in problem.assumptions}
    assert {"workloads[0].lengths.cv", "workloads[0].lengths.endless"} <= assumed
    assert any(citation.path.startswith("constants/reinforcement.") for citation in problem.citations)


def test_a_critic_of_ppo_is_as_large_as_the_policy():
    job = resolve_document(spec(algorithm="ppo")).training[0]
    assert job.critic == job.architecture and resolve_document(spec()).training[0].critic is None


def test_every_kind_states_an_amount_that_can_be_moved():
    workload = SPEC["workloads"][0]
    assert any(key in workload for key in WORK["reinforcement"])
