"""A plan with reinforcement learning holds; with any of its figures bent, or with parts that contradict each other, it does not."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec
from planner.verify.plan import findings

JOB = {
    "name": "learn", "kind": "reinforcement", "architecture": "Llama-3.1-8B", "iterations_per_hour": 60, "prompts": 32, "samples": 8, "mini_batches": 2,
    "lengths": {"prompt": 200, "response": 800, "limit": 4096, "cv": 1.0, "endless": 0.01},
}  # fmt: skip
SITE = {"region": "us-texas", "electricity_price": "60 USD/MWh"}
OFFERS = [{"system": name, "how": "buy", "supply": 8} for name in ("DGX H100", "DGX H200")]


def solved(**changed):
    document = {"name": "learning", "workloads": [{**JOB, **changed}], "sites": [SITE], "offers": OFFERS}
    plan = planner.solve(document)
    assert plan.has_answer
    return plan.document


@pytest.fixture(scope="module", params=["asynchronous", "colocated", "streaming"])
def document(request):
    return solved(ways=[request.param])


def said(document):
    return findings(resolve(parse_spec(document["spec"])), document)


def numbers(node, path=()):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from numbers(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from numbers(value, (*path, index))
    elif isinstance(node, (int, float)) and not isinstance(node, bool):
        yield path


def changed(document, path, change):
    bent = copy.deepcopy(document)
    place = bent["workloads"][0]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change(place[path[-1]])
    return bent


def test_the_plan_holds(document):
    assert said(document) == []


def test_every_number_of_its_rows_counts(document):
    row = document["workloads"][0]
    for path in numbers(row):
        value = row
        for key in path:
            value = value[key]
        bend = (lambda v: v + 1) if isinstance(value, int) else (lambda v: v * (1 + 2e-5) if v else 1e-5)
        assert said(changed(document, path, bend)), path


@pytest.mark.parametrize("key", ["way", "binds"])
def test_words_of_an_iteration_count(document, key):
    other = {"way": "synchronous", "binds": "moonlight"}[key]
    assert said(changed(document, ("points", 0, "iteration", key), lambda _: other))


def test_an_iteration_may_not_be_left_out(document):
    bent = copy.deepcopy(document)
    del bent["workloads"][0]["points"][0]["iteration"]
    assert any("iteration" in str(finding) for finding in said(bent))


def test_a_faster_split_may_not_stand_behind(document):
    bent = copy.deepcopy(document)
    splits = bent["workloads"][0]["points"][0]["iteration"]["splits"]
    if len(splits) > 1:
        splits[:2] = splits[1::-1]
        assert said(bent)


def test_precisions_are_those_asked_for():
    document = solved(ways=["asynchronous"], rollout_precision=["fp8"])
    row = document["workloads"][0]["points"][0]
    assert row["pools"][1]["precision"] == "fp8" and said(document) == []
    bent = copy.deepcopy(document)
    bent["spec"]["workloads"][0]["rollout_precision"] = ["bf16"]
    assert said(bent)


def test_dpo_and_ppo_hold_too():
    for algorithm in (
        {"algorithm": "dpo", "samples": 2},
        {"algorithm": "ppo", "reward": "Llama-3.1-8B", "tuning": "lora"},
    ):
        assert said(solved(**algorithm, iterations_per_hour=20)) == []


# -- environment slots with a price ------------------------------------------------------------------------------------

TOOLS = {"calls": 2, "think": "1 s", "service": "1 s", "environments": 64, "slot_cores": 2}
RATE = 0.5  # USD/h of a slot


@pytest.fixture(scope="module")
def priced():
    return solved(
        tools={**TOOLS, "slot_price": f"{RATE} USD/h"}, ways=["asynchronous", "colocated"], iterations_per_hour=20
    )


def test_slots_are_paid_for_the_time_at_work(priced):
    assert said(priced) == []
    (point,) = priced["workloads"][0]["points"]
    at_work_h = sum(row["active"].get(point["id"], 0.0) * row["seconds"] for row in priced["schedule"]) / 3600
    worth = resolve(
        parse_spec(priced["spec"])
    ).calendar.discount.mean()  # worth of a typical day, the same in each hour
    assert priced["costs"]["environments"] == pytest.approx(64 * RATE * at_work_h * worth, rel=1e-9)
    assert point["iteration"]["environments"] == {"slots": 64, "cores": 128, "price_per_h": 64 * RATE}
    assert any(row["path"] == "workloads[0].tools.slot_price" and row["share"] > 0 for row in priced["assumptions"])


def test_the_point_is_the_cheapest_with_its_slots(priced):
    """Each point that the search offers, taken alone: systems and energy from the plan of that point without a price, plus its slots."""
    unpriced = solved(tools=TOOLS, ways=["asynchronous", "colocated"], iterations_per_hour=20)
    assert (
        "environments" not in unpriced["costs"]
        and "price_per_h" not in unpriced["workloads"][0]["points"][0]["iteration"]["environments"]
    )
    free = sum(unpriced["costs"].values())
    paid = sum(amount for name, amount in priced["costs"].items() if name != "environments")
    assert free <= paid * (1 + 2e-3)  # within the asked gaps
    (point,) = unpriced["workloads"][0]["points"]
    at_work_h = sum(row["active"].get(point["id"], 0.0) * row["seconds"] for row in unpriced["schedule"]) / 3600
    worth = resolve(parse_spec(priced["spec"])).calendar.discount.mean()
    assert sum(priced["costs"].values()) <= (free + 64 * RATE * at_work_h * worth) * (1 + 1e-3)


@pytest.mark.parametrize("change", [{"slots": 65}, {"cores": 64}, {"price_per_h": 1.0}])
def test_slots_stated_wrongly_are_found(priced, change):
    bent = copy.deepcopy(priced)
    bent["workloads"][0]["points"][0]["iteration"]["environments"] |= change
    assert any("environments" in str(finding) for finding in said(bent))


def test_a_cost_of_slots_that_is_wrong_or_missing_is_found(priced):
    bent = copy.deepcopy(priced)
    bent["costs"]["environments"] *= 1.01
    assert said(bent)
    bent = copy.deepcopy(priced)
    bent["cost_lines"] = [line for line in bent["cost_lines"] if line["component"] != "environments"]
    assert said(bent)


def test_slots_are_paid_in_the_phase_in_which_the_job_works():
    document = {
        "name": "learning", "sites": [SITE], "offers": OFFERS, "horizon": {"years": 2},
        "workloads": [{**JOB, "tools": {**TOOLS, "slot_price": "0.5 USD/h"}, "ways": ["colocated"], "deadline": "300 d", "iterations_per_hour": 20}],
        "phases": [{"name": "first", "start": "2027-01-01"}, {"name": "second", "start": "2028-01-01", "budget": "50M USD"}],
    }  # fmt: skip
    plan = planner.solve(document)
    assert plan["costs"]["environments"] > 0
    assert planner.verify_plan(plan) == []


def test_a_price_needs_a_number_of_slots():
    tools = {key: value for key, value in TOOLS.items() if key != "environments"}
    with pytest.raises(planner.SpecError, match="slot_price needs the number of slots"):
        solved(tools={**tools, "slot_price": "0.5 USD/h"})


def test_both_pools_must_share_a_network():
    bent = solved(ways=["asynchronous"])
    pools = bent["workloads"][0]["points"][0]["pools"]
    other = next(row for row in bent["spec"]["offers"] if row["system"] == pools[1]["system"])
    bent["spec"]["offers"] = [*bent["spec"]["offers"], {**other, "how": "on_demand", "price": "60 USD/h"}]
    pools[1] |= {"how": "on_demand", "topology": "provider", "network_size": None, "offer": f"offers[{len(OFFERS)}]"}
    assert "two pools need a network between them" in str([str(found) for found in said(bent)])


def test_the_path_of_the_weights():
    """The trained weights, 2 bytes each, once an iteration; the share is that of their synchronisation."""
    bent = copy.deepcopy(solved(ways=["asynchronous"]))
    point = bent["workloads"][0]["points"][0]
    path, row = point["path"], point["iteration"]
    assert path["kind"] == "network" and 0 < path["used_bytes_per_s"] < path["bytes_per_s"]
    assert path["share"] == pytest.approx(row["parts_s"]["synchronisation"] / row["iteration_s"])
    path["bytes_per_s"] *= 2
    assert "path" in str([str(found) for found in said(bent)])
