"""Draw a chart of a plan, written once for each plan: Altair checks a chart for longer than a browser takes to draw it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from planner.dashboard.state.session import Shown
from planner.report.charts.style import MARKS
from planner.report.locale import Words


def written(shown: Shown, t: Words, make: Callable[..., Any], *arguments: Any) -> dict[str, Any] | None:
    """Write a chart once; None for one that the plan has nothing for."""
    key = (make.__module__, make.__name__, arguments, t.language, t.display)
    if key not in shown.drawn:
        chart = make(shown.plan, *arguments, t)
        shown.drawn[key] = None if chart is None else chart.to_dict()
    return shown.drawn[key]


PICKED = "picked"  # the parameter of a chart that holds what is clicked


def draw_chart(
    shown: Shown, t: Words, make: Callable[..., Any], *arguments: Any, place: DeltaGenerator | None = None
) -> bool:
    """Draw `make(plan, *arguments, t)` into `place`, or into the page; False for a chart that the plan has nothing for."""
    spec = written(shown, t, make, *arguments)
    if spec is None:
        return False
    given = copy.deepcopy(spec)  # Streamlit changes what it is given
    (place or st).vega_lite_chart(given, width="stretch")
    return True


def draw_to_pick(spec: dict[str, Any], field: str, key: str, on_pick: Callable[[str | None], None]) -> None:
    """Draw a chart in which a click on a mark picks the value of a field, and a click beside one picks nothing.

    The marks of a chart of layers stand in the layer `MARKS`.
    """
    given = copy.deepcopy(spec)
    unit = next((layer for layer in given.get("layer", ()) if layer.get("name") == MARKS), given)
    parameter: dict[str, Any] = {"name": PICKED, "select": {"type": "point", "fields": [field]}}
    if "layer" in given:
        parameter["views"] = [MARKS]
    given["params"] = [parameter]
    unit.setdefault("encoding", {})["opacity"] = {"condition": {"param": PICKED, "value": 1.0}, "value": 0.35}

    def picked() -> None:
        rows = st.session_state[key]["selection"].get(PICKED) or []
        on_pick(rows[0].get(field) if rows else None)

    st.vega_lite_chart(given, width="stretch", key=key, on_select=picked, selection_mode=PICKED)
