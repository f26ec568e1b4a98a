"""The commands `compare` (the difference of plans, for a terminal, for a pull request and against a budget, or a plan against what was measured since) and `replan`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import (
    add_cells,
    amount_of,
    cells_of,
    overlay_folders,
    progress_printer,
)
from planner.cli.output import write_out
from planner.cli.studies import print_study
from planner.exit_codes import EXIT_BY_STATUS, LIMIT, OK, OVER_BUDGET
from planner.messages import Message

if TYPE_CHECKING:
    from planner.cli.options import Commands
    from planner.plan import Plan
    from planner.studies.against.causes import Why

TOTAL_TIME = "15 min"


def add_compare(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `compare`."""
    compare = commands.add_parser("compare", parents=[shared], help=helped("help.compare"))
    compare.add_argument("first", metavar="PLAN", help=helped("help.plan_file"))
    compare.add_argument("second", metavar="PLAN", nargs="?", help=helped("help.compare_second"))
    compare.add_argument("further", metavar="PLAN", nargs="*", help=helped("help.compare_further"))
    compare.add_argument("--actual", metavar="FILE", nargs="+", action="extend", help=helped("help.compare_actual"))
    compare.add_argument("--why", action="store_true", help=helped("help.compare_why"))
    compare.add_argument("--budget", metavar="AMOUNT", help=helped("help.compare_budget"))
    compare.add_argument("--plans", metavar="DIR", help=helped("help.compare_plans"))
    compare.add_argument("--total-time", metavar="TIME", default=TOTAL_TIME, help=helped("help.compare_total_time"))
    compare.add_argument("--time-limit", metavar="TIME", help=helped("help.solver_time"))
    compare.add_argument("--memory", metavar="SIZE", help=helped("help.solver_memory"))
    add_cells(compare)
    compare.set_defaults(run=_compare)


def add_replan(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `replan`."""
    replan = commands.add_parser("replan", parents=[shared], help=helped("help.replan"))
    replan.add_argument("plan", metavar="PLAN", help=helped("help.plan_file"))
    replan.add_argument(
        "--observed", metavar="FILE", nargs="+", action="extend", required=True, help=helped("help.replan_observed")
    )
    replan.add_argument("--date", metavar="DAY", help=helped("help.replan_date"))
    replan.add_argument("--plans", metavar="DIR", help=helped("help.replan_plans"))
    replan.add_argument("--set", metavar="PATH=VALUE", action="append", default=[], help=helped("help.replan_set"))
    replan.add_argument("--cell", metavar="COLUMN=VALUE", action="append", default=[], help=helped("help.cells_set"))
    replan.add_argument("--time-limit", metavar="TIME", help=helped("help.solver_time"))
    replan.add_argument("--memory", metavar="SIZE", help=helped("help.solver_memory"))
    replan.set_defaults(run=_replan)


def _replan(arguments: argparse.Namespace) -> int:
    """Plan again from a day on, and write the new plan where --plans names a folder."""
    from planner.plan import load_plan
    from planner.studies.replan.answer import day_of, replan

    plan, day = load_plan(arguments.plan), None if arguments.date is None else day_of(arguments.date)
    with tempfile.TemporaryDirectory() as spare:
        folder = Path(arguments.plans or spare)
        found = replan(
            plan, arguments.observed, folder / "own", day=day, assignments=arguments.set, overlays=overlay_folders(arguments),
            cells=cells_of(arguments.cell), limits=_limits(arguments), progress=progress_printer(arguments),
        )  # fmt: skip
        if arguments.plans:
            found.after.save(folder / "replanned.json")
            found.as_planned.save(folder / "as_planned.json")
    print_study(arguments, found)
    return EXIT_BY_STATUS[found.after.status]


def _compare(arguments: argparse.Namespace) -> int:
    from planner.errors import Issue, SpecError
    from planner.plan import load_plan
    from planner.studies.against.pull_request import pull_request
    from planner.studies.compare import compare
    from planner.studies.side_by_side import side_by_side

    if (arguments.second is None) == (arguments.actual is None):
        code = "actual.one_plan" if arguments.second is None else "actual.two_plans"
        raise SpecError([Issue("compare", Message.of(code).text())])
    if arguments.why and (arguments.actual or arguments.further):
        raise SpecError([Issue("--why", Message.of("option.two_plans").text())])
    if arguments.actual:
        return _actual(arguments, load_plan(arguments.first))
    plans = [load_plan(path) for path in (arguments.first, arguments.second, *arguments.further)]
    code_of_budget = _kept(plans[-1], arguments.budget)
    if arguments.further:
        print_study(arguments, side_by_side(plans))
        return code_of_budget
    first, second = plans
    if arguments.why:
        print_study(arguments, _why(arguments, first, second))
        return code_of_budget
    found = compare(first, second)
    if arguments.format == "md":
        write_out(arguments, pull_request(first, second, found, arguments.budget))
    else:
        print_study(arguments, found)
    return code_of_budget


def _actual(arguments: argparse.Namespace, plan: Plan) -> int:
    """Hold a plan against what was measured, and write the plan after it where --plans names a folder."""
    from planner.studies.against.actual import against_actual
    from planner.studies.against.pull_request import amount_in

    if arguments.budget is not None:
        amount_in(plan, arguments.budget)
    total_s = amount_of(arguments.total_time, "s", "--total-time", TOTAL_TIME)
    with tempfile.TemporaryDirectory() as spare:
        folder = Path(arguments.plans or spare)
        found = against_actual(
            plan, arguments.actual, folder / "own", overlays=overlay_folders(arguments), cells=cells_of(arguments.set), total_s=total_s,
            limits=_limits(arguments), progress=progress_printer(arguments),
        )  # fmt: skip
        if arguments.plans and found.after is not None:
            found.after.save(folder / "after.json")
    print_study(arguments, found)
    if found.after is not None and (code := _kept(found.after, arguments.budget)) != OK:
        return code
    return EXIT_BY_STATUS[found.after.status] if found.after is not None and not found.after.has_answer else OK if found.is_complete else LIMIT  # fmt: skip


def _why(arguments: argparse.Namespace, first: Plan, second: Plan) -> Why:
    """Attribute the difference of two plans to causes."""
    from planner.studies.against.causes import why

    total_s = amount_of(arguments.total_time, "s", "--total-time", TOTAL_TIME)
    return why(
        first, second, overlays=overlay_folders(arguments), limits=_limits(arguments), total_s=total_s, progress=progress_printer(arguments)
    )  # fmt: skip


def _limits(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the limits of each new plan that are given."""
    return {name: value for name in ("time_limit", "memory") if (value := getattr(arguments, name)) is not None}


def _kept(plan: Plan, budget: str | None) -> int:
    """Return the exit code of a plan under a budget: without a cost, that of its status."""
    from planner.studies.against.pull_request import amount_in, over_budget

    if budget is None:
        return OK
    amount_in(plan, budget)
    if plan.total("cost") is None:
        return EXIT_BY_STATUS[plan.status]
    return OVER_BUDGET if over_budget(plan, budget) else OK
