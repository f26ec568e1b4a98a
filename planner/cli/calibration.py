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
    calibrate.add_argument("file", metavar="FILE.csv", help=f"{FILE_HELP}; a handful is enough")
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

    found = validate(_file(arguments), load_catalog(arguments), arguments.leave_out)
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

    written, changes = calibrate(_file(arguments), Path(arguments.output), load_catalog(arguments))
    print_out(rows_as(arguments.format, changes))
    if not arguments.quiet:
        print(f"wrote {written}; use it with --catalog {arguments.output}", file=sys.stderr)
    return OK


def _file(arguments: argparse.Namespace) -> Path:
    """Find the file of measurements: as named, or in the folder of --measurements."""
    path = Path(arguments.file)
    return Path(arguments.measurements) / path if arguments.measurements and not path.exists() else path
