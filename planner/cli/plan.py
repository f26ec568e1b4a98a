"""The commands `plan`, `show`, `report`, `check` and `verify`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import (
    add_solver_options,
    overlay_folders,
    progress_printer,
    spec_document,
)
from planner.cli.output import as_json, emit, rows_as, terminal_page, write_data, write_out
from planner.cli.streams import standard_input
from planner.errors import BrokenPlanError, cut_list
from planner.escape import terminal
from planner.exit_codes import BROKEN, BUG, EXIT_BY_STATUS, OK, USAGE
from planner.messages import DEFAULT, LANGUAGES, Message, with_codes
from planner.plan import Plan, parse_plan
from planner.plan.embedded import is_report

if TYPE_CHECKING:
    from planner.cli.options import Commands
    from planner.verify.plan import Verification

HTML = "html"  # format of the commands `plan` and `show` alone


def add_plan(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `plan`."""
    plan = commands.add_parser("plan", parents=[shared], help=helped("help.plan"))
    asked = plan.add_mutually_exclusive_group(required=True)
    asked.add_argument("spec", metavar="SPEC", nargs="?", help=helped("help.spec"))
    asked.add_argument("--demo", action="store_true", help=helped("help.plan_demo"))
    plan.add_argument("--full", action="store_true", help=helped("help.plan_full"))
    plan.add_argument("--language", choices=LANGUAGES, default=DEFAULT, help=helped("page.language"))
    add_solver_options(plan)
    plan.set_defaults(run=_plan, folder_formats=("csv",))


def add_show(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `show`."""
    show = commands.add_parser("show", parents=[shared], help=helped("help.show"))
    show.add_argument("plan", metavar="PLAN", help=helped("help.show_plan", plan=helped("help.plan_file")))
    show.add_argument("--full", action="store_true", help=helped("help.plan_full"))
    show.add_argument("--language", choices=LANGUAGES, default=DEFAULT, help=helped("page.language"))
    show.set_defaults(run=_show, folder_formats=("csv",))


def add_report(commands: Commands) -> None:
    """Add the command `report`."""
    report = commands.add_parser("report", help=helped("help.report"))
    report.add_argument("plan", metavar="PLAN", help=helped("help.show_plan", plan=helped("help.plan_file")))
    report.add_argument("--output", metavar="FILE", help=helped("help.report_output"))
    report.add_argument("--language", choices=LANGUAGES, default=DEFAULT, help=helped("page.language"))
    report.set_defaults(run=_report, format=HTML)


def add_check(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `check`."""
    check = commands.add_parser("check", parents=[shared], help=helped("help.check"))
    check.add_argument("spec", metavar="SPEC", help=helped("help.spec"))
    check.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        help=helped("help.check_set"),
    )
    check.set_defaults(run=_check)


def add_verify(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `verify`."""
    verify = commands.add_parser("verify", parents=[shared], help=helped("help.verify"))
    verify.add_argument("plan", metavar="PLAN", help=helped("help.verify_plan", plan=helped("help.plan_file")))
    verify.set_defaults(run=_verify)


def _plan(arguments: argparse.Namespace) -> int:
    from planner.pipeline import solve_document
    from planner.report.words import is_searched

    if _lacks_charts(arguments):
        return USAGE
    try:
        plan = solve_document(
            spec_document(arguments), overlays=overlay_folders(arguments), progress=progress_printer(arguments)
        )
    except BrokenPlanError as error:
        for finding in cut_list(map(str, error.findings)):
            print(Message.of("cli.bug", finding=finding).text(), file=sys.stderr)
        return BUG
    _print_plan(arguments, plan)
    if plan.status == "unbounded":
        from planner.formulate.limits import UNBOUNDED

        print(UNBOUNDED, file=sys.stderr)
    return OK if is_searched(plan) else EXIT_BY_STATUS[plan.status]


def _show(arguments: argparse.Namespace) -> int:
    if _lacks_charts(arguments):
        return USAGE
    _print_plan(arguments, stored_plan(arguments))
    return OK


def _report(arguments: argparse.Namespace) -> int:
    """Write a plan as one HTML page with its proof, beside the plan unless --output names another place."""
    from planner.report.outputs.html import html_page

    if _lacks_charts(arguments):
        return USAGE
    plan = stored_plan(arguments)
    beside = Path(arguments.plan).with_suffix(".html")
    if arguments.output is None and arguments.plan not in ("-", str(beside)):
        arguments.output = str(beside)
    write_out(arguments, html_page(plan, arguments.language))
    if arguments.output not in (None, "-"):
        print(Message.of("cli.report_written", file=terminal(arguments.output)).text(), file=sys.stderr)
    return OK


def _lacks_charts(arguments: argparse.Namespace) -> bool:
    """Tell whether a page in HTML is asked for and what draws its charts is missing, and say so."""
    from planner.report.outputs.html import MISSING, can_draw

    lacks = arguments.format == HTML and not can_draw()
    if lacks:
        print(MISSING, file=sys.stderr)
    return lacks


def _print_plan(arguments: argparse.Namespace, plan: Plan) -> None:
    """Print a plan in the asked format: as a table one page, unless --full asks for all of it."""
    from planner.report.outputs.html import html_page
    from planner.report.page import one_page
    from planner.report.report import render

    paged = arguments.format == "table" and not arguments.full
    language = arguments.language
    if arguments.as_workbook:
        from planner.report.outputs.excel import workbook

        write_data(arguments, workbook(plan))
        return
    write = {
        "table": lambda: one_page(plan, *terminal_page(arguments), language),
        HTML: lambda: html_page(plan, language),
    }
    alone = paged or arguments.format == HTML
    emit(arguments, plan, lambda form: write[form]() if alone else render(plan, form, language))


def stored_plan(arguments: argparse.Namespace) -> Plan:
    """Read the plan that a command names. Raises SpecError, or OSError when the file cannot be read."""
    return parse_plan(*plan_file(arguments))


def plan_file(arguments: argparse.Namespace) -> tuple[bytes, str]:
    """Read the file of the plan that a command names, and say where it is. Raises OSError."""
    if arguments.plan == "-":
        return standard_input().read(), Message.of("cli.standard_input").text()
    return Path(arguments.plan).read_bytes(), str(arguments.plan)


def _check(arguments: argparse.Namespace) -> int:
    from planner.facts import rows
    from planner.pipeline import checked
    from planner.report.notes import HEADING, told

    counts, noted = checked(spec_document(arguments), overlays=overlay_folders(arguments))
    sentence = "valid: " + ", ".join(f"{n} {what}" for what, n in counts.items()) + "\n"
    listed = "".join(f"- {terminal(line)}\n" for line in told(rows(noted)))
    if arguments.format == "json":
        write_out(arguments, as_json([{**counts, "notes": rows(noted)}]))
    elif arguments.format == "table":
        write_out(arguments, sentence + (f"\n{HEADING}\n{listed}" if listed else ""))
    else:
        write_out(
            arguments,
            rows_as(arguments.format, [counts]) + (listed and f"\n{listed}" if arguments.format == "md" else ""),
        )
    return OK


def _verify(arguments: argparse.Namespace) -> int:
    from planner.verify.plan import verified

    text, where = plan_file(arguments)
    plan = parse_plan(text, where)
    found = verified(plan, overlays=overlay_folders(arguments))
    if is_report(text):
        found = _with_page(found, text.decode(errors="replace"), plan)
    if found.note:
        print(terminal(found.note), file=sys.stderr)
    if arguments.format == "json":
        rows = [with_codes({"path": part.path, "reason": part.reason}, "reason") for part in found.unchecked]
        document = {
            "holds": found.holds,
            "findings": [str(finding) for finding in found.findings],
            "messages": [finding.row() for finding in found.findings],
            "unchecked": rows,
            "proof": found.proof,
        }
        write_out(arguments, as_json(document))
    else:
        write_out(arguments, "\n".join(_verification_lines(plan, found)) + "\n")
    return OK if found.holds else BROKEN


def _with_page(found: Verification, page: str, plan: Plan) -> Verification:
    """Add what a report says otherwise than the plan inside it."""
    from planner.report.outputs.proof import compared
    from planner.verify.claims.unchecked import Unchecked
    from planner.verify.findings import Finding

    check = compared(page, plan)
    return replace(
        found,
        findings=[*found.findings, *(Finding(place, message.text()) for place, message in check.findings)],
        unchecked=[*found.unchecked, *(Unchecked("page", message.text()) for message in check.unchecked)],
    )


def _verification_lines(plan: Plan, found: Verification) -> list[str]:
    """Write what the checks of a plan found, and what they took as stated."""
    if not found.holds:
        lines = [Message.of("cli.plan_broken").text(), *(f"  {text}" for text in cut_list(map(str, found.findings)))]
    elif plan.has_answer:
        lines = [Message.of("cli.plan_holds").text()]
    elif found.proof is not None:
        lines = [Message.of("cli.no_plan_proven", work=found.proof).text()]
    else:
        lines = [Message.of("cli.no_answer_stands", status=plan.status).text()]
    return [
        *lines,
        Message.of("cli.not_computed_again").text(),
        *(terminal(f"  {', '.join(paths)}: {why}") for why, paths in found.by_reason().items()),
    ]
