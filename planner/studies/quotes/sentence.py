"""Read a quote from a sentence: "DGX H100 reserved 1y at 2.10 USD/chip/h in us-virginia, 400 chips".

Parts may stand in any order. Each is found by its own pattern and taken out of the sentence; the rest, besides words that
carry nothing, was not understood and is named. Systems and regions are records of the catalog, by name or alias.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from catalog.errors import close_names
from catalog.lookup import Catalog
from catalog.units import PERCENT
from planner.errors import Issue, close_words
from planner.messages import Message, enumerated
from planner.studies.quotes.quote import SECONDS, How, Moment, Quote, Time, Unit
from planner.ways_in.accelerators import CLOUDS, REGIONS, chip_called, system_with

MOST_CHARACTERS = 1000
TAKEN = " \x00 "
"""What stands in place of a part that was understood, so that its neighbours do not join."""
DIGITS = 12
"""To which a share is rounded that is written as a percentage."""
NODE = 8
"""Chips of the server that the name of a chip alone stands for."""

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
_COUNT = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)"
_TIMES = r"(hours?|hrs?|h|days?|d|weeks?|w|months?|mos?|m|years?|yrs?|y)\b"
_DURATION = rf"({_NUMBER})[\s-]*{_TIMES}"
_DATE = r"(\d{4}-\d{2}-\d{2})"
_CHIPS = r"chips?|gpus?|npus?|tpus?|accelerators?|cards?"
_SYSTEMS = r"systems?|servers?|nodes?|racks?|pods?|units?|machines?|instances?"
_SIGNS = {"US$": "USD", "$": "USD", "€": "EUR", "£": "GBP"}
_SCALES = {"k": 1e3, "m": 1e6, "bn": 1e9, "b": 1e9}
_PER = rf"(?:\s*(?:/|\bper\b|\ban?\b|\beach\b|-)\s*(?:{_CHIPS}|{_SYSTEMS}|hours?|hrs?|hr|h|days?|d|months?|mo|years?|yrs?|yr|y|annum)\b|\s+(?:hourly|daily|monthly|yearly|annually|each)\b)*"
_WAYS: tuple[tuple[How, str], ...] = (
    ("on_demand", r"on[\s-]demand|pay[\s-]as[\s-]you[\s-]go"),
    ("reserved", r"reserved|reservation|committed|commitment|leased?|lease"),
    ("spot", r"spot|preemptible"),
    ("buy", r"to\s+buy|buy|bought|purchased?|for\s+sale"),
)
_RENTED = r"rented|rental|rent|to\s+rent|hire"
_NOTHING = frozenset(
    {
        "of",
        "for",
        "the",
        "a",
        "an",
        "at",
        "in",
        "with",
        "and",
        "or",
        "we",
        "get",
        "offer",
        "offered",
        "quote",
        "quoted",
        "price",
        "priced",
        "cost",
        "costs",
        "per",
        "to",
        "each",
        "term",
        "is",
        "are",
        "it",
        "@",
        "take",
        "available",
        "contract",
        "system",
        "systems",
        "chips",
        "gpus",
        "us",
    }
)
"""Words that carry nothing where no pattern has taken them."""


@dataclass(slots=True)
class Sentence:
    """A sentence from which the parts that are understood are taken out one after the other; `wrong`: what was found to be wrong on the way."""

    text: str
    catalog: Catalog
    path: str = ""
    wrong: list[Issue] = field(default_factory=list)

    def take(self, pattern: str, flags: int = re.IGNORECASE) -> re.Match[str] | None:
        """Take out the first place that fits a pattern; None where none does."""
        found = re.search(pattern, self.text, flags)
        if found is not None:
            self.text = self.text[: found.start()] + TAKEN + self.text[found.end() :]
        return found

    def refuse(self, part: str, code: str, /, **told: str | int) -> None:
        """Name a part that is wrong or missing; its name is the end of the path."""
        self.wrong.append(Issue(".".join(filter(None, (self.path, part))), Message.of(code, **told).text()))


def read_sentence(text: str, catalog: Catalog, path: str = "") -> tuple[Quote | None, list[Issue]]:
    """Read a quote; None with its faults, part by part, where a part is missing or not understood.

    >>> quote, wrong = read_sentence("400 GPUs: DGX H100, 1-year reserved, $2.10/GPU/h in us-virginia", Catalog.load())
    >>> quote.sentence() if quote else wrong
    'DGX H100 reserved for 1 year at 2.1 USD/chip/h in us-virginia, at most 400 chips'
    """
    if len(text) > MOST_CHARACTERS or not text.strip():
        return None, [Issue(path, Message.of("quote.sentence_expected", most=MOST_CHARACTERS).text())]
    said = Sentence(" ".join(text.replace("\x00", " ").split()), catalog, path)
    system = _system(said) or _chip(said)
    stated: dict[str, Any] = {
        "exit_fee": _exit_fee(said),
        "notice_s": _seconds(said, rf"(?:with\s+)?notice(?:\s+period)?(?:\s+of)?\s+{_DURATION}", rf"{_DURATION}['’]?s?\s+notice"),
        "delivery": _moment(said, r"(?:deliver(?:y|ed|able)|available)\s*(?:from|in|within|after|on|by)?\s*", r"\bfrom\s+"),
        "until": _moment(said, r"(?:valid\s+|available\s+)?\buntil\s+"),
        "interruption_s": _seconds(said, rf"interrupted\s+(?:about\s+)?every\s+{_DURATION}"),
    }  # fmt: skip
    price = price_in(said)
    stated["regions"] = _regions(said)
    stated |= count_in(said)
    stated["term_s"] = _seconds(
        said, rf"\b(?:(?:for|over|term\s+of|term|commitment\s+of)\s+)?{_DURATION}(?:\s+(?:term|commitment|contract))?"
    )
    committed = any(stated[part] is not None for part in ("term_s", "notice_s", "exit_fee"))
    how = _way(said, committed, price)
    left = left_in(said)
    if not system:
        close = close_names(left or said.text, list(labels_of(catalog, "systems")))
        said.refuse("system", "quote.system_missing", close=close_words(close))
    if left:
        said.refuse("", "quote.not_understood", words=left)
    if price is None:
        said.refuse("price", "quote.price_missing")
    if how is None:
        said.refuse("how", "quote.way_missing")
    if said.wrong or price is None or how is None:
        return None, said.wrong
    quote = Quote(system=system, how=how, **price, **stated)
    wrong = list(faults(quote, catalog, path))
    return (None, wrong) if wrong else (quote, [])


def faults(quote: Quote, catalog: Catalog, path: str = "") -> Iterator[Issue]:
    """Yield what parts of a quote say against each other, with the remedy."""

    def fault(part: str, code: str, /, **told: str | int) -> Issue:
        return Issue(".".join(filter(None, (path, part))), Message.of(f"quote.{code}", **told).text())

    bought, chips = quote.how == "buy", _chips(catalog, quote.system)
    if bought and quote.time:
        yield fault("price", "purchase_by_time", time=quote.time)
    if not bought and not quote.time:
        yield fault("price", "rent_without_time", price=quote.price)
    for part, value in (("term", quote.term_s), ("notice", quote.notice_s), ("exit_fee", quote.exit_fee)):
        if value is not None and quote.how != "reserved":
            yield fault(part, "only_reserved", part=Message.of(f"quote.part_{part}").text())
    if quote.exit_fee is not None and quote.how == "reserved" and quote.least_time_s is None:
        yield fault("exit_fee", "exit_without_term")
    if quote.exit_fee is not None and not 0.0 <= quote.exit_fee <= 1.0:
        yield fault("exit_fee", "exit_beyond_rent")
    if (quote.how == "spot") != (quote.interruption_s is not None):
        yield fault("interruption", "spot_without_interruption" if quote.how == "spot" else "interruption_without_spot")
    if quote.least is not None and quote.most is not None and quote.least > quote.most:
        yield fault("count", "least_above_most", least=quote.least, most=quote.most)
    if chips is None:
        yield fault("system", "system_without_chips", system=quote.system)
        return
    least, most = quote.systems(chips)
    if most is not None and (most < 1 or (least or 1) > most):
        shown = f"{chips:g}"
        yield fault("count", "no_whole_system", system=quote.system, chips=shown, count=quote.most or 0)


def _system(said: Sentence) -> str:
    """Take out the longest name or alias of a system; empty where there is none."""
    for label, name in sorted(labels_of(said.catalog, "systems").items(), key=lambda each: -len(each[0])):
        if _taken_with_count(said, _spelled(label), "systems"):
            return name
    typed = {word.lower().strip(",;:") for word in said.text.split()}
    for record in said.catalog.records("systems"):
        types = record.name.lower().split(" ", 1)[-1].split(" / ")
        if record.name.startswith(CLOUDS) and (found := typed & set(types)):
            _taken_with_count(said, _spelled(found.pop()), "systems")
            return record.name
    return ""


def _taken_with_count(said: Sentence, pattern: str, counted: str) -> bool:
    """Take out a name; a number in front of the name stays, as a number of chips or systems, as `counted` says."""
    counts = re.search(rf"(?<![\w.,])({_COUNT})\s*(?:x|×)?\s*{pattern}", said.text, re.IGNORECASE)
    if counts is None:
        return said.take(pattern) is not None
    said.text = f"{said.text[: counts.start()]}{counts[1]} {counted}{TAKEN}{said.text[counts.end() :]}"
    return True


def _chip(said: Sentence) -> str:
    """Take out the name of a chip, which stands for the server with eight of them; empty where there is none."""
    words = [
        word for word in re.split(r"[\s,;:()]+", said.text) if re.search(r"[A-Za-z]", word) and re.search(r"\d", word)
    ]
    for word in words:
        chip = chip_called(word, said.catalog)
        system = system_with(chip, NODE, said.catalog) if chip else ""
        if system:
            _taken_with_count(said, rf"(?<!\w){re.escape(word)}(?!\w)", "chips")
            return system
    return ""


def _regions(said: Sentence) -> tuple[str, ...]:
    """Take out the regions; none for anywhere. A word after "in" that is no region is wrong."""
    if said.take(r"\b(?:anywhere|at\s+any\s+site|at\s+all\s+sites)\b"):
        return ()
    known = {label: name for label, name in labels_of(said.catalog, "regions").items() if label}
    known |= {cloud: name for cloud, name in REGIONS.items() if said.catalog.has("regions", name)}
    by_spelling = {re.sub(r"[\s_-]+", " ", label).casefold(): name for label, name in known.items()}
    every = "|".join(_spelled(label) for label in sorted(known, key=len, reverse=True))
    found = said.take(rf"\b(?:in|at)\s+(?:{every})(?:\s*(?:,|\band\b|\bor\b|,\s*or\b)\s*(?:in\s+)?(?:{every}))*")
    if found is not None:
        names = re.findall(every, found[0], re.IGNORECASE)
        return tuple(dict.fromkeys(by_spelling[re.sub(r"[\s_-]+", " ", name).casefold()] for name in names))
    unknown = said.take(r"\bin\s+([^\s,;\x00]+)")
    if unknown is not None:
        said.refuse("where", "quote.region_unknown", name=unknown[1], close=close_words(close_names(unknown[1], known)))
    return ()


def price_in(said: Sentence) -> dict[str, Any] | None:
    """Take out the price: amount, currency, of what and for which time."""
    codes = [
        "USD",
        *(
            name.removeprefix("exchange_").upper()
            for name in said.catalog.names("defaults")
            if name.startswith("exchange_")
        ),
    ]
    code, signs = "|".join(codes), "|".join(map(re.escape, _SIGNS))
    lead = r"(?:(?:at|for|@|price|costs?)\s+)?"
    patterns = (
        rf"{lead}(?P<sign>{signs})\s*(?P<number>{_NUMBER})(?:\s*(?P<scale>k|m|bn?)(?![a-z]))?(?P<per>{_PER})",
        rf"{lead}(?P<sign>\b(?:{code}))\s+(?P<number>{_NUMBER})(?:\s*(?P<scale>k|m|bn?)(?![a-z]))?(?P<per>{_PER})",
        rf"{lead}(?<![\w.])(?P<number>{_NUMBER})\s*(?P<scale>k|m|bn?)?\s*(?P<sign>(?:{code})\b|{signs})(?P<per>{_PER})",
    )
    found = next(filter(None, map(said.take, patterns)), None)
    if found is None:
        return None
    sign, per = found["sign"].upper(), found["per"].lower()
    times = [_time(word) for word in re.findall(r"[a-z]+", per)]
    number = float(found["number"].replace(",", "")) * _SCALES.get((found["scale"] or "").lower(), 1.0)
    units = re.findall(rf"\b(?:({_CHIPS})|{_SYSTEMS})\b", per)
    distinct = [time for time in dict.fromkeys(times) if time]
    if len(distinct) > 1 or len(units) > 1:
        said.refuse("price", "quote.price_of_several", given=found[0].strip())
    return {
        "amount": number,
        "currency": _SIGNS.get(sign, sign),
        "per": "chip" if units and units[0] else "system",
        "time": distinct[0] if distinct else "",
    }


def _time(word: str) -> Time:
    """Return the time that a word of a price names; empty for none."""
    starts: dict[str, Time] = {"h": "h", "d": "day", "mo": "month", "y": "year", "an": "year"}
    if word in ("an", "a"):
        return ""
    return next((time for start, time in starts.items() if word.startswith(start)), "")


def count_in(said: Sentence) -> dict[str, Any]:
    """Take out how many may be taken: "400 chips" and "up to" are the most; "at least", "exactly" and "50 to 400" as they say."""
    unit = rf"(?:x\s*)?({_CHIPS}|(?:{_SYSTEMS}))\b"
    ends = said.take(rf"(?<![\w.])({_COUNT})\s*(?:to|-|–)\s*({_COUNT})\s*{unit}")
    if ends is not None:
        return {"least": _whole(ends[1]), "most": _whole(ends[2]), "counted": _unit(ends[3])}
    words = r"(at\s+most|up\s+to|max(?:imum)?|no\s+more\s+than|at\s+least|min(?:imum)?|no\s+fewer\s+than|exactly|all(?:\s+of)?|all\s+or\s+nothing)"
    one = said.take(rf"(?:\b{words}\s*:?\s+)?(?<![\w.])({_COUNT})\s*{unit}")
    if one is None:
        return {}
    count, counted = _whole(one[2]), _unit(one[3])
    word = " ".join((one[1] or "").lower().split())
    whole = said.take(r"\b(?:all\s+or\s+nothing|all\s+or\s+none|take\s+it\s+or\s+leave\s+it)\b") is not None
    if whole or word == "exactly" or word.startswith("all"):
        return {"least": count, "most": count, "counted": counted}
    if word.startswith(("at least", "min", "no fewer")):
        most = said.take(rf"\b(?:at\s+most|up\s+to)\s+({_COUNT})\s*{unit}")
        if most is not None and _unit(most[2]) != counted:
            said.refuse("count", "quote.counted_in_both")
        return {"least": count, "most": _whole(most[1]) if most else None, "counted": counted}
    return {"most": count, "counted": counted}


def _exit_fee(said: Sentence) -> float | None:
    fee = said.take(rf"(?:with\s+)?(?:an?\s+)?exit\s+fee(?:\s+of)?\s*({_NUMBER})\s*%") or said.take(
        rf"({_NUMBER})\s*%\s*exit\s+fee"
    )
    return None if fee is None else round(_number(fee[1]) * PERCENT, DIGITS)


def _seconds(said: Sentence, *patterns: str) -> float | None:
    """Take out a time [s] by the first of some patterns that fits."""
    found = next(filter(None, map(said.take, patterns)), None)
    return None if found is None else _time_s(found[1], found[2])


def _moment(said: Sentence, before: str, other: str = "") -> Moment | None:
    """Take out a day, or a time from the start of the horizon, that stands after some words; a day alone after the `other` ones."""
    found = said.take(before + _DATE) or (said.take(other + _DATE) if other else None)
    if found is not None:
        try:
            return date.fromisoformat(found[1])
        except ValueError:
            said.refuse("delivery" if "deliver" in before else "until", "quote.no_such_day", given=found[1])
            return None
    after = said.take(before + _DURATION)
    return None if after is None else _time_s(after[1], after[2])


def _way(said: Sentence, committed: bool, price: dict[str, Any] | None) -> How | None:
    """Take out the way to obtain; a rental is reserved where it has a term, a notice or an exit fee, and a price without a time is that of a purchase."""
    for how, pattern in _WAYS:
        if said.take(rf"\b(?:{pattern})\b"):
            return how
    rented = said.take(rf"\b(?:{_RENTED})\b") is not None
    if rented or (price is not None and price["time"]):
        return "reserved" if committed else "on_demand" if rented else None
    return None if price is None else "buy"


def left_in(said: Sentence) -> str:
    """Return what no pattern has taken, without the words that carry nothing."""
    pieces = re.split(r"[\x00,;:.]+(?:\s|$)|\x00|[()]", said.text)
    kept = (" ".join(word for word in piece.split() if word.lower().strip(",.;:") not in _NOTHING) for piece in pieces)
    return enumerated([f'"{piece}"' for piece in kept if re.search(r"\w", piece)] or [""])


def labels_of(catalog: Catalog, kind: str) -> dict[str, str]:
    """Return the record of each name and alias of a kind."""
    return {label: record.name for record in catalog.records(kind) for label in (record.name, *record.aliases)}


def _spelled(label: str) -> str:
    """Return the pattern of a name, whatever its spaces and hyphens."""
    words = [re.escape(word) for word in re.split(r"[\s_-]+", label) if word]
    return r"(?<![\w-])" + r"[\s_-]+".join(words) + r"(?![\w])"


def _chips(catalog: Catalog, system: str) -> float | None:
    figure = catalog.get("systems", system).get("chips")
    return None if figure is None else figure.number


def _unit(word: str) -> Unit:
    return "chip" if re.fullmatch(_CHIPS, word, re.IGNORECASE) else "system"


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def _time_s(number: str, unit: str) -> float:
    """Convert a time in words to seconds."""
    starts = {"h": "h", "d": "day", "w": "week", "m": "month", "y": "year"}
    return _number(number) * SECONDS[starts[unit[0].lower()]]
