"""Blocks of a spec about the lengths of requests: by mean and variation, by quantiles, or by a joint histogram of prompts and answers.

However they are stated, `input`, `output` and their variations are known after parsing; `Lengths.between` gives the moments of the
requests whose prompts lie within an interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from models.arrays import sum_of
from models.statistics.truncation import lognormal_moment, tabulated_moment
from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import WHOLE, Real

MOST_VARIATION = (
    3.0  # up to which the percentiles follow the simulation of tests/models/serving/test_percentiles_simulation.py
)
SAME, ROUNDED = 0.01, 1.0
"""Share, and tokens, by which a stated mean may differ from that of the quantiles beside it; a variation by the share of one."""
LEAST_INPUT, LEAST_OUTPUT = 1, 2
SIDES = ("input", "output")
LEAST = {"input": LEAST_INPUT, "output": LEAST_OUTPUT}


def _as_varied_as_predicted(variation: float) -> float:
    if variation > MOST_VARIATION:
        raise ValueError(Message.of("spec.variation_too_large", most=f"{MOST_VARIATION:g}").text())
    return variation


Variation = Annotated[
    Real, Field(ge=0, json_schema_extra={"maximum": MOST_VARIATION}), AfterValidator(_as_varied_as_predicted)
]
PromptTokens = Annotated[int, Field(ge=LEAST_INPUT, le=10_000_000), WHOLE]


class Quantile(Block):
    """A quantile of lengths: a share of the requests, and the tokens that they have at most."""

    share: Annotated[Real, Field(ge=0, le=1)]
    """Share of the requests; 0 for the shortest, 1 for the longest."""
    tokens: PromptTokens
    """Tokens that they have at most."""


def _rising(quantiles: list[Quantile] | None) -> list[Quantile] | None:
    pairs = [(each.share, each.tokens) for each in quantiles or ()]
    if any(a >= b or x >= y for (a, x), (b, y) in pairwise(pairs)):
        raise ValueError(Message.of("spec.quantiles_must_rise").text())
    if pairs and pairs[-1][0] != 1.0:
        raise ValueError(Message.of("spec.quantiles_need_longest").text())
    return quantiles


Quantiles = Annotated[list[Quantile], Field(min_length=2, max_length=1000), AfterValidator(_rising)]


class LengthBand(Block):
    """Band of a joint histogram: requests with prompts longer than in the band before, and the answers to these prompts."""

    up_to: PromptTokens
    """Longest prompt of the band."""
    share: Annotated[Real, Field(gt=0, le=1)]
    """Its share of the requests; the shares of all bands add up to 1."""
    input: Annotated[Real, Field(ge=LEAST_INPUT)]
    """Mean tokens of its prompts."""
    input_cv: Variation = 0.0
    """Standard deviation of its prompts over their mean."""
    output: Annotated[Real, Field(ge=1)]
    """Mean tokens of the answers to them."""
    output_cv: Variation = 1.0
    """Standard deviation of these answers over their mean."""


def _one_after_another(bands: list[LengthBand] | None) -> list[LengthBand] | None:
    below = 0
    for band in bands or ():
        if not below < band.input <= band.up_to:
            given: dict[str, str | int] = {"mean": f"{band.input:g}", "most": band.up_to, "below": below}
            raise ValueError(Message.of("spec.bands_must_rise", **given).text())
        below = band.up_to
    total = sum_of(band.share for band in bands or ())
    if bands and abs(total - 1.0) > 1e-6:
        raise ValueError(Message.of("spec.shares_sum", total=f"{total:g}").text())
    return bands


Histogram = Annotated[list[LengthBand], Field(min_length=1, max_length=1000), AfterValidator(_one_after_another)]


class Requests(NamedTuple):
    """Some of the requests: their share of all, means [token] and coefficients of variation of prompts and answers."""

    share: float
    input: float
    input_cv: float
    output: float
    output_cv: float


def _not_required(schema: dict[str, Any]) -> None:
    schema.pop("required", None)  # quantiles or a histogram may stand for both


class Lengths(Block):
    """Mean tokens of prompt and answer with their coefficients of variation (0: all requests alike), or quantiles or a joint histogram of them."""

    model_config = ConfigDict(json_schema_extra=_not_required)

    input: PromptTokens
    """Tokens of the prompt; needed unless `input_quantiles` or `histogram` is stated, from which it follows."""
    output: Annotated[int, Field(ge=LEAST_OUTPUT, le=1_000_000), WHOLE]
    """Tokens of the answer; needed unless `output_quantiles` or `histogram` is stated, from which it follows."""
    input_cv: Variation = 1.0
    """Standard deviation of the prompt length over its mean; that of quantiles or histogram where they are stated."""
    output_cv: Variation = 1.0
    """Standard deviation of the answer length over its mean; that of quantiles or histogram where they are stated."""
    input_quantiles: Quantiles | None = None
    """Quantiles of the prompt length, between which its logarithm is linear, in place of `input` and `input_cv`; the last is of share 1. Without one
    of share 0 the shortest prompt is below the first by the ratio of the second to the first."""
    output_quantiles: Quantiles | None = None
    """The same of the answers, in place of `output` and `output_cv`; they are taken to be independent of the prompts."""
    histogram: Histogram | None = None
    """Bands of the prompt length with the answers to each, in place of means and quantiles, such as `init --trace` writes."""

    @model_validator(mode="before")
    @classmethod
    def _with_moments(cls, given: Any) -> Any:
        """Add means and variations that follow from quantiles or a histogram. Raises ValueError for others beside them."""
        if not isinstance(given, Mapping):
            return given
        found = _moments(given)
        if given.get("histogram") is not None and any(given.get(f"{side}_quantiles") for side in SIDES):
            raise ValueError(Message.of("spec.lengths_stated_once").text())
        for key, value in found.items():
            stated = given.get(key)
            most = SAME * max(value, 1.0) if key.endswith("_cv") else max(SAME * value, ROUNDED)
            if isinstance(stated, int | float) and abs(stated - value) > most:
                shown = {"key": key, "given": f"{stated:g}", "found": f"{value:g}"}
                raise ValueError(Message.of("spec.length_beside_quantiles", **shown).text())
            if key.endswith("_cv") and value > MOST_VARIATION:
                raise ValueError(
                    Message.of("spec.quantiles_too_varied", key=key, given=f"{value:.2f}", most=f"{MOST_VARIATION:g}").text()
                )  # fmt: skip
        lists = {"input": ("histogram", "input_quantiles"), "output": ("histogram", "output_quantiles")}
        least = {side: LEAST[side] for side, keys in lists.items() if any(given.get(key) is not None for key in keys)}
        return {**least, **given, **{key: _whole(key, value) for key, value in found.items()}}

    @property
    def edges(self) -> list[int] | None:
        """List the prompt lengths at which a histogram can be cut; None where they may be cut anywhere."""
        return None if self.histogram is None else [band.up_to for band in self.histogram[:-1]]

    def between(self, above: float, most: float) -> Requests:
        """Compute share, means and variations of the requests whose prompts have more than `above` and at most `most` tokens.

        By mean and variation prompts are lognormal; answers are independent of them. A histogram is summed over its bands, which
        are not cut. Units: tokens. Requests of share 0 have no tokens.
        """
        if self.histogram is not None:
            return mixed([_of_band(band) for band in self.histogram if above < band.up_to <= most])
        table = None if self.input_quantiles is None else _table(self.input_quantiles)
        moments = [
            float(_moment(order, most, table, self) - _moment(order, above, table, self)) if above > 0.0
            else float(_moment(order, most, table, self))
            for order in range(3)
        ]  # fmt: skip
        share, mean, cv = _of_moments(moments)
        return Requests(share, mean, cv, float(self.output), self.output_cv)


def mixed(parts: Sequence[Requests]) -> Requests:
    """Compute the requests of several parts together, with their shares added."""
    share = sum_of(part.share for part in parts)
    if share <= 0.0:
        return Requests(0.0, 0.0, 0.0, 0.0, 0.0)
    sides: list[float] = []
    for mean, cv in (("input", "input_cv"), ("output", "output_cv")):
        of_part = [(part.share, getattr(part, mean), getattr(part, cv)) for part in parts]
        first = sum_of(each * m for each, m, _ in of_part)
        second = sum_of(each * m**2 * (1.0 + c**2) for each, m, c in of_part)
        sides += _of_moments([share, first, second])[1:]
    return Requests(share, *sides)


def _of_band(band: LengthBand) -> Requests:
    return Requests(band.share, float(band.input), band.input_cv, float(band.output), band.output_cv)


def _of_moments(moments: Sequence[float]) -> tuple[float, float, float]:
    """Convert moments of order 0 to 2 of a part into its share, mean and coefficient of variation."""
    share, first, second = moments
    if share <= 0.0 or first <= 0.0:
        return 0.0, 0.0, 0.0
    mean = first / share
    return share, mean, math.sqrt(max(second / share / mean**2 - 1.0, 0.0))


def _table(quantiles: Sequence[Quantile]) -> tuple[list[float], list[float]]:
    """List levels and lengths of quantiles from level 0 on."""
    levels, tokens = [each.share for each in quantiles], [float(each.tokens) for each in quantiles]
    if levels[0] > 0.0:
        levels, tokens = [0.0, *levels], [max(tokens[0] ** 2 / tokens[1], min(1.0, tokens[0] / 2)), *tokens]
    return levels, tokens


def _moment(order: int, most: float, table: tuple[list[float], list[float]] | None, lengths: Lengths) -> float:
    if table is not None:
        return float(tabulated_moment(order, most, *table))
    return float(lognormal_moment(order, most, float(lengths.input), lengths.input_cv))


def _moments(given: Mapping[str, Any]) -> dict[str, float]:
    """Compute the means and variations that follow from the quantiles or the histogram of a block as written.; none from malformed ones."""
    found: dict[str, float] = {}
    try:
        if (bands := given.get("histogram")) is not None:
            whole = mixed(
                [_of_band(band) for band in _one_after_another(list(map(LengthBand.model_validate, bands))) or ()]
            )
            found = {key: getattr(whole, key) for side in SIDES for key in (side, f"{side}_cv")}
        for side in SIDES:
            if (rows := given.get(f"{side}_quantiles")) is not None:
                table = _table(_rising(list(map(Quantile.model_validate, rows))) or ())
                _, mean, cv = _of_moments([float(tabulated_moment(order, math.inf, *table)) for order in range(3)])
                found |= {side: mean, f"{side}_cv": cv}
    except (ValueError, TypeError, IndexError):  # reported where the list is parsed
        return {}
    return found


def _whole(key: str, value: float) -> float | int:
    """Round a mean to whole tokens; a variation stays."""
    return max(round(value), LEAST[key]) if key in LEAST else value
