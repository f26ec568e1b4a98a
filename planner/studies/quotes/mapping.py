"""Read quotes from mappings and files: the parts of a quote by name, or sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from catalog.errors import UnknownName, close_names
from catalog.lookup import Catalog
from catalog.units import UnitError, parse
from planner.errors import Issue, SpecError, close_words, unknown_record, words_of
from planner.messages import Message
from planner.spec.document import read_document
from planner.spec.quantities import shown
from planner.studies.quotes.quote import Moment, Quote
from planner.studies.quotes.sentence import Sentence, count_in, faults, left_in, price_in, read_sentence

Stated = str | Mapping[str, Any] | Quote
KEYS = (
    "system", "how", "price", "term", "regions", "at_least", "at_most", "exactly", "notice", "exit_fee", "delivery", "until",
    "interruption_interval",
)  # fmt: skip
"""Parts of a quote in a mapping."""
WAYS = ("buy", "reserved", "on_demand", "spot")
T = TypeVar("T")


def read_quotes(stated: Sequence[Stated], catalog: Catalog) -> tuple[Quote, ...]:
    """Read quotes, each a sentence, its parts by name, or read already. Raises SpecError with the faults of all of them."""
    found: list[Quote] = []
    problems: list[Issue] = [] if stated else [Issue("quotes", Message.of("quote.none_given").text())]
    for i, each in enumerate(stated):
        path = f"quotes[{i}]"
        quote, wrong = (
            (each, list(faults(each, catalog, path))) if isinstance(each, Quote) else _read(each, catalog, path)
        )
        problems += wrong
        found += [] if quote is None else [quote]
    if problems:
        raise SpecError(problems)
    return tuple(found)


def quotes_in(path: str | Path) -> list[str | Mapping[str, Any]]:
    """Return the quotes of a JSON file: a list under "quotes", or one quote by its parts. Raises SpecError, OSError."""
    document = read_document(Path(path).read_bytes())
    listed = document.get("quotes", [document])
    if not isinstance(listed, list) or not all(isinstance(each, str | Mapping) for each in listed):
        raise SpecError([Issue(str(path), Message.of("quote.list_expected").text())])
    return listed


def _read(stated: Any, catalog: Catalog, path: str) -> tuple[Quote | None, list[Issue]]:
    if isinstance(stated, str):
        return read_sentence(stated, catalog, path)
    if not isinstance(stated, Mapping):
        return None, [Issue(path, Message.of("quote.list_expected").text())]
    return _by_parts(stated, catalog, path)


def _by_parts(stated: Mapping[str, Any], catalog: Catalog, path: str) -> tuple[Quote | None, list[Issue]]:
    """Read a quote by its parts; None with the faults of each."""
    wrong: list[Issue] = []

    def part(key: str, read: Callable[[Any], T]) -> T | None:
        """Read one part; None where it is not stated or wrong, which is then noted."""
        if stated.get(key) is None:
            return None
        try:
            return read(stated[key])
        except UnknownName as error:
            wrong.append(Issue(f"{path}.{key}", unknown_record(error)))
        except (UnitError, ValueError, TypeError) as error:
            wrong.append(Issue(f"{path}.{key}", words_of(error)))
        return None

    for key in stated:
        if key not in KEYS:
            close = close_words(close_names(str(key), KEYS))
            wrong.append(
                Issue(f"{path}.{key}", Message.of("quote.key_unknown", close=close, keys=", ".join(KEYS)).text())
            )
    system = part("system", lambda name: catalog.get("systems", _text(name, "DGX H100")).name)
    how = part("how", _way)
    price = part("price", lambda text: _price(text, catalog))
    counts = _counts(stated, part, catalog)
    found: dict[str, Any] = {
        "term_s": part("term", lambda text: parse(_text(text, "1 year"), "s")),
        "notice_s": part("notice", lambda text: parse(_text(text, "90 d"), "s")),
        "exit_fee": part("exit_fee", lambda share: parse(share, "1")),
        "regions": part("regions", lambda names: _regions(names, catalog)) or (),
        "delivery": part("delivery", _moment),
        "until": part("until", _moment),
        "interruption_s": part("interruption_interval", lambda text: parse(_text(text, "12 h"), "s")),
    }
    for key, code in (("system", "system_missing"), ("how", "way_missing"), ("price", "price_missing")):
        if stated.get(key) is None:
            told = {"close": ""} if key == "system" else {}
            wrong.append(Issue(f"{path}.{key}", Message.of(f"quote.{code}", **told).text()))
    if wrong or system is None or how is None or price is None:
        return None, wrong
    quote = Quote(system=system, how=how, **price, **counts, **found)
    wrong = list(faults(quote, catalog, path))
    return (None, wrong) if wrong else (quote, [])


def _counts(
    stated: Mapping[str, Any], part: Callable[[str, Callable[[Any], Any]], Any], catalog: Catalog
) -> dict[str, Any]:
    """Read how many may be taken."""
    exactly, least, most = (
        part(key, lambda count: _count(count, catalog)) for key in ("exactly", "at_least", "at_most")
    )
    if exactly is not None:
        least = most = exactly
    units = {each[1] for each in (least, most) if each is not None}
    if len(units) > 1:
        part("at_least", _counted_in_both)
    return {
        "least": least and least[0],
        "most": most and most[0],
        "counted": units.pop() if len(units) == 1 else "system",
    }


def _counted_in_both(_: Any) -> None:
    raise ValueError(Message.of("quote.counted_in_both").text())


def _count(count: Any, catalog: Catalog) -> tuple[int, Any]:
    """Read (number, unit): a number of systems, or a text such as "400 chips". Raises ValueError."""
    if isinstance(count, int) and not isinstance(count, bool) and count > 0:
        return count, "system"
    said = Sentence(count if isinstance(count, str) else "", catalog)
    found = count_in(said)
    if "most" not in found or found.get("least") is not None or left_in(said):
        raise ValueError(Message.of("quote.count_expected", given=shown(count)).text())
    return found["most"], found["counted"]


def _price(text: Any, catalog: Catalog) -> dict[str, Any]:
    said = Sentence(_text(text, "2.10 USD/chip/h"), catalog)
    found = price_in(said)
    if said.wrong:
        raise ValueError(said.wrong[0].message)
    if found is None or left_in(said):
        raise ValueError(Message.of("quote.text_expected", example="2.10 USD/chip/h", given=shown(text)).text())
    return found


def _way(how: Any) -> Any:
    if how not in WAYS:
        raise ValueError(Message.of("quote.text_expected", example='", "'.join(WAYS), given=shown(how)).text())
    return how


def _regions(names: Any, catalog: Catalog) -> tuple[str, ...]:
    listed = [names] if isinstance(names, str) else list(names)
    return tuple(dict.fromkeys(catalog.get("regions", _text(name, "us-virginia")).name for name in listed))


def _moment(text: Any) -> Moment:
    """Read a day, or a time from the start of the horizon. Raises ValueError, UnitError."""
    stated = _text(text, "2027-06-01")
    return date.fromisoformat(stated) if stated.count("-") == 2 else parse(stated, "s")


def _text(value: Any, example: str) -> str:
    if not isinstance(value, str):
        raise ValueError(Message.of("quote.text_expected", example=example, given=shown(value)).text())
    return value
