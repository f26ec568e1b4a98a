"""The commands that try a plan, `robust` in sampled scenarios and `replay` request by request, and `forecast`, which tells scenarios of demand."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import add_limit_options, overlay_folders, search_limits
from planner.cli.output import as_json, rows_as, said_if_left_out, write_out
from planner.exit_codes import OK

if TYPE_CHECKING:
    from planner.cli.options import Commands


def add_robust(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `robust`."""
    robust = commands.add_parser("robust", parents=[shared], help=helped("help.robust"))
    robust.add_argument("plan", metavar="PLAN", help=helped("help.robust_plan", plan=helped("help.plan_file")))
    robust.add_argument(
        "--scenarios",
        "--worlds",
        dest="scenarios",
        type=int,
        default=1000,
        metavar="N",
        help=helped("help.scenarios", count="1000"),
    )
    robust.add_argument("--seed", type=int, default=1, help=helped("help.scenarios_seed", count="1"))
    add_limit_options(robust)
    robust.set_defaults(run=_robust)


def _robust(arguments: argparse.Namespace) -> int:
    from planner.plan import load_plan
    from planner.robust.promises import robust

    limits = search_limits(arguments)
    found = robust(
        load_plan(arguments.plan), overlays=overlay_folders(arguments), scenarios=arguments.scenarios, seed=arguments.seed, limits=limits,
        place=arguments.plan,
    )  # fmt: skip
    if arguments.format == "json":
        write_out(arguments, as_json(found.document))
        return said_if_left_out(found.left_out)
    text = rows_as(arguments.format, found.rows)
    if arguments.format != "csv" and found.prices:
        text += "\n" + rows_as(arguments.format, found.prices)
    write_out(arguments, text)
    return said_if_left_out(found.left_out)


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


def add_forecast(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `forecast`."""
    forecast = commands.add_parser("forecast", parents=[shared], help=helped("help.forecast"))
    forecast.add_argument("file", metavar="FILE.csv", help=helped("help.forecast_file"))
    forecast.add_argument("--zone", default="UTC", metavar="NAME", help=helped("help.forecast_zone"))
    forecast.set_defaults(run=_forecast)


def _forecast(arguments: argparse.Namespace) -> int:
    from planner.cli.studies import print_study
    from planner.library import forecast

    print_study(arguments, forecast(arguments.file, zone=arguments.zone))
    return OK
