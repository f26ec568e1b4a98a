"""Amounts on axes and in tooltips of charts: written as sentences write them, in each language."""

from __future__ import annotations

import json
import re
from html import unescape

import altair as alt
import pytest

from planner.messages import LANGUAGES
from planner.report.charts.bars import AMOUNT, SHARE, bar_chart
from planner.report.charts.frontier import frontier_chart
from planner.report.charts.style import amount_label, shown
from planner.report.locale import Words

BORDERS = [factor * 10.0**power for power in range(-2, 15) for factor in (1.0, 0.99994, 0.99996, 9.9996, 1.2345678)]
VALUES = [0.0, *BORDERS, *(-value for value in BORDERS[::4])]
LANGUAGE = pytest.mark.parametrize("language", LANGUAGES)


def labels(values: list[float], language: str) -> list[str]:
    """Let Vega draw the labels of an axis at some values, and read them from the drawing."""
    convert = pytest.importorskip("vl_convert")
    axis = alt.Axis(
        values=values, labelExpr=f"'label ' + ({amount_label('datum.value', language)})", labelOverlap=False
    )
    scale = alt.Scale(domain=[min(values), max(values)], nice=False)
    chart = alt.Chart(alt.InlineData(values=[{"v": value} for value in values])).mark_point()
    drawing = convert.vegalite_to_svg(chart.encode(x=alt.X("v:Q", axis=axis, scale=scale)).to_dict())
    return [unescape(text).replace("\u2212", "-") for text in re.findall(r">label ([^<]*)<", drawing)]


@LANGUAGE
def test_vega_writes_the_labels_of_an_axis_as_sentences_write_amounts(language):
    written = {text for value in VALUES for text in labels([value, value + 1.0 + abs(value)], language)}
    assert {shown(value, Words(language)) for value in VALUES} <= written


@LANGUAGE
def test_tooltips_bars_and_descriptions_hold_short_amounts(language):
    t = Words(language)
    point = {"carbon_kg": 5e6, "cost": 146_032_477_790.0, "bound": 87_282_844.0, "gap": 0.1}
    line = frontier_chart({"measure": "carbon_kg", "currency": "CNY", "points": [point]}, t).to_dict()
    bars = bar_chart({"one": 146_032_477_790.0}, "x", "y", AMOUNT, t).to_dict()
    large = {"en": "146B", "zh": "1,460 亿"}[language]
    assert large in line["description"] and large in bars["description"]
    assert f'"cost_shown": "{large}"' in json.dumps(line, ensure_ascii=False)
    assert f'"shown": "{large}"' in json.dumps(bars, ensure_ascii=False)


def test_a_share_stays_a_share():
    bars = bar_chart({"one": 0.25}, "x", "y", SHARE, Words()).to_dict()
    assert [each["format"] for each in bars["layer"][0]["encoding"]["tooltip"] if "format" in each] == [".2%"]
