"""Keep the view of a visitor on a page, such as a study, an hour or a site, in the address, so that a copied one opens the same view.

Streamlit binds a widget to a parameter by itself, but then refuses every other change of the address together with it (`from_dict` of
`st.query_params`), which the scenario needs: base and edits must change in one step of the history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

NAMES = (
    "study", "part", "hour", "by", "case", "site", "search", "spec", "block", "kinds", "used", "metric", "chips",
    "against", "points", "span", "within", "workload", "target", "levers", "budget", "tab",
)  # fmt: skip
"""Parameters of an address; one of another name asks for nothing."""
MOST_LETTERS = 200
BETWEEN = "|"
"""Between the names of a choice of several; no name of a kind or a chip has it."""
Choice = TypeVar("Choice")


def begin(query: Mapping[str, Sequence[str]]) -> None:
    """Begin a run of the page: what the address asked for counts at the first one."""
    asked = {name: query[name][0][:MOST_LETTERS] for name in NAMES if query.get(name)}
    st.session_state.setdefault("asked", asked)
    st.session_state.looks = {}


def first(name: str, options: Sequence[Choice], otherwise: Choice, text: Callable[[Choice], str] = str) -> Choice:
    """Return the option that the address asked for at first; another one where it asked for none that there is."""
    asked = st.session_state.get("asked", {}).get(name)
    return next((option for option in options if text(option) == asked), otherwise)


def words(name: str) -> str:
    """Return the text that the address asked for at first."""
    found: str = st.session_state.get("asked", {}).get(name, "")
    return found


def several(name: str, options: Sequence[str]) -> list[str]:
    """Return the options that the address asked for at first."""
    asked = words(name).split(BETWEEN)
    return [option for option in options if option in asked]


def numbers(name: str, least: float, most: float, otherwise: Sequence[float]) -> tuple[float, ...]:
    """Return the numbers from `least` to `most`, in order, that the address asked for at first; others where it asked for no such ones."""
    try:
        found = tuple(float(text) for text in words(name).split(BETWEEN))
    except ValueError:
        return tuple(otherwise)
    is_right = len(found) == len(otherwise) and all(least <= number <= most for number in found)
    return found if is_right and list(found) == sorted(found) else tuple(otherwise)


def note(name: str, value: object, usual: object) -> None:
    """Note a choice of the visitor, unless a page shows that without being asked."""
    looks: dict[str, str] = st.session_state.setdefault("looks", {})
    looks.pop(name, None)
    if value != usual and value not in (None, ""):
        looks[name] = str(value)[:MOST_LETTERS]


def write(name: str) -> None:
    """Write what was noted into the address at once, in a run of a fragment, which does not come to the end of the page."""
    context = get_script_run_ctx()
    if context is None or not context.fragment_ids_this_run:
        return
    value = st.session_state.get("looks", {}).get(name)
    if value is None:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != value:
        st.query_params[name] = value


def address() -> dict[str, list[str]]:
    """Return the choices noted as parameters of the address."""
    return {name: [value] for name, value in sorted(st.session_state.get("looks", {}).items())}
