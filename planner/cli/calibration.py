"""The commands `validate` and `calibrate`: score the models on measurements, and fit their constants to them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.options import FORMATS, add_common_options, load_catalog
from planner.cli.output import as_json, rows_as, write_out
from planner.cli.streams import print_out
from planner.exit_codes import OK

if TYPE_CHECKING:
    from planner.cli.options import Commands

LEAVE_OUT = ("source", "chip", "generation", "group")
FILE_HELP = "measurements of training or of serving, one row per run"


def add_validate(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `validate`."""
    validate = commands.add_parser(
        "validate",
        parents=[shared],
        help="score the models on measurements",
        description="Score the models on measurements of training or of serving runs; the columns of the file tell which. "
        "Serving rows of grade C or D are predicted but summed up apart; a row without a grade counts.",
    )
    validate.add_argument("file", metavar="FILE.csv", help=FILE_HELP)
    validate.add_argument("--rows", metavar="FILE.csv", help="write measured, predicted, low, high of every row there")
    validate.add_argument(
        "--leave-out",
        choices=LEAVE_OUT,
        help="predict each row by constants fitted without its own group (takes minutes)",
    )
    _add_folder(validate)
    validate.set_defaults(run=_validate)


def add_calibrate(commands: Commands) -> None:
    """Add the command `calibrate`."""
    calibrate = commands.add_parser("calibrate", help="fit the shared constants to your own measurements")
    calibrate.add_argument(
        "file",
        metavar="FILE",
        nargs="+",
        help=f"{FILE_HELP}, as CSV or as JSON of `vllm bench serve` or SGLang's `bench_serving`; a handful of runs is enough",
    )
    calibrate.add_argument(
        "--set",
        metavar="COLUMN=VALUE",
        action="append",
        default=[],
        help="a cell of all rows that have none, such as chip=H100 or n_chips=8, which benchmarks do not write (may be repeated)",
    )
    calibrate.add_argument(
        "--output", metavar="DIR", required=True, help="folder for the overlay, to be named with --catalog"
    )
    calibrate.add_argument(
        "--format", choices=FORMATS, default="table", help="how the changes are printed (default: table)"
    )
    _add_folder(calibrate)
    add_common_options(calibrate)
    calibrate.set_defaults(run=_calibrate, output_is_folder=True)


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--measurements", metavar="DIR", help="folder of FILE.csv, if it is not in the current one")


def _validate(arguments: argparse.Namespace) -> int:
    from planner.calibration.scores import SCORE_COLUMNS, validate
    from planner.files import write_file
    from planner.tables import as_csv

    found = validate(_file(arguments, arguments.file), load_catalog(arguments), arguments.leave_out)
    if arguments.rows:
        text = as_csv(found.score_rows()) if found.scores else ",".join(SCORE_COLUMNS) + "\n"
        write_file(arguments.rows, text)
    if arguments.format == "json":
        write_out(arguments, as_json(found.as_json()))
        return OK
    text = rows_as(arguments.format, found.summary_rows()) if found.scores else ""
    if arguments.format != "csv":
        reasons = "".join(f"  not predictable: {reason}: {count}\n" for reason, count in found.reasons.items())
        text = f"{found.rows} rows, {found.predicted} predicted\n{reasons}\n{text}"
    write_out(arguments, text)
    return OK


def _calibrate(arguments: argparse.Namespace) -> int:
    from planner.calibration.fit import calibrate

    files = [_file(arguments, name) for name in arguments.file]
    written, changes = calibrate(files, Path(arguments.output), load_catalog(arguments), _cells(arguments.set))
    print_out(rows_as(arguments.format, changes))
    if not arguments.quiet:
        print(f"wrote {', '.join(map(str, written))}; use it with --catalog {arguments.output}", file=sys.stderr)
    return OK


def _cells(pairs: list[str]) -> dict[str, str]:
    """Parse COLUMN=VALUE pairs. Raises SpecError for one without either part."""
    from planner.errors import Problem, SpecError

    split = [pair.partition("=") for pair in pairs]
    problems = [
        Problem("--set", f'expected COLUMN=VALUE, got "{pair}"')
        for pair, (name, _, value) in zip(pairs, split, strict=True)
        if not (name.strip() and value.strip())
    ]
    if problems:
        raise SpecError(problems)
    return {name.strip(): value.strip() for name, _, value in split}


def _file(arguments: argparse.Namespace, name: str) -> Path:
    """Find a file of measurements: as named, or in the folder of --measurements."""
    path = Path(name)
    return Path(arguments.measurements) / path if arguments.measurements and not path.exists() else path
