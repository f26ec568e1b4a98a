"""The commands of the studies: `compare`, `alternatives`, `ladder`, `urgent`, `roi`, `sharing`, `sensitivity` and `frontier`.

Their arguments, and how their findings are printed; what they find is in the file of `planner.studies` with the same name.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from planner.cli.options import (
    PLAN_HELP,
    SPEC_HELP,
    add_solver_options,
    amount_of,
    overlay_folders,
    progress_printer,
    spec_document,
)
from planner.cli.output import as_json, write_out
from planner.exit_codes import EXIT_BY_STATUS, OK
from planner.messages import Message

if TYPE_CHECKING:
    from planner.cli.options import Commands

IN_FILE_NAMES = str.maketrans(" /:", "_--")
"""Characters of the names of alternatives that a file name must not hold."""


@dataclass(frozen=True, slots=True)
class StudyCommand:
    """A command of a study: what it is for, what runs it, and its own options; `of_spec`: it solves a spec."""

    name: str
    help: str
    run: Callable[[argparse.Namespace], int]
    options: Callable[[argparse.ArgumentParser], None] | None
    of_spec: bool


def add_studies(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command of each study, in the order of `STUDIES`."""
    for study in STUDIES:
        parser = commands.add_parser(study.name, parents=[shared], help=study.help)
        if study.of_spec:
            parser.add_argument("spec", metavar="SPEC", help=SPEC_HELP)
        if study.options is not None:
            study.options(parser)
        if study.of_spec:
            add_solver_options(parser)
        parser.set_defaults(run=study.run)


def _compare_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="PLAN", help=PLAN_HELP)
    parser.add_argument("second", metavar="PLAN", help="the plan to compare it with")
    parser.add_argument(
        "further", metavar="PLAN", nargs="*", help="with three or more plans: all side by side, cost by component"
    )


def _alternatives_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--within",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="how much worse an alternative may be, as a share of the objective (default: 0.05)",
    )
    parser.add_argument(
        "--total-time", metavar="TIME", default="5 min", help='stop searching after this time (default: "5 min")'
    )
    parser.add_argument("--plans", metavar="DIR", help="write the plan of each alternative there")


def _ladder_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lever",
        metavar="NAME:PATH=VALUE",
        action="append",
        default=[],
        help='what changes on the next rung, such as "cheaper systems: offers[0].price=-30%%; offers[1].price=-30%%"; may be repeated',
    )
    parser.add_argument(
        "--workload", metavar="NAME", help="the serving workload whose cost counts (default: all together)"
    )
    parser.add_argument(
        "--phase",
        metavar="NAME",
        help="the phase whose cost counts, if the spec has phases (default: the whole horizon)",
    )
    parser.add_argument("--target", metavar="PRICE", help='the cost to reach, such as "0.01 CNY/1M tokens"')


def _urgent_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--job", metavar="FILE", required=True, help="JSON file with the job, as workloads of a spec are written"
    )


def _roi_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "plan",
        metavar="PLAN",
        nargs="?",
        help=f"{PLAN_HELP}, for its fleet; or --cost in its place",
    )
    parser.add_argument("--cost", metavar="AMOUNT", help='cost of the fleet, such as "1B CNY/month"')
    parser.add_argument("--chips", type=float, metavar="N", help="chips of the fleet, with --cost")
    parser.add_argument("--mfu", type=float, metavar="SHARE", help="MFU of today, with --cost, such as 0.4")
    parser.add_argument(
        "--gain",
        metavar="GAIN",
        action="append",
        default=[],
        help='points of MFU such as "4 points", or more work from the same fleet such as 10%%; may be repeated (default: 1, 2, 5 and 10)',
    )
    parser.add_argument("--team", metavar="AMOUNT", help='cost of the team behind the gain, such as "5M CNY/month"')
    parser.add_argument(
        "--baseline",
        metavar="AMOUNT",
        help='price of today\'s work at a public cloud, such as "1.2B CNY/month"',
    )


def _sensitivity_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--vary",
        metavar="PATH=LOW:HIGH",
        action="append",
        default=[],
        help='a figure and its two levels, such as sites[0].power="2 MW:3 MW" or limits.budget=-10%%:+10%%; may be repeated (default: the usual prices, electricity, demands, limits and latencies)',
    )
    parser.add_argument("--defaults", action="store_true", help="vary the usual figures as well as those of --vary")
    parser.add_argument(
        "--total-time", metavar="TIME", default="15 min", help='stop solving after this time (default: "15 min")'
    )
    parser.add_argument("--chart", metavar="FILE.svg", help="draw a tornado chart there")


def _frontier_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--against",
        choices=("carbon", "latency", "throughput", "quality", "horizon", "utilisation"),
        required=True,
        help="what to vary",
    )
    parser.add_argument(
        "--points",
        type=int,
        default=8,
        metavar="N",
        help="number of plans (default: 8); for quality one per score, unless the mean of a mix counts",
    )
    parser.add_argument(
        "--span",
        metavar="LOW:HIGH",
        help="factors on the latency limits (default: 0.5:2) or on the demand (default: 0.5:1.5); years of the horizon (default: 1:6) or "
        "shares of the time in use (default: 0.1:1)",
    )
    parser.add_argument(
        "--utilisation",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="share of the time in use, for --against horizon (default: 1)",
    )
    parser.add_argument(
        "--systems",
        type=int,
        default=32,
        metavar="N",
        help="systems that the network of what is bought joins, for --against horizon and utilisation (default: 32)",
    )
    parser.add_argument("--chart", metavar="FILE.svg", help="draw the frontier there")
    parser.add_argument("--plans", metavar="DIR", help="write the plan of each point there")


def _frontier(arguments: argparse.Namespace) -> int:
    from planner.files import write_file
    from planner.studies.frontier import AGAINST, frontier
    from planner.studies.frontier_chart import frontier_chart

    if arguments.against not in AGAINST:
        return _break_even(arguments)
    found = frontier(
        spec_document(arguments),
        arguments.against,
        arguments.points,
        span=_span(arguments.span),
        overlays=overlay_folders(arguments),
        progress=progress_printer(arguments),
    )
    if arguments.chart and found.points:
        write_file(arguments.chart, frontier_chart(found))
    if arguments.plans:
        found.save(Path(arguments.plans))
    print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


def _break_even(arguments: argparse.Namespace) -> int:
    from planner.errors import Issue, SpecError
    from planner.studies.break_even import break_even

    for option in ("chart", "plans"):
        if getattr(arguments, option):
            raise SpecError(
                [Issue(f"--{option}", Message.of("option.solves_no_plans", against=arguments.against).text())]
            )
    found = break_even(
        spec_document(arguments),
        arguments.against,
        span=_span(arguments.span),
        points=arguments.points,
        utilisation=arguments.utilisation,
        systems=arguments.systems,
        overlays=overlay_folders(arguments),
    )
    print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


def _span(text: str | None) -> tuple[float, float] | None:
    """Parse the two factors of --span. Raises SpecError."""
    from planner.errors import Issue, SpecError

    if text is None:
        return None
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise SpecError([Issue("--span", Message.of("option.two_factors", given=text).text())]) from None
    return low, high


def _sharing(arguments: argparse.Namespace) -> int:
    from planner.studies.sharing import sharing

    found = sharing(spec_document(arguments), overlays=overlay_folders(arguments), progress=progress_printer(arguments))
    print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


def _ladder(arguments: argparse.Namespace) -> int:
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
    print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


def _urgent(arguments: argparse.Namespace) -> int:
    from planner.cli.options import read_json
    from planner.studies.urgent import urgent

    found = urgent(
        spec_document(arguments), read_json(arguments.job), overlays=overlay_folders(arguments), progress=progress_printer(arguments)
    )  # fmt: skip
    print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


def _roi(arguments: argparse.Namespace) -> int:
    from planner.errors import Issue, SpecError
    from planner.plan import load_plan
    from planner.studies.roi import planned_fleet, returns, stated_fleet

    if (arguments.plan is None) == (arguments.cost is None):
        raise SpecError([Issue("--cost", Message.of("option.plan_or_cost").text())])
    if arguments.plan is not None and not arguments.chips is arguments.mfu is None:
        raise SpecError([Issue("--chips", Message.of("option.chips_and_mfu").text())])
    fleet = (
        stated_fleet(arguments.cost, arguments.chips, arguments.mfu)
        if arguments.plan is None
        else planned_fleet(load_plan(arguments.plan))
    )
    print_study(arguments, returns(fleet, arguments.gain, team=arguments.team, baseline=arguments.baseline))
    return OK


def _compare(arguments: argparse.Namespace) -> int:
    from planner.plan import load_plan
    from planner.studies.compare import compare
    from planner.studies.side_by_side import side_by_side

    plans = [load_plan(path) for path in (arguments.first, arguments.second, *arguments.further)]
    print_study(arguments, side_by_side(plans) if arguments.further else compare(*plans))
    return OK


def _alternatives(arguments: argparse.Namespace) -> int:
    from planner.studies.alternatives import alternatives

    found = alternatives(
        spec_document(arguments),
        overlays=overlay_folders(arguments),
        within=arguments.within,
        total_s=amount_of(arguments.total_time, "s", "--total-time", "5 min"),
        progress=progress_printer(arguments),
    )
    for alternative in found.found if arguments.plans else ():
        if alternative.plan is not None:
            alternative.plan.save(Path(arguments.plans) / f"{alternative.name.translate(IN_FILE_NAMES)}.json")
    print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


def _sensitivity(arguments: argparse.Namespace) -> int:
    from planner.files import write_file
    from planner.studies.sensitivity import sensitivity
    from planner.studies.tornado_chart import tornado

    found = sensitivity(
        spec_document(arguments), vary=arguments.vary, defaults=arguments.defaults or not arguments.vary, overlays=overlay_folders(arguments),
        total_s=amount_of(arguments.total_time, "s", "--total-time", "5 min"), progress=progress_printer(arguments),
    )  # fmt: skip
    if arguments.chart and found.value is not None:
        write_file(arguments.chart, tornado(found))
    print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


class Study(Protocol):
    """The answer of a study."""

    @property
    def document(self) -> Mapping[str, Any]:
        """Return everything as JSON."""
        ...

    @property
    def words(self) -> Sequence[str]:
        """Return the answer in sentences."""
        ...

    @property
    def sections(self) -> Sequence[tuple[str, list[dict[str, Any]]]]:
        """Return (heading, rows) of each table."""
        ...

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return all rows as one flat table."""
        ...


def print_study(arguments: argparse.Namespace, found: Study) -> None:
    """Print a study: the document as JSON, the flat table as CSV, or sentences and tables. Raises ValueError for another format."""
    from planner.escape import markdown, terminal
    from planner.tables import as_csv, as_markdown, as_text, known_format

    if known_format(arguments.format) == "json":
        write_out(arguments, as_json(found.document))
        return
    if arguments.format == "csv":
        write_out(arguments, as_csv(found.rows))
        return
    in_markdown = arguments.format == "md"
    parts = ["".join(f"- {markdown(line)}\n" if in_markdown else f"{terminal(line)}\n" for line in found.words)]
    for heading, rows in found.sections:
        if rows:
            parts.append(
                f"## {markdown(heading)}\n\n{as_markdown(rows)}"
                if in_markdown
                else f"{terminal(heading)}\n{as_text(rows, indent='  ')}"
            )
    write_out(arguments, "\n".join(part for part in parts if part))


STUDIES = (
    StudyCommand(
        "compare",
        "explain the difference of two plans, largest part of the objective first; or put several side by side",
        _compare,
        _compare_options,
        of_spec=False,
    ),
    StudyCommand(
        "alternatives",
        "find plans nearly as good as the best one that differ from it in kind",
        _alternatives,
        _alternatives_options,
        of_spec=True,
    ),
    StudyCommand(
        "ladder",
        "cost per million tokens after each of several levers, towards a target",
        _ladder,
        _ladder_options,
        of_spec=True,
    ),
    StudyCommand(
        "urgent",
        "what an urgent job costs, and displaces, on the fleet of a plan",
        _urgent,
        _urgent_options,
        of_spec=True,
    ),
    StudyCommand(
        "roi",
        "worth of a gain of utilisation (MFU) per month, against a team and a public cloud",
        _roi,
        _roi_options,
        of_spec=False,
    ),
    StudyCommand(
        "sharing", "worth of one shared fleet, and of each capability that keeps it busy", _sharing, None, of_spec=True
    ),
    StudyCommand(
        "sensitivity",
        "change of objective and fleet when one figure moves at a time",
        _sensitivity,
        _sensitivity_options,
        of_spec=True,
    ),
    StudyCommand(
        "frontier",
        "least cost over a range of carbon, latency, throughput or quality; where buying beats renting",
        _frontier,
        _frontier_options,
        of_spec=True,
    ),
)
"""Studies of a plan, in the order in which `flopwatt --help` lists them."""
