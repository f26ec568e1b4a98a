"""The command `batch`: many specs, one JSON object per line in and out."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.options import (
    add_common_options,
    add_solver_options,
    hourly_folders,
    overlay_folders,
    positive_count,
    progress_printer,
    solver_overrides,
)
from planner.cli.streams import standard_input
from planner.exit_codes import USAGE

if TYPE_CHECKING:
    from planner.cli.options import Commands


def add_batch(commands: Commands) -> None:
    """Add the command `batch`."""
    batch = commands.add_parser("batch", help="answer many specs, one JSON object per line in and out")
    batch.add_argument(
        "specs",
        metavar="SPECS",
        help='file with a spec per line, each with an optional "id", or "-" for standard input',
    )
    batch.add_argument("--jobs", type=positive_count, default=1, metavar="N", help="worker processes (default: 1)")
    batch.add_argument(
        "--output",
        metavar="FILE",
        default="-",
        help="file to append each answer to as soon as it is finished (default: standard output)",
    )
    batch.add_argument("--resume", action="store_true", help="continue FILE: skip the ids that it already holds")
    batch.add_argument("--format", choices=("json",), default="json", help="answers are lines of JSON")
    add_common_options(batch)
    add_solver_options(batch)
    batch.set_defaults(run=_batch)


def _batch(arguments: argparse.Namespace) -> int:
    from planner.studies import batch

    output = None if arguments.output == "-" else Path(arguments.output)
    if arguments.resume and output is None:
        print("--resume needs the file to continue: --output FILE", file=sys.stderr)
        return USAGE
    if output and not arguments.resume and output.exists():
        print(f"{output}: exists already; continue it with --resume, or name another file", file=sys.stderr)
        return USAGE
    lines = batch.read_lines(standard_input().read() if arguments.specs == "-" else Path(arguments.specs).read_bytes())
    done, statuses = batch.resume(output) if output and arguments.resume and output.exists() else (Counter(), set())
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
    mode = "a" if arguments.resume else "x"
    with output.open(mode, encoding="utf-8") if output else nullcontext(sys.stdout) as file:

        def write(record: str) -> None:
            file.write(record)
            file.flush()

        statuses |= batch.run(left, write, jobs=arguments.jobs, settings=settings, progress=say)
    return batch.exit_code(statuses)
