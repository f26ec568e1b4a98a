"""Types of the numbers and quantities in a spec: each with its unit, its range, and its JSON Schema.

A quantity is a text with its unit (`"500 ms"`), held in SI. The ranges are wider than anything ever built; a figure beyond them is a
typing error, and would swamp the arithmetic of everything else. Not here: the blocks of a spec.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core.core_schema import CoreSchema, no_info_before_validator_function

from catalog import units
from catalog.units import (
    DAY_S,
    GIGA,
    GRAM_KG,
    HOUR_S,
    KILO,
    KWH_J,
    MEGA,
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
from planner.messages import Message

MOST_TOKENS = 1e17
MOST_MONEY = 1e18
CENT = PERCENT


def shown(value: Any) -> str:
    """Quote what the user wrote, cut to the length of a line."""
    text = (
        json.dumps(value, default=str, ensure_ascii=False)
        if not isinstance(value, int) or abs(value) < MOST_MONEY
        else "a number of that size"
    )
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True, slots=True)
class Quantity:
    """Annotation of a number of SI `unit` between `least` and `most`, written as text with a unit.

    `zero`: whether 0 is allowed too; `bare`: whether a plain number is.
    """

    unit: str
    example: str
    least: float
    most: float
    zero: bool = False
    bare: bool = False

    @property
    def span(self) -> str:
        """Format the range in words."""
        ends = f"from {units.show(self.least, self.unit)} to {units.show(self.most, self.unit)}"
        return ends + (", or 0" if self.zero else "")

    def read(self, value: Any) -> float:
        """Read the number in SI. Raises ValueError for a text without a quantity of the unit, or beyond the range."""
        noun, kinds = Message.of(f"quantity.{self.unit}").text(), (str, int, float) if self.bare else (str,)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise ValueError(
                Message.of("spec.quantity_as_text_expected", what=noun, example=self.example, given=shown(value)).text()
            )
        number = units.parse(value, self.unit)
        if not (self.least <= number <= self.most or (self.zero and number == 0)):
            raise ValueError(
                Message.of(
                    "spec.quantity_or_zero_range" if self.zero else "spec.expected_in_range",
                    what=noun,
                    least=units.show(self.least, self.unit),
                    most=units.show(self.most, self.unit),
                    example=self.example,
                    given=shown(value),
                ).text()
            )
        return number

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "type": ["string", "number"] if self.bare else "string",
            "description": f"{units.noun(self.unit).capitalize()}.",
            "examples": [self.example],
            "x-unit": self.unit,
            "x-range": self.span,
        }


def read_money(value: Any, per: str, example: str, least: float, most: float) -> tuple[float, str]:
    """Read (amount per SI unit `per`, currency) of a text. Raises ValueError unless it is 0 or between `least` and `most`."""
    if not isinstance(value, str):
        raise ValueError(Message.of("spec.amount_needs_currency", example=example, given=shown(value)).text())
    amount, currency = units.parse_money(value, per)
    if amount != 0 and not least <= amount <= most:
        unit = f"{currency}/{per}" if per else currency
        ends = {"least": units.show(least, unit), "most": units.show(most, unit)}
        raise ValueError(Message.of("spec.amount_in_range", **ends, example=example, given=shown(value)).text())
    return amount, currency


@dataclass(frozen=True, slots=True)
class Money:
    """Annotation of an amount of money with its currency, 0 or between `least` and `most` per SI unit `per`."""

    per: str
    example: str
    least: float
    most: float

    def read(self, value: Any) -> tuple[float, str]:
        """Read (amount per SI unit, currency). Raises ValueError for any other text."""
        return read_money(value, self.per, self.example, self.least, self.most)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "type": "string",
            "description": "An amount of money with its currency" + PER.get(self.per, "."),
            "examples": [self.example],
            "x-unit": f"currency/{self.per}" if self.per else "currency",
        }


PER = {
    "s": ", per time.",
    "J": ", per energy.",
    "byte": ", per amount of data.",
    "token": ", per token.",
    "W": ", per power.",
    "W s": ", per power and time.",
}


def _whole(value: Any) -> Any:
    """Read a whole number, also written as 3.0 or 1e6; texts and booleans are refused."""
    if not units.is_number(value) or value != int(value):
        raise ValueError(Message.of("spec.whole_number_expected", given=shown(value)).text())
    return int(value)


def _day(value: Any) -> Any:
    if isinstance(value, date):
        return value
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        day = None
    if day is None or not 2000 <= day.year <= 2100:
        raise ValueError(Message.of("spec.day_out_of_range", given=shown(value)).text())
    return day


WHOLE = BeforeValidator(_whole)  # to be put last in Annotated[int, ...]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]  # texts and true are refused
Day = Annotated[date, BeforeValidator(_day)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Switch = Annotated[bool, Field(strict=True)]

Seconds = Annotated[float, Quantity("s", "500 ms", MICRO, 100 * YEAR_S)]
LifeSeconds = Annotated[float, Quantity("s", "5 years", 30 * DAY_S, 100 * YEAR_S)]
SecondsFromStart = Annotated[float, Quantity("s", "30 d", MICRO, 100 * YEAR_S, zero=True)]
Tokens = Annotated[float, Quantity("token", "15T", 1, MOST_TOKENS, bare=True)]
TokenRate = Annotated[float, Quantity("token/s", "10B tokens/day", MILLI, TERA)]
RequestRate = Annotated[float, Quantity("request/s", "40", MICRO, GIGA, bare=True, zero=True)]
Watts = Annotated[float, Quantity("W", "20 MW", 1, TERA)]
Bytes = Annotated[float, Quantity("byte", "1 TB", 1, TERA * KILO**2, zero=True)]
Memory = Annotated[float, Quantity("byte", "2 GB", 200 * MEGA, TERA * KILO)]
ByteRate = Annotated[float, Quantity("byte/s", "50 GB/s", 1, TERA * KILO)]
TrafficRate = Annotated[float, Quantity("byte/s", "1 Mbit/s", 1, TERA * KILO, zero=True)]
Joules = Annotated[float, Quantity("J", "40 MWh", 1, TERA * MWH_J)]
CarbonIntensity = Annotated[float, Quantity("kg/J", "40 g/kWh", NANO / KWH_J, KILO / KWH_J, zero=True)]
Kilograms = Annotated[float, Quantity("kg", "5 kt", GRAM_KG, GIGA * TONNE_KG)]
UpdatesPerYear = Annotated[float, Quantity("1", "12", MILLI, KILO**2, bare=True, zero=True)]
Fraction = Annotated[float, Quantity("1", "0.08", MICRO, 1, bare=True, zero=True)]
Rate = Annotated[float, Quantity("1", "7.2", NANO, GIGA, bare=True)]
Amount = Annotated[tuple[float, str], Money("", "420M CNY", CENT, MOST_MONEY)]
AmountPerSecond = Annotated[tuple[float, str], Money("s", "2M USD/year", CENT / YEAR_S, MOST_MONEY / YEAR_S)]
BytePrice = Annotated[tuple[float, str], Money("byte", "0.02 USD/GB", NANO / TERA, CENT)]
EnergyPrice = Annotated[tuple[float, str], Money("J", "0.08 USD/kWh", NANO / KWH_J, GIGA / KWH_J)]
TokenPrice = Annotated[tuple[float, str], Money("token", "0.3 USD/1M tokens", NANO * MICRO, CENT)]
PowerPrice = Annotated[tuple[float, str], Money("W", "150 USD/kW", NANO, GIGA)]
PeakPrice = Annotated[tuple[float, str], Money("W s", "15 USD/kW-month", NANO / YEAR_S, GIGA / MONTH_S)]


def offer_price(text: str, bought: bool, chips: float | None = None) -> tuple[float, str]:
    """Read (amount, currency) of an offer: per system when bought, per system and second when rented.

    `chips`: of a system, for a price per chip. Raises ValueError for a text that is no price, and for a price per chip without `chips`.
    """
    least, most = (CENT, TERA) if bought else (CENT / YEAR_S, TERA / HOUR_S)
    if of_a_chip(text):
        if chips is None:
            raise ValueError(Message.of("spec.price_of_a_system", given=shown(text)).text())
        amount, currency = read_money(
            text, *(("chip", "30000 USD/chip") if bought else ("chip s", "2.1 USD/chip/h")), 0, most
        )
        return amount * chips, currency
    per, example, of_one = ("", "310000 USD", "30000 USD/chip") if bought else ("s", "55.04 USD/h", "6.88 USD/gpu/h")
    if isinstance(text, str) and not _is_money(text, per):
        raise ValueError(Message.of("spec.price_expected", system=example, chip=of_one, given=shown(text)).text())
    return read_money(text, per, example, least, most)


def of_a_chip(text: Any) -> bool:
    """Tell whether a text is a price of one chip: its purchase, or its rent."""
    return any(_is_money(text, per) for per in ("chip", "chip s"))


def is_purchase(text: str) -> bool:
    """Tell whether a price is of a purchase: a rent states a time."""
    return not _is_money(text, "s") and not _is_money(text, "chip s")


def _is_money(text: Any, per: str) -> bool:
    try:
        units.parse_money(text, per)
    except units.UnitError:
        return False
    return True
