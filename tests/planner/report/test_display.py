"""Currency and units of a reader: what is converted, and that nothing stored changes."""

import copy
import json
import re

import pytest

from planner.dashboard import answers, headline, sources, units
from planner.dashboard.figures import amount, worth
from planner.dashboard.sources import Rate
from planner.report.charts import costs, hours
from planner.report.locale import Words
from planner.report.locale.display import Display

PLAN = sources.stored_plan()
RATES = {"USD": Rate(1.0), "CNY": Rate(7.0, "2024")}
CHOSEN = {"currency": "CNY", "power": "kW", "energy": "GJ", "time": "ms", "carbon": "t", "tokens": "1B"}
YUAN = Words("en", units.display(CHOSEN, RATES))
PLAIN = Words()
TABLES = (
    *("fleet_table", "workload_table", "point_table", "slo_table", "cost_table", "limit_table"),
    *("network_table", "runner_up_table", "assumption_table", "provenance_table", "dropped_table"),
)
BAD = re.compile(r"\d[eE][+-]\d|\bNaN\b|(?<![\w.,])-0(?![\d.,])|\b0\.0\d+ MW|\b1 (systems|chips|requests|racks)\b")


def test_amounts_are_converted_and_say_so():
    assert amount(8.138e5, "USD", PLAIN) == "813.8k USD" and amount(8.138e5, "USD", YUAN) == "5.697M CNY"
    assert amount(1e-8, "USD/J", YUAN) == "0.252 CNY/kWh" and amount(3.0, "EUR", YUAN) == "3 EUR"  # without a rate
    assert amount(32380.0, "W", PLAIN) == amount(32380.0, "W", YUAN).replace("kW", "kW") == "32.38 kW"
    assert amount(3.6e9, "J", PLAIN) == "1 MWh" and amount(3.6e9, "J", YUAN) == "3.6 GJ"
    assert amount(0.5, "s", YUAN) == "500 ms" and amount(30 * 86400.0, "s", YUAN) == "30 d"
    row = {"unit": "W", "marginal_unit": "USD/W"}
    assert worth(-5.4, row, PLAIN) == "-5,400 USD/kW" and worth(-5.4, row, YUAN) == "-37,800 CNY/kW"


def test_the_figures_of_a_plan_follow_the_choice_and_the_plan_stays():
    before = copy.deepcopy(PLAN.document)
    cost = {row["Component"]: row for row in answers.cost_table(PLAN, YUAN)}
    assert sum(row["Amount (CNY)"] for row in cost.values()) == pytest.approx(7.0 * PLAN["totals"]["cost"])
    price = next(metric for metric in headline.workload_metrics(PLAN, YUAN) if metric.label == "chat, CNY/B tokens")
    assert float(price.value.replace(",", "")) == pytest.approx(
        7e3 * PLAN["workloads"][0]["cost_per_million_tokens"], rel=1e-3
    )
    assert headline.plan_metrics(PLAN, YUAN)[2].value.endswith(" kW")
    bars = costs.cost_chart(PLAN, YUAN).to_dict()
    assert "(CNY)" in json.dumps(bars["layer"][0]["encoding"]["x"]["title"])
    assert max(row["end"] for rows in bars["datasets"].values() for row in rows) == pytest.approx(
        7.0 * PLAN["totals"]["cost"]
    )
    site = hours.sites_with_load(PLAN, 0)[0]
    assert hours.load_chart(PLAN, site, 0, YUAN).to_dict()["encoding"]["y"]["title"] == "Load (kW)"
    assert "CNY/MWh" in hours.price_chart(PLAN, site, 0, YUAN).to_dict()["encoding"]["y"]["title"]
    assert PLAN.document == before


@pytest.mark.parametrize("t", [PLAIN, YUAN, Words("zh", YUAN.display)])
def test_no_figure_has_an_exponent_or_a_plural_of_one(t):
    tables = [getattr(answers, name)(PLAN, t) for name in TABLES]
    said = [str(value) for table in tables for row in table for value in row.values() if isinstance(value, str)]
    said += [
        metric.value + metric.help for metric in headline.plan_metrics(PLAN, t) + headline.workload_metrics(PLAN, t)
    ]
    said += [headline.in_short(PLAN, t), headline.verdict(PLAN, t)[1], headline.energy_line(PLAN, t)]
    assert len(said) > 100 and not [text for text in said if BAD.search(text)]


def test_choices_travel_in_the_address_and_wrong_ones_do_not_count():
    query = {"currency": ["CNY"], "power": ["kW"], "energy": ["cats"], "id": ["x"], "tokens": []}
    choices = units.from_address(query)
    assert choices == {"currency": "CNY", "power": "kW", "energy": "cats"}
    assert units.to_address({"currency": "CNY", "power": ""}) == {"currency": ["CNY"]}
    found = units.display(choices, RATES)
    assert found.currency == "CNY" and found.units == (("power", "kW"),) and found.tokens == "1M"
    assert units.display({}, RATES) == Display(rates=(("USD", 1.0), ("CNY", 7.0)))


def test_rates_of_the_spec_come_before_those_of_the_catalog():
    known = sources.rates({})
    assert known["CNY"].date == "2026-10-09" and 6 < known["CNY"].per_usd < 8 and known["USD"] == Rate(1.0)
    stated = sources.rates(
        {"exchange": {"CNY": {"per_usd": 7.5}, "ABC": {"per_usd": "2"}, "XYZ": 3, "DEF": {"per_usd": "x"}}}
    )
    assert stated["CNY"] == Rate(7.5) and stated["ABC"] == Rate(2.0) and not {"XYZ", "DEF"} & set(stated)
