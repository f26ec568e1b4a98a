"""The command `init`: a spec drafted from what a person has, with every guess marked."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from planner.cli.options import Commands


def add_init(commands: Commands) -> None:
    """Add the command `init`."""
    init = commands.add_parser("init", help="draft a spec from what you have, with every guess marked")
    init.add_argument(
        "--model",
        metavar="hf:ORG/NAME",
        help="model: of the catalog, else of the hub's cache on this disk, else asked from the hub once",
    )
    init.add_argument("--config", metavar="FILE", help="config.json of a model, as the Hugging Face hub has it")
    init.add_argument(
        "--vllm", metavar="COMMAND", help='how vLLM is launched, such as "vllm serve ORG/NAME -tp 8", or its YAML file'
    )
    init.add_argument("--sglang", metavar="COMMAND", help="how SGLang's server is launched, or its YAML file")
    init.add_argument("--trtllm", metavar="COMMAND", help="how `trtllm-serve` is launched, or its YAML file")
    init.add_argument(
        "--trace", metavar="FILE", help="requests: Azure, Mooncake or BurstGPT, or a JSON list of [input, output]"
    )
    init.add_argument(
        "--log",
        metavar="FILE",
        help="benchmark: vllm bench serve, SGLang's bench_serving, AIPerf, GuideLLM or inference-perf, as JSON",
    )
    add_cells(init)
    init.add_argument(
        "--fleet",
        metavar="FILE",
        help="systems: kubectl get nodes -o json, sinfo, or an inventory in CSV; or prices of instances",
    )
    init.add_argument(
        "--users",
        metavar="N",
        type=positive_users,
        help="number of users; how many are at work at once and what each asks are guesses",
    )
    init.add_argument("--rate", metavar="R", type=float, help=Message.of("cli.init_rate").text())
    init.add_argument("--lengths", metavar="INPUT,OUTPUT", help=Message.of("cli.init_lengths").text())
    init.add_argument("--systems", metavar="NAME,…", help=Message.of("cli.init_systems").text())
    init.add_argument("--region", metavar="NAME", help="region of the catalog where users and sites are")
    init.add_argument("--output", metavar="FILE", help="write the spec there instead of standard output")
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
