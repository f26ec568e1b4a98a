"""Verdicts against a scan of the range, edges against roots derived by hand, and every judge on a claim of its own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.audit.formulas import formula
from planner.audit.quantities import Quantity, parse
from planner.audit.verdicts import Claimed, Free, Verdict, decide

SOURCE = {"title": "t", "publisher": "p"}


def quantity(value: float, low: float | None = None, high: float | None = None) -> Quantity:
    return Quantity(value, value if low is None else low, value if high is None else high, (), f"{value:g}")


def free(start: float, end: float) -> Free:
    return Free("x", start, end, "", 1.0, "x")


@given(st.floats(0.1, 50.0), st.floats(1.0, 40.0), st.floats(41.0, 5000.0), st.sampled_from(["at least", "at most"]))
def test_the_edge_of_a_proportion_is_the_quotient(slope, start, end, sense):
    wanted = slope * (start + end) / 2
    found = decide(
        formula("a * x", {"a": quantity(slope), "x": quantity(start)}),
        Claimed(quantity(wanted), sense, 0.0),
        "",
        free(start, end),
    )
    assert found.verdict is Verdict.HOLDS_WHEN and found.condition is not None
    edge = found.condition.least if sense == "at least" else found.condition.most
    assert edge == pytest.approx(wanted / slope, rel=1e-9)
    assert (found.condition.most if sense == "at least" else found.condition.least) is None


@given(st.floats(0.5, 1.0), st.floats(1.0, 2.0), st.floats(0.1, 0.9))
def test_the_range_of_the_edge_comes_from_the_ranges_of_the_rest(low, high, share):
    wanted = 10 + 80 * share
    found = decide(
        formula("a * x", {"a": quantity(1.0, low, high), "x": quantity(1.0)}),
        Claimed(quantity(wanted), "at least", 0.0),
        "",
        free(0.0, 100.0),
    )
    assert found.condition is not None
    assert found.condition.low == pytest.approx(wanted / high, rel=1e-9)
    assert found.condition.high == pytest.approx(min(wanted / low, 100.0), rel=1e-9)


@given(st.floats(1.0, 9.0), st.floats(0.5, 20.0))
def test_two_sided_claims_hold_between_two_edges(low, more):
    high = low + more
    found = decide(
        formula("x", {"x": quantity(1.0)}),
        Claimed(Quantity((low + high) / 2, low, high, (), ""), "about", 0.0),
        "",
        free(0.0, 40.0),
    )
    assert found.condition is not None
    assert (found.condition.least, found.condition.most) == pytest.approx((low, high), rel=1e-9)


@given(st.floats(0.1, 100.0), st.floats(0.1, 100.0), st.sampled_from(["most", "least"]))
def test_a_bound_decides_by_its_far_end(value, claimed, bound):
    found = decide(
        formula("a", {"a": quantity(value, value / 2, value * 2)}),
        Claimed(quantity(claimed), "about", 0.05),
        bound,
        None,
    )
    beyond = claimed > value * 2 * (1 + 1e-12) if bound == "most" else claimed < value / 2 * (1 - 1e-12)
    assert found.verdict is (Verdict.CANNOT_BE if beyond else Verdict.HOLDS)


def test_nothing_in_the_range_makes_it_impossible_and_everything_makes_it_hold():
    of_x = formula("x", {"x": quantity(1.0)})
    assert decide(of_x, Claimed(quantity(11.0), "at least", 0.0), "", free(1.0, 10.0)).verdict is Verdict.CANNOT_BE
    assert decide(of_x, Claimed(quantity(0.5), "at least", 0.0), "", free(1.0, 10.0)).verdict is Verdict.HOLDS


@given(st.floats(0.1, 100.0), st.floats(0.0, 0.5))
def test_about_allows_the_stated_difference_and_no_more(value, within):
    claimed = Claimed(parse("10 x"), "about", within)
    found = decide(formula("a", {"a": quantity(value)}), claimed, "", None).verdict
    inside = 10 * (1 - within) <= value <= 10 * (1 + within)
    if abs(value - 10 * (1 - within)) > 1e-9 and abs(value - 10 * (1 + within)) > 1e-9:
        assert found is (Verdict.HOLDS if inside else Verdict.CONFLICT)


def judged(**changes):
    stated = {"id": "X", "source": SOURCE, "says": "s", **changes}
    (found,) = planner.audit({"claims": [stated]}).judged
    return found


@pytest.mark.parametrize(
    ("stated", "verdict", "ours"),
    [
        ({"judge": "ratio", "figure": "2 x", "quantities": {"first": "4 GB", "second": "2 GB"}}, "holds", 2.0),
        ({"judge": "ratio", "figure": "3 x", "quantities": {"first": "4 GB", "second": "2 GB"}}, "conflict", 2.0),
        # 1 / (0.5 + 0.5 / 4) = 1.6
        ({"judge": "ablation", "figure": "1.5 x", "quantities": {"share": "50 %", "speedup": "4 x"}}, "holds", 1.6),
        ({"judge": "ablation", "figure": "1.7 x", "quantities": {"share": "50 %", "speedup": "4 x"}}, "cannot be", 1.6),
        (
            {"judge": "ladder", "figure": "5 x", "sense": "at least", "quantities": {"a": "2 x", "b": "3 x"}},
            "holds",
            6.0,
        ),
        (
            {"judge": "ladder", "figure": "7 x", "sense": "at least", "quantities": {"a": "2 x", "b": "3 x"}},
            "cannot be",
            6.0,
        ),
        (
            {
                "judge": "roi",
                "figure": "600 USD/h",
                "quantities": {"chips": "1000 chips", "rent": "3 USD/chip/h", "gain": "20 %"},
            },
            "holds",
            600.0,
        ),
        ({"judge": "attribution"}, "attribution only", None),
        ({"judge": "qualitative"}, "not a matter of arithmetic", None),
        (
            {"judge": "qualitative", "quantities": {"a": "6 GB", "b": "2 s"}, "formula": "a / b"},
            "not a matter of arithmetic",
            3e9,
        ),
    ],
)
def test_each_judge_by_hand(stated, verdict, ours):
    found = judged(**stated)
    assert str(found.finding.verdict) == verdict
    assert found.finding.ours == (None if ours is None else pytest.approx(ours))


def test_the_roofline_takes_the_lower_of_bandwidth_and_peak():
    both = {
        "chips": "8 chips",
        "bandwidth": "3 TB/s/chip",
        "bytes": "100 GB/token",
        "peak": "1000 TFLOP/s/chip",
        "flop": "100 TFLOP/token",
    }
    # 24e12 / 100e9 = 240 by bytes, 8e15 / 1e14 = 80 by FLOPs
    assert judged(judge="roofline", figure="90 tokens/s", quantities=both).finding.ours == pytest.approx(80.0)
    assert str(judged(judge="roofline", figure="90 tokens/s", quantities=both).finding.verdict) == "cannot be"
    alone = {name: both[name] for name in ("chips", "bandwidth", "bytes")}
    assert judged(judge="roofline", figure="90 tokens/s", quantities=alone).finding.ours == pytest.approx(240.0)


@given(st.floats(1.1, 4.0), st.floats(1.1, 4.0), st.floats(0.0, 0.999))
def test_a_ladder_needs_the_same_share_of_every_range(first, second, share):
    wanted = 2 * 3 * (first * second) ** share
    found = judged(
        judge="ladder",
        figure=wanted,
        sense="at least",
        quantities={"a": f"2..{2 * first!r} x", "b": f"3..{3 * second!r} x"},
    )
    if found.finding.verdict is Verdict.HOLDS_WHEN:
        assert found.finding.condition.least == pytest.approx(share, abs=1e-6)
    else:  # the middles of the ranges reach it already
        assert 2 * (1 + first) / 2 * 3 * (1 + second) / 2 >= wanted * (1 - 1e-9)


def test_rents_are_set_beside_the_market_and_chips_count_each(tmp_path):
    offers = [
        {
            "name": f"own {name}",
            "text": {"system": "DGX H100", "how": "on_demand", "provider": name},
            "figures": {"price": {"value": price, "note": "own"}},
        }
        for name, price in (("one", "800 USD/h"), ("two", "1600 USD/h"))
    ]
    (tmp_path / "own.json").write_text(json.dumps({"offers": offers}), encoding="utf-8")
    stated = {
        "id": "X",
        "source": SOURCE,
        "says": "s",
        "judge": "roi",
        "figure": "1 USD/h",
        "quantities": {"chips": "1 chips", "rent": "2 USD/chip/h", "gain": "10 %", "market": "@market/H100 SXM5 80GB"},
    }
    (found,) = planner.audit({"claims": [stated]}, overlays=[tmp_path]).judged
    assert found.inputs.quantities["market"].high * 3600 == pytest.approx(200.0)  # 1600 USD/h over 8 chips
    assert "times the market's" in found.finding.line


def test_the_usual_value_and_a_crossing_between_points_of_the_grid_are_tried(tmp_path):
    """Ten chips at 100 tokens/s make 1,000 exactly; over nine decades the window of 5 % lies between two points of the grid."""
    claim = {
        "id": "T1", "source": {"title": "t", "publisher": "p"}, "says": "It makes 1,000 tokens a second", "judge": "arithmetic", "figure": "1000 tokens/s",
        "quantities": {"chips": {"value": "10 chips", "source": "s"}, "rate": {"value": "100 tokens/s/chip", "source": "s"}},
        "formula": "chips * rate", "free": {"name": "chips", "from": "1 chips", "to": "1000000000 chips"},
    }  # fmt: skip
    file = tmp_path / "claims.json"
    for value in ("10 chips", "77 chips"):
        claim["quantities"]["chips"]["value"] = value
        file.write_text(json.dumps({"claims": [claim]}), encoding="utf-8")
        (found,) = planner.audit(file).judged
        assert found.finding.verdict == "holds when"
        assert found.finding.condition.least == pytest.approx(
            9.5, rel=0.01
        ) and found.finding.condition.most == pytest.approx(10.5, rel=0.01)
