"""Answers from a kept program are those of each spec alone within the gap, and no evaluation is used after what it reads has changed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.candidates.search import find_candidates
from planner.errors import SpecError
from planner.formulate.formulation import list_points
from planner.pipeline import resolved, solve_document
from planner.problem.facts import ResolvedSpec
from planner.solving.kept.program import Evaluations, Kept, key_of
from planner.spec.changes import scaled
from planner.spec.document import at, edited
from planner.verify.plan import verify_plan
from solvers.search import joint, known_points
from tests.conftest import ALL_CASES, long_run
from tests.fuzz.targets import specs

PRICE, SECOND, RATE, POWER = (
    "offers[0].price",
    "offers[1].price",
    "workloads[0].demand.requests_per_s",
    "sites[0].power",
)
GAP = 1e-3  # to which a small program is searched where the spec states none
TOLERANCE = 1e-9
MOST_TEXT = 9000  # length of a small spec, in letters


def small() -> dict[str, Any]:
    """Return a spec of two kinds of systems at two sites, with whole replicas."""
    return {
        "name": "kept",
        "workloads": [
            {
                "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": 120},
                "lengths": {"input": 1200, "output": 250}, "origins": [{"region": "us-california", "share": 0.4}, {"region": "us-virginia", "share": 0.6}],
                "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "50 ms"}}, "disaggregation": "never",
            },
        ],
        "sites": [{"region": "us-texas", "power": "300 kW"}, {"region": "us-virginia", "power": "300 kW"}],
        "offers": [{"system": "DGX H100", "how": "buy", "price": "300000 USD"}, {"system": "DGX B200", "how": "buy", "price": "500000 USD"}],
        "limits": {"budget": "30M USD"},
    }  # fmt: skip


@pytest.fixture(scope="module")
def kept() -> Kept:
    """Answer the spec, and keep what it leaves to others."""
    first = Kept()
    assert solve_document(small(), kept=first).has_answer
    assert first.used
    return first


@settings(
    max_examples=60 if ALL_CASES else 4, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    st.lists(
        st.tuples(st.sampled_from([PRICE, SECOND, RATE, POWER, "limits.budget"]), st.floats(0.3, 3.0)), min_size=1, max_size=3
    )
)  # fmt: skip
def test_variants_are_answered_as_alone_within_the_gap(kept, moved):
    document = edited(small(), tuple((path, scaled(at(small(), path), round(factor, 3))) for path, factor in moved))
    alone = solve_document(document)
    shared = solve_document(document, kept=Kept(kept.evaluations, frozenset(kept.used)))
    assert shared.has_answer == alone.has_answer and (shared.has_answer or shared.status == alone.status)
    if alone.has_answer:
        assert not verify_plan(shared)
        assert shared.value == pytest.approx(alone.value, rel=0.01 + 2 * GAP)  # the band of fewer parts, and two gaps
        for one, other in ((alone, shared), (shared, alone)):
            assert one["bound"] <= other.value * (1 + TOLERANCE)


def test_the_search_starts_from_known_points_and_gives_way_where_they_are_no_good(kept, monkeypatch):
    found = []
    real = known_points.over_known
    monkeypatch.setattr(joint, "over_known", lambda *given: found.append(real(*given)) or found[-1])
    known = frozenset(kept.used)
    solve_document(edited(small(), ((PRICE, "301000 USD"),)), kept=Kept(kept.evaluations, known))
    assert found[-1] is not None
    dear = edited(small(), ((PRICE, "9M USD"), (SECOND, "9M USD")))
    other = {key for key in known if "DGX H100" in str(key)} or {key for key in known if "DGX B200" in str(key)}
    cheap = PRICE if "DGX B200" in str(other) else SECOND  # the system that no known point uses
    plan = solve_document(edited(dear, ((cheap, "1000 USD"),)), kept=Kept(kept.evaluations, frozenset(other)))
    assert found[-1] is None and plan.value < 0.5 * solve_document(dear).value


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every number and quantity of a document with its path."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from leaves(each, f"{path}[{number}]")
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        yield path, value


def changed(value: Any) -> list[Any]:
    """List other values that a key may hold: more, less, and of a text that is no quantity none."""
    if isinstance(value, str):
        return [scaled(value, factor) for factor in (1.25, 0.8)] if value[:1].isdigit() else []
    return [value + 1, value - 1] if isinstance(value, int) else [value * 1.25, value * 0.8]


def figures(problem: ResolvedSpec, evaluations: Evaluations | None) -> list[Any]:
    """List all figures of the points of a problem, from kept evaluations or from none."""
    candidates = find_candidates(problem, None if evaluations is None else evaluations.of(problem))
    points, _, _ = list_points(candidates, problem)
    return [
        (key_of(p), p.capacity, p.latency, p.breakdown, [(u.systems, u.extra_it_w, u.batch, u.memory_bytes) for u in p.uses], p.chips)
        for p in points
    ]  # fmt: skip


def mutants() -> list[tuple[int, str]]:
    """List each leaf once among the specs that use every key between them, known by its path without positions."""
    seen, found = set(), []
    for number, document in enumerate(specs()):
        for path, value in leaves(document):
            place = "".join(
                "[]" if part.isdigit() else part for part in path.replace("[", " ").replace("]", " ").split(" ")
            )
            if place not in seen and changed(value):
                seen.add(place)
                found.append((number, path))
    return found


def stale_after(number: int, path: str) -> str | None:
    """Return what is wrong with points from evaluations of the spec before one key of it was changed; None where nothing is."""
    document = specs()[number]
    if any(key in path for key in ("hourly", "series")):
        return None
    shared = Evaluations()
    try:
        figures(resolved(copy.deepcopy(document)), shared)
    except SpecError:
        return None
    for value in changed(at(document, path)):
        try:
            problem = resolved(edited(document, ((path, value),)))
        except (SpecError, LookupError, TypeError):
            continue
        if not np.array_equal(
            np.array(figures(problem, shared), dtype=object), np.array(figures(problem, None), dtype=object)
        ):
            return f"{path} = {value!r}"
    return None


@pytest.mark.parametrize("every", [pytest.param(1, marks=long_run), 150])
def test_no_evaluation_is_used_after_a_key_that_it_reads_was_changed(every):
    """Numbers and quantities of the small specs, which use every key between them; the usual run takes few of them."""
    small_ones = [(n, path) for n, path in mutants() if len(str(specs()[n])) < MOST_TEXT]
    assert [wrong for n, path in small_ones[::every] if (wrong := stale_after(n, path))] == []
