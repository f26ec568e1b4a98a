"""The commands `estimate` and `layouts`: one workload on one given system."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import add_limit_options, case_document, overlay_folders, search_limits
from planner.cli.output import as_json, rows_as, said_if_left_out, write_out
from planner.escape import markdown, terminal
from planner.exit_codes import INFEASIBLE, OK
from planner.messages import Message

if TYPE_CHECKING:
    from planner.cli.options import Commands
    from planner.estimate.case import CaseFacts


def add_layouts(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `layouts`."""
    layouts = commands.add_parser(
        "layouts",
        parents=[shared],
        help=helped("help.layouts"),
    )
    layouts.add_argument("case", metavar="CASE", help=helped("help.layouts_case"))
    _sweep_option(layouts)
    layouts.add_argument("--best", type=int, default=10, metavar="N", help=helped("help.layouts_best"))
    add_limit_options(layouts)
    layouts.set_defaults(run=_layouts)


def add_estimate(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `estimate`."""
    estimate = commands.add_parser("estimate", parents=[shared], help=helped("help.estimate"))
    estimate.add_argument("case", metavar="CASE", help=helped("help.estimate_case"))
    estimate.add_argument("--without", metavar="FEATURES", help=helped("help.estimate_without"))
    _sweep_option(estimate)
    add_limit_options(estimate)
    estimate.set_defaults(run=_estimate)


def _sweep_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sweep", metavar="PATH=VALUES", action="append", default=[], help=helped("help.estimate_sweep")
    )


def _variants(arguments: argparse.Namespace) -> int:
    """Answer variants of a case: without features, or with other values."""
    from planner.studies.variants.answer import answer_variants, variants_of

    document, text = case_document(arguments, arguments.case), getattr(arguments, "without", None)
    names = None if text is None else [name.strip() for name in text.split(",") if name.strip()]
    variants = variants_of(document, names, arguments.sweep)
    found = answer_variants(variants, overlay_folders(arguments), search_limits(arguments))
    json = arguments.format == "json"
    write_out(arguments, as_json(found.document) if json else rows_as(arguments.format, found.table))
    if all("reason" in row for row in found.rows):
        return INFEASIBLE
    return said_if_left_out(found.left)


def _layouts(arguments: argparse.Namespace) -> int:
    from planner.candidates.layouts import layout_table
    from planner.estimate.case import best_layouts, nothing_fits, resolve_case

    if arguments.sweep:
        return _variants(arguments)
    document, overlays = case_document(arguments, arguments.case), overlay_folders(arguments)
    if isinstance(document.get("workload"), dict) and document["workload"].get("kind") == "reinforcement":
        return _splits(arguments, resolve_case(document, overlays))
    limits = search_limits(arguments)
    rows, counts = best_layouts(document, overlays, arguments.best, limits)
    if not rows:
        print(terminal(nothing_fits(resolve_case(document, overlays), counts)), file=sys.stderr)
        return INFEASIBLE
    if arguments.format == "json":
        write_out(arguments, as_json({**counts, "layouts": rows}))
        return said_if_left_out(counts)
    heading = Message.of("cli.layouts_counted", legal=f"{counts['legal']:,}", fitting=f"{counts['fitting']:,}").text()
    write_out(arguments, ("" if arguments.format == "csv" else heading) + rows_as(arguments.format, layout_table(rows)))
    return said_if_left_out(counts)


def _splits(arguments: argparse.Namespace, facts: CaseFacts) -> int:
    """Rank the splits of a case of reinforcement learning."""
    from planner.estimate.reinforcement import best_splits, nothing_fits, split_table

    found = best_splits(facts, arguments.best)
    if not found["fitting"]:
        print(terminal(nothing_fits(facts)), file=sys.stderr)
        return INFEASIBLE
    if arguments.format == "json":
        write_out(arguments, as_json(found))
        return OK
    heading = Message.of("cli.splits_counted", count=f"{found['fitting']:,}").text()
    table = rows_as(arguments.format, split_table(found["splits"]))
    write_out(arguments, ("" if arguments.format == "csv" else heading) + table)
    return OK


def _estimate(arguments: argparse.Namespace) -> int:
    from planner.estimate.answer import estimate, sections
    from planner.report.notes import HEADING

    if arguments.without is not None or arguments.sweep:
        return _variants(arguments)
    found = estimate(case_document(arguments, arguments.case), overlay_folders(arguments), search_limits(arguments))
    if found.answer is None:
        print(terminal(found.reason), file=sys.stderr)
        if arguments.format == "json":
            write_out(arguments, as_json({"answer": None, "reason": found.reason, "lack": found.lack}))
        return INFEASIBLE
    tables, mark, escaped = sections(found.answer), *(("## ", markdown) if arguments.format == "md" else ("", terminal))
    if arguments.format == "json":
        write_out(arguments, as_json(found.answer))
    elif arguments.format == "csv":
        write_out(arguments, rows_as("csv", next(rows for heading, rows in tables if heading != HEADING)))
    else:
        parts = (f"{mark}{escaped(heading)}\n\n{rows_as(arguments.format, rows)}" for heading, rows in tables)
        write_out(arguments, "\n".join(parts))
    counts = found.answer.get("layouts")
    return said_if_left_out(counts) if counts else OK
