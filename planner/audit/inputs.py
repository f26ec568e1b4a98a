"""Turn the quantities of a claim into numbers: texts, figures of the catalog, rents at market, rates of exchange and figures of plans.

What comes out is all that a judge sees, so that a judge is a function of its inputs alone.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from catalog.errors import CatalogError, MissingFigure, UnknownName
from catalog.exchange import per_usd
from catalog.figures import Figure
from catalog.lookup import Catalog
from catalog.schemas import SCHEMAS
from planner.audit.formulas import Formula, FormulaError, formula
from planner.audit.quantities import Quantity, digits, parse, product, shown_unit, unit_of, unit_words
from planner.audit.verdicts import Claimed, Free
from planner.errors import words_of
from planner.facts.prices import landlord_rents
from planner.messages import Message
from planner.packed import EXAMPLES, unpacked
from planner.plan import Plan
from planner.report.why.ratios import ratios
from planner.spec.claims import Claim, Given
from planner.spec.document import TOO_DEEP

_EACH = {"chips": "chip", "systems": "node", "offers": "node"}  # what a figure of these kinds is of one of
NOTHING = "none"  # what is known of a property that the maker does not state
SHIPPED_EXAMPLE = "@examples/"  # before the path of an example that comes with the program
RATIOS = "ratios."  # before the code of a ratio of a plan
SAME = 0.02  # relative difference up to which two figures count as the same
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Alike:
    """Something with a figure of its own, which a claim may have taken for another; `is_`: in words."""

    is_: str
    quantity: Quantity


@dataclass(frozen=True, slots=True)
class Property:
    """A property as claimed and as known: quantities, or words where either is none; `identity`: another word is another product."""

    what: str
    claimed: str
    known: str
    claimed_quantity: Quantity | None
    known_quantity: Quantity | None
    identity: bool
    alike: tuple[Alike, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a judge sees of a claim: the claimed figure, its quantities, the formula (none where a judge needs none), properties."""

    claimed: Claimed | None
    quantities: Mapping[str, Quantity]
    formula: Formula | None
    bound: str
    free: Free | None
    properties: tuple[Property, ...]
    unit: str
    factor: float


def inputs_of(claim: Claim, text: str, catalog: Catalog, folder: Path) -> Inputs:
    """Resolve a claim, whose judge computes by the formula `text`. Raises ValueError with a sentence that begins with the key."""
    quantities = {name: _at(f"quantities.{name}", given, catalog, folder) for name, given in claim.quantities.items()}
    claimed = None if claim.figure is None else Claimed(_parsed("figure", claim.figure), claim.sense, claim.within)
    unit = shown_unit(claim.figure)
    found = None
    if text:
        try:
            found = formula(text, quantities)
        except FormulaError as error:
            raise ValueError(f"formula: {error}") from None
        found.interval()
        if claimed is not None and found.dimensions != claimed.figure.dimensions:
            words = (unit_words(found.dimensions) or "1", unit_words(claimed.figure.dimensions) or "1")
            raise ValueError(f"formula: {Message.of('audit.other_unit', found=words[0], claimed=words[1]).text()}")
        unit = unit if claimed is not None else unit_words(found.dimensions)
    return Inputs(
        claimed, quantities, found, claim.bound, _free(claim, quantities, found),
        tuple(_property(claim, place, catalog, folder) for place in range(len(claim.facts))), unit, unit_of(unit)[0] if claimed is not None else 1.0,
    )  # fmt: skip


def _parsed(key: str, value: str | float, source: str = "") -> Quantity:
    try:
        return parse(value, source)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _free(claim: Claim, quantities: Mapping[str, Quantity], found: Formula | None) -> Free | None:
    if claim.free is None:
        return None
    stated = claim.free
    if found is None or stated.name not in found.quantities:
        raise ValueError(
            f"free.name: {Message.of('audit.free_unknown', name=stated.name, known=', '.join(quantities)).text()}"
        )
    start, end = _parsed("free.from", stated.start), _parsed("free.to", stated.end)
    if {start.dimensions, end.dimensions} != {quantities[stated.name].dimensions} or not start.value < end.value:
        raise ValueError(f"free: {Message.of('audit.free_range', name=stated.name).text()}")
    unit = shown_unit(stated.end)
    return Free(
        stated.name, start.value, end.value, unit, unit_of(unit)[0], stated.words or stated.name.replace("_", " ")
    )


def _at(key: str, given: Given, catalog: Catalog, folder: Path) -> Quantity:
    try:
        return quantity_of(given, catalog, folder)
    except (UnknownName, MissingFigure, CatalogError) as error:
        raise ValueError(f"{key}: {words_of(error)}") from None
    except OSError as error:
        raise ValueError(f"{key}: {error.filename}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def quantity_of(given: Given, catalog: Catalog, folder: Path) -> Quantity:
    """Resolve one quantity. Raises ValueError with a sentence, errors of the catalog, and OSError."""
    if given.plan is not None:
        found = _of_plan(given, folder)
    elif isinstance(given.value, str) and given.value.startswith("@"):
        found = _of_catalog(given.value[1:], catalog)
    else:
        found = parse(given.value if given.value is not None else "")
    if given.low is not None or given.high is not None:
        ends = [found if each is None else parse(each) for each in (given.low, given.high)]
        if {each.dimensions for each in ends} != {found.dimensions} or not ends[0].low <= found.value <= ends[1].high:
            raise ValueError(Message.of("audit.range_expected", given=found.stated).text())
        found = replace(found, low=ends[0].low, high=ends[1].high)
    return replace(
        found, source=given.source or found.source, command=given.command or found.command, key=given.key or ""
    )


def _of_plan(given: Given, folder: Path) -> Quantity:
    """Read a figure of a stored plan, with the command that prints the plan."""
    file, key = str(given.plan), str(given.key)
    path = EXAMPLES / file.removeprefix(SHIPPED_EXAMPLE) if file.startswith(SHIPPED_EXAMPLE) else folder / file
    try:
        document = json.loads(unpacked(path.read_bytes()))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    value = _ratio(document, key) if key.startswith(RATIOS) else value_at(document, key)
    found = replace(parse(f"{value!r} {given.unit}"), stated=f"{digits(value)} {given.unit}".strip())
    if given.by_gap:
        found = replace(found, low=found.value - abs(found.value) * max(0.0, value_at(document, "gap")))
    shown = shlex.quote(file.removeprefix("@"))
    return replace(found, source=f"{file.removeprefix('@')}: {key}", command=f"flopwatt show {shown} --format json")


def _ratio(document: dict[str, Any], key: str) -> float:
    """Return a ratio of a plan by its code, such as "ratios.busy". Raises ValueError where the plan has none."""
    code = key.removeprefix(RATIOS)
    with suppress(KeyError, IndexError, TypeError, AttributeError, ArithmeticError):  # a file that is no plan
        for row in ratios(Plan.of(document)):
            if row["code"] == code and not row["of"]:
                return row["value"]
    raise ValueError(Message.of("audit.no_such_key", key=key).text())


def value_at(document: Any, key: str) -> float:
    """Return the number at a path such as "tiers[0].share". Raises ValueError where there is none."""
    node = document
    for match in _STEP.finditer(key):
        try:
            node = node[int(match[2])] if match[2] is not None else node[match[1]]
        except (KeyError, IndexError, TypeError):
            raise ValueError(Message.of("audit.no_such_key", key=key).text()) from None
    if isinstance(node, bool) or not isinstance(node, (int, float)):
        raise ValueError(Message.of("audit.no_such_key", key=key).text())
    with suppress(OverflowError):
        return float(node)
    raise ValueError(Message.of("audit.no_such_key", key=key).text())


def _of_catalog(path: str, catalog: Catalog) -> Quantity:
    kind, _, rest = path.partition("/")
    if kind == "market":
        return _market(rest, catalog)
    if kind == "exchange":
        rate = per_usd(catalog, rest)
        if rate is None:
            raise ValueError(Message.of("audit.no_rate", given=rest).text())
        return replace(
            parse(f"{rate!r} {rest}/USD"),
            source=_cited(catalog, catalog.get("defaults", f"exchange_{rest.lower()}").figure("value")),
        )
    figure, record = figure_of(path, catalog)
    if figure is None:
        raise ValueError(Message.of("audit.no_figure", given=path).text())
    found, each = _quantity(figure, catalog, record), _EACH.get(kind)
    if (
        each is None
        or not found.dimensions
        or any(name == each for name, _ in found.dimensions)
        or path.endswith("scaleup_chips")
    ):
        return found
    return replace(
        found, dimensions=product([(found.dimensions, 1), (((each, 1),), -1)]), stated=f"{found.stated}/{each}"
    )


def figure_of(path: str, catalog: Catalog) -> tuple[Figure | None, str]:
    """Find the figure "chips/NAME/FIGURE", None where the record states none, and the name of the record. Raises UnknownName, ValueError."""
    kind, _, rest = path.partition("/")
    name, _, key = rest.rpartition("/")
    if kind not in SCHEMAS or not name:
        raise ValueError(Message.of("audit.path_expected", given=path).text())
    record = catalog.get(kind, name)
    if key not in SCHEMAS[kind].figures and key not in record.figures:
        raise ValueError(Message.of("audit.path_expected", given=path).text())
    return record.get(key), record.name


def _quantity(figure: Figure, catalog: Catalog, name: str) -> Quantity:
    factor, dimensions = unit_of(figure.unit)
    value = figure.number * factor
    low = value if figure.low is None else figure.low * factor
    high = value if figure.high is None else figure.high * factor
    return Quantity(
        value, min(low, value), max(high, value), dimensions, figure.printed, f"{name}: {_cited(catalog, figure)}"
    )


def _cited(catalog: Catalog, figure: Figure) -> str:
    titles = [catalog.source(each).title for each in figure.source]
    return "; ".join(titles) + (f" ({figure.date})" if figure.date else "")


def _market(text: str, catalog: Catalog) -> Quantity:
    """Return what renting a chip costs, "CHIP" in USD or "CHIP in CNY": the median over landlords of the cheapest offer of each, with both ends.

    The same rents stand in the answer of `roi --market` (`planner.facts.prices.landlord_rents`).
    """
    chip, _, code = text.partition(" in ")
    name, code = catalog.get("chips", chip).name, code.strip() or "USD"
    if (rate := per_usd(catalog, code)) is None:
        raise ValueError(Message.of("audit.no_rate", given=code).text())
    found = [rent * rate for rent in landlord_rents(catalog, name)]
    if not found:
        raise ValueError(Message.of("audit.no_market", chip=name).text())
    _, dimensions = unit_of(f"{code}/chip/h")
    middle = median(found)
    source = Message.of("audit.market", count=len(found), chip=name).text()
    return Quantity(middle, found[0], found[-1], dimensions, f"{middle * 3600:.3g} {code}/chip/h", source)


def _property(claim: Claim, place: int, catalog: Catalog, folder: Path) -> Property:
    """Resolve one property; a figure that its record lacks is known as "none"."""
    fact, key = claim.facts[place], f"facts[{place}]"
    claimed_quantity = _or_words(fact.claimed)
    known: Quantity | None = None
    alike: list[Alike] = []
    given = fact.known
    words = str(given.value) if given.value is not None else ""
    source = given.source
    if words.startswith("@"):
        known, words, cited, alike = _looked_up(words[1:], key, claimed_quantity, catalog)
        source = source or cited
    elif words != NOTHING:
        known = _or_words(words)
        source = source or claim.note
    if known is not None and claimed_quantity is None and re.match(r"\s*[-+]?\d", fact.claimed):
        _parsed(f"{key}.claimed", fact.claimed, "")  # a figure whose unit is unknown is no text
    alike += [Alike(each.is_, _reading(f"{key}.readings", each.value, catalog)) for each in fact.readings]
    if known is not None and claimed_quantity is not None and known.dimensions != claimed_quantity.dimensions:
        pair = (unit_words(known.dimensions) or "1", unit_words(claimed_quantity.dimensions) or "1")
        raise ValueError(f"{key}: {Message.of('audit.other_unit', found=pair[0], claimed=pair[1]).text()}")
    return Property(fact.what, fact.claimed, words, claimed_quantity, known, fact.identity, tuple(alike), source)


def _reading(key: str, given: Given, catalog: Catalog) -> Quantity:
    """Resolve the figure of a reading: one of a record as it stands there, or a text. Raises ValueError."""
    text = given.value
    if not (isinstance(text, str) and text.startswith("@")):
        return _parsed(key, text if text is not None else "", given.source)
    try:
        figure, record = figure_of(text[1:], catalog)
    except UnknownName as error:
        raise ValueError(f"{key}: {words_of(error)}") from None
    if figure is None:
        raise ValueError(f"{key}: {Message.of('audit.no_figure', given=text).text()}")
    return _quantity(figure, catalog, record)


def _looked_up(
    path: str, key: str, claimed: Quantity | None, catalog: Catalog
) -> tuple[Quantity | None, str, str, list[Alike]]:
    """Return what the catalog knows at a path, as a quantity or words, its source, and other figures of the record with the claimed one's unit."""
    kind, _, rest = path.partition("/")
    name, _, attribute = rest.rpartition("/")
    try:
        record = catalog.get(kind, name) if kind in SCHEMAS and name else None
    except UnknownName as error:
        raise ValueError(f"{key}.known: {words_of(error)}") from None
    if record is None:
        raise ValueError(f"{key}.known: {Message.of('audit.path_expected', given=path).text()}")
    if attribute in record.text:
        return None, record.words(attribute), record.name, []
    if attribute not in SCHEMAS[kind].figures:
        raise ValueError(f"{key}.known: {Message.of('audit.path_expected', given=path).text()}")
    figure = record.get(attribute)
    if figure is None:
        return None, NOTHING, record.name, []
    others = [
        Alike(
            Message.of("audit.other_figure", figure=other, record=record.name).text(),
            _quantity(each, catalog, record.name),
        )
        for other, each in record.figures.items()
        if other != attribute and each.unit == figure.unit and claimed is not None
    ]
    found = _quantity(figure, catalog, record.name)
    return found, found.stated, found.source, others


def _or_words(text: str) -> Quantity | None:
    """Read a text as a quantity; None for words."""
    if not re.match(r"\s*[-+]?\d", text):
        return None
    try:
        return parse(text)
    except ValueError:
        return None


def is_same(first: Quantity, second: Quantity, within: float = SAME) -> bool:
    """Tell whether two figures have the same unit and, within a relative difference, the same value."""
    return first.dimensions == second.dimensions and abs(first.value - second.value) <= within * abs(second.value)


def needed(quantities: Sequence[str], names: Sequence[str]) -> list[str]:
    """List names that are missing among the quantities."""
    return [name for name in names if name not in quantities]
