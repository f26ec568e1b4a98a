"""One figure moved at a time: each answer against the question solved on its own, and what is not solved against what it would be."""

from __future__ import annotations

import copy
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.resolve.resolver import resolve_document
from planner.spec.document import edited, read_document
from planner.studies import sensitivity
from planner.studies.base.planned import solved
from planner.studies.sensitivity import NO_PLAN, NOT_TRIED, SAME, SOLVED
from planner.studies.sensitivity_factors import PRICE, factors_of
from planner.studies.tornado_chart import WIDTH, tornado
from solvers.search.reoptimize import FIRST, IN_PLACE, Reoptimizer

CHAT = {
    "name": "chat", "kind": "serving", "architecture": "Meta-Llama-3.1-8B", "demand": {"requests_per_s": 20_000},
    "lengths": {"input": 1000, "output": 300, "input_cv": 1, "output_cv": 1}, "origins": [{"region": "us-texas", "share": 1.0}],
    "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "kv_precision": ["fp8"], "disaggregation": "never",
}  # fmt: skip
OFFERS = [
    {"system": "DGX B200", "how": "buy", "price": "700000 USD", "supply": 40},
    {"system": "DGX H100", "how": "buy"},
]
GAP = 1e-4
BASE = {
    "name": "moved", "workloads": [CHAT], "sites": [{"region": "us-texas", "power": "1 MW"}, {"region": "us-virginia", "power": "1 MW"}], "offers": OFFERS,
    "limits": {"budget": "14M USD"}, "solver": {"gap": GAP, "time_limit": "30 s", "replicas": "divisible"}, "simplicity": {"within": 0},
}  # fmt: skip


@pytest.fixture(scope="module")
def document():
    return copy.deepcopy(BASE)


@pytest.fixture(scope="module")
def usual(document):
    return planner.sensitivity(document)


def test_each_level_is_what_the_question_with_that_figure_gives(document):
    found = planner.sensitivity(
        document,
        vary=[
            "sites[0].power=-40%:+10%",
            "offers[0].price=500000 USD:800000 USD",
            "workloads[0].demand.requests_per_s=15000:30000",
        ],
    )
    assert next(bar.factor.path for bar in found.bars) == "workloads[0].demand.requests_per_s"
    edits = {
        "sites[0].power": ("600 kW", "1.1 MW"), "offers[0].price": ("500000 USD", "800000 USD"), "workloads[0].demand.requests_per_s": (15000, 30000),
    }  # fmt: skip
    for bar in found.bars:
        values = [found.value]
        for moved, value in zip((bar.low, bar.high), edits[bar.factor.path], strict=True):
            plan = planner.solve(edited(document, ((bar.factor.path, value),)))
            if not plan.has_answer:
                assert moved.status == NO_PLAN and moved.value is None
                continue
            values.append(moved.value)
            assert moved.status == SOLVED and moved.value == pytest.approx(plan.objective["value"], rel=2.5 * GAP)
        assert bar.swing == max(values) - min(values)


def test_what_is_not_solved_is_the_same(document, usual):
    """Every level that was passed over, solved after all."""
    passed = [
        (bar, level, moved)
        for bar in usual.bars
        for level, moved in ((bar.factor.low, bar.low), (bar.factor.high, bar.high))
        if moved.status == SAME
    ]
    assert len(passed) >= 3
    for bar, level, moved in passed:
        assert moved.value == usual.value and not moved.change
        again = planner.solve(edited(document, level.edits))
        assert again.objective["value"] == pytest.approx(usual.value, rel=2.5 * GAP), bar.factor.name


def test_the_usual_figures_are_prices_demand_limits_and_latencies(document, usual):
    paths = {bar.factor.path for bar in usual.bars}
    assert paths == {
        "offers[0].price", "offers/DGX H100/buy", "electricity", "workloads[0].demand.requests_per_s", "sites[0].power", "sites[1].power", "offers[0].supply",
        "limits.budget", "workloads[0].slo.ttft.p95", "workloads[0].slo.tpot.p95",
    }  # fmt: skip
    order = [(not bar.no_plan, -bar.swing) for bar in usual.bars]
    assert order == sorted(order)
    for bar in usual.bars:
        if bar.factor.path in ("electricity", "workloads[0].demand.requests_per_s") and not bar.no_plan:
            assert bar.low.value < usual.value < bar.high.value


def test_the_price_of_the_catalog_goes_from_its_low_to_its_high(document):
    problem = resolve_document(document)
    (factor,) = (f for f in factors_of(document, problem, [], True) if f.path == "offers/DGX H100/buy")
    figure = next(c.figure for c in problem.citations if c.path == "offers/DGX H100, buy/price")
    assert factor.kind == PRICE and figure.low < figure.value < figure.high
    for level, bound in ((factor.low, figure.low), (factor.high, figure.high)):
        moved = resolve_document(edited(document, level.edits))
        assert list(moved.offers[1].prices.values()) == pytest.approx([bound, bound])


def test_electricity_moves_by_a_fifth_at_every_site(document, usual):
    """With the plan's fleet kept, 20 % more for electricity costs 20 % of what electricity costs, and no more than that."""
    (bar,) = (bar for bar in usual.bars if bar.factor.path == "electricity")
    spent = planner.solve(document)["costs"]["energy"]
    for moved, sign in ((bar.low, -1), (bar.high, 1)):
        assert moved.value - usual.value <= sign * 0.2 * spent + 2.5 * GAP * usual.value
    assert bar.swing == pytest.approx(0.4 * spent, abs=5 * GAP * usual.value)


def test_a_level_without_a_plan_is_said_first(document):
    found = planner.sensitivity(document, vary=["limits.budget=1M USD:20M USD", "offers[0].supply=30:50"])
    assert (
        found.bars[0].factor.path == "limits.budget"
        and found.bars[0].low.status == NO_PLAN
        and found.bars[0].high.status == SOLVED
    )
    assert "No plan is left with limits.budget at 1M USD" in " ".join(found.words)
    assert found.document["factors"][0]["low"]["value"] is None


def test_a_wider_limit_never_makes_the_plan_worse(usual):
    for bar in usual.bars:
        if bar.factor.kind == "amount":
            assert bar.high.value <= usual.value


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ("sites[0].power", "expected PATH=LOW:HIGH"),
        ("sites[0].power=2 MW", "expected PATH=LOW:HIGH"),
        ("sites[7].power=1 MW:2 MW", r'there is no "sites\[7\]"'),
        ("limits.carbon=-10%:+10%", "not stated"),
        ("name=-10%:+10%", "is not a number"),
        ("sites[0].pwoer=1 MW:2 MW", "power"),
        ("sites[0].power=2 apples:3 pears", "apples"),
    ],
)
def test_what_cannot_be_read_is_refused(document, vary, message):
    with pytest.raises(SpecError, match=message.replace("+", r"\+")):
        planner.sensitivity(document, vary=[vary])


def test_a_level_that_the_spec_may_not_hold_is_named(document):
    found = planner.sensitivity(document, vary=["sites[0].power=2 apples:900 kW"])
    assert (
        "apples" in found.bars[0].low.words
        and found.bars[0].low.status == "invalid"
        and found.bars[0].high.status == SOLVED
    )


def test_when_the_time_is_up_the_rest_is_not_tried(document):
    found = planner.sensitivity(document, vary=["sites[0].power=0.8 MW:1.2 MW"], total_s=0.0)
    assert {found.bars[0].low.status, found.bars[0].high.status} == {NOT_TRIED}


def test_the_tornado_is_drawn_to_scale(usual):
    root = ET.fromstring(tornado(usual))
    space = "{http://www.w3.org/2000/svg}"
    drawn = [bar for bar in usual.bars if bar.swing or bar.no_plan]
    bars = [rect for rect in root.iter(f"{space}rect") if rect.get("height") == "16"]
    assert len(bars) == sum(moved.value is not None for bar in drawn for moved in (bar.low, bar.high))
    widths = sorted(float(rect.get("width")) for rect in bars)
    sizes = sorted(
        abs(moved.value - usual.value) for bar in drawn for moved in (bar.low, bar.high) if moved.value is not None
    )
    assert widths == pytest.approx([size * widths[-1] / sizes[-1] for size in sizes], abs=0.1)
    assert root.find(f"{space}title").text.startswith("Swing of the objective")


def test_the_command_prints_every_format(tmp_path, capsys):
    path, chart = tmp_path / "spec.json", tmp_path / "tornado.svg"
    path.write_text(json.dumps(BASE))
    arguments = ["sensitivity", str(path), "--vary", "sites[0].power=0.8 MW:1.2 MW", "-q"]
    for form, sign in (("table", "swing"), ("md", "| figure |"), ("csv", "path,name"), ("json", '"factors"')):
        assert main([*arguments, "--format", form, "--chart", str(chart)]) == 0
        assert sign in capsys.readouterr().out
    assert chart.read_text().startswith("<svg") and read_document(path.read_bytes()) == BASE
    assert main([*arguments, "--set", "limits.budget=1 USD"]) == 4


def test_a_wider_limit_or_a_lower_price_leaves_the_plan_as_good_as_it_is(document, usual, monkeypatch):
    """Searches that find worse plans than the one that is known, and prove that there are none as good among their points."""
    answers = []

    def worse(*args, **how):
        answer = solved(*args, **how)
        answers.append(answer)
        shift = 1.0 if len(answers) == 1 or answer.value is None else 1.5
        solution = answer.solution
        return (
            answer
            if shift == 1.0
            else replace(answer, solution=replace(solution, value=shift * solution.value, bound=shift * solution.bound))
        )

    monkeypatch.setattr(sensitivity, "solved", worse)
    found = planner.sensitivity(document)
    sides = [
        (bar.factor, level, moved)
        for bar in found.bars
        for level, moved in ((bar.factor.low, bar.low), (bar.factor.high, bar.high))
        if moved.status == SOLVED
    ]
    kept = [moved for factor, level, moved in sides if factor.kind in sensitivity.MONOTONE and level.wider]
    assert len(kept) >= 5 and all(moved.value == moved.bound == found.value and not moved.change for moved in kept)
    others = [moved for factor, level, moved in sides if not (factor.kind in sensitivity.MONOTONE and level.wider)]
    assert others and all(moved.value > 1.2 * found.value for moved in others)


def test_the_program_is_kept_between_prices(document, monkeypatch):
    how = []

    class Told(Reoptimizer):
        __slots__ = ()

        def solve(self, data, options):
            solution = super().solve(data, options)
            how.append(self.how)
            return solution

    monkeypatch.setattr(sensitivity, "Reoptimizer", Told)
    planner.sensitivity(
        {**document, "solver": {"gap": 0.01}}, vary=["offers[0].price=-1%:+1%", "limits.budget=-1%:+5%"]
    )
    assert how[0] == FIRST and len(how) == 5 and how.count(IN_PLACE) >= 3


def test_the_tornado_leaves_room_for_its_labels(tiny):
    found = planner.sensitivity(tiny(), vary=["workloads[0].demand.requests_per_s=20:40"], defaults=False)
    drawn = tornado(found)
    assert f'viewBox="0 0 {WIDTH} ' in drawn
    ends = [float(x) + float(w) for x, w in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn)]
    assert ends and max(ends) < 1000 < WIDTH, "bars end before the words beside them"


def api_spec(tiny):
    """Serve by an API, which is offered beside a system to buy."""
    api = {
        "name": "x", "region": "us-virginia", "input": "0.05 USD/1M tokens", "output": "0.2 USD/1M tokens",
        "latency": {"ttft": {"p95": "0.5 s"}, "tpot": {"p95": "20 ms"}},
    }  # fmt: skip
    return tiny(apis=[api], solver={"gap": 1e-3, "replicas": "divisible"})


def test_apis_beside_offers_are_moved_as_prices_too(tiny):
    spec = api_spec(tiny)
    spec["offers"] = [{"system": "DGX H100", "how": "buy"}]
    found = factors_of(spec, resolve_document(spec), (), True)
    prices = {factor.path: factor for factor in found if factor.kind == PRICE}
    assert prices.keys() == {"offers/DGX H100/buy", "apis[0]"}
    assert dict(prices["apis[0]"].low.edits) == {
        "apis[0].input": "0.04 USD/1M tokens", "apis[0].output": "0.16 USD/1M tokens",
    }  # fmt: skip


def test_a_price_of_an_api_moves_the_plan_that_uses_it(tiny):
    spec = api_spec(tiny)
    found = planner.sensitivity(spec, vary=["apis[0].output=0.1 USD/1M tokens:0.2 USD/1M tokens"])
    (bar,) = found.bars
    assert found.value is not None and bar.swing > 0.01 * found.value
