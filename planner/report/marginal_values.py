"""What one unit more of each binding limit is worth, in sentences read from a plan document.

Not here: where the figures come from (`planner.solving.marginal_values`), and the table of all limits (`planner.report.report`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.units import GIGA, KILO, MEGA, MILLION, TONNE_KG
from planner.plan import BY_THE_BOUND, Plan

HEADING = "What more of a limit is worth"
LEFT = 0.005  # share of a limit from which on it is told that a plan leaves it
LEAST = 1e-9  # of the objective: below it a worth is rounding


def chapters(plan: Plan) -> list[tuple[str, list[str]]]:
    """The heading with its sentences, the most valuable first; nothing where no limit binds."""
    if not plan.has_answer:
        return []
    told = sorted(_told(plan), key=lambda item: -item[0])
    return [(HEADING, [words for _, words in told])] if told else []


def _told(plan: Plan) -> Iterator[tuple[float, str]]:
    """(worth of one unit, sentence)."""
    years = plan["spec"].get("horizon", {}).get("years", 1)
    for row in plan["limits"]:
        thing, size = _one_more(row)
        free, held = (_gain(plan, row[key], size) for key in ("marginal_value_divisible", "marginal_value"))
        if max(free, held) <= LEAST * abs(plan.objective["value"]):
            continue
        if free > held:
            same = (
                f"; with the fleet as it is, {_worth(plan, held, years)}"
                if held > 0
                else "; to the fleet as it is, nothing"
                if row["marginal_value"] is not None
                else ""
            )
            by_the_bound = _by_the_bound(row) if BY_THE_BOUND in row["note"] else ""
            yield free, f"{thing} is worth {_worth(plan, free, years)} where systems may be added{by_the_bound}{same}."
        else:
            yield held, f"{thing} is worth {_worth(plan, held, years)} to the fleet as it is."


def _by_the_bound(row: Mapping[str, Any]) -> str:
    unused = row["slack"] / row["limit"] if row["limit"] else 0.0
    return ", as the bound has it" + (f" (this plan leaves {unused:.0%} of it)" if unused >= LEFT else "")


def _gain(plan: Plan, marginal: float | None, size: float) -> float:
    """By how much the objective gets better."""
    return 0.0 if marginal is None else (marginal if plan.objective["sense"] == "max" else -marginal) * size


def _one_more(row: Mapping[str, Any]) -> tuple[str, float]:
    """(words, how much of the row's unit that is).

    >>> _one_more({"unit": "W", "limit": 3e6, "name": "power in us-texas"})
    ('The next MW of power in us-texas', 1000000.0)
    """
    name, unit = row["name"], row["unit"]
    if unit == "W":
        return (f"The next MW of {name}", MEGA) if row["limit"] >= MEGA else (f"The next kW of {name}", KILO)
    if unit == "system":
        return f"One more {name.removeprefix('supply of ')}" if name.startswith(
            "supply of "
        ) else f"Room for one more on {name.removeprefix('size of ')}", 1.0
    if unit == "byte/s":
        return f"The next GB/s of {name}", GIGA
    if unit == "kg":
        return f"The next tonne of {name}", TONNE_KG
    if unit == "1":
        return f"One hundredth more of the {name}", 0.01
    if unit == "line":
        return f"One more of the {name}", 1.0
    return f"The next million {unit} of the {name}", MILLION


def _worth(plan: Plan, gain: float, years: int) -> str:
    unit = plan.objective["unit"]
    if plan.objective["sense"] == "max":
        return f"{gain:.3g} of the factor on demand"
    if unit == "kg":
        amount, unit = gain / TONNE_KG, "t of carbon"
    else:
        amount = gain
    whole, yearly = (f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in (amount, amount / years))
    return f"{yearly} {unit} a year" if years == 1 else f"{whole} {unit} over the horizon ({yearly} a year)"
