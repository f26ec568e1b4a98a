"""Tokens bought by the million beside systems of one's own: when they are, what they cost, what rules them out, and the check."""

from __future__ import annotations

import copy

import pytest

import planner
from planner.errors import SpecError
from planner.plan import Plan
from planner.report.report import render
from planner.resolve.resolver import resolve_document
from planner.studies.compare import compare
from planner.verify.plan import verify_plan

RATE = 0.08
KEEPS = {"ttft": {"p99": "500 ms"}, "tpot": {"p95": "30 ms"}}


@pytest.fixture(scope="module")
def spec(tiny):
    """`spec(api={...}, workload={...})`: 30 requests a second of 500 and 200 tokens, own systems or an API next door."""

    def make(api=None, workload=None, **changes):
        document = tiny(horizon={"years": 2, "discount_rate": RATE})
        document["workloads"][0] |= workload or {}
        document["apis"] = [
            {"name": "gateway", "region": "us-ohio", "output": "0.01 USD/1M tokens", "latency": KEEPS} | (api or {})
        ]
        return document | changes

    return make


def solved(document):
    plan = planner.solve(document)
    assert verify_plan(plan) == []
    return plan


def bought(plan):
    """Share of the tokens that an API makes."""
    seconds = {(row["site"], row["slot"]): row["seconds"] for row in plan["schedule"]}
    tokens = {True: 0.0, False: 0.0}
    for row in plan["routes"]:
        tokens[row["site"] == "gateway"] += row["tokens_per_s"] * seconds[row["site"], row["slot"]]
    return tokens[True] / (tokens[True] + tokens[False])


@pytest.fixture(scope="module")
def cheap(spec):
    return solved(spec())


def test_cheap_tokens_are_bought_and_need_nothing(cheap):
    assert bought(cheap) == 1.0
    assert set(cheap["costs"]) == {"api"}
    assert (cheap["totals"]["chips"], cheap["totals"]["peak_power_w"], cheap["totals"]["carbon_kg"]) == (0, 0, 0)


def test_its_row_of_the_fleet_has_a_unit(cheap, spec):
    (row,) = cheap["fleet"]
    assert row["how"] == "api" and row["unit"] == "token/s"
    assert f"{row['count']:,} tokens/s" in render(cheap, "table")
    own = solved(spec(api={"output": "90 USD/1M tokens"}))
    assert not any("unit" in row for row in own["fleet"])  # systems are counted
    found = compare(own, cheap)
    assert {row["system"]: row["unit"] for row in found.document["fleet"]} == {
        "DGX H100": "system",
        "gateway": "token/s",
    }
    assert f"{row['count']:,} more tokens/s of gateway" in " ".join(found.words)
    for other in ({**row, "unit": "system"}, {key: value for key, value in row.items() if key != "unit"}):
        broken = Plan({**cheap.document, "fleet": [other]})
        assert [finding.path for finding in verify_plan(broken)] == ["fleet[0].unit"]


def test_the_price_of_the_tokens(spec):
    """Prompts and answers of two years, each year paid at its end."""
    plan = solved(spec(api={"input": "0.002 USD/1M tokens", "output": "0.01 USD/1M tokens"}))
    yearly = 30 * 365 * 86400 * (500 * 0.002 + 200 * 0.01) / 1e6
    assert plan["costs"]["api"] == pytest.approx(yearly * (1 / (1 + RATE) + 1 / (1 + RATE) ** 2), rel=1e-9)
    assert plan["workloads"][0]["cost"] == pytest.approx(plan["totals"]["cost"])


def test_a_price_that_falls_from_phase_to_phase(spec):
    phases = [{"name": "first", "start": "0 d"}, {"name": "second", "start": "1 year"}]
    plan = solved(spec(api={"price_change_per_year": -0.5}, phases=phases))
    first, second = plan["phases"]
    assert second["cost_per_million_tokens"] == pytest.approx(first["cost_per_million_tokens"] / 2)


def test_dear_tokens_are_not(spec):
    plan = solved(spec(api={"output": "100 USD/1M tokens"}))
    assert bought(plan) == 0.0 and "api" not in plan["costs"]


def test_the_peak_may_overflow(spec):
    """A few hours a day above what one system serves are bought, the rest is made."""
    day = {"demand": {"requests_per_s": 1500, "profile": [1] * 21 + [9] * 3}}
    plan = solved(spec(api={"output": "0.03 USD/1M tokens"}, workload=day))
    assert 0 < bought(plan) < 0.5 and plan["totals"]["chips"] > 0
    alone = planner.solve({key: value for key, value in spec(workload=day).items() if key != "apis"})
    assert plan["totals"]["cost"] < alone["totals"]["cost"] and plan["totals"]["chips"] < alone["totals"]["chips"]


def test_no_more_than_it_gives(spec):
    """6,000 tokens a second are asked for; the API gives 2,000."""
    plan = solved(spec(api={"supply": 2000}))
    assert bought(plan) <= 1 / 3 + 1e-9
    row = next(row for row in plan["limits"] if row["path"] == "apis[0].supply")
    assert row["limit"] == 2000 and row["value"] <= 2000 and row["unit"] == "token/s"


def test_without_systems_the_supply_is_in_the_way(spec):
    found = planner.solve(spec(api={"supply": 2000}, offers=[]))
    assert found.status == "infeasible"
    assert "apis[0].supply" in [row["path"] for row in found["diagnosis"]["conflict"]]
    assert found["diagnosis"]["repair_checked"]


@pytest.mark.parametrize(
    ("api", "workload"),
    [
        ({"latency": {"ttft": {"p99": "500 ms"}}}, {}),  # nothing is said of the time per token
        ({"latency": {"ttft": {"p90": "500 ms"}, "tpot": {"p95": "30 ms"}}}, {}),  # a lower percentile than the asked
        ({"latency": {"ttft": {"p99": "1.999 s"}, "tpot": {"p95": "30 ms"}}}, {}),  # the way there takes the rest
        ({"latency": {"ttft": {"p99": "500 ms"}, "tpot": {"p95": "61 ms"}}}, {}),
        ({}, {"residency": ["us-virginia"]}),
        ({"region": "de-frankfurt"}, {"residency": ["us"]}),
    ],
)
def test_an_api_that_does_not_keep_the_rules_is_not_used(spec, api, workload):
    assert bought(solved(spec(api=api, workload=workload))) == 0.0


def test_within_the_residency_it_is_used(spec):
    assert bought(solved(spec(workload={"residency": ["us"]}))) == 1.0


def test_latency_is_its_own_and_the_way_there(cheap):
    row = next(row for row in cheap["workloads"][0]["slo"] if row["metric"] == "ttft")
    assert 0.5 < row["predicted_s"] < 0.56


def test_only_the_named_workloads_use_it(spec):
    document = spec(api={"workloads": ["chat"], "output": "0.000001 USD/1M tokens"})
    document["workloads"].append(copy.deepcopy(document["workloads"][0]) | {"name": "other"})
    plan = solved(document)
    users = {row["workload"] for row in plan["routes"] if row["site"] == "gateway"}
    assert users == {"chat"} and {row["workload"] for row in plan["routes"]} == {"chat", "other"}


def test_it_can_come_later(spec):
    plan = solved(spec(api={"available_from": "1 year"}))
    windows = {row["slot"] // 24 for row in plan["routes"] if row["site"] == "gateway"}
    assert windows <= {1} and plan["totals"]["chips"] > 0


# -- over rented lines -------------------------------------------------------------------------------------------------

LINE = {
    "kind": "dedicated",
    "setup": "0 s",
    "capacity": "100 kbit/s",
    "price": "365 USD/month",
    "price_per_byte": "0.02 USD/GB",
}


def test_prompts_and_answers_travel_over_lines(spec):
    """Prompts of 500 tokens at 30 requests a second fill more units than the answers of 200 that come back; rent and bytes are paid."""
    origins = [{"region": "us-virginia", "share": 1.0}]
    plan = solved(spec(workload={"origins": origins}, lines=[LINE], offers=[]))
    (line,) = plan["lines"]
    byte = resolve_document(spec()).bytes_per_token
    assert line["units"] == -(-30 * 500 * byte // (100e3 / 8)) and line["peak_bytes_per_s"] == pytest.approx(
        15e3 * byte
    )
    assert {row["traffic"] for row in line["traffic"]} == {"requests"} and plan["placements"] == []
    worth = 1 / (1 + RATE) + 1 / (1 + RATE) ** 2
    assert plan["costs"]["lines"] == pytest.approx(line["units"] * 365 * 12 * worth, rel=2e-3)
    without = solved(spec(workload={"origins": origins}, offers=[]))
    traffic = 30 * 200 * byte * 365 * 86400 / 1e9 * 0.02 * worth
    assert plan["costs"]["api"] == pytest.approx(without["costs"]["api"] + traffic, rel=1e-9)


def test_a_line_that_costs_nothing_changes_nothing(spec):
    free = {"kind": "dedicated", "capacity": "1 Tbit/s", "price": "0 USD/month", "setup": "0 s"}
    far = {"origins": [{"region": "us-virginia", "share": 0.5}, {"region": "us-texas", "share": 0.5}]}
    day = far | {"demand": {"requests_per_s": 1500, "profile": [1] * 21 + [9] * 3}, "weights_from": "us-virginia"}
    words = {"api": {"output": "0.03 USD/1M tokens"}, "workload": day}
    plan, without = solved(spec(**words, lines=[free])), solved(spec(**words))
    assert 0 < bought(plan) < 1 and bought(plan) == pytest.approx(bought(without), rel=0.05)
    egress = without["costs"].get("egress", 0.0)
    assert plan["totals"]["cost"] == pytest.approx(without["totals"]["cost"] - egress, rel=1e-3)


def test_lines_too_dear_or_not_safe_enough_rule_it_out(spec):
    far = {"origins": [{"region": "us-virginia", "share": 1.0}]}
    dear = LINE | {"price": "1M USD/month"}
    assert bought(solved(spec(workload=far, lines=[dear]))) == 0.0
    assert bought(solved(spec(workload=far | {"security": "private"}, lines=[{"kind": "TLS"}]))) == 0.0


@pytest.mark.parametrize("price", ["0.01", "0.02", "0.05"])
def test_both_solvers_agree_on_lines_and_apis(spec, price):
    origins = [{"region": "us-virginia", "share": 0.6}, {"region": "us-california", "share": 0.4}]
    words = {"workload": {"origins": origins, "demand": {"requests_per_s": 1500, "profile": [1] * 21 + [9] * 3}}}
    lines = [LINE | {"capacity": "20 Mbit/s"}, {"kind": "TLS"}, {"kind": "IPSec VPN"}]
    document = spec(api={"output": f"{price} USD/1M tokens"}, lines=lines, **words)
    ours, other = (solved(document | {"solver": {"backend": name, "gap": 1e-6}}) for name in ("highs", "pulp"))
    assert ours["totals"]["cost"] == pytest.approx(other["totals"]["cost"], rel=1e-5)


def test_a_failure_may_be_bought_over_lines(spec):
    """Where the loss of the only site must be survived, the API stands by, over lines that are rented for it."""
    far = {"origins": [{"region": "us-virginia", "share": 1.0}], "spread": {"survive": 1}}
    plan = solved(spec(api={"output": "9 USD/1M tokens"}, workload=far, lines=[LINE]))
    assert bought(plan) == 0.0 and {row["zone"] for row in plan["failures"]} == {"us-virginia", "gateway"}
    assert plan["lines"][0]["units"] > 0 and [row["count"] for row in plan["fleet"] if row["how"] == "api"] == [6000]


def test_most_throughput_within_its_supply(spec):
    plan = solved(spec(api={"supply": 12_000}, offers=[], objective={"maximise": "throughput"}))
    assert plan.objective["value"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("changes", "path", "word"),
    [
        ({"api": {"name": "us-ohio"}}, "apis[0].name", "choose another"),
        ({"api": {"region": "atlantis"}}, "apis[0].region", "atlantis"),
        ({"api": {"workloads": ["chatt"]}}, "apis[0].workloads[0]", "known here: chat"),
        ({"objective": {"maximise": "throughput"}}, "apis[0].supply", "state how many"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(spec, changes, path, word):
    with pytest.raises(SpecError) as error:
        resolve_document(spec(**changes))
    assert any(problem.path == path and word in problem.message for problem in error.value.problems), str(error.value)


def test_a_price_must_be_stated(spec):
    document = spec()
    del document["apis"][0]["output"]
    with pytest.raises(SpecError, match="output"):
        resolve_document(document)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["costs"].update(api=d["costs"]["api"] * 1.001),
        lambda d: d["cost_lines"][0].update(amount=d["cost_lines"][0]["amount"] * 1.001),
        lambda d: d["routes"][0].update(tokens_per_s=d["routes"][0]["tokens_per_s"] * 1.001),
        lambda d: d["fleet"][0].update(count=d["fleet"][0]["count"] - 1),
        lambda d: d["workloads"][0]["points"][0]["latency_s"].update({"ttft.p95": 0.4}),
        lambda d: d["workloads"][0]["points"][0]["pools"][0].update(systems_per_replica=100.0),
        lambda d: d["workloads"][0]["points"][0]["pools"][0].update(precision="fp4"),
        lambda d: d["workloads"][0].update(cost=0.0),
    ],
)
def test_what_is_bent_is_found(cheap, change):
    document = copy.deepcopy(dict(cheap.document))
    change(document)
    assert verify_plan(Plan(document))
