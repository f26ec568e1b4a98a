"""Write figures for the page: in practical units, without exponents, without a minus before a nought. No Streamlit here."""

from __future__ import annotations

import re

from catalog.units import DAY_S, HOUR_S, KILO, is_money, show, si_unit
from planner.messages import DEFAULT, SHORTENED
from planner.plan.rows.money import Limit
from planner.report.limits import practical_unit
from planner.report.locale import Words

_EXPONENT = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?)e([+-]?\d+)(?!\w)")
_NOUGHT = re.compile(r"(?<![\w.])-(0(?:[.,]0+)?)(?![\d.,])")
_ONE = re.compile(r"^(-?1) (system|chip|request|token|rack|line)s\b(?!/)")
SAID = {
    "chips": "shown.chips", "systems": "shown.systems", "tokens": "shown.tokens", "tokens/s": "shown.token_rate", "requests": "shown.requests",
    "requests/s": "shown.request_rate", "years": "shown.years", "degrees": "shown.degrees",
}  # fmt: skip
"""Words of a quantity -> the message that says them; other units are symbols, which every language writes alike."""
MEASURED = ("years", "degrees")  # whose numbers are small, and of years in another unit than seconds
PER = {
    "1M tokens": "shown.per_tokens",
    "chip": "shown.per_chip",
    "chip/h": "shown.per_chip_hour",
    "kW-month": "shown.per_month",
    "h": "shown.per_hour",
}
"""What a price is paid per -> the message that says it; other divisors are symbols."""
MOST_ZEROS = 4  # after the point; smaller figures are written with a power of ten
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def tidy(text: str) -> str:
    """Write numbers with an exponent in full, and a negative nought without its sign.

    >>> tidy("-8.138e+05 USD/system"), tidy("-0.0 kW"), tidy("1 systems"), tidy("2.5e-07 s")
    ('-813,800 USD/system', '0.0 kW', '1 system', '2.5 × 10⁻⁷ s')
    """
    return _ONE.sub(r"\1 \2", _NOUGHT.sub(r"\1", _EXPONENT.sub(_in_full, text)))


def _in_full(found: re.Match[str]) -> str:
    value, power = float(found[0]), int(found[2])
    if power >= 0:
        return f"{value:,.0f}"
    return (
        f"{value:.{len(found[1]) - power}g}"
        if -power <= MOST_ZEROS
        else f"{found[1]} × 10{str(power).translate(_SUPERSCRIPT)}"
    )


def number(value: float) -> str:
    """Write a plain number to four digits, or to the unit from 1,000 on.

    >>> number(-813800.2), number(0.03238), number(-0.0)
    ('-813,800', '0.03238', '0')
    """
    return tidy(f"{value:,.0f}" if abs(value) >= KILO else f"{value:.4g}")


def amount(value: float, unit: str, t: Words | None = None) -> str:
    """Write a quantity with its unit, in the units and currency of a reader if `t` holds them.

    >>> amount(32380.0, "W"), amount(1.0, "system"), amount(-813800.0, "USD/system")
    ('32.38 kW', '1 system', '-813,800 USD/system')
    """
    if t is not None:
        value, unit = t.display.quantity(value, unit)
        if (chosen := t.display.unit_of(unit, value)) is not None:
            return tidy(f"{number(value / chosen.factor)} {chosen.symbol}")
    try:
        text = show(value, unit)
    except KeyError:
        return tidy(f"{number(value)} {unit}")
    return tidy(text) if t is None or t.language == DEFAULT else _in_language(text, value, unit, t)


def count(value: float, t: Words) -> str:
    """Write a plain number in the scales of a reader's language, such as ten thousands.

    >>> count(51_500_000.0, Words("zh")), count(51_500_000.0, Words("en")), count(18_700.0, Words("zh"))
    ('5,150 万', '51.5M', '18,700')
    """
    if t.language == DEFAULT:
        return tidy(show(value, "1"))
    return t("amount.number", value=float(value)) if abs(value) >= SHORTENED - 0.5 else number(value)


def _in_language(text: str, value: float, unit: str, t: Words) -> str:
    """Write a quantity, of which `text` is the English form, with the scales and words of a reader's language.

    >>> amount(51_500_000.0, "USD", Words("zh")), amount(1e-8, "USD/J", Words("zh")), amount(3.0, "chip", Words("zh"))
    ('5,150 万 USD', '0.036 USD/kWh', '3 块芯片')
    """
    _, _, shown = text.partition(" ")
    if is_money(unit):
        currency, _, per = shown.partition("/")
        told = {"amount": count(value / si_unit(shown)[1], t), "unit": currency}
        if not per:
            return t("amount.in_unit", **told)
        return t("amount.per", **told, per=t(PER[per]) if per in PER else per)
    if shown not in SAID:
        return tidy(text)
    return t(SAID[shown], number=tidy(text.split()[0]) if shown in MEASURED else count(value, t))


def of_limit(value: float, row: Limit, t: Words | None = None) -> str:
    """Write a quantity of a limit; times of more than a day in hours."""
    if row["unit"] == "s" and abs(row["limit"]) > DAY_S:
        return tidy(f"{value / HOUR_S:,.0f} h")
    return f"{value:.1%}" if row["unit"] == "1" else amount(value, row["unit"], t)


def worth(value: float | None, row: Limit, t: Words | None = None) -> str:
    """Write a marginal value per practical unit of its limit, such as "-5,400 USD/kW"; empty for none."""
    if value is None:
        return ""
    per, size = practical_unit(row["unit"])
    unit = (row["marginal_unit"] or "").partition("/")[0]
    if t is not None and is_money(unit):
        value, unit = t.display.quantity(value, unit)
    return f"{number(value * size)} {unit}/{per}"
