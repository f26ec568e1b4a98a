"""The command `robust`: the share of sampled scenarios in which a plan, robust or not, keeps its promises."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from planner.cli.options import PLAN_HELP, add_limit_options, overlay_folders, search_limits
from planner.cli.output import as_json, rows_as, said_if_left_out, write_out
from planner.messages import Message

if TYPE_CHECKING:
    from planner.cli.options import Commands
    from planner.problem.facts import ResolvedSpec
    from planner.verify.checked_plan import CheckedPlan

MAX_SCENARIOS = 100_000


def add_robust(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `robust`."""
    robust = commands.add_parser(
        "robust", parents=[shared], help="share of sampled scenarios in which a plan keeps its promises"
    )
    robust.add_argument("plan", metavar="PLAN", help=f"{PLAN_HELP}, made to be robust or not")
    robust.add_argument(
        "--scenarios",
        "--worlds",
        dest="scenarios",
        type=int,
        default=1000,
        metavar="N",
        help="how many scenarios to sample (default: 1000)",
    )
    robust.add_argument("--seed", type=int, default=1, help="random seed of the scenarios (default: 1)")
    add_limit_options(robust)
    robust.set_defaults(run=_robust)


def _robust(arguments: argparse.Namespace) -> int:
    from planner.errors import Issue, SpecError
    from planner.plan import load_plan
    from planner.problem.scenarios import draw, price_ranges
    from planner.report.robust import outcome_row, price_row
    from planner.resolve.price_steps import raised
    from planner.solving.variants import resolved_anew
    from planner.spec.model import parse_spec
    from planner.spec.robust import Robust
    from planner.verify.check import read_through
    from planner.verify.quality import as_chosen
    from planner.verify.robust.check import cost_by_price, outcome_in

    limits = search_limits(arguments)
    plan, overlays = load_plan(arguments.plan), overlay_folders(arguments)
    if not plan.has_answer:
        raise SpecError([Issue(arguments.plan, Message.of("option.no_plan_to_test").text())])
    if not 1 <= arguments.scenarios <= MAX_SCENARIOS:
        words = Message.of("cli.number_out_of_range", least=1, most=MAX_SCENARIOS, given=arguments.scenarios).text()
        raise SpecError([Issue("--scenarios", words)])
    spec = parse_spec(plan.document["spec"])
    if spec.robust is None:  # prices that were chosen by their level stay there
        spec = spec.model_copy(update={"robust": Robust(prices=spec.prices is None or not spec.prices.moved)})
    problem = as_chosen(resolved_anew(spec, overlays), plan.document)

    def read_in_time(at_prices: ResolvedSpec, document: Mapping[str, Any]) -> CheckedPlan:
        limits.check()
        return read_through(at_prices, document)

    amounts = cost_by_price(problem, plan.document, raised(problem, overlays), read_in_time)
    scenarios = draw(problem, arguments.scenarios, arguments.seed)
    tried = outcome_in(problem, plan.document, scenarios, amounts, read_in_time, limits.within)
    if not len(tried.cost):
        limits.check()
    outcome = tried.as_json()
    left_out = limits.left_out("scenarios", arguments.scenarios - outcome["scenarios"], arguments.scenarios)
    if arguments.format == "json":
        write_out(arguments, as_json({**outcome, "seed": arguments.seed, "prices": amounts, **left_out}))
        return said_if_left_out(left_out)
    text = rows_as(arguments.format, [outcome_row("as sampled", outcome)])
    if arguments.format != "csv" and amounts:
        rows = [price_row({**row, "amount": amounts[row["path"]]}) for row in price_ranges(problem)]
        text += "\n" + rows_as(arguments.format, rows)
    write_out(arguments, text)
    return said_if_left_out(left_out)
