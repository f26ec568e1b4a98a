"""Levels of errors and the bands built on them: simulated errors of known levels, and properties of weights and quantiles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.statistics.intervals import TIERS, Missed, band, bands_by_tier, inside_left_out
from models.statistics.levels import (
    RESIDUAL,
    clipped,
    level_spreads,
    row_weights,
    share_with_error,
    weighted_quantiles,
)

ERRORS = st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=30)
GROUPED = st.lists(st.tuples(st.floats(-3.0, 3.0), st.sampled_from("abcde")), min_size=2, max_size=40)


def simulated(seed: int, source: float, chip: float, residual: float, sources: int = 40, rows: int = 1500):
    """Errors of sources and chips that cross, sources of very different size."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(sources, 0.5))
    of_source, of_chip = rng.choice(sources, rows, p=share), rng.integers(0, 30, rows)
    errors = (
        rng.normal(0, source, sources)[of_source] + rng.normal(0, chip, 30)[of_chip] + rng.normal(0, residual, rows)
    )
    return errors, [str(s) for s in of_source], [str(c) for c in of_chip]


@pytest.mark.parametrize(("source", "chip", "residual"), [(0.3, 0.1, 0.1), (0.05, 0.3, 0.2), (0.0, 0.0, 0.2)])
def test_spreads_of_crossed_levels_are_found_again(source, chip, residual):
    found = np.mean(
        [
            [level_spreads(e, {"source": s, "chip": c})[name] for name in ("source", "chip", RESIDUAL)]
            for e, s, c in (simulated(seed, source, chip, residual) for seed in range(4))
        ],
        axis=0,
    )
    assert found == pytest.approx([source, chip, residual], rel=0.25, abs=0.03)


def test_single_wild_rows_do_not_widen_the_levels():
    errors, source, _ = simulated(1, 0.2, 0.0, 0.1)
    before = level_spreads(errors, {"source": source})
    errors[::200] += 30.0
    after = level_spreads(errors, {"source": source})
    assert after["source"] == pytest.approx(before["source"], rel=0.3) and after[RESIDUAL] < 1.6 * before[RESIDUAL]


def test_bands_hold_for_sources_that_were_not_seen_where_those_of_rows_do_not():
    """Few large sources and many small ones, sources far apart: 80 % of the runs of a fresh source must lie inside."""
    rng, inside, plain = np.random.default_rng(3), [], []
    for seed in range(40):
        errors, source, _ = simulated(seed, 0.3, 0.0, 0.1, sources=30, rows=600)
        fresh = rng.normal(0, 0.3, 500) + rng.normal(0, 0.1, 500)
        for found, votes in ((inside, source), (plain, [str(row) for row in range(len(source))])):
            limits = band(Missed(errors, source, votes))
            found.append(np.mean((fresh >= limits.low) & (fresh <= limits.high)))
    assert 0.76 <= np.mean(inside) <= 0.84
    assert abs(np.mean(inside) - 0.8) < abs(np.mean(plain) - 0.8)


def test_coverage_with_sources_left_out_is_what_the_band_states():
    shares = [
        np.average(inside_left_out(missed), weights=missed.weights)
        for missed in (Missed(e, s) for e, s, _ in (simulated(seed, 0.3, 0.0, 0.1, 25, 400) for seed in range(30)))
    ]
    assert 0.76 <= np.mean(shares) <= 0.84


@given(ERRORS)
def test_equal_weights_are_quantiles_at_rank_n_plus_1(errors):
    found = weighted_quantiles(errors, np.ones(len(errors)), [0.1, 0.5, 0.9])
    assert found == pytest.approx(np.quantile(errors, [0.1, 0.5, 0.9], method="weibull"))


@given(
    st.lists(st.integers(-300, 300), min_size=2, max_size=30, unique=True), st.floats(0.1, 10.0), st.floats(-1.0, 1.0)
)
def test_quantiles_do_not_see_the_scale_of_weights_and_move_with_the_values(hundredths, scale, shift):
    errors = np.array(hundredths) / 100
    weights = 1.0 + np.arange(len(errors)) % 3
    found = weighted_quantiles(errors, weights, [0.2, 0.8])
    assert weighted_quantiles(errors, scale * weights, [0.2, 0.8]) == pytest.approx(found)
    assert weighted_quantiles(np.add(errors, shift), weights, [0.2, 0.8]) == pytest.approx(found + shift)


@given(GROUPED, st.floats(0.0, 1.0))
def test_a_group_never_weighs_less_for_more_rows_nor_a_row_more(rows, shared):
    groups = [group for _, group in rows]
    weights = row_weights(groups, shared)
    grown = row_weights([*groups, groups[0]], shared)
    mine = [i for i, group in enumerate(groups) if group == groups[0]]
    assert np.all((weights > 0.0) & (weights <= 1.0)) and grown[0] <= weights[0]
    assert grown[[*mine, len(groups)]].sum() >= weights[mine].sum() - 1e-12


@given(GROUPED)
def test_wider_coverage_gives_a_wider_band_of_the_errors_seen(rows):
    missed = Missed(np.array([error for error, _ in rows]), [group for _, group in rows])
    narrow, wide = band(missed, 0.5), band(missed, 0.8)
    assert missed.errors.min() <= wide.low <= narrow.low <= narrow.high <= wide.high <= missed.errors.max()


@given(GROUPED)
def test_no_tier_is_narrower_than_a_nearer_one(rows):
    errors, groups = np.array([error for error, _ in rows]), [group for _, group in rows]
    found = bands_by_tier({(tier, "x"): Missed(errors / (1 + i), groups) for i, tier in enumerate(TIERS)})
    for nearer, farther in itertools.pairwise(TIERS):
        assert found[farther, "x"].low <= found[nearer, "x"].low <= found[nearer, "x"].high <= found[farther, "x"].high


@given(ERRORS)
def test_drawing_in_keeps_order_and_median(errors):
    found = clipped(errors)
    assert np.median(found) == pytest.approx(np.median(errors)) and np.all(
        np.abs(found) <= np.abs(errors).max() + 1e-12
    )
    assert np.all(np.diff(found[np.argsort(errors)]) >= -1e-12)


def test_the_error_of_a_share_is_that_of_its_groups():
    """Ten groups that are all in or all out: the error is that of ten draws, however many rows each has."""
    groups, inside = np.repeat(np.arange(10), 50), np.repeat([1, 1, 1, 1, 1, 1, 1, 1, 0, 0], 50)
    share, error = share_with_error(inside, [str(g) for g in groups])
    assert (share, error) == (pytest.approx(0.8), pytest.approx(np.sqrt(0.8 * 0.2 / 9), rel=1e-6))
    assert share_with_error([1, 0], ["a", "a"])[1] == np.inf


def test_a_vote_counts_once_however_many_rows_it_has_and_whatever_was_left_out():
    # Two votes in one source: ninety-nine rows of the one say no more than one row of the other.
    errors = np.array([*[0.0] * 99, 1.0, *np.linspace(-1.0, 1.0, 10)])
    votes = [*["many"] * 99, "one", *map(str, range(10))]
    missed = Missed(errors, ["source"] * 110, votes)
    assert missed.weights[:99].sum() == pytest.approx(missed.weights[99]) == pytest.approx(1.0)
    assert missed.kept(errors > 0.5).votes == ["one", *(str(i) for i in range(10) if errors[100 + i] > 0.5)]
