"""The command `replay`: the deployments of a plan, request by request, beside the closed forms."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import overlay_folders
from planner.exit_codes import OK

if TYPE_CHECKING:
    from planner.cli.options import Commands


def add_replay(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `replay`."""
    replay = commands.add_parser(
        "replay", parents=[shared], help=helped("help.replay"), description=helped("help.replay_description")
    )
    replay.add_argument("plan", metavar="PLAN", help=helped("help.plan_file"))
    replay.add_argument("--trace", metavar="FILE", help=helped("help.replay_trace"))
    replay.add_argument("--requests", type=int, default=20_000, metavar="N", help=helped("help.replay_requests"))
    replay.add_argument("--replicas", type=int, default=1, metavar="N", help=helped("help.replay_replicas"))
    replay.add_argument("--router", default="random", metavar="NAME", help=helped("help.replay_router"))
    replay.add_argument("--seed", type=int, default=1, help=helped("help.replay_seed"))
    replay.set_defaults(run=_replay)


def _replay(arguments: argparse.Namespace) -> int:
    from planner.cli.studies import print_study
    from planner.plan import load_plan
    from planner.replay.answer import Asked, replay

    found = replay(
        load_plan(arguments.plan), Path(arguments.trace) if arguments.trace else None, overlays=overlay_folders(arguments),
        asked=Asked(arguments.requests, arguments.seed, arguments.router, arguments.replicas), place=arguments.plan,
    )  # fmt: skip
    print_study(arguments, found)
    return OK
