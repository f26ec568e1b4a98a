"""The command `measure`: which measurements pay next for a plan, and how."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import add_engine_options, add_limit_options, overlay_folders, search_limits, study_engine
from planner.exit_codes import OK
from planner.messages import Message

if TYPE_CHECKING:
    from planner.cli.options import Commands

FEWEST_SCENARIOS, MOST_SCENARIOS = 40, 10_000


def add_measure(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `measure`."""
    measure = commands.add_parser(
        "measure",
        parents=[shared],
        help=helped("help.measure"),
        description=helped("help.measure_description"),
    )
    measure.add_argument("plan", metavar="PLAN", help=helped("help.plan_file"))
    measure.add_argument("--budget", type=float, metavar="AMOUNT", help=helped("help.measure_budget"))
    measure.add_argument(
        "--scenarios",
        "--worlds",
        dest="scenarios",
        type=int,
        default=240,
        metavar="N",
        help=helped("help.scenarios", count="240"),
    )
    measure.add_argument("--seed", type=int, default=2, help=helped("help.scenarios_seed", count="2"))
    add_limit_options(measure)
    add_engine_options(measure)
    measure.set_defaults(run=_measure)


def _measure(arguments: argparse.Namespace) -> int:
    from planner.cli.studies import print_study
    from planner.errors import Issue, SpecError
    from planner.plan import load_plan
    from planner.studies.measure import measure

    problems = []
    if not FEWEST_SCENARIOS <= arguments.scenarios <= MOST_SCENARIOS:
        problems.append(
            Issue(
                "--scenarios",
                Message.of(
                    "cli.number_out_of_range", least=FEWEST_SCENARIOS, most=MOST_SCENARIOS, given=arguments.scenarios
                ).text(),
            )
        )
    if arguments.budget is not None and not (math.isfinite(arguments.budget) and arguments.budget >= 0):
        problems.append(Issue("--budget", Message.of("option.amount_not_negative", given=str(arguments.budget)).text()))
    if arguments.seed < 0:
        problems.append(Issue("--seed", Message.of("option.number_not_negative", given=str(arguments.seed)).text()))
    if problems:
        raise SpecError(problems)
    found = measure(
        load_plan(arguments.plan), overlays=overlay_folders(arguments), budget=arguments.budget, scenarios=arguments.scenarios,
        seed=arguments.seed, limits=search_limits(arguments), engine=study_engine(arguments),
    )  # fmt: skip
    print_study(arguments, found)
    return OK
