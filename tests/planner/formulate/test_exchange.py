"""What points with pools at two sites draw at both, what they take of a line and what they pay for it, against figures by hand."""

from __future__ import annotations

import numpy as np
import pytest

from planner.candidates.search import find_candidates
from planner.formulate.costs import slot_rates
from planner.formulate.exchange import drawn_w, exchange_data, exchange_terms, own_last
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec
from tests.plans import test_rollout_across_sites as rollout
from tests.plans.test_across_sites import CACHE, PROMPT, spec

PROBLEM = resolve(parse_spec(spec(("lines[0].price_per_byte", "0.001 USD/GB"))))
POINTS = [point for pool in find_candidates(PROBLEM).pools for point in pool.points]
SITES = {"us-virginia": 0, "us-texas": 1}


def test_each_site_has_the_power_of_its_own_pool() -> None:
    data = exchange_data(POINTS, SITES)
    assert data is not None
    for e, p in enumerate(data.point.tolist()):
        point = POINTS[p]
        prefill, decode = point.uses
        assert drawn_w(point, decode.option.site.region) == pytest.approx(decode.extra_it_w * decode.option.pue)
        assert data.power_w[e] == pytest.approx(prefill.extra_it_w * prefill.option.pue)
        assert data.site[e] == SITES[prefill.option.site.region]


def test_a_cache_counts_for_more_than_its_bytes_on_the_line() -> None:
    data = exchange_data(POINTS, SITES)
    assert data is not None
    for (p, channel), rate in zip(data.uses.tolist(), data.uses_rate.tolist(), strict=True):
        from_texas = POINTS[p].uses[0].option.site.region == "us-texas"
        with_cache = (channel == 0) == from_texas
        size = CACHE / 0.7 if with_cache else PROMPT * 4
        assert rate == pytest.approx(POINTS[p].capacity * size)


def test_caches_and_prompts_pay_for_their_bytes() -> None:
    (term,) = exchange_terms(POINTS, slot_rates(PROBLEM))
    price = term.per_unit / np.array([POINTS[p].capacity for p in term.at.tolist()])
    assert len(price) == sum(point.exchange is not None for point in POINTS)
    assert price == pytest.approx(np.full(len(price), (CACHE + PROMPT * 4) * 1e-12))


def test_without_such_points_there_is_nothing_to_add() -> None:
    single = [point for point in POINTS if point.exchange is None]
    assert exchange_data(single, SITES) is None and not len(exchange_terms(single, slot_rates(PROBLEM))[0].at)


def test_a_job_reserves_units_each_way_and_pays_for_weights_and_rollouts() -> None:
    """Its own site is that of the update, which keeps the state of training."""
    problem = resolve(parse_spec(rollout.spec(("lines[0].price_per_byte", "0.001 USD/GB"))))
    points = [point for point in find_candidates(problem).training["policy"] if point.exchange is not None]
    data, (term,) = exchange_data(points, SITES), exchange_terms(points, slot_rates(problem))
    assert data is not None and len(points) > 2
    for p, point in enumerate(points):
        update, _ = point.uses
        assert point.site == update.option.site.region == own_last(point)[-1].option.site.region
        rates = data.uses_rate[data.uses[:, 0] == p]
        assert rates[0] == rates[1] and rates[0] / rollout.UNIT in (1, 2, 4, 8)
        assert point.iteration is not None
        each = (rollout.WEIGHTS + rollout.ROLLOUTS) / point.iteration["iteration_s"]
        assert term.per_unit[p] == pytest.approx(each * 1e-12)
