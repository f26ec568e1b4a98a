"""The command `compare`: the difference of plans, for a terminal, for a pull request, and against a budget."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.output import write_out
from planner.cli.studies import print_study
from planner.exit_codes import EXIT_BY_STATUS, OK, OVER_BUDGET

if TYPE_CHECKING:
    from planner.cli.options import Commands
    from planner.plan import Plan


def add_compare(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `compare`."""
    compare = commands.add_parser("compare", parents=[shared], help=helped("help.compare"))
    compare.add_argument("first", metavar="PLAN", help=helped("help.plan_file"))
    compare.add_argument("second", metavar="PLAN", help=helped("help.compare_second"))
    compare.add_argument("further", metavar="PLAN", nargs="*", help=helped("help.compare_further"))
    compare.add_argument("--budget", metavar="AMOUNT", help=helped("help.compare_budget"))
    compare.set_defaults(run=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    from planner.plan import load_plan
    from planner.studies.against.pull_request import pull_request
    from planner.studies.compare import compare
    from planner.studies.side_by_side import side_by_side

    plans = [load_plan(path) for path in (arguments.first, arguments.second, *arguments.further)]
    code = _kept(plans[-1], arguments.budget)
    if arguments.further:
        print_study(arguments, side_by_side(plans))
        return code
    first, second = plans
    found = compare(first, second)
    if arguments.format == "md":
        write_out(arguments, pull_request(first, second, found, arguments.budget))
    else:
        print_study(arguments, found)
    return code


def _kept(plan: Plan, budget: str | None) -> int:
    """Return the exit code of a plan under a budget: without a cost, that of its status."""
    from planner.studies.against.pull_request import amount_in, over_budget

    if budget is None:
        return OK
    amount_in(plan, budget)
    if plan.total("cost") is None:
        return EXIT_BY_STATUS[plan.status]
    return OVER_BUDGET if over_budget(plan, budget) else OK
