"""Laws of the time value of money, of fabrics and of carbon, whatever the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import carbon, economics, fabrics, power

rates = st.one_of(st.just(0.0), st.floats(1e-9, 0.5))
years = st.integers(1, 30)
fractions = st.floats(0, 1)
trees = st.sampled_from([d for d in fabrics.DESIGNS if d != "scale-up"])
designs = st.sampled_from(fabrics.DESIGNS)
radixes = st.sampled_from([32, 40, 64, 128])


@given(rates, years)
def test_capital_recovery_repays_exactly(rate, n):
    assert economics.capital_recovery_factor(rate, n) * economics.present_worth_factor(rate, n) == pytest.approx(1.0, rel=1e-12)
    # By hand, year by year: the debt with interest less the payment is nothing after n years.
    debt, payment = 1.0, economics.capital_recovery_factor(rate, n)
    for _ in range(n):
        debt = debt * (1 + rate) - payment
    assert debt == pytest.approx(0.0, abs=1e-9 * (1 + rate) ** n)


@given(rates, years)
def test_present_worth_is_the_sum_of_discounted_payments(rate, n):
    by_hand = sum((1 + rate) ** -k for k in range(1, n + 1))
    assert economics.present_worth_factor(rate, n) == pytest.approx(by_hand, rel=1e-7)  # r = 1e-9 costs the plain power digits
    assert economics.window_present_worth(rate, 0.0, float(n), n) == pytest.approx(by_hand, rel=1e-7)


@given(rates, years, fractions)
def test_annuity_with_residual_is_worth_price_less_discounted_residual(rate, n, residual):
    paid = economics.annuity(1000.0, rate, n, residual) * economics.present_worth_factor(rate, n)
    assert paid == pytest.approx(1000.0 * (1 - residual * economics.discount_factor(rate, n)), rel=1e-9, abs=1e-6)


@given(rates, years, years, fractions)
def test_horizon_share_grows_with_the_horizon_and_falls_with_residual(rate, life, horizon, residual):
    share = economics.horizon_share(rate, life, horizon, residual)
    assert share <= economics.horizon_share(rate, life, horizon + 1, residual) * (1 + 1e-12)
    assert share <= economics.horizon_share(rate, life, horizon, 0.0) * (1 + 1e-12)
    assert economics.horizon_share(rate, life, life, 0.0) == pytest.approx(1.0, rel=1e-12)


@given(rates, st.floats(0, 10), st.floats(0, 10), st.floats(0, 10))
def test_windows_add_up(rate, a, b, c):
    a, b, c = sorted((a, b, c))
    parts = economics.window_present_worth(rate, a, b, 10) + economics.window_present_worth(rate, b, c, 10)
    assert parts == pytest.approx(economics.window_present_worth(rate, a, c, 10), rel=1e-9, abs=1e-12)
    assert economics.window_present_worth(0.0, a, c, 10) == pytest.approx(c - a, abs=1e-9)


@given(trees, st.integers(1, 6000), st.sampled_from([1, 4, 8]), radixes)
def test_fabric_counts_are_enough_and_not_far_above_the_slope(design, systems, ports, radix):
    counts = fabrics.fabric_counts(design, systems, ports, radix)
    if counts.tiers == -1:
        assert systems > fabrics.largest_systems(design, ports, radix)
        return
    if counts.tiers == 0:
        assert systems == 1 and counts.switches == 0
        return
    n = systems * ports
    assert counts.host_links == n
    # Every link end that is not at a host sits in a switch port.
    assert counts.switches * radix >= counts.host_links + 2 * counts.switch_links
    switches, links = fabrics.parts_per_port(design, int(counts.tiers), radix)
    trees_of = ports if design == "rail-optimised" else 1
    whole_leaves = trees_of * radix  # rounding leaves up adds at most one leaf's uplinks per tree and tier
    assert n * switches <= counts.switches * (1 + 1e-9) <= n * switches * (1 + 1e-9) + 6 * trees_of
    assert n * links <= counts.switch_links * (1 + 1e-9) + 1e-9 <= n * links + 2 * whole_leaves + 1e-6


@given(trees, st.integers(1, 3000), st.sampled_from([1, 4, 8]), radixes)
def test_larger_fabrics_need_no_fewer_parts(design, systems, ports, radix):
    if systems >= fabrics.largest_systems(design, ports, radix):
        return
    small, large = (fabrics.fabric_counts(design, s, ports, radix) for s in (systems, systems + 1))
    assert small.tiers <= large.tiers
    assert small.host_links <= large.host_links
    assert small.switch_links <= large.switch_links


@given(st.integers(2, 6000), st.sampled_from([1, 4, 8]), radixes)
def test_taper_saves_and_rails_reach_further(systems, ports, radix):
    full, tapered = (fabrics.fabric_counts(d, systems, ports, radix) for d in ("fat-tree-1:1", "fat-tree-2:1"))
    if full.tiers == tapered.tiers and full.tiers > 1 and systems * ports > 8 * radix:
        assert tapered.switches <= full.switches and tapered.switch_links < full.switch_links
    for tiers in (1, 2, 3):
        rails = fabrics.largest_systems("rail-optimised", ports, radix, tiers)
        assert rails >= fabrics.largest_systems("fat-tree-1:1", ports, radix, tiers)


@given(designs, st.floats(1e9, 1e11), st.integers(1, 4000), st.floats(1, 4))
def test_bandwidth_across_leaves(design, rate, group, factor):
    here = fabrics.scaleout_bytes_per_s(design, rate, group, 8, 64)
    assert 0 <= here <= rate
    assert fabrics.scaleout_bytes_per_s(design, rate, group + 1, 8, 64) <= here
    assert fabrics.scaleout_bytes_per_s(design, rate * factor, group, 8, 64) >= here
    assert fabrics.scaleout_bytes_per_s(design, rate, 1, 8, 64) == rate


@given(st.floats(1, 1e9), st.floats(1, 1e9), st.floats(0, 1e-6), st.floats(1, 3))
def test_carbon_and_energy_scale(energy, tokens, intensity, pue):
    power_w = power.facility_power_w(energy, pue)
    assert power_w >= energy
    per_token = carbon.carbon_per_token_kg(power_w, intensity, tokens)
    assert per_token == pytest.approx(power.energy_per_token_j(power_w, tokens) * intensity, rel=1e-12)
    halves = carbon.embodied_carbon_kg(energy, 1.0, 2.0) + carbon.embodied_carbon_kg(energy, 1.0, 2.0)
    assert halves == pytest.approx(energy, rel=1e-12)


@given(st.lists(rates, min_size=2, max_size=5), st.lists(st.integers(1, 4000), min_size=2, max_size=5))
def test_one_number_and_many_take_the_same_path(many_rates, many_systems):
    r, s = np.array(many_rates), np.array(many_systems)
    of_rate = (
        lambda x: economics.discount_factor(x, 3), lambda x: economics.present_worth_factor(x, 3),
        lambda x: economics.capital_recovery_factor(x, 3), lambda x: economics.annuity(10.0, x, 3, 0.2),
        lambda x: economics.horizon_share(x, 5, 3, 0.1), lambda x: economics.window_present_worth(x, 0.25, 2.5, 3),
        lambda x: economics.cost_per_million_tokens(x, 5.0), lambda x: carbon.operational_carbon_kg(x, 0.1),
        lambda x: carbon.carbon_per_token_kg(x, 0.1, 2.0), lambda x: carbon.embodied_carbon_kg(x, 1.0, 2.0),
        lambda x: power.system_power_w(10.0, 20.0, x), lambda x: power.energy_per_token_j(x, 3.0),
    )  # fmt: skip
    of_systems = [
        f
        for design in fabrics.DESIGNS
        for f in (
            lambda x, d=design: fabrics.tiers_needed(d, x, 8, 64), lambda x, d=design: fabrics.fabric_counts(d, x, 8, 64).switches,
            lambda x, d=design: fabrics.fabric_counts(d, x, 8, 64).switch_links,
            lambda x, d=design: fabrics.fabric_counts(d, x, 8, 64).host_links,
            lambda x, d=design: fabrics.fabric_price(fabrics.fabric_counts(d, x, 8, 64), 5.0, 2.0, 1.0),
            lambda x, d=design: fabrics.fabric_power_w(fabrics.fabric_counts(d, x, 8, 64), 5.0, 2.0),
            lambda x, d=design: fabrics.scaleout_bytes_per_s(d, 1e9, x, 8, 64), lambda x, d=design: fabrics.largest_systems(d, x, 64),
        )
    ] + [fabrics.switch_hops]  # fmt: skip
    for function, array in [(f, r) for f in of_rate] + [(f, s) for f in of_systems]:
        whole = function(array)
        for i, number in enumerate(array.tolist()):
            alone = function(number)
            assert np.ndim(alone) == 0 and alone == pytest.approx(whole[i], rel=1e-12)
