"""The verbs `validate` and `calibrate`: their arguments, and the printing of what `planner.calibration` finds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

LEAVE_OUT = ("source", "chip", "generation", "group")


def add_verbs(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser],
    shared: argparse.ArgumentParser,
    common: Callable[[argparse.ArgumentParser], None],
    formats: tuple[str, ...],
) -> None:
    """Adds both verbs to the command's parser."""
    validate = verbs.add_parser(
        "validate", parents=[shared], help="score the models on measurements",
        description="Score the models on measurements of training or of serving runs; the columns of the file tell which. Serving rows of "
        "grade C or D are predicted but summed up apart; a row without a grade counts.",
    )  # fmt: skip
    validate.add_argument("file", metavar="FILE.csv", help="measurements of training or of serving, one row per run")
    validate.add_argument("--rows", metavar="FILE.csv", help="write measured, predicted, low, high of every row there")
    validate.add_argument(
        "--leave-out",
        choices=LEAVE_OUT,
        help="predict each row by constants fitted without its group (needs some minutes)",
    )
    validate.add_argument("--measurements", metavar="DIR", help="folder in which FILE.csv lies, if not here")
    validate.set_defaults(run=_validate)

    calibrate = verbs.add_parser("calibrate", help="fit the shared constants to own measurements")
    calibrate.add_argument(
        "file", metavar="FILE.csv", help="measurements of training or of serving, one row per run; a handful is enough"
    )
    calibrate.add_argument(
        "--output", metavar="DIR", required=True, help="folder for the overlay, to be named with --catalog"
    )
    calibrate.add_argument(
        "--format", choices=formats, default="table", help="how the changes are printed (default: table)"
    )
    calibrate.add_argument("--measurements", metavar="DIR", help="folder in which FILE.csv lies, if not here")
    common(calibrate)
    calibrate.set_defaults(run=_calibrate)


def _validate(arguments: argparse.Namespace) -> int:
    from planner.calibration.scores import SCORE_COLUMNS, validate
    from planner.cli.output import rows_as, write_out
    from planner.plan import write_whole
    from planner.tables import as_csv

    found = validate(_file(arguments), _catalog(arguments), arguments.leave_out)
    if arguments.rows:
        text = as_csv(found.score_rows()) if found.scores else ",".join(SCORE_COLUMNS) + "\n"
        write_whole(Path(arguments.rows), text)
    if arguments.format == "json":
        write_out(arguments, json.dumps(found.as_json(), indent=1, allow_nan=False) + "\n")
        return 0
    text = rows_as(arguments.format, found.summary_rows()) if found.scores else ""
    if arguments.format != "csv":
        reasons = "".join(f"  not predictable: {reason}: {count}\n" for reason, count in found.reasons.items())
        text = f"{found.rows} rows, {found.predicted} predicted\n{reasons}\n{text}"
    write_out(arguments, text)
    return 0


def _calibrate(arguments: argparse.Namespace) -> int:
    import sys

    from planner.calibration.fit import calibrate
    from planner.cli.output import rows_as

    written, changes = calibrate(_file(arguments), Path(arguments.output), _catalog(arguments))
    sys.stdout.write(rows_as(arguments.format, changes))
    if not arguments.quiet:
        print(f"wrote {written}; use it with --catalog {arguments.output}", file=sys.stderr)
    return 0


def _file(arguments: argparse.Namespace) -> Path:
    path = Path(arguments.file)
    return Path(arguments.measurements) / path if arguments.measurements and not path.exists() else path


def _catalog(arguments: argparse.Namespace):
    from catalog.errors import CatalogError
    from catalog.lookup import Catalog
    from planner.errors import Problem, SpecError

    try:
        return Catalog.load([Path(folder) for folder in arguments.catalog])
    except CatalogError as error:
        raise SpecError(Problem(path, message) for path, message in error.problems) from None
