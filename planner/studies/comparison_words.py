"""The difference of two plans in sentences. Used by `planner.studies.compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planner.messages import Message, enumerated, listed
from planner.money.components import component_words
from planner.plan import Plan
from planner.report.words import share_words, with_unit
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
        names = {key: with_unit(per_year[key], per_year["unit"]) for key in ("first", "second")}
        told.append(Message.of("compare.per_year", **names, difference=_signed(per_year["difference"], per_year["unit"])).text())  # fmt: skip
    return [*told, *_differences(first, second, found)]


def _differences(first: Plan, second: Plan, found: Mapping[str, Any]) -> list[str]:
    if found["difference"] is None:
        both = listed(
            Message.of(
                "compare.plan", name=each.document["name"], status=Message.of(f"status.{each.status}").text()
            ).text()
            for each in (first, second)
        )
        if first.has_answer and second.has_answer:
            units = f"{first.objective['unit']}, {second.objective['unit']}"
            stated = Message.of("compare.goals", text=both, units=units)
        else:
            stated = Message.of("compare.sentence", text=both)
        return [stated.text(), *_causes(first, second, found)]
    words, difference, base, unit = [], found["difference"], first.value, first.objective["unit"]
    if abs(difference) <= RELATIVE_TOL * abs(base):
        words.append(Message.of("compare.both", money=with_unit(base, unit)).text())
    else:
        told = {
            "difference": with_unit(abs(difference), unit),
            "share": share_words(abs(difference / base), ".2%"),
            "first": with_unit(base, unit),
        }
        words.append(Message.of("compare.costs_more" if difference > 0 else "compare.costs_less", **told).text())
        open_ = [
            abs(plan.document["bound"] - plan.value) for plan in (first, second) if plan.document["bound"] is not None
        ]
        if abs(difference) <= sum(open_):
            words.append(Message.of("compare.gaps_add_up", money=with_unit(sum(open_), unit)).text())
    return [*words, *_drivers(found), *_causes(first, second, found)]


def _drivers(found: Mapping[str, Any]) -> list[str]:
    """Name the parts, systems and fleet rows that make up most of the movement."""
    words = []
    if parts := _main(found["parts"]):
        names = [
            Message.of(
                "compare.component",
                component=component_words(row["component"]),
                change=_signed(row["difference"], row["unit"]),
            ).text()
            for row in parts
        ]
        words.append(Message.of("compare.drivers", names=enumerated(names)).text())
    if systems := _main([row for row in found["systems"] if row["system"]]):
        names = [
            Message.of(
                "compare.component", component=_system(row), change=_signed(row["difference"], row["unit"])
            ).text()
            for row in systems
        ]
        words.append(Message.of("compare.by_system", names=enumerated(names)).text())
    if fleet := found["fleet"][:MAX_NAMED]:
        names = [
            Message.of(
                "compare.held_more" if row["difference"] > 0 else "compare.held_fewer",
                count=f"{abs(row['difference']):,}",
                held=_held(row),
            ).text()
            for row in fleet
        ]
        code = "compare.fleet_further" if len(found["fleet"]) > MAX_NAMED else "compare.fleet"
        words.append(Message.of(code, names=enumerated(names)).text())
    elif found["parts"]:
        words.append(Message.of("compare.same_fleets").text())
    return words


def _causes(first: Plan, second: Plan, found: Mapping[str, Any]) -> list[str]:
    """Name the limits, places of the specs, architectures and catalogs that differ."""
    words = []
    for side in ("first", "second"):
        if names := [row["name"] for row in found["limits"] if row[side] == "binds"]:
            words.append(Message.of(f"compare.binding_{side}", names=enumerated(names[:MAX_NAMED])).text())
    if changes := found["spec"]:
        names = [
            Message.of(
                "compare.place", path=row["path"], first=quoted(row["first"]), second=quoted(row["second"])
            ).text()
            for row in changes[:MAX_NAMED]
        ]
        further = (
            Message.of("compare.further_places", count=_places(len(changes) - MAX_NAMED)).text()
            if len(changes) > MAX_NAMED
            else ""
        )
        words.append(Message.of("compare.specs", names=enumerated(names), further=further).text())
    for row in found["quality"]:
        if row["fact"] == "architectures" and row["first"] and row["second"]:
            words.append(
                Message.of(
                    "compare.architecture", workload=row["workload"], first=row["first"], second=row["second"]
                ).text()
            )
    if first.document["catalog_digest"] != second.document["catalog_digest"]:
        words.append(Message.of("compare.catalogs").text())
    if not words and not any(value for value in found.values() if isinstance(value, list)):
        words.append(Message.of("compare.same").text())
    return words


def _places(count: int) -> str:
    """Count places of a spec."""
    return Message.of("count.place" if count == 1 else "count.places", count=count).text()


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


def _signed(value: float, unit: str) -> str:
    return ("+" if value > 0 else "-") + with_unit(abs(value), unit)


def quoted(value: Any) -> str:
    """Write a value of a spec, shortened if it is long."""
    text = "not there" if value == MISSING else str(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
