"""Choose colours, axes and legends that the charts share.

Colours come from Okabe and Ito without black, which would vanish on a dark page.
"""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

BLUE, SKY, RED, GREEN, GREY = "#0072B2", "#56B4E9", "#D55E00", "#009E73", "#999999"
PALETTE = (BLUE, "#E69F00", GREEN, "#CC79A7", SKY, RED, "#F0E442", GREY)
BAR_PX = 30
MARKS = "marks"  # the layer of a chart whose marks are clicked


def coloured(field: str, names: Sequence[str], title: str | None) -> alt.Color:
    """Assign colours in a fixed order, so that names keep theirs from plan to plan; they repeat after eight."""
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(names))]
    return alt.Color(
        field, title=title, scale=alt.Scale(domain=list(names), range=colours), legend=alt.Legend(labelLimit=220)
    )


def money_axis() -> alt.Axis:
    """Return an axis of money: a billion is written B, where the prefix of SI would be G."""
    return alt.Axis(format="~s", tickCount=6, labelExpr="replace(datum.label, 'G', 'B')")
