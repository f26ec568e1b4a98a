"""The command `flopwatt`: reads arguments and files, prints the answer, and turns it into an exit code.

Exit codes: 0 done, 1 a bug, 2 usage or missing file, 3 invalid spec or data, 4 proven infeasible,
5 limit reached without the asked gap, 6 plan does not hold, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from planner.cli.calibration import add_verbs as add_accuracy_verbs
from planner.cli.options import (
    FORMATS,
    add_common_options,
    add_solver_options,
    hourly_folders,
    overlay_folders,
    positive_count,
    progress_printer,
    read_json,
    solver_overrides,
    spec_document,
)
from planner.cli.output import emit, rows_as, write_out
from planner.cli.robust import add_verb as add_robust_verb
from planner.cli.studies import add_verbs as add_study_verbs
from planner.errors import SpecError
from planner.exit_codes import BROKEN, BUG, EXIT_BY_STATUS, INFEASIBLE, INTERRUPTED, INVALID, OK, USAGE
from planner.plan import load_plan, parse_plan
from planner.version import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except SpecError as error:
        print(error, file=sys.stderr)
        return INVALID
    except OSError as error:
        print(f"{error.filename or 'file'}: {error.strerror or error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--format", choices=FORMATS, default="table", help="how the answer is printed (default: table)")
    shared.add_argument(
        "--output",
        metavar="FILE",
        help="write the answer there instead of standard output; with --format csv, DIR/ gets one file per table",
    )
    add_common_options(shared)

    parser = argparse.ArgumentParser(prog="flopwatt", description="Plan AI compute from silicon to electricity.")
    parser.add_argument("--version", action="version", version=f"flopwatt {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    plan = verbs.add_parser("plan", parents=[shared], help="answer a spec with a plan")
    plan.add_argument("spec", metavar="SPEC", help='JSON file, or "-" for standard input')
    add_solver_options(plan)
    plan.set_defaults(run=_plan)

    batch = verbs.add_parser("batch", help="answer many specs, one JSON object per line in and out")
    batch.add_argument(
        "specs",
        metavar="SPECS",
        help='file with a spec per line, each with an optional "id", or "-" for standard input',
    )
    batch.add_argument(
        "--jobs", type=positive_count, default=1, metavar="N", help="processes to work with (default: 1)"
    )
    batch.add_argument(
        "--output",
        metavar="FILE",
        default="-",
        help="file that each answer is appended to as it finishes (default: standard output)",
    )
    batch.add_argument("--resume", action="store_true", help="go on where FILE ends: skip the ids that it holds")
    batch.add_argument("--format", choices=("json",), default="json", help="answers are lines of JSON")
    add_common_options(batch)
    add_solver_options(batch)
    batch.set_defaults(run=_batch)

    schema = verbs.add_parser("schema", help="JSON Schema of a spec or a case")
    schema.add_argument(
        "of",
        nargs="?",
        choices=("spec", "case"),
        default="spec",
        help="what `plan` reads, or what `estimate` and `layouts` do (default: spec)",
    )
    schema.add_argument(
        "--format",
        choices=("json", "md"),
        default="json",
        help="JSON Schema, or its keys as a page in Markdown (default: json)",
    )
    schema.add_argument("--output", metavar="FILE", help="write it there instead of standard output")
    add_common_options(schema)
    schema.set_defaults(run=_schema)

    check = verbs.add_parser("check", parents=[shared], help="check a spec without solving it")
    check.add_argument("spec", metavar="SPEC")
    check.add_argument("--set", metavar="PATH=VALUE", action="append", default=[])
    check.set_defaults(run=_check)

    verify = verbs.add_parser("verify", parents=[shared], help="re-check a plan independently of the solver")
    verify.add_argument("plan", metavar="PLAN")
    verify.set_defaults(run=_verify)

    layouts = verbs.add_parser(
        "layouts", parents=[shared], help="every legal parallel layout of one training case, the best first"
    )
    layouts.add_argument(
        "case", metavar="CASE", help='JSON file with workload, system, chips and fabric, or "-" for standard input'
    )
    layouts.add_argument("--best", type=int, default=10, metavar="N", help="how many layouts to print (default: 10)")
    layouts.set_defaults(run=_layouts)

    estimate = verbs.add_parser(
        "estimate", parents=[shared], help="answer one case: times, rates, memory, and where the time goes"
    )
    estimate.add_argument(
        "case", metavar="CASE", help='JSON file with workload, system and chips, or "-" for standard input'
    )
    estimate.set_defaults(run=_estimate)

    catalog = verbs.add_parser("catalog", help="what the catalog holds").add_subparsers(
        metavar="list|show", required=True
    )
    listing = catalog.add_parser("list", parents=[shared], help="names of records")
    listing.add_argument(
        "kind", nargs="?", help="chips, systems, fabrics, architectures, regions, tariffs, offers, ..."
    )
    listing.set_defaults(run=_catalog_list)
    show = catalog.add_parser("show", parents=[shared], help="one record with every figure and its source")
    show.add_argument("name", help="name or alias of a record, or KIND/NAME")
    show.set_defaults(run=_catalog_show)

    add_accuracy_verbs(verbs, shared, add_common_options, FORMATS)
    add_robust_verb(verbs, shared)
    add_study_verbs(verbs, shared, add_solver_options)

    dashboard = verbs.add_parser("dashboard", help="open the dashboard in a browser (needs Streamlit)")
    dashboard.add_argument(
        "--server.port",
        dest="port",
        type=int,
        metavar="PORT",
        help="port to listen on (default: 8501 or the next free one)",
    )
    dashboard.add_argument(
        "--server.address",
        dest="address",
        metavar="HOST",
        default="localhost",
        help="address to listen on (default: %(default)s)",
    )
    dashboard.add_argument(
        "--server.headless", dest="headless", choices=("true", "false"), help="true: open no browser"
    )
    dashboard.set_defaults(run=_dashboard)
    return parser


# -- verbs -------------------------------------------------------------------------------------------------------------


def _plan(arguments: argparse.Namespace) -> int:
    from planner.pipeline import solve_document
    from planner.report.report import render
    from planner.verify.plan import verify_plan

    plan = solve_document(
        spec_document(arguments), overlays=overlay_folders(arguments), progress=progress_printer(arguments)
    )
    if plan.has_answer and (broken := verify_plan(plan, overlays=overlay_folders(arguments))):
        for finding in broken:
            print(f"bug: the plan fails its own check: {finding}", file=sys.stderr)
        return BUG
    emit(arguments, plan, lambda form: render(plan, form))
    if plan.status == "unbounded":
        from planner.formulate.limits import UNBOUNDED

        print(UNBOUNDED, file=sys.stderr)
    return EXIT_BY_STATUS[plan.status]


def _check(arguments: argparse.Namespace) -> int:
    from planner.pipeline import check_document

    counts = check_document(spec_document(arguments), overlays=overlay_folders(arguments))
    write_out(
        arguments,
        rows_as(arguments.format, [counts])
        if arguments.format != "table"
        else "valid: " + ", ".join(f"{n} {what}" for what, n in counts.items()) + "\n",
    )
    return OK


def _batch(arguments: argparse.Namespace) -> int:
    from planner.studies import batch

    to_file = arguments.output != "-"
    output = Path(arguments.output)
    if arguments.resume and not to_file:
        print("--resume needs the file to go on with: --output FILE", file=sys.stderr)
        return USAGE
    if to_file and not arguments.resume and output.exists():
        print(f"{output}: exists already; go on with it by --resume, or name another file", file=sys.stderr)
        return USAGE
    lines = batch.read_lines(sys.stdin.buffer.read() if arguments.specs == "-" else Path(arguments.specs).read_bytes())
    done, statuses = batch.resume(output) if arguments.resume and output.exists() else ({}, set())
    left = batch.left_over(lines, done)
    say = progress_printer(arguments) or (lambda line: None)
    if len(left) < len(lines):
        say(f"{len(lines) - len(left)} of {len(lines)} lines are done already")
    settings = batch.Settings(
        tuple(arguments.set),
        solver_overrides(arguments),
        tuple(overlay_folders(arguments)),
        tuple(hourly_folders(arguments, arguments.specs)),
    )
    with (
        output.open("a" if arguments.resume else "x", encoding="utf-8") if to_file else nullcontext(sys.stdout) as file
    ):

        def write(record: str) -> None:
            file.write(record)
            file.flush()

        statuses |= batch.run(left, write, jobs=arguments.jobs, settings=settings, progress=say)
    return batch.exit_code(statuses)


def _schema(arguments: argparse.Namespace) -> int:
    from planner.spec.schema import schema_text

    write_out(arguments, schema_text(arguments.of, arguments.format))
    return OK


def _verify(arguments: argparse.Namespace) -> int:
    from planner.verify.plan import catalog_note, verify_plan

    plan = parse_plan(sys.stdin.buffer.read(), "standard input") if arguments.plan == "-" else load_plan(arguments.plan)
    findings = verify_plan(plan, overlays=overlay_folders(arguments))
    if note := catalog_note(plan, overlay_folders(arguments)):
        print(note, file=sys.stderr)
    if arguments.format == "json":
        write_out(
            arguments,
            json.dumps({"holds": not findings, "findings": [str(finding) for finding in findings]}, indent=1) + "\n",
        )
    else:
        verdict = (
            "the plan holds: every limit and every amount was computed again"
            if not findings
            else "the plan does not hold:"
        )
        write_out(arguments, "\n".join([verdict, *(f"  {finding}" for finding in findings)]) + "\n")
    return OK if not findings else BROKEN


def _layouts(arguments: argparse.Namespace) -> int:
    from planner.candidates.layouts import layout_table
    from planner.estimate.case import best_layouts

    rows, counts = best_layouts(read_json(arguments.case), overlay_folders(arguments), arguments.best)
    if not rows:
        print(f"no layout fits: {counts['legal']:,} are legal, none of them fits in memory", file=sys.stderr)
        return INFEASIBLE
    if arguments.format == "json":
        write_out(arguments, json.dumps({**counts, "layouts": rows}, indent=1, allow_nan=False) + "\n")
        return OK
    heading = f"{counts['legal']:,} legal layouts, {counts['fitting']:,} fit in memory\n\n"
    write_out(arguments, ("" if arguments.format == "csv" else heading) + rows_as(arguments.format, layout_table(rows)))
    return OK


def _estimate(arguments: argparse.Namespace) -> int:
    from planner.estimate.answer import estimate, sections

    found = estimate(read_json(arguments.case), overlay_folders(arguments))
    if found.answer is None:
        print(found.reason, file=sys.stderr)
        return INFEASIBLE
    if arguments.format == "json":
        write_out(arguments, json.dumps(found.answer, indent=1, allow_nan=False) + "\n")
        return OK
    tables = sections(found.answer)
    if arguments.format == "csv":
        write_out(arguments, rows_as("csv", tables[0][1]))
        return OK
    mark = "## " if arguments.format == "md" else ""
    write_out(arguments, "\n".join(f"{mark}{heading}\n\n{rows_as(arguments.format, rows)}" for heading, rows in tables))
    return OK


def _catalog_list(arguments: argparse.Namespace) -> int:
    from planner.cli.catalog import list_rows

    rows = list_rows(overlay_folders(arguments), arguments.kind)
    write_out(arguments, rows_as(arguments.format, rows))
    return OK


def _catalog_show(arguments: argparse.Namespace) -> int:
    from planner.cli.catalog import show_record

    heading, rows = show_record(overlay_folders(arguments), arguments.name)
    body = rows_as(arguments.format, rows)
    write_out(arguments, body if arguments.format in ("json", "csv") else f"{heading}\n\n{body}")
    return OK


def _dashboard(arguments: argparse.Namespace) -> int:
    from planner.dashboard.launch import MISSING, has_streamlit, launch

    if not has_streamlit():
        print(MISSING, file=sys.stderr)
        return USAGE
    launch(arguments.port, arguments.address, arguments.headless)
    return OK


if __name__ == "__main__":
    sys.exit(main())
