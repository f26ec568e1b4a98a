"""Types of the numbers and quantities that a spec may hold: each with its unit, its range, and its JSON Schema.

A quantity is a text with its unit (`"500 ms"`) and is held in SI. The ranges are wider than anything that was ever built;
beyond them a figure is a slip of the pen, and would drown the arithmetic of everything else. Not here: the blocks of a spec.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from catalog import units
from catalog.units import (
    GIGA,
    GRAM_KG,
    HOUR_S,
    KILO,
    KWH_J,
    MICRO,
    MILLI,
    MONTH_S,
    MWH_J,
    NANO,
    PERCENT,
    TERA,
    TONNE_KG,
    YEAR_S,
)

MOST_TOKENS = 1e17
MOST_MONEY = 1e18
CENT = PERCENT


def shown(value: Any) -> str:
    """What the user wrote, cut to a length that fits a line."""
    text = (
        json.dumps(value, default=str, ensure_ascii=False)
        if not isinstance(value, int) or abs(value) < MOST_MONEY
        else "a number of that size"
    )
    return text if len(text) <= 60 else text[:57] + "..."


def _quantity(unit: str, example: str, least: float, most: float, *, zero: bool = False, bare: bool = False) -> Any:
    """A number of SI `unit` between `least` and `most`, written as text with a unit; or 0 where that is allowed."""
    noun = units.noun(unit)
    span = f"from {units.show(least, unit)} to {units.show(most, unit)}" + (", or 0" if zero else "")

    def read(value: Any) -> float:
        if (
            isinstance(value, bool)
            or not isinstance(value, (str, int, float))
            or (not bare and not isinstance(value, str))
        ):
            raise ValueError(f'expected {noun} as a text such as "{example}", got {shown(value)}')
        number = units.parse(value, unit)
        if not (least <= number <= most or (zero and number == 0)):
            raise ValueError(f'expected {noun} {span}, such as "{example}", got {shown(value)}')
        return number

    kinds = ["string", "number"] if bare else "string"
    schema = WithJsonSchema(
        {"type": kinds, "description": f"{noun.capitalize()}.", "examples": [example], "x-unit": unit, "x-range": span}
    )
    return Annotated[float, BeforeValidator(read), schema]


def read_money(value: Any, per: str, example: str, least: float, most: float) -> tuple[float, str]:
    """(amount per SI unit `per`, currency) of a text; 0 or between `least` and `most`."""
    if not isinstance(value, str):
        raise ValueError(f'expected an amount with its currency such as "{example}", got {shown(value)}')
    amount, currency = units.parse_money(value, per)
    if amount != 0 and not least <= amount <= most:
        unit = f"{currency}/{per}" if per else currency
        span = f"from {units.show(least, unit)} to {units.show(most, unit)}, or 0"
        raise ValueError(f'expected an amount {span}, such as "{example}", got {shown(value)}')
    return amount, currency


def _money(per: str, example: str, least: float, most: float) -> Any:
    def read(value: Any) -> tuple[float, str]:
        return read_money(value, per, example, least, most)

    words = "An amount of money with its currency" + {
        "s": ", per time.",
        "J": ", per energy.",
        "byte": ", per amount of data.",
        "token": ", per token.",
        "W": ", per power.",
        "W s": ", per power and time.",
    }.get(per, ".")
    schema = WithJsonSchema(
        {
            "type": "string",
            "description": words,
            "examples": [example],
            "x-unit": f"currency/{per}" if per else "currency",
        }
    )
    return Annotated[tuple[float, str], BeforeValidator(read), schema]


def _whole(value: Any) -> Any:
    """A whole number, also when written as 3.0 or 1e6; neither a text nor true."""
    if not units.is_number(value) or value != int(value):
        raise ValueError(f"expected a whole number, got {shown(value)}")
    return int(value)


def _day(value: Any) -> Any:
    if isinstance(value, date):
        return value
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        day = None
    if day is None or not 2000 <= day.year <= 2100:
        raise ValueError(f'expected a day between the years 2000 and 2100 such as "2027-01-01", got {shown(value)}')
    return day


WHOLE = BeforeValidator(_whole)  # to be put last in Annotated[int, ...]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]  # texts and true are refused
Day = Annotated[date, BeforeValidator(_day)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Switch = Annotated[bool, Field(strict=True)]

Seconds = _quantity("s", "500 ms", MICRO, 100 * YEAR_S)
SecondsFromStart = _quantity("s", "30 d", MICRO, 100 * YEAR_S, zero=True)
Tokens = _quantity("token", "15T", 1, MOST_TOKENS, bare=True)
TokenRate = _quantity("token/s", "10B tokens/day", MILLI, TERA)
RequestRate = _quantity("request/s", "40", MICRO, GIGA, bare=True, zero=True)
Watts = _quantity("W", "20 MW", 1, TERA)
Bytes = _quantity("byte", "1 TB", 1, TERA * KILO**2, zero=True)
ByteRate = _quantity("byte/s", "50 GB/s", 1, TERA * KILO)
TrafficRate = _quantity("byte/s", "1 Mbit/s", 1, TERA * KILO, zero=True)
Joules = _quantity("J", "40 MWh", 1, TERA * MWH_J)
CarbonIntensity = _quantity("kg/J", "40 g/kWh", NANO / KWH_J, KILO / KWH_J, zero=True)
Kilograms = _quantity("kg", "5 kt", GRAM_KG, GIGA * TONNE_KG)
UpdatesPerYear = _quantity("1", "12", MILLI, KILO**2, bare=True, zero=True)
Fraction = _quantity("1", "0.08", MICRO, 1, bare=True, zero=True)
Rate = _quantity("1", "7.2", NANO, GIGA, bare=True)
Amount = _money("", "420M CNY", CENT, MOST_MONEY)
AmountPerSecond = _money("s", "2M USD/year", CENT / YEAR_S, MOST_MONEY / YEAR_S)
BytePrice = _money("byte", "0.02 USD/GB", NANO / TERA, CENT)
EnergyPrice = _money("J", "0.08 USD/kWh", NANO / KWH_J, GIGA / KWH_J)
TokenPrice = _money("token", "0.3 USD/1M tokens", NANO * MICRO, CENT)
PowerPrice = _money("W", "150 USD/kW", NANO, GIGA)
PeakPrice = _money("W s", "15 USD/kW-month", NANO / YEAR_S, GIGA / MONTH_S)


def offer_price(text: str, bought: bool) -> tuple[float, str]:
    """(amount, currency) of an offer: per system when bought, per system and second when rented."""
    if bought:
        return read_money(text, "", "310000 USD", CENT, TERA)
    return read_money(text, "s", "55.04 USD/h", CENT / YEAR_S, TERA / HOUR_S)
