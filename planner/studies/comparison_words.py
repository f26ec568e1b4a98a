"""The difference of two plans in sentences. Used by `planner.studies.compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.messages import Message, enumerated
from planner.money.components import component_words
from planner.plan import Plan
from planner.report.words import counted, share_words
from planner.spec.changes import MISSING
from planner.studies.comparison_tables import RELATIVE_TOL, Row, years_of

MAIN_SHARE = 0.9  # parts are named until they make up this share of all movement
MAX_NAMED = 5  # parts in one sentence
MAX_TEXT = 60  # characters of a quoted value


def words_of(first: Plan, second: Plan, found: Mapping[str, Any]) -> list[str]:
    """Summarise the difference of two plans: its size, its main parts, and the differing decisions and specs; first a warning on horizons."""
    years = [years_of(plan) for plan in (first, second)]
    if years[0] == years[1]:
        return _differences(first, second, found)
    per_year = next((row for row in found["totals"] if row["total"] == "cost per year"), None)
    told = [Message.of("compare.horizons", first=f"{years[0]:g}", second=f"{years[1]:g}").text()]
    if per_year is not None:
        names = {key: _money(per_year[key], per_year["unit"]) for key in ("first", "second")}
        told.append(Message.of("compare.per_year", **names, difference=_signed(per_year["difference"], per_year["unit"])).text())  # fmt: skip
    return [*told, *_differences(first, second, found)]


def _differences(first: Plan, second: Plan, found: Mapping[str, Any]) -> list[str]:
    if found["difference"] is None:
        both = (
            "; ".join(
                f"{each.document['name']}: {Message.of(f'status.{each.status}').text()}" for each in (first, second)
            )
            + "."
        )
        if first.has_answer and second.has_answer:
            units = f"{first.objective['unit']}, {second.objective['unit']}"
            both += f" Their objectives differ ({units}), so only costs are compared."
        return [both, *_causes(first, second, found)]
    words, difference, base, unit = [], found["difference"], first.value, first.objective["unit"]
    if abs(difference) <= RELATIVE_TOL * abs(base):
        words.append(f"Both come to {_money(base, unit)}.")
    else:
        more, share = "more" if difference > 0 else "less", abs(difference / base)
        words.append(
            f"The second comes to {_money(abs(difference), unit)} {more} than the first ({share_words(share, '.2%')} of {_money(base, unit)})."
        )
        open_ = [
            abs(plan.document["bound"] - plan.value) for plan in (first, second) if plan.document["bound"] is not None
        ]
        if abs(difference) <= sum(open_):
            words.append(
                f"The gaps of the two plans add up to more than that ({_money(sum(open_), unit)}): a smaller --gap would tell."
            )
    return [*words, *_drivers(found), *_causes(first, second, found)]


def _drivers(found: Mapping[str, Any]) -> list[str]:
    """Name the parts, systems and fleet rows that make up most of the movement."""
    words = []
    if parts := _main(found["parts"]):
        names = [f"{component_words(row['component'])} {_signed(row['difference'], row['unit'])}" for row in parts]
        words.append(f"What drives it: {enumerated(names)}.")
    if systems := _main([row for row in found["systems"] if row["system"]]):
        names = [f"{_system(row)} {_signed(row['difference'], row['unit'])}" for row in systems]
        words.append(f"By system, all parts together: {enumerated(names)}.")
    if fleet := found["fleet"][:MAX_NAMED]:
        names = [
            f"{abs(row['difference']):,} {'more' if row['difference'] > 0 else 'fewer'} {_held(row)}" for row in fleet
        ]
        further = ", and further changes" if len(found["fleet"]) > MAX_NAMED else ""
        words.append(f"The fleet of the second has {enumerated(names)}{further}.")
    elif found["parts"]:
        words.append("The fleets are the same.")
    return words


def _causes(first: Plan, second: Plan, found: Mapping[str, Any]) -> list[str]:
    """Name the limits, places of the specs, architectures and catalogs that differ."""
    words = []
    for side in ("first", "second"):
        if names := [row["name"] for row in found["limits"] if row[side] == "binds"]:
            words.append(f"Binding in the {side} only: {enumerated(names[:MAX_NAMED])}.")
    if changes := found["spec"]:
        names = [f"{row['path']} ({quoted(row['first'])}, {quoted(row['second'])})" for row in changes[:MAX_NAMED]]
        further = f" and {counted(len(changes) - MAX_NAMED, 'place')} more" if len(changes) > MAX_NAMED else ""
        words.append(f"The specs differ in {enumerated(names)}{further}.")
    for row in found["quality"]:
        if row["fact"] == "architectures" and row["first"] and row["second"]:
            words.append(f"{row['workload']} runs on {row['first']} in the first, on {row['second']} in the second.")
    if first.document["catalog_digest"] != second.document["catalog_digest"]:
        words.append("They were made from different catalogs.")
    if not words and not any(value for value in found.values() if isinstance(value, list)):
        words.append("The plans are the same.")
    return words


def _main(rows: Sequence[Row]) -> list[Row]:
    """Take the largest rows that together make up most of all movement."""
    left, taken = sum(abs(row["difference"]) for row in rows) * MAIN_SHARE, []
    for row in rows[:MAX_NAMED]:
        if left <= 0:
            break
        taken.append(row)
        left -= abs(row["difference"])
    return taken


def _held(row: Row) -> str:
    """Name what a row of the fleet counts: systems, or tokens of an API."""
    return f"tokens/s of {row['system']}" if row["how"] == "api" else f"{_system(row)} in {row['site']}"


def _system(row: Row) -> str:
    return f"{row['system']} ({row['how'].replace('_', ' ')})"


def _money(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if abs(value) >= 1000 else f"{value:,.4g} {unit}"


def _signed(value: float, unit: str) -> str:
    return ("+" if value > 0 else "-") + _money(abs(value), unit)


def quoted(value: Any) -> str:
    """Write a value of a spec, shortened if it is long."""
    text = "not there" if value == MISSING else str(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
