"""Quantities as text and as SI numbers: the one place with conversion constants.

It parses and prints quantities; it knows nothing of records, chips or plans.
"""

from __future__ import annotations

import math
import re
import string
import sys
from collections.abc import Mapping
from functools import cache

from catalog.errors import Wrong

KILO, MEGA, GIGA, TERA, PETA, EXA = 1e3, 1e6, 1e9, 1e12, 1e15, 1e18
MILLI, MICRO, NANO = 1e-3, 1e-6, 1e-9
KIB, MIB, GIB, TIB = 2.0**10, 2.0**20, 2.0**30, 2.0**40
THOUSAND, MILLION, BILLION, TRILLION = 1e3, 1e6, 1e9, 1e12
BITS_PER_BYTE = 8
MINUTE_S, HOUR_S, DAY_S, WEEK_S = 60.0, 3600.0, 86400.0, 604800.0
YEAR_S = 365 * DAY_S
MONTH_S = YEAR_S / 12
HOURS_PER_DAY = 24
KWH_J, MWH_J = KILO * HOUR_S, MEGA * HOUR_S
GRAM_KG, TONNE_KG = 1e-3, 1e3
PERCENT = 0.01


class UnitError(ValueError):
    """A text that is not the quantity that was expected; the message shows one that is.

    `unit`: SI unit of the quantity, empty for an amount of money, None where no quantity was expected; `example` of it, and what was `given`.
    """

    def __init__(self, text: str, unit: str | None = None, example: str = "", given: str = "") -> None:
        super().__init__(text)
        self.unit, self.example, self.given = unit, example, given


def _prefixed(symbol: str, prefixes: str, base: float = 1.0) -> dict[str, float]:
    scale = {
        "n": NANO,
        "u": MICRO,
        "µ": MICRO,
        "m": MILLI,
        "1": 1.0,
        "k": KILO,
        "M": MEGA,
        "G": GIGA,
        "T": TERA,
        "P": PETA,
        "E": EXA,
    }
    return {("" if p == "1" else p) + symbol: scale[p] * base for p in prefixes}


def _per(table: Mapping[str, float], divisors: Mapping[str, float]) -> dict[str, float]:
    return {f"{a}/{b}": x / y for a, x in table.items() for b, y in divisors.items()}


_TIME = {
    **_prefixed("s", "nuµm1"),
    "min": MINUTE_S,
    "h": HOUR_S,
    "hour": HOUR_S,
    "hours": HOUR_S,
    "d": DAY_S,
    "day": DAY_S,
    "days": DAY_S,
    "week": WEEK_S,
    "weeks": WEEK_S,
    "month": MONTH_S,
    "months": MONTH_S,
    "year": YEAR_S,
    "years": YEAR_S,
}
_BITS = {
    name: factor for symbol in ("bit", "b") for name, factor in _prefixed(symbol, "1kMGTP", 1 / BITS_PER_BYTE).items()
}
_BYTES = {**_prefixed("B", "1kMGTPE"), "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB, **_BITS}
_FLOPS = {**_prefixed("FLOP", "1kMGTPE"), **_prefixed("OP", "GTPE")}
_ENERGY = {**_prefixed("J", "1kMGTP"), **_prefixed("Wh", "1kMGT", HOUR_S)}
_MASS = {"g": GRAM_KG, "kg": 1.0, "t": TONNE_KG, "kt": KILO * TONNE_KG}
_POWER = _prefixed("W", "1kMG")
_TOKENS = {"": 1.0, "token": 1.0, "tokens": 1.0}
_REQUESTS = {"": 1.0, "request": 1.0, "requests": 1.0}
_RATE_DIVISORS = {k: v for k, v in _TIME.items() if (k and not k.endswith("s")) or k == "s"}
_bits_per_s = {f"{p}bps": v for p, v in zip("kMGT", (KILO, MEGA, GIGA, TERA), strict=True)}

# SI unit -> accepted symbols and the factor to SI. An empty symbol means that a bare number will do.
_TABLES: dict[str, dict[str, float]] = {
    "s": _TIME,
    "byte": _BYTES,
    "byte/s": {**_per(_BYTES, {"s": 1.0}), **{k: v / BITS_PER_BYTE for k, v in _bits_per_s.items()}},
    "FLOP": _FLOPS,
    "FLOP/s": {**_per(_FLOPS, {"s": 1.0}), **_prefixed("FLOPS", "1kMGTPE"), **_prefixed("OPS", "GTPE")},
    "W": _POWER,
    "J": _ENERGY,
    "J/token": _per(_ENERGY, {"token": 1.0}),
    "kg": _MASS,
    "kg/J": _per(_MASS, {k: v for k, v in _ENERGY.items() if k}),
    "token": _TOKENS,
    "token/s": _per({"tokens": 1.0, "token": 1.0}, _RATE_DIVISORS),
    "request": _REQUESTS,
    "request/s": {"": 1.0, **_per({"": 1.0, "requests": 1.0, "request": 1.0}, _RATE_DIVISORS)},
    "1": {"": 1.0, "%": PERCENT},
    "1/s": _per({"": 1.0, "1": 1.0}, _RATE_DIVISORS),
    "chip": {"": 1.0, "chip": 1.0, "chips": 1.0},
    "system": {"": 1.0, "system": 1.0, "systems": 1.0},
    "year": {"": 1.0, "year": 1.0, "years": 1.0},
    "degree": {"": 1.0, "degree": 1.0, "degrees": 1.0},
}
_COUNTS = {"1", "token", "token/s", "request", "request/s", "chip", "system"}
_SUFFIX = {"k": THOUSAND, "M": MILLION, "B": BILLION, "T": TRILLION}
_EXPECTED = {
    "s": ("a time", "500 ms"),
    "byte": ("a size", "80 GB"),
    "byte/s": ("a bandwidth", "4.8 TB/s"),
    "FLOP": ("an amount of work", "2 PFLOP"),
    "FLOP/s": ("a compute rate", "989 TFLOP/s"),
    "W": ("a power", "20 MW"),
    "J": ("an energy", "3 MWh"),
    "J/token": ("an energy per token", "0.4 J/token"),
    "kg": ("a mass", "120 t"),
    "kg/J": ("a carbon intensity", "120 g/kWh"),
    "token": ("a number of tokens", "15T tokens"),
    "token/s": ("a token rate", "2M tokens/s"),
    "request": ("a number of requests", "1000 requests"),
    "request/s": ("a request rate", "40 requests/s"),
    "1": ("a number", "0.3"),
    "1/s": ("a rate", "2 /h"),
    "chip": ("a number of chips", "2048 chips"),
    "system": ("a number of systems", "256 systems"),
    "year": ("a number of years", "3"),
    "degree": ("an angle in degrees", "39.04"),
}

_CHIPS = ("chip", "gpu", "GPU", "npu", "NPU", "tpu", "TPU", "accelerator")

# What money is paid per: SI divisor -> accepted symbols.
_MONEY_PER: dict[str, dict[str, float]] = {
    "": {"": 1.0},
    "s": _RATE_DIVISORS,
    "J": dict(_ENERGY),
    "byte": {**_BYTES, "Mbit/s-month": MEGA / BITS_PER_BYTE * MONTH_S},  # a line paid for by its rate
    "W": _POWER,
    "W s": {
        "W s": 1.0,
        **{f"{p}-{t}": _POWER[p] * _TIME[t] for p in ("kW", "MW") for t in ("month", "year")},
        "kVA-month": KILO * MONTH_S,
    },
    "kg": _MASS,
    "token": {"token": 1.0, "1M tokens": MILLION, "M tokens": MILLION, "million tokens": MILLION},
    "chip": dict.fromkeys(_CHIPS, 1.0),
    "chip s": {
        "chip s": 1.0,
        **{
            form: seconds
            for chip in _CHIPS
            for time, seconds in _RATE_DIVISORS.items()
            for form in (f"{chip}/{time}", f"{time}/{chip}", f"{chip}-{time}")
        },
    },
}
_MONEY_EXAMPLE = {
    "": "420M CNY",
    "s": "2.95 USD/h",
    "J": "0.09 USD/kWh",
    "byte": "0.02 USD/GB",
    "W": "11.7M USD/MW",
    "W s": "217.3 USD/kW-month",
    "kg": "90 USD/t",
    "token": "0.3 USD/1M tokens",
    "chip": "30000 USD/chip",
    "chip s": "2.1 USD/chip/h",
}
MOST_CHARACTERS = 200
"""Of a text that may be a quantity; longer ones are refused before any expression reads them."""
_NUMBER = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(.*)", re.ASCII | re.DOTALL
)  # no spaces: they would backtrack
_CURRENCY = re.compile(r"([A-Z]{3})(?:\s*/\s*(.+))?")
_DOLLARS = re.compile(r"(?:US)?\$")  # for USD, before the number or after it


def _number(text: str) -> tuple[float, str] | None:
    match = _NUMBER.fullmatch(text.strip(string.whitespace)) if len(text) <= MOST_CHARACTERS else None
    if match is None:
        return None
    value = float(match[1])
    return (value, " ".join(match[2].split())) if math.isfinite(value) else None


def _in_dollars(text: str) -> str:
    """Write a text with the sign of the dollar as one in USD: "$2.10/gpu/h" -> "2.10 USD/gpu/h", "2 $" -> "2 USD"."""
    before = _DOLLARS.match(text.lstrip())
    if before is None:
        return _DOLLARS.sub("USD", text, count=1)
    number = _NUMBER.match(text.lstrip()[before.end() :].lstrip())
    if number is None:
        return text
    rest = number[2].lstrip()
    suffix = rest[:1] if rest[:1] in _SUFFIX and not rest[1:2].isalpha() else ""
    return f"{number[1]} {suffix} USD{rest[len(suffix) :].lstrip()}"


def _count_suffix(rest: str) -> tuple[float, str]:
    """Split the count suffix off: "T tokens" -> (1e12, "tokens"), "tokens" -> (1, "tokens")."""
    head, _, tail = rest.partition(" ")
    if head in _SUFFIX:
        return _SUFFIX[head], tail
    return 1.0, rest


def _quoted(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def is_number(value: object) -> bool:
    """Tell whether a value of a JSON document is a number that a float can hold; true and false are none.

    >>> is_number(3), is_number(True), is_number(float("nan")), is_number(10**400)
    (True, False, False, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def parse(value: str | int | float, unit: str) -> float:
    """Parse a text such as "4.8 TB/s" to a number in the SI `unit`.

    Bare numbers are taken for counts and dimensionless quantities only.

    >>> parse("4.8 TB/s", "byte/s"), parse("15T tokens", "token"), parse(3, "chip")
    (4800000000000.0, 15000000000000.0, 3.0)
    """
    table = _TABLES[unit]
    noun, example = _EXPECTED[unit]
    error = UnitError(f'expected {noun} such as "{example}", got {_quoted(value)}', unit, example, _quoted(value))
    if isinstance(value, (int, float)):
        if "" not in table or not is_number(value):
            raise error
        return float(value)
    number = _number(value) if isinstance(value, str) else None
    if number is None:
        raise error
    amount, rest = number
    if rest not in table and unit in _COUNTS:
        scale, rest = _count_suffix(rest)
        amount *= scale
    factor = table.get(rest)
    if factor is None or not math.isfinite(amount * factor):
        raise error
    return amount * factor


def parse_money(text: str, per: str = "") -> tuple[float, str]:
    """Parse a text such as "2.95 USD/h" to an amount (per SI unit `per`) and a currency; "$" stands for USD.

    >>> parse_money("420M CNY"), parse_money("11.7M USD/MW", "W"), parse_money("$3600/gpu/hour", "chip s")
    ((420000000.0, 'CNY'), (11.7, 'USD'), (1.0, 'USD'))
    """
    example = _MONEY_EXAMPLE[per]
    error = UnitError(
        f'expected an amount of money such as "{example}", got {_quoted(text)}', "", example, _quoted(text)
    )
    number = _number(_in_dollars(text)) if isinstance(text, str) and len(text) <= MOST_CHARACTERS else None
    if number is None:
        raise error
    scale, rest = _count_suffix(number[1])
    rest = rest.replace(" / ", "/").replace(" /", "/").replace("/ ", "/")
    match = _CURRENCY.fullmatch(rest)
    factor = _MONEY_PER[per].get(match[2] or "") if match else None
    if match is None or factor is None or not math.isfinite(number[0] * scale / factor):
        raise error
    return number[0] * scale / factor, match[1]


@cache
def si_unit(unit: str) -> tuple[str, float]:
    """Look up the SI unit and factor of a unit as written in data: "TB/s" -> ("byte/s", 1e12).

    >>> si_unit("USD/kWh")[0], si_unit("USD/kW-month")[0], si_unit("")
    ('USD/J', 'USD/W s', ('1', 1.0))
    """
    if len(unit) > MOST_CHARACTERS:
        raise UnitError(Wrong("catalog.unknown_unit", given=_quoted(unit)))
    for si in ("1", *_TABLES):
        if unit in _TABLES[si]:
            return si, _TABLES[si][unit]
    if unit in _TABLES:
        return unit, 1.0
    match = _CURRENCY.fullmatch(unit)
    if match:
        for per, table in _MONEY_PER.items():
            if (match[2] or "") in table:
                return (f"{match[1]}/{per}" if per else match[1]), 1 / table[match[2] or ""]
            if match[2] == per:
                return unit, 1.0
    raise UnitError(Wrong("catalog.unknown_unit", given=f'"{unit}"'))


def is_money(unit: str) -> bool:
    """Tell whether an SI unit is an amount of money, possibly per something."""
    return unit not in _TABLES and _CURRENCY.fullmatch(unit) is not None


def parse_any(value: str | int | float, unit: str) -> tuple[float, str]:
    """Parse against an SI unit that may be money; money keeps the currency of the text.

    >>> parse_any("11.7M CNY/MW", "USD/W")
    (11.7, 'CNY/W')
    """
    if not is_money(unit):
        return parse(value, unit), unit
    currency, _, per = unit.partition("/")
    amount, found = parse_money(value, per)  # type: ignore[arg-type]
    return amount, unit if found == currency else found + unit[len(currency) :]


def noun(unit: str) -> str:
    """Name the quantity of an SI unit in a message.

    >>> noun("byte/s"), noun("s")
    ('a bandwidth', 'a time')
    """
    return _EXPECTED[unit][0]


def example(unit: str) -> str:
    """Give a well-formed text for an SI unit, for error messages.

    >>> example("byte/s"), example("USD/s")
    ('4.8 TB/s', '2.95 USD/h')
    """
    if unit in _EXPECTED:
        return _EXPECTED[unit][1]
    return _MONEY_EXAMPLE[unit.partition("/")[2]]


_LADDERS: dict[str, list[tuple[float, str]]] = {
    "s": [
        (NANO, "ns"),
        (MICRO, "us"),
        (MILLI, "ms"),
        (1, "s"),
        (MINUTE_S, "min"),
        (HOUR_S, "h"),
        (DAY_S, "d"),
        (YEAR_S, "years"),
    ],
    "byte": [(f, s) for s, f in _prefixed("B", "1kMGTPE").items()],
    "byte/s": [(f, s + "/s") for s, f in _prefixed("B", "1kMGTPE").items()],
    "FLOP": [(f, s) for s, f in _prefixed("FLOP", "1kMGTPE").items()],
    "FLOP/s": [(f, s + "/s") for s, f in _prefixed("FLOP", "1kMGTPE").items()],
    "W": [(f, s) for s, f in _POWER.items()],
    "J": [(1, "J"), (KILO, "kJ"), (KWH_J, "kWh"), (MWH_J, "MWh"), (KILO * MWH_J, "GWh")],
    "J/token": [(1, "J/token")],
    "kg": [(GRAM_KG, "g"), (1, "kg"), (TONNE_KG, "t"), (KILO * TONNE_KG, "kt")],
    "kg/J": [(GRAM_KG / KWH_J, "g/kWh")],
    "1/s": [(1, "/s")],
    "year": [(1, "years")],
    "degree": [(1, "degrees")],
}
_COUNT_WORDS = {
    "1": "",
    "token": " tokens",
    "token/s": " tokens/s",
    "request": " requests",
    "request/s": " requests/s",
    "chip": " chips",
    "system": " systems",
}
_MONEY_SHOW = {
    "": "",
    "s": "h",
    "J": "kWh",
    "byte": "GB",
    "W": "MW",
    "W s": "kW-month",
    "kg": "t",
    "token": "1M tokens",
    "chip": "chip",
    "chip s": "chip/h",
}
# A larger time unit is used only when at least this many of it, so that 90 s stays "90 s".
_AT_LEAST = {"min": 2, "h": 1, "d": 2, "years": 2}


def _digits(value: float) -> str:
    return f"{value:.4g}" if abs(value) < KILO else f"{value:.6g}"


def _count(value: float) -> str:
    size = abs(value)
    if size < 10 * THOUSAND:
        return _digits(value)
    for suffix, factor in reversed(_SUFFIX.items()):
        if size >= factor:
            return _digits(value / factor) + suffix
    return _digits(value)


def show(value: float, unit: str) -> str:
    """Write a number in the SI `unit` as text for people; `parse` reads it back to four digits.

    >>> show(4.8e12, "byte/s"), show(0.5, "s"), show(2e7, "USD"), show(1e-8, "USD/J")
    ('4.8 TB/s', '500 ms', '20M USD', '0.036 USD/kWh')
    """
    if unit in _LADDERS:
        ladder = _LADDERS[unit]
        factor, symbol = ladder[0] if value else next((r for r in ladder if r[0] == 1), ladder[0])
        for step, name in ladder:
            # half a unit of the fourth digit, so that 999.96 ms prints as 1 s and not as 1000 ms
            if abs(value) * (1 + 5e-5) >= step * _AT_LEAST.get(name, 1):
                factor, symbol = step, name
        return f"{_digits(value / factor)} {symbol}"
    if unit in _COUNT_WORDS:
        return _count(value) + _COUNT_WORDS[unit]
    if is_money(unit):
        currency, _, per = unit.partition("/")
        shown = _MONEY_SHOW[per]
        amount = _count(value * _MONEY_PER[per][shown])
        return f"{amount} {currency}" + (f"/{shown}" if shown else "")
    return f"{_digits(value)} {unit}"
