"""Pools by prompt length: equal to workloads written by hand and to enumeration of boundaries; what is refused; what verify finds."""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import SpecError
from planner.pipeline import check_document, solve_document, solve_unverified
from planner.plan import Plan
from planner.report.load.length_pools import sections, sentences
from planner.solving.pools.boundaries import Divisions, edges_of
from planner.solving.pools.length_pools import _Made, _recorded
from planner.spec.document import edited
from planner.spec.load.length_pools import divided, shared_limits
from planner.spec.model import parse_spec
from planner.verify.findings import Report
from planner.verify.load.length_pools import check_length_pools
from planner.verify.plan import verify_plan

BANDS = [
    {"up_to": 400, "share": 0.5, "input": 200, "input_cv": 0.5, "output": 100, "output_cv": 1.0},
    {"up_to": 4000, "share": 0.4, "input": 1500, "input_cv": 0.6, "output": 300, "output_cv": 0.5},
    {"up_to": 32000, "share": 0.1, "input": 12000, "input_cv": 0.4, "output": 800, "output_cv": 1.5},
]
RATE = 400.0
SPEC = {
    "name": "pools",
    "horizon": {"years": 1},
    "workloads": [
        {
            "name": "chat",
            "kind": "serving",
            "architecture": "Llama-3.1-8B",
            "precision": ["fp8"],
            "kv_precision": ["fp8"],
            "demand": {"requests_per_s": RATE},
            "lengths": {"histogram": BANDS},
            "origins": [{"region": "us-texas", "share": 1}],
            "slo": {"ttft": {"p95": "3 s"}, "tpot": {"p95": "50 ms"}},
            "disaggregation": "never",
            "pools": {"boundaries": [4000]},
        }
    ],
    "sites": [{"region": "us-texas", "systems": ["DGX H100"]}],
    "offers": [{"system": "DGX H100", "how": "buy"}],
    "solver": {"replicas": "divisible", "gap": 1e-7, "time_limit": "120 s"},
}


def asking(pools, **lengths):
    document = edited(SPEC, (("workloads[0].pools", pools),))
    if lengths:
        document["workloads"][0]["lengths"] = lengths
    return document


TOGETHER = ("p99", "p90")
"""Of a limit on p95 what the pools but the last keep, and the last with a tenth of the requests: 0.9 x 1 % and 0.1 x 10 % miss it, 1.9 % of all."""


def by_hand(groups, kept=None):
    """Write the spec with a workload for each group of bands, whose moments are summed here; `kept`: percentiles of the others and of the last."""
    document = copy.deepcopy(SPEC)
    whole = document["workloads"].pop()
    del whole["pools"]
    for k, bands in enumerate(groups):
        share = sum(band["share"] for band in bands)
        lengths = {}
        for side in ("input", "output"):
            mean = sum(band["share"] * band[side] for band in bands) / share
            second = sum(band["share"] * band[side] ** 2 * (1 + band[f"{side}_cv"] ** 2) for band in bands) / share
            lengths |= {side: round(mean), f"{side}_cv": math.sqrt(second / mean**2 - 1)}
        demand = {"requests_per_s": RATE * share}
        more = {} if kept is None else {"slo": {**whole["slo"], "ttft": {kept[k == len(groups) - 1]: "3 s"}}}
        document["workloads"].append({**whole, "name": f"pool {k}", "demand": demand, "lengths": lengths, **more})
    return document


def test_a_stated_boundary_gives_the_plan_of_workloads_written_by_hand():
    plan = solve_document(SPEC, threads=1)
    other = solve_unverified(by_hand([BANDS[:2], BANDS[2:]]), threads=1)
    assert plan.value == pytest.approx(other.value, rel=1e-6)
    section = plan.document["length_pools"]
    whole = solve_unverified(by_hand([BANDS]), threads=1)
    assert section["undivided"]["value"] == pytest.approx(whole.value, rel=1e-6)
    assert section["saving"] == pytest.approx(1 - plan.value / section["undivided"]["value"])
    assert [w["name"] for w in plan.workloads] == ["chat (prompts to 4000)", "chat (prompts from 4001)"]
    told = list(sentences(plan))
    assert "4,000" in told[0] and "prompts to 4,000 tokens to chat (prompts to 4000)" in told[1]
    assert [row["mean_prompt"] for row in sections(plan)[0][1]] == ["778", "12,000"]


@pytest.mark.parametrize("replicas", ["divisible", "whole"])
def test_boundaries_found_are_those_of_enumeration(replicas, monkeypatch):
    monkeypatch.setitem(SPEC["solver"], "replicas", replicas)
    plan = solve_document(asking("by length"), threads=1)
    groups = [[BANDS], [BANDS[:1], BANDS[1:]], [BANDS[:2], BANDS[2:]], [BANDS[:1], BANDS[1:2], BANDS[2:]]]
    written = [*((each, None) for each in groups), *((each, TOGETHER) for each in groups[2:])]
    values = [solve_unverified(by_hand(*each), threads=1).value for each in written]
    assert plan.value == pytest.approx(min(values), rel=1e-6)
    section = plan.document["length_pools"]
    assert section["untried"] == 0 and len(section["tried"]) == 5
    gap = 1e-3 if replicas == "divisible" else 1.0  # of the bounds of choices
    for row in section["tried"]:
        edges, kept = row["boundaries"]["chat"], TOGETHER if "together" in row else None
        inside = [[band for band in BANDS if low < band["up_to"] <= high] for low, high in pairwise([0, *edges, 1e9])]
        value = values[written.index((inside, kept))]
        assert value * (1 - 1.1 * gap) <= row["bound"] <= value * (1 + 1e-6)
    assert len(plan.workloads) == len(written[values.index(min(values))][0])


def test_pools_are_infeasible_where_workloads_written_by_hand_are():
    tight = (("workloads[0].slo.ttft.p95", "20 ms"),)
    other = by_hand([BANDS[:2], BANDS[2:]])
    for workload in other["workloads"]:
        workload["slo"] = {"ttft": {"p95": "20 ms"}, "tpot": {"p95": "50 ms"}}
    plan = solve_unverified(edited(SPEC, tight), threads=1)
    assert (plan.status, solve_unverified(other, threads=1).status) == ("infeasible", "infeasible")


@given(cv=st.floats(0.2, 2.0), mean=st.integers(200, 20_000), part=st.floats(0.3, 2.0))
def test_pools_have_together_the_rate_and_the_tokens_of_the_whole(cv, mean, part):
    document = asking({"boundaries": [max(round(part * mean), 1)]}, input=mean, output=200, input_cv=cv)
    try:
        spec = parse_spec(document)
    except SpecError as error:
        assert "fewer than 0.01%" in str(error)
        return
    found = divided(document, spec, {0: spec.workloads[0].pools.boundaries})["workloads"]
    rates = [each["demand"]["requests_per_s"] for each in found]
    assert sum(rates) == pytest.approx(RATE)
    tokens = sum(rate * each["lengths"]["input"] for rate, each in zip(rates, found, strict=True))
    assert tokens == pytest.approx(RATE * mean, abs=0.51 * RATE)


def test_users_guesses_and_apis_follow_the_pools():
    document = asking({"boundaries": [400]})
    workload = document["workloads"][0]
    workload["demand"] = {
        "users": {"count": 1000, "requests_per_hour": 15, "peak_hour": 14, "least_share_at_once": 0.1}
    }
    document["assumptions"] = {
        "workloads[0].demand.users.count": "guessed",
        "workloads[0].lengths.histogram": "guessed",
    }
    document["apis"] = [{"name": "api", "workloads": ["chat"]}]
    spec = parse_spec({**document, "apis": None})
    found = divided(document, spec, {0: [400]})
    assert sum(each["demand"]["requests_per_s"] for each in found["workloads"]) == pytest.approx(
        spec.workloads[0].mean_requests_per_s
    )
    assert all(each["demand"]["profile"] == list(spec.workloads[0].demand.hours) for each in found["workloads"])
    assert set(found["assumptions"]) == {"workloads[0].demand.requests_per_s", "workloads[0].lengths.input"}
    assert found["apis"][0]["workloads"] == [each["name"] for each in found["workloads"]]


def test_a_spec_with_pools_is_counted_as_divided():
    assert check_document(SPEC)["workloads"] == 2 and check_document(asking("by length"))["workloads"] == 1


WRONG = [
    (asking("by size"), "expected \"one\""),
    (asking({"boundaries": [4000, 400]}), "must rise"),
    (asking({"boundaries": [500]}), "400, 4000"),
    (asking({"boundaries": [4000]}, input=1000, output=100, input_cv=0), "one length"),
    (asking({"boundaries": [900_000]}, input=1000, output=100), "0.01%"),
    (edited(SPEC, (("workloads[0].session", {"calls": 4, "growth": 100}),)), "session"),
    (edited(SPEC, (("objective", {"maximise": "throughput"}),)), "objective.maximise"),
    (edited(asking("by length"), (("robust", {"confidence": 0.9}),)), "robust"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "words"), WRONG)
def test_what_pools_do_not_go_with_is_refused(document, words):
    with pytest.raises(SpecError) as refused:
        solve_unverified(document)
    assert words in str(refused.value) and "workloads[0]" in str(refused.value)


def test_other_commands_ask_for_the_spec_of_the_plan():
    from planner.pipeline import resolved

    with pytest.raises(SpecError, match="its plan"):
        resolved(SPEC)


# -- the check, on a section without a solve ---------------------------------------------------------------------------------


def stated(document, together=()):
    """Write the parts of a plan that the check reads, with the division of a document."""
    spec = parse_spec(document)
    cuts = {0: spec.workloads[0].pools.boundaries}
    made = _Made(document, spec, lambda asked: Plan.of({}), Divisions.__new__(Divisions), lambda line: None)
    objective = {"sense": "min", "value": 90.0, "unit": "USD"}
    plan = Plan.of(
        {
            "objective": objective,
            "bound": 89.0,
            "gap": 0.01,
            "status": "optimal",
            "spec": divided(document, spec, cuts, together),
        }
    )
    whole = Plan.of({"objective": {**objective, "value": 100.0}, "bound": 95.0, "gap": 0.05, "status": "optimal"})
    return _recorded(made, plan, cuts, whole, [], 0, together).document


def found_in(document):
    report = Report()
    check_length_pools(report, document)
    return [finding.path for finding in report.found]


ASKED = [
    SPEC,
    asking({"boundaries": [1500]}, input=1000, output=200, input_cv=1.3),
    asking({"boundaries": [700, 3000]}, input_quantiles=[{"share": 0.5, "tokens": 800}, {"share": 0.9, "tokens": 4000}, {"share": 1, "tokens": 30000}], output=200),
]  # fmt: skip


@pytest.mark.parametrize("document", ASKED)
def test_the_check_computes_the_same_pools(document):
    assert found_in(stated(document)) == []


@pytest.mark.parametrize("document", ASKED)
@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("length_pools.workloads[0].pools[0].share", 0.3),
        ("length_pools.workloads[0].pools[1].input", 77.0),
        ("length_pools.workloads[0].pools[0].up_to", 401),
        ("length_pools.workloads[0].boundaries", [401]),
        ("length_pools.saving", 0.5),
        ("length_pools.proven", False),
        ("spec.workloads[1].lengths.input", 77),
        ("spec.workloads[1].lengths.input_cv", 2.9),
        ("spec.workloads[0].demand.requests_per_s", 1.0),
        ("spec.workloads[1].slo.ttft.p95", "9 s"),
        ("length_pools.workloads[0].asked.lengths", {"input": 9000, "output": 20}),
    ],
)
def test_the_check_finds_a_changed_number(document, place, value):
    assert found_in(edited(stated(document), ((place, value),)))


@pytest.mark.parametrize("ask", [solve_document, check_document])
def test_names_shape_and_what_pools_do_not_go_with_are_told_in_one_round(ask):
    names = ["sites[0].region", "workloads[0].architecture"]
    wrong = edited(
        asking("by length", input=2000, output=200, input_cv=1.0), tuple((path, "Llama-9") for path in names)
    )

    def told(document):
        with pytest.raises(SpecError) as refused:
            ask(document)
        return sorted({problem.path for problem in refused.value.problems})

    assert told(wrong) == names
    assert told({**wrong, "colour": 1}) == ["colour", *names]
    assert told({**wrong, "objective": {"maximise": "throughput"}}) == [*names, "workloads[0].pools"]


def test_boundaries_whose_tail_is_beyond_the_context_are_left_out():
    """Mean prompts of 16,000 tokens with a cv of 1.5 suit a context of 40,960 tokens; those of the longest 1 % alone do not."""
    document = asking("by length", input=16_000, input_cv=1.5, output=300)
    document["workloads"][0]["architecture"] = "Qwen3-32B"
    document["workloads"][0]["slo"] = {"ttft": {"p95": "60 s"}, "tpot": {"p95": "100 ms"}}
    spec = parse_spec(document)
    found = Divisions(document, spec, (), 1).tried({0: (edges_of(spec.workloads[0].lengths)[-1],)}, math.inf)
    assert found.bound == math.inf


# -- limits that pools keep together -----------------------------------------------------------------------------------------


def wide(percentiles, share):
    """Ask for limits on the time to first token by percentile, with a share of the requests in the pool of the longest prompts."""
    quantiles = [{"share": 0.5, "tokens": 800}, {"share": 1 - share, "tokens": 4000}, {"share": 1, "tokens": 30000}]
    document = asking({"boundaries": [4000]}, input_quantiles=quantiles, output=200)
    document["workloads"][0]["slo"]["ttft"] = percentiles
    return document


@given(
    share=st.floats(0.005, 0.45),
    limits=st.dictionaries(st.sampled_from(["mean", "p50", "p90", "p95", "p99"]), st.integers(1, 9), min_size=1),
)
def test_pools_that_keep_their_limits_keep_those_of_all_requests_together(share, limits):
    """At worst a pool misses a limit as often as what it keeps allows: with their shares of the requests these misses add up to what is asked."""
    document = wide({name: f"{seconds} s" for name, seconds in limits.items()}, share)
    spec = parse_spec(document)
    kept = shared_limits(spec.workloads[0], [4000])
    if kept is None:
        return
    parts = divided(document, spec, {0: [4000]}, {0})["workloads"]
    shares = [each["demand"]["requests_per_s"] / RATE for each in parts]
    stated_limits = [
        {name: float(text.split()[0]) for name, text in part["slo"].get("ttft", {}).items()} for part in parts
    ]
    for asked, seconds in limits.items():
        if asked == "mean":
            assert all(each["mean"] <= seconds for each in stated_limits)
            continue
        missed = sum(
            part
            * min(
                [1 - int(name[1:]) / 100 for name, limit in each.items() if name != "mean" and limit <= seconds],
                default=1.0,
            )
            for part, each in zip(shares, stated_limits, strict=True)
        )
        assert missed <= 1 - int(asked[1:]) / 100 + 1e-9


@pytest.mark.parametrize(("share", "last"), [(0.04, None), (0.08, "p50"), (0.1, "p90"), (0.3, "p90")])
def test_the_longest_prompts_miss_as_often_as_the_others_leave_room_for(share, last):
    """Of p95 the others keep p99: 0.96 x 1 % + 4 % < 5 %, 0.92 x 1 % + 0.08 x 50 % = 4.92 %, 0.9 x 1 % + 0.1 x 50 % > 5 %."""
    others, longest = shared_limits(parse_spec(wide({"p95": "3 s"}, share)).workloads[0], [4000])
    assert (others, longest) == ({"p95": "p99"}, {"p95": last})


def test_nothing_is_shared_where_the_longest_prompts_are_too_many():
    """With 48 % of the prompts, 52 % x 1 % leave 9.3 % to miss a limit on p95: less than the next percentile that can be stated."""
    assert shared_limits(parse_spec(wide({"p95": "3 s"}, 0.48)).workloads[0], [4000]) is None
    assert shared_limits(parse_spec(wide({"mean": "3 s"}, 0.04)).workloads[0], [4000]) is None


@pytest.mark.parametrize("share", [0.04, 0.1])
def test_the_check_counts_the_misses_of_all_pools(share):
    document = stated(wide({"p95": "3 s", "p50": "1 s"}, share), {0})
    assert found_in(document) == []
    for place, value in (
        ("spec.workloads[0].slo.ttft.p99", "4 s"),
        ("spec.workloads[0].slo.ttft", {"p95": "3 s", "p50": "1 s"}),
        ("spec.workloads[1].slo", {"ttft": {}}),
        ("spec.workloads[1].slo.tpot.p95", "9 s"),
        ("length_pools.workloads[0].pools[0].ttft.p99", 2.0),
    ):
        assert found_in(edited(document, ((place, value),))), place


def test_the_page_says_which_pool_keeps_which_limit():
    told = list(sentences(Plan.of({**stated(wide({"p95": "3 s"}, 0.04), {0}), "workloads": [{}]})))
    assert "chat (prompts from 4001) keeps no limit to the first token, the others p99 3 s" in told[1]


def test_pools_that_keep_a_limit_together_are_workloads_written_by_hand_and_cost_less_than_alone():
    """At 0.35 s to the first token: of the requests with prompts above 4,000 tokens a tenth may miss it, of the others a hundredth."""
    document = edited(asking("by length"), (("workloads[0].slo.ttft.p95", "0.35 s"),))
    spec, cuts = parse_spec(document), {0: (4000,)}
    made = _Made(document, spec, lambda asked: Plan.of({}), Divisions(document, spec, (), 1), lambda line: None)
    alone, together = made.plan(cuts, 0.5), made.plan(cuts, 1.0, frozenset({0}))
    written = by_hand([BANDS[:2], BANDS[2:]], TOGETHER)
    for workload, name in zip(written["workloads"], TOGETHER, strict=True):
        workload["slo"]["ttft"] = {name: "0.35 s"}
    assert together.value == pytest.approx(solve_unverified(written, threads=1).value, rel=1e-6)
    assert together.value < alone.value
    plan = _recorded(made, together, cuts, alone, [], 0, {0})
    assert verify_plan(plan) == []
    assert made.divisions.tried(cuts, math.inf, frozenset({0})).bound <= together.value * (1 + 1e-6)
