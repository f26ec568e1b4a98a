"""Lengths by quantiles and by a joint histogram: means and variations that follow, parts that add up, and what is refused."""

from __future__ import annotations

import copy
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import SpecError
from planner.spec.load.lengths import Lengths, mixed
from planner.spec.model import parse_spec

BANDS = [
    {"up_to": 400, "share": 0.5, "input": 200, "input_cv": 0.5, "output": 100, "output_cv": 1.0},
    {"up_to": 4000, "share": 0.4, "input": 1500, "input_cv": 0.6, "output": 300, "output_cv": 0.5},
    {"up_to": 32000, "share": 0.1, "input": 12000, "input_cv": 0.4, "output": 800, "output_cv": 1.5},
]
SPEC = {
    "name": "lengths",
    "workloads": [
        {
            "name": "chat",
            "kind": "serving",
            "architecture": "Llama-3.1-8B",
            "demand": {"requests_per_s": 10},
            "lengths": {"input": 1000, "output": 200},
            "origins": [{"region": "us-texas", "share": 1}],
        }
    ],
    "sites": [{"region": "us-texas", "systems": ["DGX H100"]}],
}


def with_lengths(lengths):
    document = copy.deepcopy(SPEC)
    document["workloads"][0]["lengths"] = lengths
    return document


def quantiles(*pairs):
    return [{"share": share, "tokens": tokens} for share, tokens in pairs]


def test_a_histogram_states_means_and_variations():
    found = Lengths.model_validate({"histogram": BANDS})
    assert found.input == 0.5 * 200 + 0.4 * 1500 + 0.1 * 12000
    assert found.output == 0.5 * 100 + 0.4 * 300 + 0.1 * 800
    second = 0.5 * 200**2 * 1.25 + 0.4 * 1500**2 * 1.36 + 0.1 * 12000**2 * 1.16
    assert found.input_cv == pytest.approx(math.sqrt(second / 1900**2 - 1))
    assert found.edges == [400, 4000]


def test_quantiles_state_mean_and_variation_of_their_side_alone():
    found = Lengths.model_validate({"input_quantiles": quantiles((0, 1), (1, 100)), "output": 50})
    assert found.input == round(99 / math.log(100)) and (found.output, found.output_cv) == (50, 1.0)
    assert found.input_cv == pytest.approx(
        math.sqrt((100**2 - 1) / (2 * math.log(100)) / (99 / math.log(100)) ** 2 - 1)
    )


def test_without_a_shortest_it_lies_as_far_below_the_first_as_the_second_above():
    short = {"input_quantiles": quantiles((0.5, 1000), (1, 4000)), "output": 50}
    stated = {"input_quantiles": quantiles((0, 250), (0.5, 1000), (1, 4000)), "output": 50}
    assert Lengths.model_validate(short).input == Lengths.model_validate(stated).input


@st.composite
def blocks(draw):
    """Draw lengths in one of the three ways."""
    way = draw(st.sampled_from(("mean", "quantiles", "histogram")))
    if way == "mean":
        return {"input": draw(st.integers(100, 10_000)), "output": 200, "input_cv": draw(st.floats(0.1, 2.0))}
    if way == "quantiles":
        least, ratio = draw(st.integers(10, 1000)), draw(st.floats(1.5, 6.0))
        shares = sorted(draw(st.sets(st.sampled_from((0.2, 0.5, 0.8, 0.95)), min_size=1)))
        steps = [(share, round(least * ratio**i)) for i, share in enumerate((0.0, *shares, 1.0))]
        return {"input_quantiles": quantiles(*steps), "output": 200}
    return {"histogram": BANDS}


@given(block=blocks(), cut=st.floats(50, 20_000))
def test_two_parts_are_together_the_whole(block, cut):
    lengths = Lengths.model_validate(block)
    both = mixed([lengths.between(0, cut), lengths.between(cut, math.inf)])
    assert both.share == pytest.approx(1.0)
    assert both.input == pytest.approx(lengths.input, abs=0.51) and both.output == pytest.approx(
        lengths.output, abs=0.51
    )
    assert both.input_cv == pytest.approx(lengths.input_cv, rel=0.02, abs=1e-6)


def test_parts_of_a_histogram_have_the_answers_of_their_bands():
    short = Lengths.model_validate({"histogram": BANDS}).between(0, 400)
    assert short == (0.5, 200.0, pytest.approx(0.5), 100.0, pytest.approx(1.0))


WRONG = [
    ({"input_quantiles": quantiles((0.5, 100), (0.4, 200), (1, 300)), "output": 10}, "rise"),
    ({"input_quantiles": quantiles((0.5, 100), (0.9, 200)), "output": 10}, "share 1"),
    ({"input_quantiles": quantiles((0.5, 100), (1, 200)), "input": 10_000, "output": 10}, "remove one of the two"),
    ({"histogram": BANDS, "input_quantiles": quantiles((0.5, 100), (1, 200))}, "remove it, or the quantiles"),
    ({"histogram": [{**BANDS[0], "share": 1.0, "input": 500}]}, "got 500"),
    ({"histogram": BANDS[:2]}, "0.9"),
    ({"histogram": [{**BANDS[0], "share": 0.99}, {**BANDS[2], "share": 0.01, "up_to": 10**6, "input": 5e5}]}, "two workloads"),
    ({"output": 10}, "missing"),
    ({"histogram": [{"up_to": 400}]}, "missing"),
]  # fmt: skip


@pytest.mark.parametrize(("lengths", "words"), WRONG)
def test_lengths_that_contradict_themselves_are_refused(lengths, words):
    with pytest.raises(SpecError) as refused:
        parse_spec(with_lengths(lengths))
    assert words in str(refused.value) and "workloads[0].lengths" in str(refused.value)


def test_what_follows_may_stand_beside():
    first = parse_spec(with_lengths({"histogram": BANDS})).workloads[0].lengths
    again = (
        parse_spec(with_lengths({**first.model_dump(), "histogram": BANDS, "input_quantiles": None}))
        .workloads[0]
        .lengths
    )
    assert again == first
