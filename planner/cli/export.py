"""The command `export`: a plan as files of the tools that carry it out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import add_common_options, overlay_folders
from planner.cli.plan import stored_plan
from planner.escape import terminal
from planner.exit_codes import OK
from planner.messages import Message
from planner.ways_out import NAMES

if TYPE_CHECKING:
    from planner.cli.options import Commands


def add_export(commands: Commands) -> None:
    """Add the command `export`."""
    export = commands.add_parser("export", help=helped("help.export"))
    export.add_argument("plan", metavar="PLAN", help=helped("help.show_plan", plan=helped("help.plan_file")))
    export.add_argument("folder", metavar="DIR", help=helped("help.export_folder"))
    export.add_argument(
        "--to", metavar="FORMAT,…", required=True, help=helped("help.export_to", formats=", ".join(NAMES))
    )
    export.add_argument("--overwrite", action="store_true", help=helped("help.export_overwrite"))
    add_common_options(export)
    export.set_defaults(run=_export)


def _export(arguments: argparse.Namespace) -> int:
    """Write the files; say how many, and what no file holds."""
    from planner.ways_out.files import write_files
    from planner.ways_out.formats import export

    names = [name for part in arguments.to.split(",") if (name := part.strip())]
    found = export(stored_plan(arguments), names, overlay_folders(arguments))
    write_files(Path(arguments.folder), found.files, arguments.overwrite)
    for issue in found.left:
        print(terminal(Message.of("ways_out.left", place=issue.path, why=issue.message).text()), file=sys.stderr)
    if not arguments.quiet:
        print(terminal(Message.of("ways_out.written", count=len(found.files), folder=arguments.folder).text()))
    return OK
