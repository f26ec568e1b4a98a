"""The commands `batch`, many specs and one JSON object per line out, and `sweep`, one spec at many values."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from dataclasses import replace
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.helps import helped
from planner.cli.options import (
    add_common_options,
    add_engine_options,
    add_solver_options,
    engine_of,
    hourly_folders,
    overlay_folders,
    progress_printer,
    solver_overrides,
    spec_document,
)
from planner.cli.streams import print_out, standard_input
from planner.errors import Issue, SpecError
from planner.exit_codes import OK, USAGE
from planner.messages import Message

if TYPE_CHECKING:
    from planner.cli.options import Commands
    from planner.studies.batch_lines import Line, Settings
    from planner.studies.sweeps.varied import Point, Varied


def add_batch(commands: Commands) -> None:
    """Add the command `batch`."""
    batch = commands.add_parser("batch", help=helped("help.batch"))
    batch.add_argument(
        "specs",
        metavar="SPECS",
        nargs="+",
        help=helped("help.batch_specs"),
    )
    add_engine_options(batch)
    batch.add_argument(
        "--output",
        metavar="FILE",
        default="-",
        help=helped("help.batch_output"),
    )
    batch.add_argument("--shard", type=_shard, default=(1, 1), metavar="K/N", help=helped("help.batch_shard"))
    batch.add_argument("--resume", action="store_true", help=helped("help.batch_resume"))
    batch.add_argument("--format", choices=("json",), default="json", help=helped("help.batch_format"))
    add_common_options(batch)
    add_solver_options(batch)
    batch.set_defaults(run=_batch)


def add_sweep(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `sweep`."""
    sweep = commands.add_parser("sweep", parents=[shared], help=helped("help.sweep"))
    sweep.add_argument("spec", metavar="SPEC", help=helped("help.spec"))
    sweep.add_argument("--vary", metavar="PATH=VALUES", action="append", required=True, help=helped("help.sweep_vary"))
    sweep.add_argument("--sample", metavar="HOW", nargs="+", default=["grid"], help=helped("help.sweep_sample"))
    add_engine_options(sweep)
    sweep.add_argument("--rows", metavar="FILE", help=helped("help.sweep_rows"))
    sweep.add_argument("--resume", action="store_true", help=helped("help.sweep_resume"))
    sweep.add_argument("--chart", metavar="FILE.svg", help=helped("help.sweep_chart"))
    add_solver_options(sweep)
    sweep.set_defaults(run=_sweep)


def _sweep(arguments: argparse.Namespace) -> int:
    from planner.cli.progress.bar import following
    from planner.cli.studies import print_study
    from planner.files import write_file
    from planner.studies.batch_lines import Settings
    from planner.studies.sweeps.chart import sweep_chart
    from planner.studies.sweeps.study import run
    from planner.studies.sweeps.varied import read_varied

    if arguments.resume and not arguments.rows:
        print(Message.of("sweep.resume_without_file").text(), file=sys.stderr)
        return USAGE
    document, say = spec_document(arguments), progress_printer(arguments) or (lambda line: None)
    varied = read_varied(arguments.vary, document)
    found = run(
        document, varied, _points(arguments, varied, document), settings=Settings(overlays=tuple(overlay_folders(arguments))), engine=engine_of(arguments),
        rows_file=Path(arguments.rows) if arguments.rows else None, resume=arguments.resume,
        following=lambda count: following(count, say, bar=not arguments.quiet and _is_seen(to_file=True)),  # rows are printed at the end
    )  # fmt: skip
    if arguments.chart:
        write_file(arguments.chart, sweep_chart(found, varied))
    print_study(arguments, found)
    return OK


def _points(arguments: argparse.Namespace, varied: list[Varied], document: dict[str, Any]) -> list[Point]:
    """Choose the combinations as --sample asks. Raises SpecError."""
    from planner.studies.sweeps.varied import grid, latin_hypercube, one_at_a_time

    match " ".join(arguments.sample).split():
        case ["grid"]:
            return grid(varied)
        case ["one"]:
            return one_at_a_time(varied, document)
        case ["lhs", count] if count.isdecimal() and int(count) > 0:
            return latin_hypercube(varied, int(count), arguments.seed or 0)
        case given:
            raise SpecError([Issue("--sample", Message.of("sweep.sample_expected", given=" ".join(given)).text())])


def _shard(text: str) -> tuple[int, int]:
    """Parse a part of a number of parts, such as 3/8."""
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(Message.of("cli.shard_expected").text())
    return int(part), int(parts)


def _batch(arguments: argparse.Namespace) -> int:
    from planner.cli.progress.bar import following
    from planner.studies import batch
    from planner.studies.batch_output import open_output

    to_file = arguments.output != "-"
    if arguments.resume and not to_file:
        print(Message.of("cli.resume_without_file").text(), file=sys.stderr)
        return USAGE
    lines, settings = _lines(arguments)
    part, parts = arguments.shard
    left, statuses = (lines := lines[part - 1 :: parts]), set[str]()
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
        engine = engine_of(arguments)
        with following(len(left), say, bar=not arguments.quiet and _is_seen(to_file)) as follow:
            statuses |= batch.run(left, write, engine=engine, settings=settings, follow=follow, among=lines)
    return batch.exit_code(statuses)


def _lines(arguments: argparse.Namespace) -> tuple[list[Line], Settings]:
    """Read the specs: JSON Lines of one file or of standard input, or files of one spec each. Raises SpecError, OSError."""
    from planner.studies.batch_lines import Settings, files_named, is_one_spec, read_files, read_lines

    given = arguments.specs
    if "-" in given and len(given) > 1:
        raise SpecError([Issue("-", Message.of("batch.input_and_files").text())])
    settings = Settings(tuple(arguments.set), solver_overrides(arguments), tuple(overlay_folders(arguments)))
    alone = Path(given[0])
    if given == ["-"] or (len(given) == 1 and (alone.exists() or not has_magic(given[0])) and not alone.is_dir()):
        source = standard_input().read() if given == ["-"] else alone.read_bytes()
        if given == ["-"] or not is_one_spec(alone, source):
            settings = replace(settings, hourly=tuple(hourly_folders(arguments, given[0])))
            return read_lines(source, settings), settings
    settings = replace(settings, hourly=tuple(hourly_folders(arguments, "-")))
    output = None if arguments.output == "-" else Path(arguments.output)
    return read_files(files_named(given, besides=output), settings), settings


def _is_seen(to_file: bool) -> bool:
    """Tell whether a bar has a terminal of its own: standard error is one, and answers go elsewhere."""
    return sys.stderr is not None and sys.stderr.isatty() and (to_file or not sys.stdout.isatty())
