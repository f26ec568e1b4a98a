"""The command `tokenwatt`: reads arguments and files, prints the answer, and turns it into an exit code.

Exit codes: 0 done, 1 a bug, 2 usage or missing file, 3 invalid spec or data, 4 proven infeasible,
5 limit reached without the asked gap, 6 plan does not hold, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner import __version__
from planner.errors import Problem, SpecError
from planner.plan import Plan, load_plan, parse_plan, write_whole

OK, BUG, USAGE, INVALID, INFEASIBLE, LIMIT, BROKEN, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130
EXIT_BY_STATUS = {"optimal": OK, "within_gap": OK, "limit": LIMIT, "infeasible": INFEASIBLE, "unbounded": INVALID}
FORMATS = ("table", "json", "csv", "md")


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
    shared.add_argument("--output", metavar="FILE", help="write the answer there instead of standard output; with --format csv, DIR/ gets one file per table")
    shared.add_argument("--catalog", metavar="DIR", action="append", default=[], help="folder of JSON overlays on the catalog (may be repeated)")
    shared.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")

    parser = argparse.ArgumentParser(prog="tokenwatt", description="Plan AI compute from silicon to electricity.")
    parser.add_argument("--version", action="version", version=f"tokenwatt {__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    plan = verbs.add_parser("plan", parents=[shared], help="answer a spec with a plan")
    plan.add_argument("spec", metavar="SPEC", help='JSON file, or "-" for standard input')
    plan.add_argument("--set", metavar="PATH=VALUE", action="append", default=[], help="change one value of the spec, such as limits.budget=\"420M CNY\"")
    plan.add_argument("--gap", type=float, help="stop at this gap, a fraction")
    plan.add_argument("--time-limit", metavar="TIME", help='stop the solver after this time, such as "60 s"')
    plan.add_argument("--solver", choices=("highs", "pulp"), help="solver backend")
    plan.add_argument("--seed", type=int, help="seed of the solver")
    plan.set_defaults(run=_plan)

    check = verbs.add_parser("check", parents=[shared], help="check a spec without solving it")
    check.add_argument("spec", metavar="SPEC")
    check.add_argument("--set", metavar="PATH=VALUE", action="append", default=[])
    check.set_defaults(run=_check)

    verify = verbs.add_parser("verify", parents=[shared], help="re-check a plan independently of the solver")
    verify.add_argument("plan", metavar="PLAN")
    verify.set_defaults(run=_verify)

    catalog = verbs.add_parser("catalog", help="what the catalog holds").add_subparsers(metavar="list|show", required=True)
    listing = catalog.add_parser("list", parents=[shared], help="names of records")
    listing.add_argument("kind", nargs="?", help="chips, systems, fabrics, architectures, regions, tariffs, offers, ...")
    listing.set_defaults(run=_catalog_list)
    show = catalog.add_parser("show", parents=[shared], help="one record with every figure and its source")
    show.add_argument("name", help="name or alias of a record, or KIND/NAME")
    show.set_defaults(run=_catalog_show)
    return parser


# -- verbs -------------------------------------------------------------------------------------------------------------


def _plan(arguments: argparse.Namespace) -> int:
    from planner.pipeline import solve_document
    from planner.report import render
    from planner.verify import verify_plan

    document = _spec_document(arguments)
    solver = {key: value for key in ("gap", "time_limit", "seed") if (value := getattr(arguments, key)) is not None}
    if arguments.solver:
        solver["backend"] = arguments.solver
    if solver:
        document["solver"] = {**_object(document.get("solver"), "solver"), **solver}
    plan = solve_document(document, overlays=_overlays(arguments), progress=_progress(arguments))
    if plan.has_answer and (broken := verify_plan(plan, overlays=_overlays(arguments))):
        for finding in broken:
            print(f"bug: the plan fails its own check: {finding}", file=sys.stderr)
        return BUG
    _emit(arguments, plan, lambda form: render(plan, form))
    return EXIT_BY_STATUS[plan.status]


def _check(arguments: argparse.Namespace) -> int:
    from planner.pipeline import check_document

    counts = check_document(_spec_document(arguments), overlays=_overlays(arguments))
    _print(arguments, _rows_as(arguments.format, [counts]) if arguments.format != "table" else "valid: " + ", ".join(f"{n} {what}" for what, n in counts.items()) + "\n")
    return OK


def _verify(arguments: argparse.Namespace) -> int:
    from planner.verify import verify_plan

    plan = parse_plan(sys.stdin.buffer.read(), "standard input") if arguments.plan == "-" else load_plan(arguments.plan)
    findings = verify_plan(plan, overlays=_overlays(arguments))
    if arguments.format == "json":
        _print(arguments, json.dumps({"holds": not findings, "findings": [str(finding) for finding in findings]}, indent=1) + "\n")
    else:
        verdict = "the plan holds: every limit and every amount was computed again" if not findings else "the plan does not hold:"
        _print(arguments, "\n".join([verdict, *(f"  {finding}" for finding in findings)]) + "\n")
    return OK if not findings else BROKEN


def _catalog_list(arguments: argparse.Namespace) -> int:
    from planner.browse import list_rows

    rows = list_rows(_overlays(arguments), arguments.kind)
    _print(arguments, _rows_as(arguments.format, rows))
    return OK


def _catalog_show(arguments: argparse.Namespace) -> int:
    from planner.browse import show_record

    heading, rows = show_record(_overlays(arguments), arguments.name)
    body = _rows_as(arguments.format, rows)
    _print(arguments, body if arguments.format in ("json", "csv") else f"{heading}\n\n{body}")
    return OK


# -- input and output --------------------------------------------------------------------------------------------------


def _spec_document(arguments: argparse.Namespace) -> dict[str, Any]:
    from planner.spec import read_document

    text = sys.stdin.buffer.read() if arguments.spec == "-" else Path(arguments.spec).read_bytes()
    document = read_document(text)
    for assignment in arguments.set:
        _assign(document, assignment)
    return document


def _assign(document: dict[str, Any], assignment: str) -> None:
    """`workloads[0].slo.ttft.p95=400 ms` into the document; the value is JSON where it parses, else text."""
    path, equals, text = assignment.partition("=")
    parts = [int(part) if part.isdigit() else part for part in path.replace("[", ".").replace("]", "").split(".")]
    if not equals or not path:
        raise SpecError([Problem("--set", f'expected PATH=VALUE such as limits.budget="420M CNY", got "{assignment}"')])
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    place: Any = document
    for part in parts[:-1]:
        try:
            place = place.setdefault(part, {}) if isinstance(place, dict) else place[part]
        except (IndexError, TypeError):
            raise SpecError([Problem(f"--set {path}", f'there is no "{part}" in the spec')]) from None
    try:
        place[parts[-1]] = value
    except (IndexError, TypeError):
        raise SpecError([Problem(f"--set {path}", f'"{parts[-1]}" cannot be set there')]) from None


def _object(value: Any, path: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SpecError([Problem(path, "expected an object")])
    return value


def _overlays(arguments: argparse.Namespace) -> list[Path]:
    return [Path(folder) for folder in arguments.catalog]


def _progress(arguments: argparse.Namespace):
    if arguments.quiet:
        return None
    return lambda line: print(line, file=sys.stderr, flush=True)


def _emit(arguments: argparse.Namespace, plan: Plan, render) -> None:
    if arguments.output and arguments.output.endswith("/") and arguments.format == "csv":
        from planner.report import csv_tables

        for name, text in csv_tables(plan).items():
            write_whole(Path(arguments.output) / f"{name}.csv", text)
        return
    _print(arguments, render(arguments.format))


def _print(arguments: argparse.Namespace, text: str) -> None:
    if arguments.output and arguments.output != "-":
        write_whole(Path(arguments.output), text)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


def _rows_as(form: str, rows: list[dict[str, Any]]) -> str:
    from planner.tables import as_csv, as_markdown, as_text

    if form == "json":
        return json.dumps(rows, indent=1, allow_nan=False) + "\n"
    return {"csv": as_csv, "md": as_markdown, "table": as_text}[form](rows)


if __name__ == "__main__":
    sys.exit(main())
