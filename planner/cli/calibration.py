"""The commands `validate` and `calibrate`: score the models on measurements, and fit their constants to them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import add_cells, add_common_options, cells_of, load_catalog
from planner.cli.output import XLSX, as_json, rows_as, write_out
from planner.cli.streams import print_out
from planner.escape import markdown, terminal
from planner.exit_codes import INVALID, OK
from planner.messages import Message
from planner.tables import FORMATS

if TYPE_CHECKING:
    from planner.cli.options import Commands
    from planner.facts import Fact

LEAVE_OUT = ("source", "chip", "generation", "group")
MOST_RUNS = 20  # that are listed; --rows and JSON have all


def add_validate(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `validate`."""
    validate = commands.add_parser(
        "validate",
        parents=[shared],
        help=helped("help.validate"),
        description=helped("help.validate_description"),
    )
    validate.add_argument("file", metavar="FILE.csv", help=helped("help.measured_file"))
    validate.add_argument("--rows", metavar="FILE.csv", help=helped("help.validate_rows"))
    validate.add_argument(
        "--leave-out",
        choices=LEAVE_OUT,
        help=helped("help.validate_leave_out"),
    )
    add_cells(validate)
    _add_folder(validate)
    validate.set_defaults(run=_validate)


def add_calibrate(commands: Commands) -> None:
    """Add the command `calibrate`."""
    calibrate = commands.add_parser("calibrate", help=helped("help.calibrate"))
    calibrate.add_argument(
        "file",
        metavar="FILE",
        nargs="+",
        help=helped("help.calibrate_file"),
    )
    add_cells(calibrate)
    calibrate.add_argument("--output", metavar="DIR", required=True, help=helped("help.calibrate_output"))
    calibrate.add_argument("--format", choices=(*FORMATS, XLSX), default="table", help=helped("help.answer_format"))
    calibrate.add_argument("--full", action="store_true", help=helped("help.calibrate_full"))
    _add_folder(calibrate)
    add_common_options(calibrate)
    calibrate.set_defaults(run=_calibrate, output_is_folder=True)


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--measurements", metavar="DIR", help=helped("help.measurements_folder"))


def _validate(arguments: argparse.Namespace) -> int:
    from planner.calibration.runs import listed
    from planner.calibration.scores import SCORE_COLUMNS, validate
    from planner.files import write_file
    from planner.tables import as_csv

    file = _file(arguments, arguments.file)
    found = validate(file, load_catalog(arguments), arguments.leave_out, cells_of(arguments.set))
    if arguments.rows:
        text = as_csv(found.score_rows()) if found.scores else ",".join(SCORE_COLUMNS) + "\n"
        write_file(arguments.rows, text)
    reasons = "".join(
        f"  {Message.of('cli.not_predictable', reason=reason, count=str(count)).text()}\n"
        for reason, count in found.reasons.items()
    )
    if arguments.format == "json":
        write_out(arguments, as_json(found.as_json()))
    else:
        text = rows_as(arguments.format, found.summary_rows()) if found.scores else ""
        if arguments.format != "csv":
            understood = _escaped(arguments, listed(found.runs, MOST_RUNS)) if found.runs else ""
            ways = [Message.of("measured.ways_not_stated", count=found.open_ways).text()] if found.open_ways else []
            counted = Message.of("cli.rows_predicted", rows=str(found.rows), predicted=str(found.predicted)).text()
            head = f"{counted}\n{reasons}" + "".join(f"  {w}\n" for w in ways)
            text = "\n".join(filter(None, (understood, _notes(arguments, found.notes), head, text)))
        write_out(arguments, text)
    if found.predicted:
        return OK
    for line in (
        Message.of("cli.no_row_predicted", file=str(file)).text(),
        *reasons.splitlines(),
        Message.of("cli.set_fills").text(),
    ):
        print(terminal(line), file=sys.stderr)
    return INVALID


def _calibrate(arguments: argparse.Namespace) -> int:
    from planner.calibration.fit import Calibrated, calibrate
    from planner.calibration.probes import calibrate_probes, is_probe
    from planner.calibration.runs import listed
    from planner.cli.probe import probe_rows

    files, folder, further = (
        [_file(arguments, name) for name in arguments.file],
        Path(arguments.output),
        cells_of(arguments.set),
    )
    catalog, probes = load_catalog(arguments), [path for path in files if is_probe(path)]
    probed = calibrate_probes(probes, folder, catalog, further)
    runs = [path for path in files if path not in probes]
    found = calibrate(runs, folder, catalog, further) if runs else Calibrated((), (), (), (), (), ())
    rows = [row for run in found.runs for row in run.rows()]
    figures = list(found.figures)
    if arguments.format == "json":
        document = {
            "runs": [run.as_json() for run in found.runs],
            "used_by": list(found.used_by),
            "not_predictable": [{"place": row.place, "reason": reason} for row, reason in found.refused],
            "notes": [fact.row() for fact in found.notes],
            **({"probes": [each.as_json() for each in probed]} if probed else {}),
        }
        print_out(as_json({**document, "figures": figures} if arguments.full else document))
    elif arguments.format == "csv":
        print_out(rows_as("csv", (figures if arguments.full else rows) or probe_rows(probed)))
    else:
        refused = "".join(f"{row.place}: not predictable: {reason}\n" for row, reason in found.refused)
        used = "".join(f"{row['text']}\n" for row in found.used_by)
        tables = [rows_as(arguments.format, each) for each in (rows, figures if arguments.full else []) if each]
        told = [listed(found.runs, MOST_RUNS) if runs else "", refused]
        parts = [rows_as(arguments.format, probe_rows(probed))] if probed else []
        parts += [*(_escaped(arguments, text) for text in told), _notes(arguments, found.notes), *tables[:1]]
        parts += [_escaped(arguments, f"Used by\n{used}")] if used else []
        print_out("\n".join(filter(None, [*parts, *tables[1:]])))
    if not arguments.quiet:
        written = [*dict.fromkeys(each.written for each in probed), *found.written]
        print(
            Message.of("cli.overlay_written", files=", ".join(map(str, written)), folder=arguments.output).text(),
            file=sys.stderr,
        )
    return OK


def _notes(arguments: argparse.Namespace, notes: Sequence[Fact]) -> str:
    """Write conflicts with known figures, a line each with its place and source."""
    lines = [f"{fact.path}: {fact.problem().message}" for fact in notes]
    more = [Message.of("list.more", count=len(lines) - MOST_RUNS).text()] if len(lines) > MOST_RUNS else []
    return _escaped(arguments, "".join(f"{line}\n" for line in (*lines[:MOST_RUNS], *more)))


def _escaped(arguments: argparse.Namespace, text: str) -> str:
    """Escape lines for a terminal, or make each a paragraph of Markdown."""
    if arguments.format == "md":
        return "".join(f"- {markdown(line.strip())}\n" for line in text.splitlines())
    return "".join(f"{terminal(line)}\n" for line in text.splitlines())


def _file(arguments: argparse.Namespace, name: str) -> Path:
    """Find a file of measurements: as named, or in the folder of --measurements."""
    path = Path(name)
    return Path(arguments.measurements) / path if arguments.measurements and not path.exists() else path
