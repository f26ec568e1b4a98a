"""Draw a chart of a plan, written once for each plan: Altair checks a chart for longer than a browser takes to draw it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from planner.dashboard.state.session import Shown
from planner.report.locale import Words


def draw_chart(
    shown: Shown, t: Words, make: Callable[..., Any], *arguments: Any, place: DeltaGenerator | None = None
) -> bool:
    """Draw `make(plan, *arguments, t)` into `place`, or into the page; False for a chart that the plan has nothing for."""
    key = (make.__module__, make.__name__, arguments, t.language)
    if key not in shown.drawn:
        chart = make(shown.plan, *arguments, t)
        shown.drawn[key] = None if chart is None else chart.to_dict()
    spec = shown.drawn[key]
    if spec is None:
        return False
    given = copy.deepcopy(spec)  # Streamlit changes what it is given
    (place or st).vega_lite_chart(given, width="stretch")
    return True
