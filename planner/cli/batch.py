"""The command `batch`: many specs, one JSON object per line in and out."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import (
    add_common_options,
    add_solver_options,
    hourly_folders,
    overlay_folders,
    positive_count,
    progress_printer,
    solver_overrides,
)
from planner.cli.streams import print_out, standard_input
from planner.exit_codes import USAGE
from planner.messages import Message

if TYPE_CHECKING:
    from planner.cli.options import Commands


def add_batch(commands: Commands) -> None:
    """Add the command `batch`."""
    batch = commands.add_parser("batch", help=helped("help.batch"))
    batch.add_argument(
        "specs",
        metavar="SPECS",
        help=helped("help.batch_specs"),
    )
    batch.add_argument("--jobs", type=positive_count, default=1, metavar="N", help=helped("help.batch_jobs"))
    batch.add_argument(
        "--output",
        metavar="FILE",
        default="-",
        help=helped("help.batch_output"),
    )
    batch.add_argument("--resume", action="store_true", help=helped("help.batch_resume"))
    batch.add_argument("--format", choices=("json",), default="json", help=helped("help.batch_format"))
    add_common_options(batch)
    add_solver_options(batch)
    batch.set_defaults(run=_batch)


def _batch(arguments: argparse.Namespace) -> int:
    from planner.studies import batch
    from planner.studies.batch_lines import Settings, read_lines
    from planner.studies.batch_output import open_output

    to_file = arguments.output != "-"
    if arguments.resume and not to_file:
        print(Message.of("cli.resume_without_file").text(), file=sys.stderr)
        return USAGE
    settings = Settings(
        tuple(arguments.set),
        solver_overrides(arguments),
        tuple(overlay_folders(arguments)),
        tuple(hourly_folders(arguments, arguments.specs)),
    )
    source = standard_input().read() if arguments.specs == "-" else Path(arguments.specs).read_bytes()
    left, statuses = (lines := read_lines(source, settings)), set[str]()
    say = progress_printer(arguments) or (lambda line: None)
    with open_output(Path(arguments.output), arguments.resume) if to_file else nullcontext() as output:
        if output and arguments.resume:
            found = output.match(lines)
            left, statuses = found.left, found.statuses
            if len(left) < len(lines):
                say(Message.of("progress.lines_done", done=len(lines) - len(left), all=len(lines)).text())
            if found.stale:
                say(Message.of("progress.answers_dropped", count=found.stale).text())
            if found.damaged:
                say(Message.of("progress.lines_damaged", count=found.damaged).text())
        write = output.write if output else print_out
        statuses |= batch.run(left, write, jobs=arguments.jobs, settings=settings, progress=say)
    return batch.exit_code(statuses)
