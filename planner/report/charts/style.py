"""Choose colours, axes and legends that the charts share.

Colours come from Okabe and Ito without black, which would vanish on a dark page.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import altair as alt

from planner.messages import SHORTENED, scale_ends
from planner.report.locale import Words
from planner.report.words import amount

BLUE, SKY, RED, GREEN, GREY = "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#999999"
PALETTE = (BLUE, "#E69F00", GREEN, "#CC79A7", SKY, RED, "#F0E442", GREY)
BAR_PX = 30
HALF_A_DIGIT = 5e-5  # half a unit of the fourth digit: 999.96 million is 1 billion
MARKS = "marks"  # the layer of a chart whose marks are clicked


def coloured(field: str, names: Sequence[str], title: str | None) -> alt.Color:
    """Assign colours in a fixed order, so that names keep theirs from plan to plan; they repeat after eight."""
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(names))]
    return alt.Color(
        field, title=title, scale=alt.Scale(domain=list(names), range=colours), legend=alt.Legend(labelLimit=220)
    )


def money_axis(t: Words, ticks: int = 6) -> alt.Axis:
    """Return an axis of money, whose labels `planner.messages.shortened` would write: from a million on with four digits and a scale."""
    return alt.Axis(tickCount=ticks, labelExpr=amount_label("datum.value", t.language))


def amount_label(value: str, language: str) -> str:
    """Write the Vega expression that prints an amount as `planner.report.words.amount` does; `value`: the expression of the amount."""
    label = f"format({value}, abs({value}) < 1000 ? '.4~r' : ',.0f')"
    for factor, end in reversed(scale_ends(language)):
        least = max(factor * (1 - HALF_A_DIGIT), SHORTENED - 0.5)
        label = f"abs({value}) >= {least!r} ? format({value} / {factor!r}, ',.4~r') + {json.dumps(end)} : {label}"
    return label


def shown(value: float, t: Words) -> str:
    """Write an amount in the language of a reader, for a tooltip or beside a bar."""
    return t.phrase(amount(value))
