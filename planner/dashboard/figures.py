"""Write figures for the page: in practical units, without exponents, without a minus before a nought. No Streamlit here."""

from __future__ import annotations

import re

from catalog.units import DAY_S, HOUR_S, KILO, is_money, show
from planner.plan.rows.money import Limit
from planner.report.limits import practical_unit
from planner.report.locale import Words

_EXPONENT = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?)e([+-]?\d+)(?!\w)")
_NOUGHT = re.compile(r"(?<![\w.])-(0(?:[.,]0+)?)(?![\d.,])")
_ONE = re.compile(r"^(-?1) (system|chip|request|token|rack|line)s\b(?!/)")
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
        return tidy(show(value, unit))
    except KeyError:
        return tidy(f"{number(value)} {unit}")


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
