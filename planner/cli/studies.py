"""The commands of the studies: `alternatives`, `ladder`, `urgent`, `quote`, `roi`, `sharing`, `sensitivity` and `frontier`.

Their arguments, and how their findings are printed (`compare` is in `planner.cli.compare`); what they find is in the file of `planner.studies` with the same name.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from planner.cli.helps import helped
from planner.cli.options import (
    add_engine_options,
    add_solver_options,
    amount_of,
    load_catalog,
    overlay_folders,
    progress_printer,
    spec_document,
    study_engine,
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
        parser = commands.add_parser(study.name, parents=[shared], help=helped(study.help))
        if study.of_spec:
            parser.add_argument("spec", metavar="SPEC", help=helped("help.spec"))
        if study.options is not None:
            study.options(parser)
        if study.of_spec:
            add_solver_options(parser)
        parser.set_defaults(run=study.run)


def _alternatives_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--within",
        type=float,
        default=0.05,
        metavar="SHARE",
        help=helped("help.alternatives_within"),
    )
    parser.add_argument("--total-time", metavar="TIME", default="5 min", help=helped("help.alternatives_total_time"))
    parser.add_argument("--plans", metavar="DIR", help=helped("help.alternatives_plans"))


def _ladder_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lever",
        metavar="NAME:PATH=VALUE",
        action="append",
        default=[],
        help=helped("help.ladder_lever"),
    )
    parser.add_argument("--workload", metavar="NAME", help=helped("help.ladder_workload"))
    parser.add_argument(
        "--phase",
        metavar="NAME",
        help=helped("help.ladder_phase"),
    )
    parser.add_argument("--target", metavar="PRICE", help=helped("help.ladder_target"))


def _urgent_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--job", metavar="FILE", required=True, help=helped("help.urgent_job"))


def _share(text: str) -> float:
    """Parse a share such as 0.4 or 40%."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(Message.of("studies.share_above_zero", given=text).text()) from None


def _roi_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "plan",
        metavar="PLAN",
        nargs="?",
        help=helped("help.roi_plan", plan=helped("help.plan_file")),
    )
    parser.add_argument("--cost", metavar="AMOUNT", help=helped("help.roi_cost"))
    parser.add_argument("--chips", type=float, metavar="N", help=helped("help.roi_chips"))
    parser.add_argument("--mfu", type=_share, metavar="SHARE", help=helped("help.roi_mfu"))
    parser.add_argument("--market", metavar="SYSTEM", help=helped("help.roi_market"))
    parser.add_argument(
        "--gain",
        metavar="GAIN",
        action="append",
        default=[],
        help=helped("help.roi_gain"),
    )
    parser.add_argument("--team", metavar="AMOUNT", help=helped("help.roi_team"))
    parser.add_argument(
        "--baseline",
        metavar="AMOUNT",
        help=helped("help.roi_baseline"),
    )


def _quote_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="PLAN|SPEC", help=helped("help.quote_source"))
    parser.add_argument("quote", metavar="QUOTE", nargs="*", help=helped("help.quote_words"))
    parser.add_argument("--quotes", metavar="FILE", action="append", default=[], help=helped("help.quote_files"))
    parser.add_argument("--total-time", metavar="TIME", default="5 min", help=helped("help.quote_total_time"))
    add_solver_options(parser)


def _sensitivity_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--vary",
        metavar="PATH=LOW:HIGH",
        action="append",
        default=[],
        help=helped("help.sensitivity_vary"),
    )
    parser.add_argument("--defaults", action="store_true", help=helped("help.sensitivity_defaults"))
    parser.add_argument("--total-time", metavar="TIME", default="15 min", help=helped("help.sensitivity_total_time"))
    parser.add_argument("--chart", metavar="FILE.svg", help=helped("help.sensitivity_chart"))
    add_engine_options(parser)


def _frontier_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--against",
        choices=("carbon", "latency", "throughput", "quality", "horizon", "utilisation"),
        required=True,
        help=helped("help.frontier_against"),
    )
    parser.add_argument(
        "--points",
        type=int,
        default=8,
        metavar="N",
        help=helped("help.frontier_points"),
    )
    parser.add_argument(
        "--span",
        metavar="LOW:HIGH",
        help=helped("help.frontier_span"),
    )
    parser.add_argument(
        "--utilisation",
        type=float,
        default=1.0,
        metavar="SHARE",
        help=helped("help.frontier_utilisation"),
    )
    parser.add_argument(
        "--systems",
        type=int,
        default=32,
        metavar="N",
        help=helped("help.frontier_systems"),
    )
    add_engine_options(parser)
    parser.add_argument("--by", metavar="WAYS", help=helped("help.frontier_by"))
    parser.add_argument("--chart", metavar="FILE.svg", help=helped("help.frontier_chart"))
    parser.add_argument("--plans", metavar="DIR", help=helped("help.frontier_plans"))


def _frontier(arguments: argparse.Namespace) -> int:
    from planner.errors import Issue, SpecError
    from planner.files import write_file
    from planner.studies.carbon.split import split_carbon, ways_of
    from planner.studies.frontier import AGAINST, CARBON, frontier
    from planner.studies.frontier_chart import frontier_chart

    ways = ways_of(arguments.by) if arguments.by is not None else ()
    if ways and arguments.against != CARBON:
        raise SpecError([Issue("--by", Message.of("split.carbon_alone", against=arguments.against).text())])
    if arguments.against not in AGAINST:
        return _break_even(arguments)
    found = frontier(
        spec_document(arguments),
        arguments.against,
        arguments.points,
        span=_span(arguments.span),
        overlays=overlay_folders(arguments),
        progress=progress_printer(arguments),
        engine=study_engine(arguments),
    )
    if arguments.chart and found.points:
        write_file(arguments.chart, frontier_chart(found))
    if arguments.plans:
        found.save(Path(arguments.plans))
    if ways:
        overlays, told = overlay_folders(arguments), progress_printer(arguments)
        print_study(arguments, split_carbon(found, ways, overlays=overlays, progress=told))
    else:
        print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


def _break_even(arguments: argparse.Namespace) -> int:
    from planner.errors import Issue, SpecError
    from planner.studies.break_even import break_even

    asked = {
        "chart": arguments.chart,
        "plans": arguments.plans,
        "jobs": arguments.jobs > 1,
        "engine": arguments.engine != "local",
    }
    for option, is_asked in asked.items():
        if is_asked:
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
    from planner.studies.roi import market_rents, planned_fleet, returns, stated_fleet

    if (arguments.plan is None) == (arguments.cost is None):
        raise SpecError([Issue("--cost", Message.of("option.plan_or_cost").text())])
    if arguments.plan is not None and not arguments.chips is arguments.mfu is None:
        raise SpecError([Issue("--chips", Message.of("option.chips_and_mfu").text())])
    if arguments.plan is not None and arguments.market:
        raise SpecError([Issue("--market", Message.of("option.market_of_cost").text())])
    fleet = (
        stated_fleet(arguments.cost, arguments.chips, arguments.mfu)
        if arguments.plan is None
        else planned_fleet(load_plan(arguments.plan))
    )
    rents = market_rents(fleet, arguments.market, load_catalog(arguments)) if arguments.market else ()
    found = returns(fleet, arguments.gain, team=arguments.team, baseline=arguments.baseline, rents=rents)
    print_study(arguments, found)
    return OK


def _quote(arguments: argparse.Namespace) -> int:
    import json

    from planner.cli.options import read_json, solver_overrides
    from planner.plan import parse_plan
    from planner.spec.document import changed
    from planner.studies.quotes.mapping import quotes_in
    from planner.studies.quotes.start import is_plan
    from planner.studies.quotes.study import quote

    source: Any
    given = read_json(arguments.spec) if arguments.spec != "-" else None
    if given is None or not is_plan(given):
        source = spec_document(arguments)
    elif arguments.set:
        source = changed(given["spec"], arguments.set, solver_overrides(arguments))
    else:
        source = parse_plan(json.dumps(given))
    found = quote(
        source,
        [*arguments.quote, *(each for file in arguments.quotes for each in quotes_in(file))],
        solver=solver_overrides(arguments),
        total_s=amount_of(arguments.total_time, "s", "--total-time", "5 min"),
        overlays=overlay_folders(arguments),
        progress=progress_printer(arguments),
    )
    print_study(arguments, found)
    return EXIT_BY_STATUS[found.status]


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
        engine=study_engine(arguments),
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
        "alternatives",
        "help.alternatives",
        _alternatives,
        _alternatives_options,
        of_spec=True,
    ),
    StudyCommand(
        "ladder",
        "help.ladder",
        _ladder,
        _ladder_options,
        of_spec=True,
    ),
    StudyCommand(
        "urgent",
        "help.urgent",
        _urgent,
        _urgent_options,
        of_spec=True,
    ),
    StudyCommand(
        "quote",
        "help.quote",
        _quote,
        _quote_options,
        of_spec=False,
    ),
    StudyCommand(
        "roi",
        "help.roi",
        _roi,
        _roi_options,
        of_spec=False,
    ),
    StudyCommand("sharing", "help.sharing", _sharing, None, of_spec=True),
    StudyCommand(
        "sensitivity",
        "help.sensitivity",
        _sensitivity,
        _sensitivity_options,
        of_spec=True,
    ),
    StudyCommand(
        "frontier",
        "help.frontier",
        _frontier,
        _frontier_options,
        of_spec=True,
    ),
)
"""Studies of a plan, in the order in which `flopwatt --help` lists them."""
