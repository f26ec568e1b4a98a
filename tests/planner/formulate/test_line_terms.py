"""Terms of rented lines against numbers derived by hand: two years without discount, one line ready after the first."""

from __future__ import annotations

import numpy as np
import pytest

from catalog.units import YEAR_S
from planner.formulate.costs import slot_rates
from planner.formulate.lines import line_terms, listed_sends, listed_streams, listed_ways, shares_of_price, stages
from planner.money.components import LINE, SEND, STREAM
from planner.money.terms import coefficients, in_phase
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec

GB, MBIT = 1e9, 1e6 / 8
RENT, BYTE_PRICE = 12 * 10_000.0, 0.02 / GB  # per year, per byte


@pytest.fixture(scope="module")
def problem(tiny):
    spec = tiny(
        horizon={"years": 2, "discount_rate": 0.0},
        phases=[{"name": "one", "start": "0 years"}, {"name": "two", "start": "1 year"}],
        sites=[{"region": "us-virginia", "systems": ["DGX H100"]}, {"region": "us-texas", "systems": ["DGX H100"]}],
        lines=[
            {"kind": "dedicated line", "setup": "1 year", "units": 4, "price": "10000 USD/month", "price_per_byte": "0 USD/GB"},
            {"kind": "SD-WAN", "setup": "0 s", "price_per_byte": "0.02 USD/GB"},
        ],
    )  # fmt: skip
    spec["workloads"][0] |= {
        "traffic": {"telemetry": {"rate": "300 Mbit/s"}}, "weights_from": "us-virginia", "weight_updates_per_year": 12,
    }  # fmt: skip
    return resolve(parse_spec(spec))


@pytest.fixture(scope="module")
def terms(problem):
    return line_terms(problem, slot_rates(problem))


def test_a_unit_of_a_line_is_rented_from_the_time_at_which_it_is_ready(problem, terms):
    lines = problem.lines.lines
    found = coefficients(terms, LINE, (len(lines),))
    years = np.array([1.0 if line.ready_s else 2.0 for line in lines])
    dedicated = np.array([line.kind == "dedicated line" for line in lines])
    assert found[dedicated] == pytest.approx(RENT * years[dedicated])
    assert dedicated.any()
    assert set(years[dedicated]) == {1.0}
    first, second = (coefficients(in_phase(terms, p), LINE, (len(lines),))[dedicated] for p in (0, 1))
    assert not first.any()
    assert second == pytest.approx(RENT)


def test_a_stream_pays_for_its_bytes_in_each_stage(problem, terms):
    when = stages(problem)
    ways, streams = listed_ways(problem, when), listed_streams(problem)
    found = coefficients(terms, STREAM, (len(ways),))
    by_hand = [
        300 * MBIT * YEAR_S * (BYTE_PRICE if way.kind == "SD-WAN" else 0.0)
        for i, _, way in ways
        if streams[i][1] == "telemetry"
    ]
    assert len(when.begins_s) == 2
    assert any(by_hand)
    assert found[[streams[i][1] == "telemetry" for i, _, _ in ways]] == pytest.approx(by_hand)


def test_all_updates_of_weights_pay_for_their_bytes(problem, terms):
    hops, sends = listed_sends(problem, stages(problem))
    found = coefficients(terms, SEND, (len(sends),))
    size = problem.serving[0].weights_bytes
    for y, (_, _, line, _) in enumerate(sends):
        paid = BYTE_PRICE if problem.lines.lines[line].kind == "SD-WAN" else 0.0
        assert found[y] == pytest.approx(12 * size * paid)  # 12 in each stage of a year
    assert hops
    assert found.any()


def test_bytes_are_paid_to_each_line_by_its_price(problem):
    kinds = [line.kind for line in problem.lines.lines]
    paid, free = kinds.index("SD-WAN"), kinds.index("dedicated line")
    assert shares_of_price(problem.lines, [(paid, 0), (free, 1)]) == {paid: 1.0, free: 0.0}
    assert shares_of_price(problem.lines, [(free, 0)]) == {}
