"""Offer the main figures of a spec as text fields, and write changed ones back. No Streamlit here.

A field holds the text of the spec, with its unit; the spec's own parser decides whether a new text is valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.units import show
from planner.errors import path_text
from planner.problem.facts import OfferFacts
from planner.spec.model import SolverOptions
from planner.spec.workloads import DEMANDS

Path = tuple[str | int, ...]
SLO_ALWAYS = (("ttft", "p95"), ("tpot", "p95"))  # offered even if the spec has no such limit


@dataclass(frozen=True, slots=True)
class Field:
    """One editable figure: `text` as in the spec (empty: not given), `fallback` the value that applies if it is not given."""

    path: Path
    group: str  # workloads, sites, offers, limits or solver
    label: str  # key of the label's text
    subject: str = ""  # what the label is about: a workload, a region, an offer
    text: str = ""
    fallback: str = ""

    @property
    def key(self) -> str:
        """Return the path as text."""
        return path_text(self.path)


def main_figures(
    document: Mapping[str, Any], offers: tuple[OfferFacts, ...] = (), currency: str = "USD"
) -> list[Field]:
    """List the fields of a valid spec; `offers` (resolved) give the prices that come from the catalog."""
    return [
        Field(path, group, label, subject, _text(_get(document, path)), fallback)
        for path, group, label, subject, fallback in _places(document, _prices(offers, currency))
    ]


def new_values(document: Mapping[str, Any], texts: Mapping[str, str], fields: list[Field]) -> dict[str, Any]:
    """Return the values of the fields whose text is new, by path; None for a figure that is taken away."""
    found = {}
    for field in fields:
        new = texts.get(field.key, field.text).strip()
        if new != field.text:
            found[field.key] = _value(new, _get(document, field.path), field)
    return found


def _places(document: Mapping[str, Any], prices: Mapping[str, str]) -> Iterator[tuple[Path, str, str, str, str]]:
    """Yield (path, group, label, subject, fallback) of every field."""
    for i, workload in enumerate(document["workloads"]):
        name, at = workload["name"], ("workloads", i)
        if workload["kind"] == "training":
            yield (*at, "tokens"), "workloads", "field.tokens", name, ""
            yield (*at, "deadline"), "workloads", "field.deadline", name, ""
            continue
        if workload["kind"] == "reinforcement":
            for key in ("iterations", "iterations_per_hour", "deadline"):
                if workload.get(key) is not None:
                    yield (*at, key), "workloads", f"field.{key}", name, ""
            continue
        for unit in DEMANDS:
            if workload["demand"].get(unit) is not None:
                count = ("count",) if unit == "users" else ()
                yield (*at, "demand", unit, *count), "workloads", f"field.{unit}", name, ""
        given = [
            (metric, percentile) for metric, block in (workload.get("slo") or {}).items() for percentile in block or {}
        ]
        for metric, percentile in dict.fromkeys((*SLO_ALWAYS, *given)):
            yield (
                (*at, "slo", metric, percentile),
                "workloads",
                "field.slo",
                f"{name}|{metric.upper()} {percentile}",
                "",
            )
        for c, each in enumerate(workload.get("classes") or []):
            for percentile in each.get("ttft") or {}:
                place = (*at, "classes", c, "ttft", percentile)
                yield place, "workloads", "field.slo", f"{name}, {each['name']}|TTFT {percentile}", ""
    for i, site in enumerate(document["sites"]):
        yield ("sites", i, "power"), "sites", "field.power", site["region"], ""
    for i, offer in enumerate(document.get("offers") or []):
        label = f"field.price.{offer['how']}"
        yield ("offers", i, "price"), "offers", label, offer["system"], prices.get(f"offers[{i}]", "")
    for name in ("budget", "capital", "carbon"):
        yield ("limits", name), "limits", f"field.{name}", "", ""
    for name, unit in (("gap", "1"), ("time_limit", "s")):
        yield (
            ("solver", name),
            "solver",
            f"field.{name}",
            "",
            show(SolverOptions.model_fields[name].default, unit).strip(),
        )


def _prices(offers: tuple[OfferFacts, ...], currency: str) -> dict[str, str]:
    """Write the price of each offer, a range if it differs by region."""
    texts = {}
    for offer in offers:
        unit = currency if offer.how == "buy" else f"{currency}/s"
        texts[offer.path] = " – ".join(
            dict.fromkeys(show(price, unit) for price in (min(offer.prices.values()), max(offer.prices.values())))
        )
    return texts


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _value(text: str, old: Any, field: Field) -> Any:
    """Convert a text: None if empty, a number if the spec had one (or for the gap, which has no unit), else the text."""
    if not text:
        return None
    if field.label == "field.gap" or (isinstance(old, (int, float)) and not isinstance(old, bool)):
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return text


def _get(document: Any, path: Path) -> Any:
    for part in path:
        document = document[part] if isinstance(part, int) else (document or {}).get(part)
    return document
