"""Format the limits of a plan, and the runner-up at each site."""

from __future__ import annotations

from catalog.units import DAY_S, GIGA, HOUR_S, KILO, MILLION, TONNE_KG, show
from planner.messages import Said, named, said, say
from planner.plan import binds
from planner.plan.rows.money import Limit
from planner.plan.rows.quality import RunnerUp
from planner.report.heads import Row
from planner.report.words import how_words, whole

PRACTICAL = {
    "W": ("kW", KILO),
    "kg": ("t", TONNE_KG),
    "byte/s": ("GB/s", GIGA),
    "1": (say("unit.percentage_point"), 0.01),
}


def limit_row(row: Limit) -> Row:
    """Format a limit: use, slack and marginal values."""

    def text(value: float) -> str:
        if row["unit"] in ("W", "kg", "byte/s"):
            return show(value, row["unit"])
        if row["unit"] == "s":
            return f"{value / HOUR_S:,.0f} h" if abs(row["limit"]) > DAY_S else show(value, "s")
        if row["unit"] == "rack":  # systems may fill parts of one
            return say("limits.rack" if value == 1 else "limits.racks", count=f"{value:,.10g}")
        if row["unit"] == "1":
            return f"{value:.1%}"
        return say("amount.in_unit", amount=whole(value), unit=named("unit", row["unit"]))

    return {
        "limit": said(row, "name"),
        "used": text(row["value"]),
        "allowed": text(row["limit"]),
        "slack": say("limit.binding") if binds(row) else text(row["slack"]),
        "worth_fleet_held": _worth(row["marginal_value"], row),
        "worth_fleet_free": _worth(row["marginal_value_divisible"], row),
    }


def practical_unit(unit: str) -> tuple[str, float]:
    """Return the unit in which more of a limit is valued, and its size in the unit of the limit's row.

    >>> practical_unit("W"), practical_unit("1"), practical_unit("USD")
    (('kW', 1000.0), ('percentage point', 0.01), ('1M USD', 1000000.0))
    """
    if unit in ("system", "rack", "line", "site", "kind"):
        return unit, 1.0
    return PRACTICAL.get(unit, (f"1M {unit}", MILLION))


def _worth(value: float | None, row: Limit) -> str:
    """Write a marginal value per practical unit of its limit."""
    if value is None:
        return ""
    per, size = practical_unit(row["unit"])
    worth, unit = value * size, (row["marginal_unit"] or "").partition("/")[0]
    number = whole(worth) if abs(worth) >= 100 else f"{worth:.3g}"
    return say("amount.per", amount=number, unit=unit, per=named("unit", per))


def margin_words(row: RunnerUp) -> str:
    """Say by how much the next best system misses, without the share of its cost."""
    words = said(row, "words")
    if not isinstance(words, Said):
        return words.partition(" (")[0]
    inner = words.message.arguments.get("words", words)
    if isinstance(inner, Said) and inner.message.code.endswith("_of"):
        return say(inner.message.code.removesuffix("_of"), **inner.message.arguments)
    return words


def runner_up_row(row: RunnerUp) -> Row:
    """Format the next best system or site."""
    system = ""
    if row["system"] is not None:
        system = say("fleet.system_how", system=row["system"], how=how_words(row["how"] or ""))
    return {"site": row["site"], "not_in_use_there": system, "margin": said(row, "words")}
