"""The verbs that ask around a plan (`compare`, `alternatives`, `frontier`, `ladder`, `roi`, `sharing`, `sensitivity`): their arguments, and the printing of what is found.

What is found: `planner.studies.compare`, `planner.studies.alternatives`, `planner.studies.frontier`, `planner.studies.ladder`, `planner.studies.roi`, `planner.studies.sharing`,
`planner.side_by_side`, `planner.studies.sensitivity`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planner.exit_codes import EXIT_BY_STATUS, OK

Common = Callable[[argparse.ArgumentParser], None]


def add_verbs(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser, solver_options: Common
) -> None:
    """Adds the verbs to the command's parser; `solver_options` adds --set, --gap and the like."""
    compare = verbs.add_parser(
        "compare",
        parents=[shared],
        help="what makes two plans differ, the largest part of the objective first; or several plans side by side",
    )
    compare.add_argument("first", metavar="PLAN", help="plan as `plan --format json` prints it")
    compare.add_argument("second", metavar="PLAN", help="the plan that it is compared with")
    compare.add_argument(
        "further", metavar="PLAN", nargs="*", help="with a third plan and more: all side by side, cost by component"
    )
    compare.set_defaults(run=_compare)

    alternatives = verbs.add_parser(
        "alternatives", parents=[shared], help="plans nearly as good as the best that differ from it in kind"
    )
    alternatives.add_argument("spec", metavar="SPEC", help='JSON file, or "-" for standard input')
    alternatives.add_argument(
        "--within",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="how much worse an alternative may be, as a share of the objective (default: 0.05)",
    )
    alternatives.add_argument(
        "--total-time", metavar="TIME", default="5 min", help='stop to look after this time (default: "5 min")'
    )
    alternatives.add_argument("--plans", metavar="DIR", help="write the plan of each alternative there")
    solver_options(alternatives)
    alternatives.set_defaults(run=_alternatives)

    ladder = verbs.add_parser(
        "ladder", parents=[shared], help="the cost per million tokens after one lever and the next, towards a target"
    )
    ladder.add_argument("spec", metavar="SPEC", help='JSON file, or "-" for standard input')
    ladder.add_argument(
        "--lever",
        metavar="NAME:PATH=VALUE",
        action="append",
        default=[],
        help='what is changed next, such as "cheaper systems: offers[0].price=-30%%; offers[1].price=-30%%"; may be repeated',
    )
    ladder.add_argument(
        "--workload", metavar="NAME", help="the serving workload whose cost counts (default: all together)"
    )
    ladder.add_argument(
        "--phase",
        metavar="NAME",
        help="of a question with phases the one whose cost counts (default: the whole horizon)",
    )
    ladder.add_argument("--target", metavar="PRICE", help='the cost to reach, such as "0.01 CNY/1M tokens"')
    solver_options(ladder)
    ladder.set_defaults(run=_ladder)

    roi = verbs.add_parser(
        "roi",
        parents=[shared],
        help="what a gain of utilisation (MFU) is worth a month, against a team and a public cloud",
    )
    roi.add_argument(
        "plan",
        metavar="PLAN",
        nargs="?",
        help="plan as `plan --format json` prints it, for its fleet; without it --cost",
    )
    roi.add_argument("--cost", metavar="AMOUNT", help='what the fleet costs, such as "1B CNY/month"')
    roi.add_argument("--chips", type=float, metavar="N", help="chips of the fleet, beside --cost")
    roi.add_argument(
        "--mfu", type=float, metavar="SHARE", help="share of its peak that is used today, beside --cost, such as 0.4"
    )
    roi.add_argument(
        "--gain",
        metavar="GAIN",
        action="append",
        default=[],
        help='points of MFU such as "4 points", or more work from the same fleet such as 10%%; may be repeated (default: 1, 2, 5 and 10)',
    )
    roi.add_argument("--team", metavar="AMOUNT", help='what those cost who bring it about, such as "5M CNY/month"')
    roi.add_argument(
        "--baseline",
        metavar="AMOUNT",
        help='what a public cloud would take for the work of today, such as "1.2B CNY/month"',
    )
    roi.set_defaults(run=_roi)

    sharing = verbs.add_parser(
        "sharing", parents=[shared], help="what one fleet for all, and each capability that keeps it busy, is worth"
    )
    sharing.add_argument("spec", metavar="SPEC", help='JSON file, or "-" for standard input')
    solver_options(sharing)
    sharing.set_defaults(run=_sharing)

    sensitivity = verbs.add_parser(
        "sensitivity", parents=[shared], help="how the plan moves when one figure moves at a time"
    )
    sensitivity.add_argument("spec", metavar="SPEC", help='JSON file, or "-" for standard input')
    sensitivity.add_argument(
        "--vary",
        metavar="PATH=LOW:HIGH",
        action="append",
        default=[],
        help='a figure and its two levels, such as sites[0].power="2 MW:3 MW" or limits.budget=-10%%:+10%%; without any, the usual ones: prices, electricity, demand, limits, latencies',
    )
    sensitivity.add_argument("--defaults", action="store_true", help="the usual figures too, besides those of --vary")
    sensitivity.add_argument(
        "--total-time", metavar="TIME", default="15 min", help='stop to solve after this time (default: "15 min")'
    )
    sensitivity.add_argument("--chart", metavar="FILE.svg", help="draw the swings there as a tornado")
    solver_options(sensitivity)
    sensitivity.set_defaults(run=_sensitivity)

    frontier = verbs.add_parser(
        "frontier", parents=[shared], help="the least cost over a range of carbon, latency, throughput or quality"
    )
    frontier.add_argument("spec", metavar="SPEC", help='JSON file, or "-" for standard input')
    frontier.add_argument(
        "--against",
        choices=("carbon", "latency", "throughput", "quality"),
        required=True,
        help="what the cost is set against",
    )
    frontier.add_argument(
        "--points",
        type=int,
        default=8,
        metavar="N",
        help="how many plans to ask for (default: 8); of quality there is one for each score, unless the mean of a mix counts",
    )
    frontier.add_argument(
        "--span",
        metavar="LOW:HIGH",
        help="factors on the latency limits (default: 0.5:2) or on the demand (default: 0.5:1.5)",
    )
    frontier.add_argument("--chart", metavar="FILE.svg", help="draw the frontier there")
    frontier.add_argument("--plans", metavar="DIR", help="write the plan of each point there")
    solver_options(frontier)
    frontier.set_defaults(run=_frontier)


def _frontier(arguments: argparse.Namespace) -> int:
    from planner.cli.options import overlay_folders, progress_printer, spec_document
    from planner.plan import write_whole
    from planner.studies.frontier import frontier
    from planner.studies.svg_charts import chart

    found = frontier(
        spec_document(arguments),
        arguments.against,
        arguments.points,
        span=_span(arguments.span),
        overlays=overlay_folders(arguments),
        progress=progress_printer(arguments),
    )
    if arguments.chart and found.points:
        write_whole(Path(arguments.chart), chart(found))
    if arguments.plans:
        found.save(Path(arguments.plans))
    _print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


def _span(text: str | None) -> tuple[float, float] | None:
    """Two factors on the command line. Raises SpecError."""
    from planner.errors import Problem, SpecError

    if text is None:
        return None
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise SpecError([Problem("--span", f'expected two factors such as 0.5:2, got "{text}"')]) from None
    return low, high


def _sharing(arguments: argparse.Namespace) -> int:
    from planner.cli.options import overlay_folders, progress_printer, spec_document
    from planner.studies.sharing import sharing

    found = sharing(spec_document(arguments), overlays=overlay_folders(arguments), progress=progress_printer(arguments))
    _print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


def _ladder(arguments: argparse.Namespace) -> int:
    from planner.cli.options import overlay_folders, progress_printer, spec_document
    from planner.studies.ladder import ladder

    found = ladder(
        spec_document(arguments),
        arguments.lever,
        workload=arguments.workload,
        phase=arguments.phase,
        target=arguments.target,
        overlays=overlay_folders(arguments),
        progress=progress_printer(arguments),
    )
    _print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


def _roi(arguments: argparse.Namespace) -> int:
    from planner.errors import Problem, SpecError
    from planner.plan import load_plan
    from planner.studies.roi import planned_fleet, returns, stated_fleet

    if (arguments.plan is None) == (arguments.cost is None):
        raise SpecError([Problem("--cost", "expected either a plan or the cost of a fleet")])
    if arguments.plan is not None and not arguments.chips is arguments.mfu is None:
        raise SpecError([Problem("--chips", "--chips and --mfu belong to --cost; a plan says both itself")])
    fleet = (
        stated_fleet(arguments.cost, arguments.chips, arguments.mfu)
        if arguments.plan is None
        else planned_fleet(load_plan(arguments.plan))
    )
    _print_study(arguments, returns(fleet, arguments.gain, team=arguments.team, baseline=arguments.baseline))
    return OK


def _compare(arguments: argparse.Namespace) -> int:
    from planner.plan import load_plan
    from planner.studies.compare import compare, side_by_side

    plans = [load_plan(path) for path in (arguments.first, arguments.second, *arguments.further)]
    _print_study(arguments, side_by_side(plans) if arguments.further else compare(*plans))
    return OK


def _alternatives(arguments: argparse.Namespace) -> int:
    from planner.cli.options import overlay_folders, progress_printer, spec_document
    from planner.studies.alternatives import alternatives

    found = alternatives(
        spec_document(arguments),
        overlays=overlay_folders(arguments),
        within=arguments.within,
        total_s=_seconds(arguments.total_time),
        progress=progress_printer(arguments),
    )
    for alternative in found.found if arguments.plans else ():
        if alternative.plan is not None:
            alternative.plan.save(
                Path(arguments.plans) / f"{alternative.name.replace(' ', '_').replace('/', '-').replace(':', '-')}.json"
            )
    _print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


def _sensitivity(arguments: argparse.Namespace) -> int:
    from planner.cli.options import overlay_folders, progress_printer, spec_document
    from planner.plan import write_whole
    from planner.studies.sensitivity import sensitivity
    from planner.studies.svg_charts import tornado

    found = sensitivity(
        spec_document(arguments), vary=arguments.vary, defaults=arguments.defaults or not arguments.vary, overlays=overlay_folders(arguments),
        total_s=_seconds(arguments.total_time), progress=progress_printer(arguments),
    )  # fmt: skip
    if arguments.chart and found.value is not None:
        write_whole(Path(arguments.chart), tornado(found))
    _print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


def _seconds(text: str) -> float:
    """A time on the command line. Raises SpecError."""
    from catalog.units import UnitError, parse
    from planner.errors import Problem, SpecError

    try:
        return parse(text, "s")
    except (UnitError, KeyError):
        raise SpecError([Problem("--total-time", f'expected a time such as "5 min", got "{text}"')]) from None


def _print_study(arguments: argparse.Namespace, found: Any) -> None:
    """`found`: has `document` (JSON), `words` (sentences), `sections` (heading, rows) and `rows` (one flat table)."""
    from planner.cli.output import write_out
    from planner.tables import as_csv, as_markdown, as_text

    if arguments.format == "json":
        write_out(arguments, json.dumps(found.document, indent=1, allow_nan=False) + "\n")
    elif arguments.format == "csv":
        write_out(arguments, as_csv(found.rows))
    elif arguments.format == "md":
        parts = [
            "".join(f"- {line}\n" for line in found.words),
            *(f"## {heading}\n\n{as_markdown(rows)}" for heading, rows in found.sections if rows),
        ]
        write_out(arguments, "\n".join(part for part in parts if part))
    else:
        parts = [
            "".join(f"{line}\n" for line in found.words),
            *(f"{heading}\n{as_text(rows, indent='  ')}" for heading, rows in found.sections if rows),
        ]
        write_out(arguments, "\n".join(part for part in parts if part))
