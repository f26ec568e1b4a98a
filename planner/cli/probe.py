"""The command `probe`, which measures the accelerator at hand, and what `calibrate` prints of its result."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import add_common_options, load_catalog
from planner.errors import words_of
from planner.exit_codes import INVALID, OK

if TYPE_CHECKING:
    from planner.calibration.probes import Probed
    from planner.cli.options import Commands


def add_probe(commands: Commands) -> None:
    """Add the command `probe`."""
    from planner.probe import add_options

    probe = commands.add_parser(
        "probe",
        help=helped("help.probe"),
        description=helped("help.probe_description"),
    )
    probe.add_argument("--output", metavar="FILE.json", required=True, help=helped("help.probe_output"))
    probe.add_argument("--architecture", metavar="NAME", help=helped("help.probe_architecture"))
    probe.add_argument("--tp", type=int, default=1, help=helped("help.probe_tp"))
    probe.add_argument("--shapes", metavar="FILE.json", help=helped("help.probe_shapes"))
    probe.add_argument(
        "--write-shapes",
        action="store_true",
        help=helped("help.probe_write_shapes"),
    )
    add_options(probe)
    add_common_options(probe)
    probe.set_defaults(run=_probe, format="table")


def _probe(arguments: argparse.Namespace) -> int:
    from planner.errors import Issue, SpecError
    from planner.files import write_file
    from planner.messages import Message
    from planner.probe import STANDARD, run

    if arguments.shapes and arguments.architecture:
        raise SpecError([Issue("--shapes", Message.of("probe.both_shapes").text())])
    shapes = None
    if arguments.architecture:
        from planner.calibration.probes import shapes_of
        from planner.resolve.architectures import shape_of
        from planner.resolve.ledger import Ledger

        catalog = load_catalog(arguments)
        record = catalog.get("architectures", arguments.architecture)
        try:
            arch = shape_of(record, Ledger(catalog))
        except ValueError as error:
            raise SpecError([Issue("--architecture", words_of(error))]) from None
        shapes = shapes_of(record.name, arch, arguments.tp)
    try:
        if arguments.shapes:
            shapes = json.loads(Path(arguments.shapes).read_text("utf-8"))
        if arguments.write_shapes:
            write_file(arguments.output, json.dumps(shapes or STANDARD, indent=1) + "\n")
            return OK
        document = run(arguments.backend, shapes, arguments.seconds, arguments.output, arguments.quiet)
    except ValueError as error:
        raise SpecError([Issue("probe", words_of(error))]) from None
    return OK if document["measurements"] else INVALID


def probe_rows(found: list[Probed]) -> list[dict[str, str]]:
    """Write what probes changed, a row for each part of a chip."""
    rows = []
    for probed in found:
        for finding in probed.findings:
            row, unit = finding.row(), 1e6 if finding.part == "launch" else 1.0
            shown = {name: f"{row[name] * unit:.3g}{' us' if unit > 1 else ''}" for name in ("measured", "expected")}
            rows.append({"chip": probed.chip, "probed": row["part"], **shown, "counts": f"{row['share']:.0%}",
                         "factor": f"{row['factor']:.3f}", "80 %": f"{row['low']:.3f} to {row['high']:.3f}"})  # fmt: skip
    return rows
