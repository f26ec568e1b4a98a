"""Words that several tables and sentences of a plan share: statuses, lists, ranges and amounts."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.units import HOUR_S, KILO, is_money, show
from planner.messages import SHORTENED, Message, enumerated, named, say
from planner.plan import Plan

MONTH_S = 730 * HOUR_S
MOST_SHARE = 2.0
"""Share above which a factor is easier to read than a percentage."""


def status_words(plan: Plan) -> str:
    """Say how the search for a plan ended."""
    if plan.status == "limit" and not plan.has_answer:
        return Message.of("status.without_plan").text()
    return Message.of(f"status.{'searched' if is_searched(plan) else plan.status}").text()


def is_searched(plan: Plan) -> bool:
    """Tell whether the search for a plan has ended without the asked gap, and no limit ended it: as with whole replicas."""
    return plan.status == "limit" and plan.has_answer and plan.document["solver"].get("ended_by") == "search"


def without_tiers(system: str) -> str:
    """Return the name of a system as the catalog has it, without the tiers of KV cache with which it was bought.

    >>> without_tiers("DGX H100 + dram 1 TB + cxl 16 TB for 64"), without_tiers("DGX H100")
    ('DGX H100', 'DGX H100')
    """
    return system.partition(" + ")[0]


def listed(words: Sequence[str]) -> str:
    """Join words as a list in a sentence.

    >>> listed(["a", "b", "c"]), listed(["a"]), listed([])
    ('a, b and c', 'a', 'none')
    """
    return enumerated(words) if words else Message.of("list.none").text()


def spread(values: Sequence[float]) -> str:
    """Write the range of some amounts, one number if they are the same to a unit.

    >>> spread([1200.0, 3400.0]), spread([5.0, 5.2])
    ('1,200 to 3,400', '5')
    """
    low, high = min(values), max(values)
    return whole(low) if high - low < 1 else between(whole(low), whole(high))


def between(low: str, high: str) -> str:
    """Write a range of amounts.

    >>> between("1 MW", "2 MW")
    '1 MW to 2 MW'
    """
    return say("amount.range", low=low, high=high)


def amount(value: float) -> str:
    """Write an amount as `whole` does, but with four digits below 1,000.

    >>> amount(1234.5), amount(0.123456), amount(-0.0), amount(146_032_477_790.0)
    ('1,234', '0.1235', '0', '146B')
    """
    value += 0.0  # no sign on a zero
    return f"{value:,.4g}" if abs(value) < 1000 else whole(value)


def whole(value: float) -> str:
    """Write an amount to the unit, with thousands separators; from a million on with four digits and the scale, by `planner.messages.shortened`.

    >>> from planner.messages import translated
    >>> whole(868_431.2), whole(87_282_844.0), translated(whole(87_282_844.0), "zh")
    ('868,431', '87.28M', '8,728 万')
    """
    return say("amount.number", value=float(value)) if abs(value) >= SHORTENED - 0.5 else f"{value:,.0f}"


def signed(value: float) -> str:
    """Write a change of an amount with its sign.

    >>> signed(1_234_567.0), signed(-12.345), signed(0.0)
    ('+1.235M', '-12.35', '0')
    """
    return say("amount.added", amount=amount(value)) if value > 0 else amount(value)


def with_unit(value: float, unit: str) -> str:
    """Write an amount with its unit, such as a currency.

    >>> with_unit(2.5e9, "CNY")
    '2.5B CNY'
    """
    return say("amount.in_unit", amount=amount(value), unit=unit)


def share_words(share: float, form: str = ".1%") -> str:
    """Write a share of an amount, above 200 % as a factor.

    >>> share_words(0.206), share_words(-0.5, "+.0%"), share_words(8.78)
    ('20.6%', '-50%', '8.78 times')
    """
    if abs(share) <= MOST_SHARE:
        return f"{share:{form}}"
    return Message.of("amount.times", factor=f"{share:.3g}").text()


def more_words(share: float, shown: str) -> str:
    """Say by how much an amount exceeds another one: the share as `shown`, above 200 % as the factor between the two.

    >>> more_words(0.206, "20.6%"), more_words(8.78, "878%")
    ('20.6% more', '9.78 times as much')
    """
    if share <= MOST_SHARE:
        return Message.of("amount.more", share=shown).text()
    return Message.of("amount.times_as_much", factor=f"{1 + share:.3g}").text()


def counted(count: int, noun: str) -> str:
    """Write a count with its noun in singular or plural.

    >>> counted(1, "plan"), counted(1200, "site")
    ('1 plan', '1,200 sites')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def unsigned_zero(text: str) -> str:
    """Drop the sign of a number whose printed digits are all 0.

    >>> unsigned_zero("-0.00%"), unsigned_zero("+0"), unsigned_zero("-0.01%")
    ('0.00%', '0', '-0.01%')
    """
    return text.lstrip("+-") if not any(digit in text for digit in "123456789") else text


def figure_words(value: float | str, unit: str) -> str:
    """Write a figure with its unit; a price of power and time per kW and month, a time in its usual unit.

    >>> figure_words(0.04, "1"), figure_words(113500.0, "USD"), figure_words(8.269e-08, "USD/W s"), figure_words("2 MW", "W")
    ('0.04', '113,500 USD', '217.3 USD/kW-month', '2 MW')
    >>> figure_words(5_097_600.0, "s")
    '59 d'
    """
    if not isinstance(value, float):
        return str(value).removesuffix(" 1")
    if unit == "s":
        return show(value, unit)
    if unit.endswith("/W s"):
        return f"{value * KILO * MONTH_S:,.4g} {unit.removesuffix('/W s')}/kW-month"
    if is_money(unit):
        return with_unit(value, unit)
    number = f"{value:,.0f}" if abs(value) >= KILO else f"{value:.4g}"
    return number if unit == "1" else f"{number} {unit}"


def cap_words(cap: float | None) -> str:
    """Write a power cap, such as "70 % of nameplate"; empty without one.

    >>> cap_words(0.7), cap_words(None)
    ('70 % of nameplate', '')
    """
    return "" if cap is None else Message.of("point.cap", share=f"{100 * cap:.4g}").text()


def how_words(how: str) -> str:
    """Write a way to obtain a system, such as "on demand"."""
    return named("obtained", how.replace("_", " "))
