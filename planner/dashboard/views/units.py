"""Let the visitor choose the currency and the units of figures, and say at which rate amounts are converted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import streamlit as st

from planner.dashboard import sources, units
from planner.dashboard.sources import Rate
from planner.dashboard.state.session import Work
from planner.errors import SpecError
from planner.escape import page
from planner.messages import DEFAULT
from planner.report.locale import Words
from planner.report.locale.display import MILLION


def chosen(work: Work, language: str, query: Mapping[str, list[str]]) -> Words:
    """Build the texts of a page, with the units that the visitor chose, or that the address named at first."""
    return of_document(_document(work), language, query)


def of_document(document: Mapping[str, object], language: str, query: Mapping[str, list[str]]) -> Words:
    """Build the texts of a page that shows the plan of a spec."""
    choices = st.session_state.setdefault("units", units.from_address(query))
    return Words(language, units.display(choices, sources.rates(document)))


def draw(work: Work, t: Words) -> None:
    """Draw the choices; a new one draws the page anew."""
    rates, choices = sources.rates(_document(work)), st.session_state.units
    none = {units.CURRENCY: t("units.plan"), units.PRICE_OF: MILLION}
    for name, values in units.options(rates).items():
        now = choices.get(name, "")
        value = st.selectbox(
            t(f"units.{name}"),
            list(values),
            index=values.index(now) if now in values else 0,
            format_func=partial(_named, otherwise=none.get(name, t("units.size"))),
            key=f"units-{name}-{now}-{t.language}",
        )
        if value != (now if now in values else ""):
            choices[name] = value
            st.rerun()


def _named(value: str, otherwise: str) -> str:
    return value or otherwise


def rate_words(plan_currency: str, t: Words, rates: Mapping[str, Rate]) -> str:
    """Say at which rates amounts of a plan are converted; empty where they are not."""
    shown = t.display.shown(plan_currency)
    if shown == plan_currency:
        return ""
    said = [_rate(currency, rates[currency], t) for currency in (plan_currency, shown) if currency != "USD"]
    return t("units.rate", rates=", ".join(said))


def _rate(currency: str, rate: Rate, t: Words) -> str:
    source = t("units.rate.spec") if rate.date is None else t("units.rate.catalog", date=rate.date)
    return t("units.rate.one", rate=f"{rate.per_usd:g}", currency=page(currency), source=page(source))


def _document(work: Work) -> dict[str, object]:
    try:
        return work.scenario.document()
    except SpecError:
        return {}


def ways(t: Words) -> dict[str, list[str]]:
    """Return units and language as parameters of an address."""
    language = {"lang": [t.language]} if t.language != DEFAULT else {}
    return {**units.to_address(st.session_state.get("units", {})), **language}
