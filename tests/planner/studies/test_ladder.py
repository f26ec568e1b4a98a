"""A ladder of costs: every lever is a plan solved again, and the factors multiply."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import pytest

import planner
from planner.cli.main import main
from planner.spec.document import edited
from planner.studies.ladder import ladder

SMALL = json.loads((Path(__file__).parents[2] / "golden" / "small_spec.json").read_text())
SMALL["solver"] |= {"replicas": "divisible"}  # as in the study
SMALL["simplicity"] = {"within": 0}
SMALL["offers"] = [{"system": "DGX H100", "how": "buy", "price": "300000 USD"}]
LEVERS = [
    "half the price: offers[0].price=-50%",
    "cheap power: sites[0].electricity_price=0.01 USD/kWh",
    "longer answers: workloads[0].lengths.output=500",
]


@pytest.fixture(scope="module")
def climbed():
    return ladder(copy.deepcopy(SMALL), LEVERS, workload="chat", target="0.001 USD/1M tokens")


def test_each_rung_is_the_plan_with_all_levers_so_far(climbed):
    spec = edited(SMALL, (("offers[0].price", "150000 USD"), ("sites[0].electricity_price", "0.01 USD/kWh")))
    (chat,) = (row for row in planner.solve(spec)["workloads"] if row["name"] == "chat")
    assert climbed.rungs[2].cost_per_million_tokens == pytest.approx(chat["cost_per_million_tokens"], rel=1e-6)
    assert [rung.lever for rung in climbed.rungs] == ["today", *(text.partition(":")[0] for text in LEVERS)]


def test_factors_multiply_to_the_whole_and_to_the_target(climbed):
    first, last = climbed.rungs[0], climbed.rungs[-1]
    assert math.prod(rung.factor for rung in climbed.rungs[1:]) == pytest.approx(last.from_today)
    assert last.from_today * last.to_target == pytest.approx(first.to_target)
    assert climbed.rungs[1].factor > 1 and climbed.rungs[2].factor > 1


def test_an_impossible_rung_has_no_cost():
    found = ladder(copy.deepcopy(SMALL), ["no room: sites[0].power=1 kW"])
    assert (
        found.rungs[1].status == "infeasible"
        and found.rungs[1].cost_per_million_tokens is None
        and found.status == "infeasible"
    )


@pytest.mark.parametrize(
    ("levers", "more", "place"),
    [
        (["cheap"], {}, "--lever"),
        (["x: offers[0].supply=-10%"], {}, "offers[0].supply"),
        ([], {"workload": "tune"}, "--workload"),
        ([], {"target": "1 EUR/1M tokens"}, "--target"),
    ],
)
def test_what_cannot_be_read_is_named(levers, more, place):
    with pytest.raises(planner.SpecError) as caught:
        ladder(copy.deepcopy(SMALL), levers, **more)
    assert place in str(caught.value)


def test_the_command_prints_every_form(tmp_path, capsys):
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(SMALL))
    assert main(["ladder", str(spec), "--lever", LEVERS[0], "-q", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [rung["lever"] for rung in found["rungs"]] == ["today", "half the price"]
    assert main(["ladder", str(spec), "-q", "--target", "0.01 USD/1M tokens"]) == 0
    assert "target" in capsys.readouterr().out
