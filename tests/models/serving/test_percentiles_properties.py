"""Order of latency percentiles, whatever the spread of lengths: all positive, none below a lower one, no end before its first token."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.queueing.cumulants import Cumulants, gamma_cumulants, mixture_quantile_s, mixture_share
from models.serving import examples
from models.serving.continuous_batching import ServingPoint, aggregated
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import TransferLink, WorkerPool, disaggregated
from models.serving.percentiles import METRICS, latency_s, output_token_mixture, share_within, within_slo
from models.serving.workload import Lengths
from tests.conftest import few_of

QUANTILES = (0.5, 0.9, 0.95, 0.99)
MANY = settings(max_examples=few_of(300), deadline=None)
ROUNDING = 1e-6  # share of a quantile that is found by iteration

cvs = st.one_of(st.sampled_from([0.0, 0.2, 1.0, 2.0, 3.0, 10.0]), st.floats(0.0, 10.0))
architectures = st.sampled_from([examples.DENSE, examples.MOE])
batches = st.floats(1.0, 800.0)
lengths = st.builds(
    lambda prompt, output, input_cv, output_cv: Lengths(prompt, output, input_cv**2, output_cv**2),
    st.integers(1, 40_000), st.integers(2, 20_000), cvs, cvs,
)  # fmt: skip
layouts = st.builds(lambda tp, dp: ServingLayouts(tp, 1, dp, 1), st.sampled_from([1, 2, 8]), st.sampled_from([1, 2, 4]))


def assert_in_order(point: ServingPoint) -> None:
    found = {metric: [float(latency_s(point, metric, quantile)) for quantile in QUANTILES] for metric in METRICS}
    for metric, values in found.items():
        assert all(value > 0 for value in values), f"{metric}: {values}"
        assert all(low <= high * (1 + ROUNDING) for low, high in pairwise(values)), f"{metric}: {values}"
        for quantile, value in zip(QUANTILES, values, strict=True):
            if np.isfinite(value):
                assert share_within(point, metric, value * (1 + ROUNDING)) >= quantile * (1 - ROUNDING)
    for first, end in zip(found["ttft"], found["e2e"], strict=True):
        assert first <= end * (1 + ROUNDING), found


@MANY
@given(architectures, layouts, batches, lengths, st.sampled_from([1.0, 3.0]))
def test_percentiles_of_one_pool_are_in_order(arch, layout, batch, lengths, arrival_scv):
    point = aggregated(
        arch, examples.CHIP, layout, batch,
        lengths=lengths, precisions=examples.BF16, constants=examples.SERVING, arrival_scv=arrival_scv,
    )  # fmt: skip
    assert_in_order(point)


@MANY
@given(architectures, layouts, batches, lengths, st.integers(1, 4), st.integers(1, 4))
def test_percentiles_of_two_pools_are_in_order(arch, layout, batch, lengths, prefill, decode):
    pools = [WorkerPool(examples.CHIP, layout, count, examples.SERVING) for count in (prefill, decode)]
    found = disaggregated(
        arch, *pools, batch, link=TransferLink(25e9), lengths=lengths, precisions=examples.BF16,
    )  # fmt: skip
    assert_in_order(found.point)


@MANY
@given(architectures, layouts, batches, lengths, st.integers(1, 4))
def test_output_tokens_of_two_pools_are_those_beside_prompts_that_take_no_time(arch, layout, batch, lengths, prefill):
    pools = [WorkerPool(examples.CHIP, layout, count, examples.SERVING) for count in (prefill, np.array([1, 3]))]
    point = disaggregated(
        arch, *pools, batch, link=TransferLink(25e9), lengths=lengths, precisions=examples.BF16,
    ).point  # fmt: skip
    apart, beside = output_token_mixture(point), output_token_mixture(replace(point, tpot_chunk_s=1e-300))
    for name in ("mean", "variance", "third", "least"):
        found, expected = (np.asarray(getattr(time, name)) for _, time in (apart, beside))
        assert np.array_equal(*np.broadcast_arrays(found, expected), equal_nan=True), name


@MANY
@given(batches, lengths, st.sampled_from(METRICS), st.sampled_from(QUANTILES), st.floats(0.3, 3.0))
def test_a_limit_holds_where_the_percentile_is_below_it(batch, lengths, metric, quantile, factor):
    point = aggregated(
        examples.DENSE, examples.CHIP, examples.ONE, batch,
        lengths=lengths, precisions=examples.BF16, constants=examples.SERVING,
    )  # fmt: skip
    value = float(latency_s(point, metric, quantile))
    if np.isfinite(value) and abs(factor - 1.0) > 1e-3:
        expected = factor > 1.0 and bool(point.fits & np.isfinite(point.ttft_s))
        assert bool(within_slo(point, {metric: [(quantile, value * factor)]})) == expected


@MANY
@given(
    st.floats(1e-3, 1e3),
    st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(0.0, 1e3), st.floats(0.0, 1e4)), min_size=1, max_size=3),
)
def test_quantiles_of_positive_times_are_positive(least, parts):
    """Of any mean, deviation and skewness, above a least value that is a share of the mean."""
    mean, relative, skew = np.array(parts).T
    deviation = relative * mean
    time = Cumulants(mean + least, deviation**2, skew * deviation**3, np.full(len(mean), least))
    weights = np.full(len(mean), 1.0 / len(mean))
    values = [float(mixture_quantile_s(quantile, weights, time)) for quantile in QUANTILES]
    assert values[0] >= least * (1 - ROUNDING)
    assert all(low <= high * (1 + ROUNDING) for low, high in pairwise(values))
    for quantile, value in zip(QUANTILES, values, strict=True):
        assert mixture_share(value * (1 + ROUNDING), weights, time) >= quantile * (1 - ROUNDING)


@pytest.mark.parametrize("cv", [2.5, 3.0, 10.0])
def test_wide_gamma_variables_have_their_own_quantiles(cv):
    from scipy import stats

    for quantile in QUANTILES:
        time = gamma_cumulants(np.array([2.0]), cv**2)
        found = float(mixture_quantile_s(quantile, np.ones(1), time))
        assert found == pytest.approx(stats.gamma.ppf(quantile, cv**-2, scale=2.0 * cv**2), rel=1e-6, abs=1e-12)
