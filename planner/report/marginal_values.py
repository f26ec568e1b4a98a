"""State the marginal value of each binding limit in sentences, from a plan document.

Not here: where the figures come from (`planner.solving.marginal_values`), and the table of all limits (`planner.report.report`).
"""

from __future__ import annotations

from dataclasses import dataclass

from catalog.units import GIGA, KILO, MEGA, MILLION, TONNE_KG
from planner.messages import Said, said, say
from planner.plan import Plan, is_by_the_bound
from planner.plan.rows.money import Limit
from planner.report.words import whole

HEADING = say("heading.worth")
LEFT = 0.005  # share of a limit from which on the sentence mentions the unused part
LEAST = 1e-9  # share of the objective: a smaller marginal value is rounding


@dataclass(frozen=True, slots=True)
class ValuedLimit:
    """A limit of which one practical unit more improves the objective."""

    row: Limit
    words: str
    """One practical unit more of the limit, such as "The next MW of power in us-texas"."""
    free: float
    """Gain of the objective where systems may be added [as the objective]."""
    fixed: float
    """Gain of the objective with the fleet as it is [as the objective]."""

    @property
    def gain(self) -> float:
        """Return the larger of the two gains."""
        return max(self.free, self.fixed)


def chapters(plan: Plan) -> list[tuple[str, list[str]]]:
    """Return the heading with its sentences, the most valuable limit first; empty where no limit binds."""
    if not plan.has_answer:
        return []
    sentences = [_sentence(plan, limit) for limit in valued_limits(plan)]
    return [(HEADING, sentences)] if sentences else []


def valued_limits(plan: Plan) -> list[ValuedLimit]:
    """List the limits of which more is worth something, the most valuable first."""
    found = []
    for row in plan.document["limits"]:
        thing, size = _one_more(row)
        free, fixed = (
            _gain(plan, value, size) for value in (row.get("marginal_value_divisible"), row.get("marginal_value"))
        )
        if max(free, fixed) > LEAST * abs(plan.value):
            found.append(ValuedLimit(row, thing, free, fixed))
    return sorted(found, key=lambda limit: -limit.gain)


def _sentence(plan: Plan, limit: ValuedLimit) -> str:
    if limit.free <= limit.fixed:
        return say("worth.to_this_fleet", more=limit.words, worth=worth_words(plan, limit.fixed))
    fixed = ""
    if limit.fixed > 0:
        fixed = say("worth.and_to_this_fleet", worth=worth_words(plan, limit.fixed))
    elif limit.row["marginal_value"] is not None:
        fixed = say("worth.nothing_to_this_fleet")
    bound = _by_the_bound(limit.row) if is_by_the_bound(limit.row) else ""
    return say(
        "worth.with_more_systems", more=limit.words, worth=worth_words(plan, limit.free), bound=bound, fixed=fixed
    )


def _by_the_bound(row: Limit) -> str:
    unused = row["slack"] / row["limit"] if row["limit"] else 0.0
    return say("worth.by_the_bound_of", unused=f"{unused:.0%}") if unused >= LEFT else say("worth.by_the_bound")


def _gain(plan: Plan, marginal: float | None, size: float) -> float:
    """Compute the improvement of the objective; `size`: units of the limit."""
    return 0.0 if marginal is None else (marginal if plan.objective["sense"] == "max" else -marginal) * size


def _one_more(row: Limit) -> tuple[str, float]:
    """Name one practical unit more of a limit: (words, its size in the row's unit).

    >>> _one_more({"unit": "W", "limit": 3e6, "name": "power in us-texas"})
    ('The next MW of power in us-texas', 1000000.0)
    >>> _one_more({"unit": "1", "limit": 0.4, "name": "largest share of chat in one zone"})
    ('One percentage point more of the largest share of chat in one zone', 0.01)
    """
    name, unit = said(row, "name"), row["unit"]
    if unit == "W":
        return (say("more.mw", name=name), MEGA) if row["limit"] >= MEGA else (say("more.kw", name=name), KILO)
    if unit == "system":
        return _one_more_system(name), 1.0
    if unit in ("rack", "line", "site", "kind"):
        return say("more.one", name=name), 1.0
    if unit == "byte/s":
        return say("more.gb_per_s", name=name), GIGA
    if unit == "kg":
        return say("more.tonne", name=name), TONNE_KG
    if unit == "1":
        return say("more.percentage_point", name=name), 0.01
    return say("more.million", unit=unit, name=name), MILLION


def _one_more_system(name: str) -> str:
    """Name one more system: of a supply, or on a network of a limited size."""
    if name.startswith("supply of "):
        if isinstance(name, Said) and name.message.code == "limit.supply":
            return say("more.system", name=say("fleet.system_how", **name.message.arguments))
        return say("more.system", name=name.removeprefix("supply of "))
    return say("more.on_network", name=name.removeprefix("size of "))


def worth_words(plan: Plan, gain: float) -> str:
    """Write a gain of the objective, over the horizon and a year."""
    if plan.objective["sense"] == "max":
        return say("worth.demand", gain=worth_number(plan, gain))
    years = plan.document["spec"].get("horizon", {}).get("years", 1)
    total, yearly, unit = worth_number(plan, gain), worth_number(plan, gain / years), worth_unit(plan)
    if years == 1:
        return say("worth.a_year", amount=yearly, unit=unit)
    return say("worth.horizon", amount=total, unit=unit, yearly=yearly)


def over_words(plan: Plan) -> str:
    """Say over which time worths are added up; empty where the objective is no amount."""
    if plan.objective["sense"] == "max":
        return ""
    years = plan.document["spec"].get("horizon", {}).get("years", 1)
    return say("verdict.over.one") if years == 1 else say("verdict.over.several", years=f"{years}")


def worth_number(plan: Plan, gain: float) -> str:
    """Write a gain of the objective in `worth_unit`."""
    if plan.objective["sense"] == "max":
        return f"{gain:.3g}"
    amount = gain / TONNE_KG if plan.objective["unit"] == "kg" else gain
    return whole(amount) if amount >= 100 else f"{amount:.3g}"


def worth_unit(plan: Plan) -> str:
    """Name the unit in which gains of the objective are written."""
    if plan.objective["sense"] == "max":
        return say("worth.factor")
    unit = plan.objective["unit"]
    return say("worth.carbon") if unit == "kg" else unit
