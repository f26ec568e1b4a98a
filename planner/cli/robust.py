"""The verb `robust`: how a plan, made to be robust or not, fares in sampled worlds."""

from __future__ import annotations

import argparse
import json

from planner.exit_codes import OK


def add_verb(verbs: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser) -> None:
    """Adds the verb to the command's parser."""
    robust = verbs.add_parser(
        "robust", parents=[shared], help="in how many sampled worlds a plan keeps what it promises"
    )
    robust.add_argument("plan", metavar="PLAN", help="plan as `plan --format json` prints it, made to be robust or not")
    robust.add_argument(
        "--worlds", type=int, default=1000, metavar="N", help="how many worlds to sample (default: 1000)"
    )
    robust.add_argument("--seed", type=int, default=1, help="of the worlds (default: 1)")
    robust.set_defaults(run=_robust)


def _robust(arguments: argparse.Namespace) -> int:
    from planner.cli.options import overlay_folders
    from planner.cli.output import rows_as, write_out
    from planner.errors import Problem, SpecError
    from planner.plan import load_plan
    from planner.problem.scenarios import draw, price_ranges
    from planner.report.robust import outcome_row, price_row
    from planner.resolve.price_steps import raised
    from planner.resolve.resolver import resolve
    from planner.spec.model import parse_spec
    from planner.spec.robust import Robust
    from planner.verify.check import read_through
    from planner.verify.robust import cost_by_price, outcome_in

    plan, overlays = load_plan(arguments.plan), overlay_folders(arguments)
    if not plan.has_answer:
        raise SpecError([Problem(arguments.plan, "there is no plan to ask about: nothing was decided")])
    if not 1 <= arguments.worlds <= 100_000:
        raise SpecError([Problem("--worlds", f"expected 1 to 100000, got {arguments.worlds}")])
    spec = parse_spec(plan["spec"])
    if spec.robust is None:  # prices that were chosen by their level stay there
        spec = spec.model_copy(update={"robust": Robust(prices=spec.prices is None or not spec.prices.moved)})
    problem = resolve(spec, overlays)
    amounts = cost_by_price(problem, plan.document, raised(problem, overlays), read_through)
    outcome = outcome_in(
        problem, plan.document, draw(problem, arguments.worlds, arguments.seed), amounts, read_through
    ).as_json()
    if arguments.format == "json":
        write_out(
            arguments,
            json.dumps({**outcome, "seed": arguments.seed, "prices": amounts}, indent=1, allow_nan=False) + "\n",
        )
        return OK
    text = rows_as(arguments.format, [outcome_row("as sampled", outcome)])
    if arguments.format != "csv" and amounts:
        text += "\n" + rows_as(
            arguments.format, [price_row({**row, "amount": amounts[row["path"]]}) for row in price_ranges(problem)]
        )
    write_out(arguments, text)
    return OK
