"""The commands `catalog refresh`, which turns published price lists into an overlay with dates, and `stale`, which lists the figures behind a plan by age."""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.helps import helped
from planner.cli.options import load_catalog
from planner.cli.output import rows_as, write_out
from planner.cli.streams import print_out
from planner.errors import Issue, SpecError
from planner.escape import terminal
from planner.exit_codes import OK
from planner.files import write_file
from planner.messages import Message

if TYPE_CHECKING:
    from catalog.lookup import Catalog
    from planner.cli.options import Commands
    from planner.ways_in.price_lists import PriceList


def add_refresh(catalog: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `catalog refresh`."""
    refresh = catalog.add_parser("refresh", parents=[shared], help=helped("cli.refresh"))
    refresh.add_argument("files", metavar="FILE", nargs="+", help=helped("cli.refresh_files"))
    refresh.add_argument("--cloud", metavar="NAME", default="", help=helped("cli.refresh_cloud"))
    refresh.add_argument("--date", metavar="DATE", default="", help=helped("cli.refresh_date"))
    refresh.set_defaults(run=_refresh, output_is_folder=True)


def _refresh(arguments: argparse.Namespace) -> int:
    """Read every file before the first overlay is written, write one for each, and list the prices before and after."""
    from planner.facts import rows as fact_rows
    from planner.report.notes import told
    from planner.ways_in.price_lists import read_price_list, source_of

    _check_date(arguments.date)
    catalog = load_catalog(arguments)
    overlays, rows = {}, []
    for name in map(Path, arguments.files):
        date = arguments.date or datetime.fromtimestamp(name.stat().st_mtime, UTC).date().isoformat()
        found = read_price_list(name, catalog, date, arguments.cloud)
        overlays[f"{_bare(name.resolve().parent.name)}-{_bare(name.stem)}.json"] = {
            "sources": {source_of(name): {"title": source_of(name), "date": date, "confidence": "A"}},
            **found.records,
        }
        rows += _changes(found, catalog)
        if not arguments.quiet:
            for line in told(fact_rows(found.notes)):
                print(terminal(line), file=sys.stderr)
    if arguments.output and arguments.output != "-":
        for file, document in overlays.items():
            write_file(Path(arguments.output) / file, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    print_out(rows_as(arguments.format, rows))
    return OK


def add_stale(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `stale`."""
    stale = commands.add_parser("stale", parents=[shared], help=helped("cli.stale"))
    stale.add_argument("plan", metavar="PLAN", help=helped("help.plan_file"))
    stale.add_argument("--date", metavar="DATE", default="", help=helped("cli.stale_date"))
    stale.set_defaults(run=_stale)


def _stale(arguments: argparse.Namespace) -> int:
    """List the figures that carry the cost, the oldest first. Raises SpecError for a plan without an answer."""
    from planner.plan import load_plan
    from planner.report.why.stale import as_rows, stale

    _check_date(arguments.date)
    plan = load_plan(arguments.plan)
    now = arguments.date or datetime.now(UTC).date().isoformat()
    write_out(arguments, rows_as(arguments.format, [dict(row) for row in as_rows(stale(plan), plan, now)]))
    return OK


def _check_date(date: str) -> None:
    from catalog.dates import last_month

    if date and last_month(date) is None:
        raise SpecError([Issue("--date", Message.of("cli.refresh_no_date", given=date).text())])


def _bare(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "_", name) or "prices"


def _changes(found: PriceList, catalog: Catalog) -> list[dict[str, Any]]:
    """List each price with the one that the catalog has; without one the row is new."""
    from catalog.units import parse_any, show

    rows = []
    for kind, records in found.records.items():
        for record in records:
            known = catalog.get(kind, record["name"]) if catalog.has(kind, record["name"]) else None
            for figure, stated in record["figures"].items():
                before = known.get(figure) if known is not None else None
                row = {
                    "record": f"{kind}/{record['name']}/{figure}",
                    "before": "",
                    "dated": "",
                    "now": stated["value"],
                    "change": "",
                }
                if before is not None:
                    now, unit = parse_any(stated["value"], before.unit)
                    row |= {"before": show(before.number, before.unit), "dated": before.date or ""}
                    row |= (
                        {"change": f"{now / before.number - 1:+.1%}"} if unit == before.unit and before.number else {}
                    )
                rows.append(row)
    return rows
