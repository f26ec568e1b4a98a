"""The command `init`: a spec drafted from what a person has, with every guess marked."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import (
    add_cells,
    add_common_options,
    cells_of,
    load_catalog,
    overlay_folders,
    positive_users,
)
from planner.cli.output import write_out
from planner.escape import terminal
from planner.exit_codes import OK
from planner.messages import Message
from planner.ways_in.training import WORK

if TYPE_CHECKING:
    from planner.cli.options import Commands


def add_init(commands: Commands) -> None:
    """Add the command `init`."""
    init = commands.add_parser("init", help=helped("help.init"))
    init.add_argument(
        "--model",
        metavar="hf:ORG/NAME",
        help=helped("help.init_model"),
    )
    init.add_argument("--config", metavar="FILE", help=helped("help.init_config"))
    init.add_argument("--vllm", metavar="COMMAND", help=helped("help.init_vllm"))
    init.add_argument("--sglang", metavar="COMMAND", help=helped("help.init_sglang"))
    init.add_argument("--trtllm", metavar="COMMAND", help=helped("help.init_trtllm"))
    init.add_argument("--trace", metavar="FILE", help=helped("help.init_trace"))
    init.add_argument(
        "--log",
        metavar="FILE",
        help=helped("help.init_log"),
    )
    add_cells(init)
    init.add_argument(
        "--fleet",
        metavar="FILE",
        help=helped("help.init_fleet"),
    )
    init.add_argument(
        "--users",
        metavar="N",
        type=positive_users,
        help=helped("help.init_users"),
    )
    init.add_argument("--rate", metavar="R", type=float, help=helped("cli.init_rate"))
    init.add_argument("--lengths", metavar="INPUT,OUTPUT", help=helped("cli.init_lengths"))
    init.add_argument("--work", choices=WORK, help=helped("help.init_work"))
    init.add_argument("--tokens", metavar="N", help=helped("help.init_tokens"))
    init.add_argument("--deadline", metavar="TIME", help=helped("help.init_deadline"))
    init.add_argument("--systems", metavar="NAME,…", help=helped("cli.init_systems"))
    init.add_argument("--region", metavar="NAME", help=helped("help.init_region"))
    init.add_argument("--output", metavar="FILE", help=helped("help.init_output"))
    add_common_options(init)
    init.set_defaults(run=_init, format="json")


def _init(arguments: argparse.Namespace) -> int:
    """Draft the spec, check it, write it, and list the guesses and how each source was read."""
    from planner.facts import rows
    from planner.library import OPTIONS, Given, draft_of
    from planner.report.notes import told

    sources = {name: getattr(arguments, name) for name in OPTIONS}
    given = Given(region=arguments.region, cells=cells_of(arguments.set), **sources)
    if given == Given() and sys.stdin is not None and sys.stdin.isatty():
        from planner.cli.questions import asked

        with suppress(EOFError):  # the error for no source says what to give
            given = asked(load_catalog(arguments))
    document, notes = draft_of(given, overlay_folders(arguments))
    write_out(arguments, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    if not arguments.quiet:
        for line in told(rows(notes)):
            print(terminal(line), file=sys.stderr)
        for path, reason in document.get("assumptions", {}).items():
            print(terminal(f"{path}: {Message.of('ways_in.guess', reason=reason).text()}"), file=sys.stderr)
    return OK
