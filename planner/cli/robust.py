"""The command `robust`: the share of sampled scenarios in which a plan, robust or not, keeps its promises."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import add_limit_options, overlay_folders, search_limits
from planner.cli.output import as_json, rows_as, said_if_left_out, write_out

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
