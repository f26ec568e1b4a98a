"""Six ratios of a plan from a few stated rows, each derived by hand; ranges, reasons and contradictions; the sentence and the table that say them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import planner
from catalog.lookup import shipped_catalog
from planner.facts import ratios as published
from planner.plan import Plan
from planner.report.page import one_page
from planner.report.report import render
from planner.report.why.ratios import _nameplate_w, ratio_rows

PARAMETERS, NAMEPLATES = {"net": 10e9, "little net": 1e9}, {"node": 1300.0, "card": 300.0}
DAY_S, WEEK_S = 86400.0, 7 * 86400.0


def pool(role: str, workers: int, tp: int, dp: int = 1) -> dict[str, Any]:
    return {"role": role, "system": "node", "workers": workers, "layout": {"tp": tp, "pp": 1, "dp": dp, "ep": tp * dp}}


DOCUMENT = {
    "objective": {"value": 1.0, "sense": "min", "unit": "USD"},
    "totals": {"chips": 48, "peak_power_w": 60_000.0},
    "fleet": [{"site": "here", "system": "node", "count": 6, "how": "buy", "offer": "offers[0]"}],
    "workloads": [
        {
            "name": "chat", "kind": "serving", "cost_per_million_tokens": 0.5, "utilisation": 0.6, "slo": [{"metric": "tpot", "limit_s": 0.05}],
            "points": [{"id": "chat/0", "pool": "chat/near", "pools": [pool("prefill", 4, 1), pool("decode", 1, 4, 2)]}],
        },
        {"name": "tune", "kind": "training", "points": [{"id": "tune/0", "pool": None, "pools": [pool("train", 1, 8, 2)]}], "slo": []},
    ],
    "schedule": [
        {"site": "here", "slot": 0, "seconds": DAY_S, "active": {"chat/0": 1.0, "tune/0": 1.0}},
        {"site": "here", "slot": 1, "seconds": DAY_S, "active": {"chat/0": 3.0}},
    ],
    "routes": [
        {"slot": 0, "workload": "chat", "pool": "chat/near", "tokens_per_s": 12_000.0},
        {"slot": 1, "workload": "chat", "pool": "chat/near", "tokens_per_s": 36_000.0},
    ],
    "deployments": [{"point": "chat/0", "loads": 20.0, "pools": [{"workers": 8}, {"workers": 2}]}],
    "spec": {
        "workloads": [{"name": "chat", "architecture": "net", "lengths": {"input": 1000, "output": 200}}, {"name": "tune", "architecture": "net"}],
        "sites": [{"region": "here"}], "offers": [{"system": "node", "how": "buy", "available_from": "10 weeks"}],
    },
}  # fmt: skip


def rows_of(change: Any = None, per_usd: float | None = 1.0) -> dict[str, dict[str, Any]]:
    """Return the rows of the plan after a change, by the code of their ratio."""
    document = copy.deepcopy(DOCUMENT)
    if change is not None:
        change(document)
    rows = ratio_rows(Plan(document), PARAMETERS, per_usd, NAMEPLATES)
    return {row["code"]: row for row in rows}


def test_each_ratio_is_that_of_the_rows():
    found = rows_of()
    assert list(found) == ["rate", "power", "cost", "busy", "loads", "lead"]
    # A replica has 4 + 8 chips; it works (1 + 3) days in two, and serves (12,000 + 36,000) tokens/s-days.
    assert found["rate"]["value"] == pytest.approx(48_000 / (12 * 4))
    assert found["power"]["value"] == pytest.approx(60_000 / 48)
    assert found["cost"]["value"] == pytest.approx(0.5e-6)
    assert found["busy"]["value"] == pytest.approx((12 * 4 + 16) / (48 * 2))
    assert found["loads"]["value"] == pytest.approx(20 / 10 / 2)
    assert found["lead"]["value"] == pytest.approx(10 * WEEK_S)
    assert {row["verdict"] for row in found.values()} == {"within"}
    assert (found["rate"]["least"], found["rate"]["most"]) == pytest.approx(
        (510.0, 76_000.0)
    )  # of 10 billion parameters


def set_at(*path: Any, value: Any) -> Any:
    def change(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


CASES = [
    ("rate", set_at("routes", 1, "tokens_per_s", value=4e6), "ratio.contradiction"),
    ("rate", set_at("routes", 1, "tokens_per_s", value=1.0), "ratio.contradiction"),
    ("power", set_at("totals", "peak_power_w", value=48 * 700.0), "ratio.below_nameplate"),
    ("power", set_at("totals", "peak_power_w", value=48 * 3000.0), "ratio.contradiction"),
    ("cost", set_at("workloads", 0, "cost_per_million_tokens", value=80.0), "ratio.contradiction"),
    ("cost", set_at("workloads", 0, "cost_per_million_tokens", value=0.01), "ratio.contradiction"),
    ("busy", set_at("totals", "chips", value=50 * 48), "ratio.contradiction"),
    ("busy", set_at("totals", "chips", value=66), "ratio.uneven"),  # 36 of 66 chips in the busiest slot
    ("busy", set_at("totals", "chips", value=34), "ratio.jobs_fill"),
    ("loads", set_at("deployments", 0, "loads", value=50.0), "ratio.contradiction"),
    ("lead", set_at("spec", "offers", 0, value={}), "ratio.no_lead"),
    ("lead", set_at("spec", "offers", 0, "available_from", value="6 weeks"), "ratio.lead_stated"),
]


@pytest.mark.parametrize(("ratio", "change", "reason"), CASES)
def test_outside_the_range_a_reason_is_told_or_it_is_a_contradiction(ratio, change, reason):
    row = rows_of(change)[ratio]
    assert row["reason"].message.code == reason
    assert row["verdict"] == ("contradiction" if reason == "ratio.contradiction" else "explained")


def test_reasons_that_need_two_changes():
    def long_prompts(document):
        document["routes"][1]["tokens_per_s"] = 1.0
        document["spec"]["workloads"][0]["lengths"] = {"input": 9000, "output": 100}

    def small_chips(document):
        document["routes"][1]["tokens_per_s"] = 1.0
        for row in document["workloads"][0]["points"][0]["pools"]:
            row["system"] = "card"

    def tight(document):
        document["routes"][1]["tokens_per_s"] = 1.0
        document["workloads"][0]["slo"][0]["limit_s"] = 0.01

    def little(document):
        document["workloads"][0]["cost_per_million_tokens"] = 0.01
        document["spec"]["workloads"][0]["architecture"] = "little net"

    def idle(document):
        document["workloads"][0] |= {"cost_per_million_tokens": 80.0, "utilisation": 0.01}

    def relays(document):
        document["deployments"][0]["loads"] = 90.0
        document["spec"]["operation"] = {"relays_per_day": 5}

    def alone(document):
        document["totals"]["chips"], document["fleet"][0]["count"] = 48 * 40, 1

    def even(document):
        document["totals"]["chips"] = 36
        document["schedule"][0]["active"] = {"chat/0": 3.0}
        document["routes"][0]["tokens_per_s"] = 36_000.0
        del document["workloads"][1]

    wanted = {
        long_prompts: ("rate", "long_prompts"), small_chips: ("rate", "small_chips"), tight: ("rate", "tight"), little: ("cost", "small_model"), idle: ("cost", "idle_chips"),
        relays: ("loads", "relays_stated"), alone: ("busy", "one_system"), even: ("busy", "even"),
    }  # fmt: skip
    for change, (ratio, code) in wanted.items():
        assert rows_of(change)[ratio]["reason"].message.code == f"ratio.{code}", code


def test_prices_are_compared_in_the_currency_of_the_plan_and_not_without_a_rate():
    assert rows_of(per_usd=7.0)["cost"]["most"] == pytest.approx(7 * 75e-6)
    assert rows_of(per_usd=None)["cost"]["verdict"] == "unknown"
    assert rows_of(set_at("spec", "workloads", 0, "architecture", value="own"))["rate"]["verdict"] == "unknown"


def test_tokens_of_an_api_are_not_of_the_chips():
    def api(document):
        document["workloads"][0]["points"].append(
            {"id": "chat/1", "pool": "chat/api", "pools": [{"role": "api", "layout": {}, "workers": 1}]}
        )
        document["schedule"][0]["active"]["chat/1"] = 7.0
        document["routes"].append({"slot": 0, "workload": "chat", "pool": "chat/api", "tokens_per_s": 1e9})

    assert (
        rows_of(api)["rate"]["value"] == rows_of()["rate"]["value"]
        and rows_of(api)["busy"]["value"] == rows_of()["busy"]["value"]
    )


def test_no_answer_has_no_ratios():
    assert rows_of(set_at("objective", "value", value=None)) == {}


def test_the_nameplate_of_a_system_or_of_its_chips():
    """A DGX H100 states 10.2 kW for 8 chips; of an Atlas 800T A2 the chip alone is known, with the share of a server that a DGX H100 has."""
    catalog = shipped_catalog()
    assert _nameplate_w(catalog, "DGX H100") == pytest.approx(10_200 / 8)
    chip = catalog.get("chips", catalog.get("systems", "Atlas 800T A2").words("chip")).value("tdp_w")
    assert _nameplate_w(catalog, "Atlas 800T A2") == pytest.approx(chip * 10_200 / 8 / 700)
    assert _nameplate_w(catalog, "no such system") is None


def test_a_system_bought_with_tiers_of_kv_cache_has_the_nameplate_of_the_system(small_plan):
    """At 500 W a chip, below the published range, the nameplate explains the power; it would not where the system were unknown."""
    system = {row["system"]: f"{row['system']} + dram 1 TB" for row in small_plan.document["fleet"]}
    fleet = [{**row, "system": system[row["system"]]} for row in small_plan.document["fleet"]]
    totals = {**small_plan.totals, "peak_power_w": 500.0 * small_plan.totals["chips"]}

    def power(document):
        return next(row for row in planner.ratios(Plan({**document, "totals": totals})) if row["code"] == "power")

    tiered = power({**small_plan.document, "fleet": fleet})
    assert tiered["verdict"] == "explained" and tiered["reason"] == power(small_plan.document)["reason"]


def test_every_range_has_a_source_and_a_width():
    for known in (published.WORK, published.POWER, published.COST, published.BUSY, published.LOADS, published.LEAD):
        assert known.least < known.most and known.source


def test_the_report_has_the_table_and_the_page_names_contradictions(small_plan):
    text = render(small_plan, "table")
    assert "Plausibility: six ratios" in text and "within" in text and "Plausibility" in render(small_plan, "md")
    assert "合理性" in render(small_plan, "md", "zh")
    rows = planner.ratios(small_plan)
    assert all(row["verdict"] != "contradiction" for row in rows) and "Outside published figures" not in one_page(
        small_plan
    )
    hot = Plan({**small_plan.document, "totals": {**small_plan.totals, "peak_power_w": 1e9}})
    assert "Outside published figures without a reason in the plan: power per chip" in one_page(hot)
