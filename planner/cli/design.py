"""The commands `characterise`, `codesign`, `kv-tiers` and `edge`: what lies below a workload, from chips to tiers of memory and devices."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from planner.cli.helps import helped
from planner.cli.options import add_limit_options, case_document, hourly_folders, overlay_folders, search_limits
from planner.cli.output import as_json, rows_as, said_if_left_out, write_out
from planner.errors import LimitReached
from planner.escape import markdown, terminal
from planner.exit_codes import INFEASIBLE, LIMIT, OK
from planner.messages import Message

if TYPE_CHECKING:
    from planner.cli.options import Commands


@dataclass(frozen=True, slots=True)
class DesignCommand:
    """A command of `planner/design/`: what it is for, the document that it takes, and what runs it."""

    name: str
    help: str
    argument: str
    metavar: str
    argument_help: str
    run: Callable[[argparse.Namespace], int]


def add_designs(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add each command of `DESIGNS`."""
    for design in DESIGNS:
        parser = commands.add_parser(design.name, parents=[shared], help=helped(design.help))
        parser.add_argument(design.argument, metavar=design.metavar, help=helped(design.argument_help))
        if design.name == "codesign":
            parser.add_argument("--best", type=int, default=5, metavar="N", help=helped("help.codesign_best"))
        add_limit_options(parser)
        parser.set_defaults(run=design.run)


def _characterise(arguments: argparse.Namespace) -> int:
    from planner.design.characterise.answer import characterise, sections
    from planner.design.characterise.value import value_of_systems, with_value
    from planner.spec.series import with_series

    document = case_document(arguments, arguments.document)
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
    from planner.design.codesign.answer import codesign, sections
    from planner.errors import Issue, SpecError
    from planner.report.words import counted

    if arguments.best < 1:
        raise SpecError([Issue("--best", Message.of("option.at_least_one_change", given=str(arguments.best)).text())])
    found = codesign(case_document(arguments, arguments.case), overlay_folders(arguments), search_limits(arguments))
    if found.document is None:
        print(terminal(found.reason), file=sys.stderr)
        return INFEASIBLE
    document = found.document
    head = Message.of(
        "cli.variants_counted",
        variants=counted(document["variants"], "variant"),
        running=f"{document['running']:,}",
        note=document["note"],
    ).text()
    _write(arguments, document, found.rows, head, lambda: sections(document, arguments.best))
    return said_if_left_out(document)


def _edge(arguments: argparse.Namespace) -> int:
    from planner.design.edge.answer import edge, sections

    found = edge(
        case_document(arguments, arguments.spec), overlay_folders(arguments), search_limits(arguments)
    ).document
    rows = [{"task": task["name"], "runs_on": task["tier"], **row} for task in found["tasks"] for row in task["tiers"]]
    _write(arguments, found, rows, f"{found['name']}: {found['words']}", lambda: sections(found))
    code = said_if_left_out(found)
    return INFEASIBLE if found["status"] == "infeasible" else code


def _kv_tiers(arguments: argparse.Namespace) -> int:
    from planner.design.kv_tiers import kv_tiers, sections
    from planner.report.words import counted

    found = kv_tiers(case_document(arguments, arguments.case), overlay_folders(arguments), search_limits(arguments))
    if found["chosen"] is None:
        print(terminal(Message.of("cli.no_sizes_fit").text()), file=sys.stderr)
        return INFEASIBLE
    factor = found["throughput_factor"]
    gain = (
        Message.of("cli.hbm_carries_nothing").text()
        if factor is None
        else Message.of("cli.factor_over_hbm", factor=f"{factor:.2f}").text()
    )
    head = Message.of(
        "cli.sizes_counted",
        combinations=counted(found["combinations"], "combination"),
        evaluated=f"{found['evaluated']:,}",
        gain=gain,
    ).text()
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


DESIGNS = (
    DesignCommand(
        "characterise",
        "help.characterise",
        "document",
        "CASE|SPEC",
        "help.characterise_file",
        _characterise,
    ),
    DesignCommand(
        "codesign",
        "help.codesign",
        "case",
        "CASE",
        "help.codesign_file",
        _codesign,
    ),
    DesignCommand(
        "kv-tiers",
        "help.kv_tiers",
        "case",
        "CASE",
        "help.kv_tiers_file",
        _kv_tiers,
    ),
    DesignCommand(
        "edge",
        "help.edge",
        "spec",
        "SPEC",
        "help.edge_file",
        _edge,
    ),
)
"""Design questions, in the order in which `flopwatt --help` lists them."""
