"""The commands `characterise`, `codesign`, `kv-tiers` and `edge`: what lies below a workload, from chips to tiers of memory and devices."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.cli.options import add_limit_options, hourly_folders, overlay_folders, read_json, search_limits
from planner.cli.output import as_json, rows_as, said_if_left_out, write_out
from planner.errors import LimitReached
from planner.escape import markdown, terminal
from planner.exit_codes import INFEASIBLE, LIMIT, OK

if TYPE_CHECKING:
    from planner.cli.options import Commands


def add_codesign(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `codesign`."""
    parser = commands.add_parser(
        "codesign",
        parents=[shared],
        help="compare variants of an architecture on several chips: attention, precision, experts and width",
    )
    parser.add_argument("case", metavar="CASE", help='serving case with a block "codesign", or "-" for standard input')
    parser.add_argument(
        "--best", type=int, default=5, metavar="N", help="how many single changes of each chip to print (default: 5)"
    )
    add_limit_options(parser)
    parser.set_defaults(run=_codesign)


def add_characterise(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `characterise`."""
    parser = commands.add_parser(
        "characterise",
        parents=[shared],
        help="what workloads ask of any chip (bandwidth, intensity, collectives, memory), and which systems can carry them; of a spec, what they do per price, cost and watt",
    )
    parser.add_argument(
        "document", metavar="CASE|SPEC", help='JSON file of a case or a spec, or "-" for standard input'
    )
    add_limit_options(parser)
    parser.set_defaults(run=_characterise)


def _characterise(arguments: argparse.Namespace) -> int:
    from planner.estimate.characterise.answer import characterise, sections
    from planner.estimate.characterise.value import value_of_systems, with_value
    from planner.spec.series import with_series

    document = read_json(arguments.document)
    if "workloads" in document:
        document = with_series(document, hourly_folders(arguments, arguments.document))
    limits, code = search_limits(arguments), OK
    found = characterise(document, overlay_folders(arguments), limits)
    if "workloads" in document:
        try:
            found["value"] = value_of_systems(document, overlay_folders(arguments), limits)
        except LimitReached as error:
            print(terminal(str(error)), file=sys.stderr)
            found["value"], code = [], LIMIT
    rows = [{"workload": workload["name"], **row} for workload in found["workloads"] for row in workload["systems"]]
    if "value" in found:
        rows = with_value(rows, found["value"])
    _write(arguments, found, rows, found["note"], lambda: sections(found))
    able = all(any(row["can"] for row in workload["systems"]) for workload in found["workloads"])
    code = said_if_left_out(found) or code
    return code or (OK if able else INFEASIBLE)


def _codesign(arguments: argparse.Namespace) -> int:
    from planner.errors import Issue, SpecError
    from planner.estimate.codesign.answer import codesign, sections
    from planner.report.words import counted

    if arguments.best < 1:
        raise SpecError([Issue("--best", f"expected at least 1 change, got {arguments.best}")])
    found = codesign(read_json(arguments.case), overlay_folders(arguments), search_limits(arguments))
    if found.document is None:
        print(terminal(found.reason), file=sys.stderr)
        return INFEASIBLE
    document = found.document
    head = (
        f"{counted(document['variants'], 'variant')}, {document['running']:,} run within the limits; {document['note']}"
    )
    _write(arguments, document, found.rows, head, lambda: sections(document, arguments.best))
    return said_if_left_out(document)


def add_edge(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `edge`."""
    parser = commands.add_parser(
        "edge",
        parents=[shared],
        help="place the tasks of fleets of devices: on the device, near it or in a centre, at least cost within their deadlines",
    )
    parser.add_argument(
        "spec", metavar="SPEC", help='JSON file with fleets, tiers and tasks, or "-" for standard input'
    )
    add_limit_options(parser)
    parser.set_defaults(run=_edge)


def _edge(arguments: argparse.Namespace) -> int:
    from planner.studies.edge.answer import edge, sections

    found = edge(read_json(arguments.spec), overlay_folders(arguments), search_limits(arguments)).document
    rows = [{"task": task["name"], "runs_on": task["tier"], **row} for task in found["tasks"] for row in task["tiers"]]
    _write(arguments, found, rows, f"{found['name']}: {found['words']}", lambda: sections(found))
    code = said_if_left_out(found)
    return INFEASIBLE if found["status"] == "infeasible" else code


def add_kv_tiers(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `kv-tiers`."""
    parser = commands.add_parser(
        "kv-tiers",
        parents=[shared],
        help="choose the sizes of the tiers of KV cache of a serving case (HBM, host, pooled memory, disks, store) at least cost",
    )
    parser.add_argument("case", metavar="CASE", help='serving case with a block "kv_tiers", or "-" for standard input')
    add_limit_options(parser)
    parser.set_defaults(run=_kv_tiers)


def _kv_tiers(arguments: argparse.Namespace) -> int:
    from planner.report.words import counted
    from planner.studies.kv_tiers import kv_tiers, sections

    found = kv_tiers(read_json(arguments.case), overlay_folders(arguments), search_limits(arguments))
    if found["chosen"] is None:
        print(terminal("nothing fits: no combination of sizes carries a request within the limits"), file=sys.stderr)
        return INFEASIBLE
    factor = found["throughput_factor"]
    gain = "HBM only carries no request" if factor is None else f"{factor:.2f} times the requests of HBM only"
    head = f"{counted(found['combinations'], 'combination')} of sizes, {found['evaluated']:,} evaluated; {gain}"
    _write(arguments, found, found["tiers"], head, lambda: sections(found))
    return said_if_left_out(found)


Tables = Sequence[tuple[str, list[dict[str, Any]]]]


def _write(
    arguments: argparse.Namespace,
    document: Mapping[str, Any],
    rows: list[dict[str, Any]],
    head: str,
    tables: Callable[[], Tables],
) -> None:
    """Write a document as JSON, its rows as CSV, or a sentence and tables below their headings, as text or Markdown."""
    form = arguments.format
    if form == "json":
        return write_out(arguments, as_json(document))
    if form == "csv":
        return write_out(arguments, rows_as("csv", rows))
    mark, escaped = ("## ", markdown) if form == "md" else ("", terminal)
    parts = [f"{mark}{escaped(heading)}\n\n{rows_as(form, table)}" for heading, table in tables()]
    return write_out(arguments, "\n".join([f"{escaped(head)}\n", *parts]))
