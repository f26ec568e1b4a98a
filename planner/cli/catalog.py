"""The commands `catalog list`, `catalog show` and `catalog check`: records, figures with their sources, and counts against published ones."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from catalog.errors import MissingFigure, UnknownName
from catalog.figures import Figure
from catalog.lookup import Catalog
from catalog.price_check import UNSTATED, price_faults
from catalog.records import Record
from catalog.schemas import SCHEMAS
from catalog.units import show
from planner.cli.helps import helped
from planner.cli.options import load_catalog
from planner.cli.output import rows_as, write_out
from planner.cli.prices import add_refresh
from planner.errors import Issue, SpecError, close_matches
from planner.escape import markdown, terminal
from planner.exit_codes import BUG, OK
from planner.facts.offers import below_older, old_prices, rent_below_older
from planner.messages import Message
from planner.version import RELEASED

if TYPE_CHECKING:
    from planner.cli.options import Commands


def add_catalog(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the commands `catalog list`, `catalog show`, `catalog check` and `catalog refresh`."""
    catalog = commands.add_parser("catalog", help=helped("help.catalog")).add_subparsers(
        metavar="list|show|check|refresh", required=True
    )
    listing = catalog.add_parser("list", parents=[shared], help=helped("help.catalog_list"))
    listing.add_argument("kind", nargs="?", help=helped("help.catalog_list_kind"))
    listing.set_defaults(run=_list, without_arrays=True)
    showing = catalog.add_parser("show", parents=[shared], help=helped("help.catalog_show"))
    showing.add_argument("name", help=helped("help.catalog_show_name"))
    showing.set_defaults(run=_show, without_arrays=True)
    checking = catalog.add_parser(
        "check",
        parents=[shared],
        help=helped("help.catalog_check"),
    )
    kinds = ["architectures", "prices"]
    checking.add_argument("kind", nargs="?", default=kinds[0], choices=kinds, help=helped("help.catalog_check_kind"))
    checking.set_defaults(run=_check)
    add_refresh(catalog, shared)


def _list(arguments: argparse.Namespace) -> int:
    write_out(arguments, rows_as(arguments.format, _list_rows(load_catalog(arguments), arguments.kind)))
    return OK


def _show(arguments: argparse.Namespace) -> int:
    catalog = load_catalog(arguments)
    record = _find(catalog, arguments.name)
    body = rows_as(arguments.format, _figure_rows(catalog, record))
    write_out(
        arguments,
        body
        if arguments.format in ("json", "csv")
        else f"{_heading(catalog, record, markdown if arguments.format == 'md' else terminal)}\n\n{body}",
    )
    return OK


def _check(arguments: argparse.Namespace) -> int:
    """Print every architecture with its counts; exit 1 where a complete shape is off the published count. Of prices, those in doubt; exit 1 where one of electricity states no contents."""
    from planner.resolve.stack.counts import counted_rows

    if arguments.kind == "prices":
        catalog = load_catalog(arguments)
        faults = price_faults(catalog)
        rows = [{"figure": f.path, "value": f.value, "date": f.date, "in doubt": f.fault} for f in faults]
        write_out(arguments, rows_as(arguments.format, [*rows, *_price_rows(catalog)]))
        return BUG if any(fault.fault == UNSTATED for fault in faults) else OK
    rows = counted_rows(load_catalog(arguments))
    write_out(arguments, rows_as(arguments.format, rows))
    return BUG if any(row["why"] and row["total_counted"] is not None for row in rows) else OK


BY_NAME = ("offers", "defaults")


def _price_rows(catalog: Catalog) -> list[dict[str, Any]]:
    """List the prices in doubt: rents below the rents of older chips, then figures that are old or have no date.

    Figures of one kind, name, date and doubt share a row, except in `BY_NAME`, whose prices carry a plan one by one.
    """
    doubts = [
        (f"offers/{name}/price", rent_below_older("", *pair).message) for name, pair in below_older(catalog).items()
    ]
    for path, age in old_prices(catalog, RELEASED):
        doubts.append((path, Message.of("market.undated") if age is None else Message.of("market.old", age=age)))
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    alike: Counter[tuple[str, ...]] = Counter()
    for path, doubt in doubts:
        kind, _, rest = path.partition("/")
        name, _, figure = rest.rpartition("/")
        shown = _row(catalog, figure, catalog.get(kind, name).figure(figure))
        row = {"figure": path, "value": shown["value"], "date": shown["date"], "in doubt": doubt.text()}
        key = (path if kind in BY_NAME else kind, figure, str(shown["date"]), doubt.text())
        alike[key] += 1
        rows[key] = row if alike[key] == 1 else row | {"figure": f"{kind}/*/{figure} ({alike[key]})", "value": ""}
    return list(rows.values())


def _list_rows(catalog: Catalog, kind: str | None) -> list[dict[str, Any]]:
    """List the kinds with their counts, or the records of one kind. Raises SpecError for an unknown kind."""
    if kind is None:
        return [
            {"kind": name, "records": len(catalog.names(name)), "holds": schema.words}
            for name, schema in SCHEMAS.items()
        ]
    if kind not in SCHEMAS:
        raise SpecError(
            [
                Issue(
                    "catalog list",
                    Message.of("option.unknown_kind", name=kind, close=close_matches(kind, SCHEMAS)).text(),
                )
            ]
        )
    return [
        {
            "name": record.name,
            "figures": len(record.figures),
            "announced only": "yes" if record.announced_only else "",
            "aliases": ", ".join(record.aliases),
        }
        for record in catalog.records(kind)
    ]


def _find(catalog: Catalog, name: str) -> Record:
    """Find the record with a name. Raises SpecError if none or several have it."""
    kind, slash, rest = name.partition("/")
    kinds, wanted = ([kind], rest) if slash and kind in SCHEMAS else (list(SCHEMAS), name)
    found = []
    for candidate in kinds:
        try:
            found.append(catalog.get(candidate, wanted))
        except UnknownName:
            continue
    if not found:
        labels = [label for k in kinds for r in catalog.records(k) for label in (r.name, *r.aliases)]
        words = Message.of("option.no_record", name=wanted, close=close_matches(wanted, labels)).text()
        raise SpecError([Issue("catalog show", words)])
    if len(found) > 1:
        several = ", ".join(f'"{record.kind}/{record.name}"' for record in found)
        raise SpecError([Issue("catalog show", Message.of("option.several_records", names=several).text())])
    return found[0]


def _figure_rows(catalog: Catalog, record: Record) -> list[dict[str, Any]]:
    """List the figures of a record, then those that are only claimed."""
    rows = [_row(catalog, figure, record.figures[figure]) for figure in sorted(record.figures)]
    return rows + [_row(catalog, f"{figure} (claimed)", record.claimed[figure]) for figure in sorted(record.claimed)]


def _heading(catalog: Catalog, record: Record, escaped: Callable[[str], str]) -> str:
    lines = [
        f"{record.kind}/{record.name}"
        + (f"  {Message.of('cli.announced_only').text()}" if record.announced_only else "")
    ]
    lines += [f"  {key}: {value}" for key, value in record.text.items() if not isinstance(value, tuple)]
    if record.kind == "architectures" and (size := _size(catalog, record)):
        lines.append(f"  {size}")
    return "\n".join(map(escaped, lines))


def _size(catalog: Catalog, record: Record) -> str:
    """Say how large an architecture is; empty where its shape is not complete."""
    from planner.resolve.architectures import shape_of
    from planner.resolve.ledger import Ledger
    from planner.resolve.stack.own import echo

    try:
        return echo(record, shape_of(record, Ledger(catalog))).text()
    except (MissingFigure, ValueError):
        return ""


def _row(catalog: Catalog, name: str, figure: Figure) -> dict[str, Any]:
    return {
        "figure": name,
        "value": figure.printed
        if isinstance(figure.value, tuple) or not figure.unit
        else show(figure.value, figure.unit),
        "low": show(figure.low, figure.unit) if figure.low is not None else "",
        "high": show(figure.high, figure.unit) if figure.high is not None else "",
        "kind": figure.kind,
        "confidence": figure.confidence,
        "date": figure.date or "",
        "source": "; ".join(_title(catalog, source) for source in figure.source),
        "note": figure.note,
    }


def _title(catalog: Catalog, source: str) -> str:
    try:
        return f"{source}: {catalog.source(source).title}"
    except UnknownName:
        return source
