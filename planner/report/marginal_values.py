"""State the marginal value of each binding limit in sentences, from a plan document.

Not here: where the figures come from (`planner.solving.marginal_values`), and the table of all limits (`planner.report.report`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.units import GIGA, KILO, MEGA, MILLION, TONNE_KG
from planner.plan import BY_THE_BOUND, Plan

HEADING = "What more of a limit is worth"
LEFT = 0.005  # share of a limit from which on the sentence mentions the unused part
LEAST = 1e-9  # of the objective: a smaller marginal value is rounding


def chapters(plan: Plan) -> list[tuple[str, list[str]]]:
    """Return the heading with its sentences, the most valuable limit first; empty where no limit binds."""
    if not plan.has_answer:
        return []
    valued = sorted(_valued_limits(plan), key=lambda item: -item[0])
    return [(HEADING, [words for _, words in valued])] if valued else []


def _valued_limits(plan: Plan) -> Iterator[tuple[float, str]]:
    """Yield (marginal value, sentence) of each limit with a value."""
    years = plan["spec"].get("horizon", {}).get("years", 1)
    for row in plan["limits"]:
        thing, size = _one_more(row)
        free, fixed = (_gain(plan, row[key], size) for key in ("marginal_value_divisible", "marginal_value"))
        if max(free, fixed) <= LEAST * abs(plan.objective["value"]):
            continue
        if free > fixed:
            same = (
                f"; with the fleet as it is, {_worth(plan, fixed, years)}"
                if fixed > 0
                else "; to the fleet as it is, nothing"
                if row["marginal_value"] is not None
                else ""
            )
            by_the_bound = _by_the_bound(row) if BY_THE_BOUND in row["note"] else ""
            yield free, f"{thing} is worth {_worth(plan, free, years)} where systems may be added{by_the_bound}{same}."
        else:
            yield fixed, f"{thing} is worth {_worth(plan, fixed, years)} to the fleet as it is."


def _by_the_bound(row: Mapping[str, Any]) -> str:
    unused = row["slack"] / row["limit"] if row["limit"] else 0.0
    return ", as the bound has it" + (f" (this plan leaves {unused:.0%} of it)" if unused >= LEFT else "")


def _gain(plan: Plan, marginal: float | None, size: float) -> float:
    """Compute the improvement of the objective; `size`: units of the limit."""
    return 0.0 if marginal is None else (marginal if plan.objective["sense"] == "max" else -marginal) * size


def _one_more(row: Mapping[str, Any]) -> tuple[str, float]:
    """Name one practical unit more of a limit: (words, its size in the row's unit).

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
    if unit == "rack":
        return f"One more of the {name}", 1.0
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
    total, yearly = (f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in (amount, amount / years))
    return f"{yearly} {unit} a year" if years == 1 else f"{total} {unit} over the horizon ({yearly} a year)"
