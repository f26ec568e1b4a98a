"""A plan whose figures break a law is refused by the law itself, even where the closed forms agree with what the plan says."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest

import planner
import planner.verify.points.check
from catalog.lookup import shipped_catalog
from models.transformer.architecture import parameter_counts
from models.transformer.attention import kv_bytes
from planner.messages import Message
from planner.plan import Plan
from planner.resolve.architectures import shape_of
from planner.resolve.ledger import Ledger
from planner.verify.plan import verify_plan
from planner.verify.points.counts import cache_bytes_per_token, weight_bytes, weights_of
from tests.planner.verify import tampering

SERVING, TRAINING = 0, 1


def pools() -> dict:
    """Return a spec of prefill and decode pools of tensor ranks."""
    document = tampering._tiny(50)
    chat = document["workloads"][0]
    chat |= {"architecture": "Meta-Llama-3.1-70B", "disaggregation": "always", "precision": ["bf16"]}
    chat["lengths"] = {"input": 2000, "output": 200}
    chat["slo"] = {"ttft": {"p95": "3 s"}, "tpot": {"p95": "60 ms"}}
    return document


@pytest.fixture(scope="module")
def small(small_plan) -> dict:
    return json.loads(small_plan.to_json())


@pytest.fixture(scope="module")
def apart() -> dict:
    return json.loads(planner.solve(pools()).to_json())


@pytest.fixture
def agreeing(monkeypatch):
    """Closed forms that compute whatever the plan states of a point."""
    evaluate = planner.verify.points.check.evaluate_point

    def agreed(problem, fleet_options, facts, row):
        found = evaluate(problem, fleet_options, facts, row)
        stated = {key: row.get(key) for key in found.stated} | {"pools": dict(enumerate(row["pools"]))}
        stated["tier"] = found.stated["tier"]  # which the row is given without
        return replace(found, stated=stated)

    monkeypatch.setattr(planner.verify.points.check, "evaluate_point", agreed)


def laws_broken(document: dict) -> set[str]:
    """Return the places within a point at which a law is said to be broken."""
    beginnings = {code: Message.of(code, **dict.fromkeys(WORDS, 1)).text().split("1")[0] for code in CODES}
    return {
        (found.path.partition("].")[2], code)
        for found in verify_plan(Plan(document))
        for code, words in beginnings.items()
        if found.message.startswith(words) and "points[" in found.path
    }


WORDS = ("used", "allowed", "total", "whole", "batch", "system", "role")
CODES = tuple(json.loads((tampering.ROOT / "planner/messages/en/conservation.json").read_text(encoding="utf-8")))


def test_plans_as_they_were_made_break_no_law(small, apart, agreeing):
    for document in (small, apart):
        assert verify_plan(Plan(document)) == []


@pytest.mark.parametrize(
    ("workload", "place", "factor", "code"),
    [
        (SERVING, ("pools", 0, "memory_bytes"), 2.2, "conservation.memory"),
        (SERVING, ("pools", 0, "memory_bytes"), 0.2, "conservation.held"),
        (SERVING, ("breakdown", "host"), 1.1, "conservation.parts"),
        (SERVING, ("first_token_s", "prefill"), 1.1, "conservation.parts"),
        (SERVING, ("latency_s", "tpot.p95"), 0.005, "conservation.pass"),
        (SERVING, ("latency_s", "ttft.p95"), 0.001, "conservation.pass"),
        (SERVING, ("capacity",), 40.0, "conservation.bandwidth"),
        (SERVING, ("capacity",), 40.0, "conservation.operations"),
        (TRAINING, ("capacity",), 2.5, "conservation.operations"),
        (TRAINING, ("capacity",), 1.1, "conservation.parts"),
        (TRAINING, ("time_s", "step"), 0.001, "conservation.gradients"),
        (TRAINING, ("time_s", "step"), 1.1, "conservation.parts"),
        (TRAINING, ("breakdown", "dp"), -1.0, "conservation.parts"),
        (TRAINING, ("mfu",), 1.1, "conservation.useful"),
        (TRAINING, ("hfu",), 3.0, "conservation.useful"),
    ],
)
def test_a_figure_that_breaks_a_law_is_refused_by_it(small, agreeing, workload, place, factor, code):
    bent = copy.deepcopy(small)
    at = bent["workloads"][workload]["points"][0]
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] *= factor
    assert code in {said for _, said in laws_broken(bent)}


@pytest.mark.parametrize(
    ("factor", "codes"), [(200.0, {"conservation.links", "conservation.tensor_links", "conservation.operations"})]
)
def test_pools_that_would_send_more_than_their_links_carry_are_refused(apart, agreeing, factor, codes):
    bent = copy.deepcopy(apart)
    bent["workloads"][0]["points"][0]["capacity"] *= factor
    assert codes <= {said for _, said in laws_broken(bent)}


def test_every_law_has_a_plan_that_breaks_it():
    marks = test_a_figure_that_breaks_a_law_is_refused_by_it.pytestmark + (
        test_pools_that_would_send_more_than_their_links_carry_are_refused.pytestmark
    )
    tried = {
        code for mark in marks for row in mark.args[1] for code in (row[-1] if isinstance(row[-1], set) else [row[-1]])
    }
    assert tried == set(CODES)


def test_counts_from_below_are_those_of_the_models_where_all_layers_are_counted():
    """Every network of the catalog has at least what is counted here; those of full attention and plain blocks have no more."""
    catalog, alike = shipped_catalog(), 0
    for record in catalog.records("architectures"):
        if record.text.get("shape") == "incomplete":
            continue
        shape = shape_of(record, Ledger(catalog))
        counted, known = weights_of(shape), parameter_counts(shape)
        pairs = (
            (counted.passed + counted.table + counted.one_token, known.active),
            (counted.passed + counted.table + counted.experts, known.total - known.head),
            (1e6 * cache_bytes_per_token(shape, "bf16"), float(kv_bytes(shape, 1e6, 2))),
        )
        for own, theirs in pairs:
            assert own <= theirs * (1 + 1e-12), record.name
        alike += all(own > 0.98 * theirs for own, theirs in pairs)
    assert alike > 60


@pytest.mark.parametrize(
    ("name", "expected"), [("bf16", 2.0), ("fp8", 1.0), ("nvfp4", 0.5), ("mxfp4", 0.5), ("int4", 0.5)]
)
def test_bytes_of_a_weight_are_read_off_its_format(name, expected):
    assert weight_bytes(name) == expected


def test_a_format_without_bits_is_refused():
    with pytest.raises(ValueError, match="how many bits"):
        weight_bytes("wide")
