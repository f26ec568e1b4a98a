"""Options that several commands share, and the files and values that they name."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.helps import helped
from planner.cli.output import XLSX
from planner.cli.streams import abandon_progress, standard_input
from planner.escape import terminal
from planner.messages import Message
from planner.tables import FORMATS

if TYPE_CHECKING:
    from catalog.lookup import Catalog
    from planner.estimate.limits import SearchLimits
    from planner.studies.engines import Engine

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

MAX_PROCESSES = 1024
MAX_USERS = 10**10
TIME_LIMIT, MEMORY = "5 min", "2 GB"  # limits of commands that search without a spec's `solver` block


def answer_options(*more_formats: str) -> argparse.ArgumentParser:
    """Build a parent parser with the options of every command that prints an answer; `more_formats`: formats of one command alone."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--format",
        choices=(*FORMATS, XLSX, *more_formats),
        default="table",
        help=helped("help.answer_format"),
    )
    shared.add_argument(
        "--output",
        metavar="FILE",
        help=helped("help.answer_output"),
    )
    add_common_options(shared)
    return shared


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """Add --catalog, --hourly and --quiet."""
    parser.add_argument(
        "--catalog",
        metavar="DIR",
        action="append",
        default=[],
        help=helped("help.common_catalog"),
    )
    parser.add_argument(
        "--hourly",
        metavar="DIR",
        action="append",
        default=[],
        help=helped("help.common_hourly"),
    )
    parser.add_argument("-q", "--quiet", action="store_true", help=helped("help.common_quiet"))


def add_solver_options(parser: argparse.ArgumentParser) -> None:
    """Add --set, --gap and the other options of a command that solves a spec."""
    parser.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        help=helped("help.solver_set"),
    )
    parser.add_argument("--gap", type=float, help=helped("help.solver_gap"))
    parser.add_argument("--time-limit", metavar="TIME", help=helped("help.solver_time"))
    parser.add_argument("--memory", metavar="SIZE", help=helped("help.solver_memory"))
    parser.add_argument("--solver", choices=("highs", "pulp"), help=helped("help.solver_backend"))
    parser.add_argument("--seed", type=int, help=helped("help.solver_seed"))


def add_limit_options(parser: argparse.ArgumentParser) -> None:
    """Add --time-limit and --memory of a command that searches without a spec's `solver` block."""
    parser.add_argument(
        "--time-limit",
        metavar="TIME",
        default=TIME_LIMIT,
        help=helped("help.limit_time", time=TIME_LIMIT),
    )
    parser.add_argument("--memory", metavar="SIZE", default=MEMORY, help=helped("help.limit_memory", size=MEMORY))


def search_limits(arguments: argparse.Namespace) -> SearchLimits:
    """Read --time-limit and --memory; the time runs from here on. Raises SpecError."""
    from planner.estimate.limits import SearchLimits

    return SearchLimits(
        amount_of(arguments.time_limit, "s", "--time-limit", TIME_LIMIT),
        amount_of(arguments.memory, "byte", "--memory", MEMORY),
    )


def amount_of(text: str, unit: str, option: str, example: str) -> float:
    """Parse an amount above 0 that an option states. Raises SpecError."""
    from catalog.units import UnitError, parse
    from planner.errors import Issue, SpecError

    try:
        amount = parse(text, unit)
    except (UnitError, KeyError):
        amount = 0.0
    if not amount > 0.0:
        raise SpecError([Issue(option, Message.of("option.amount", example=example, given=text).text())])
    return amount


def positive_count(text: str) -> int:
    """Parse a number of processes."""
    count = int(text)
    if not 1 <= count <= MAX_PROCESSES:
        raise argparse.ArgumentTypeError(Message.of("cli.processes_expected", most=MAX_PROCESSES).text())
    return count


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where specs are answered, or plans of a study solved."""
    parser.add_argument("--jobs", type=positive_count, default=1, metavar="N", help=helped("help.batch_jobs"))
    parser.add_argument("--engine", choices=("local", "dask"), default="local", help=helped("help.batch_engine"))
    parser.add_argument("--address", metavar="URL", help=helped("help.batch_address"))


def engine_of(arguments: argparse.Namespace) -> Engine:
    """Make the engine that the options name. Raises SpecError where Dask is missing or has no address."""
    from planner.studies.engines.local import LocalEngine

    if arguments.engine == "local":
        return LocalEngine(arguments.jobs)
    from planner.errors import Issue, SpecError

    address = arguments.address or os.environ.get("DASK_SCHEDULER_ADDRESS")
    if find_spec("distributed") is None:
        raise SpecError([Issue("--engine", Message.of("engine.extra").text())])
    if not address:
        raise SpecError([Issue("--address", Message.of("engine.no_address").text())])
    from planner.studies.engines.dask import DaskEngine

    return DaskEngine(address)


def study_engine(arguments: argparse.Namespace) -> Engine | None:
    """Make the engine of a study; None where its plans are solved one after another in this process. Raises SpecError as `engine_of` does."""
    return None if arguments.engine == "local" and arguments.jobs == 1 else engine_of(arguments)


def positive_users(text: str) -> int:
    """Parse a number of users."""
    count = int(text)
    if not 1 <= count <= MAX_USERS:
        raise argparse.ArgumentTypeError(Message.of("cli.users_expected", most=str(MAX_USERS)).text())
    return count


# -- input -------------------------------------------------------------------------------------------------------------


def spec_document(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read the spec, apply --set and the solver options, and load the hourly series that it names."""
    from planner.spec.document import changed
    from planner.spec.series import with_series
    from planner.ways_in.named import with_hub_models

    demo = getattr(arguments, "demo", False)
    source = "-" if demo else arguments.spec
    document = changed(demo_document() if demo else read_json(source), arguments.set, solver_overrides(arguments))
    return with_series(with_hub_models(document, overlay_folders(arguments)), hourly_folders(arguments, source))


def case_document(arguments: argparse.Namespace, path: str) -> dict[str, Any]:
    """Read a case, with the configs of the models of the hub that it names."""
    from planner.ways_in.named import with_hub_models

    return with_hub_models(read_json(path), overlay_folders(arguments))


def demo_document() -> dict[str, Any]:
    """Return a copy of the spec of --demo."""
    import copy

    from planner.ways_in.draft import DEMO

    return copy.deepcopy(dict(DEMO))


def read_json(path: str) -> dict[str, Any]:
    """Read a JSON object from a file or, for "-", from standard input."""
    from planner.spec.document import read_document

    return read_document(standard_input().read() if path == "-" else Path(path).read_bytes())


def solver_overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    """Collect the solver options given on the command line, which take precedence over the spec's own."""
    names = {"gap": "gap", "time_limit": "time_limit", "memory": "memory", "seed": "seed", "backend": "solver"}
    return {key: value for key, name in names.items() if (value := getattr(arguments, name, None)) is not None}


def hourly_folders(arguments: argparse.Namespace, source: str) -> list[Path]:
    """List the folders to search for the files that a spec names: those given, then that of the spec."""
    return [Path(name) for name in arguments.hourly] + ([] if source == "-" else [Path(source).parent])


def overlay_folders(arguments: argparse.Namespace) -> list[Path]:
    """List the folders of catalog overlays."""
    return [Path(folder) for folder in arguments.catalog]


def load_catalog(arguments: argparse.Namespace) -> Catalog:
    """Load the catalog with its overlays. Raises SpecError for an invalid overlay."""
    from catalog.errors import CatalogError
    from catalog.lookup import Catalog
    from planner.errors import SpecError, issues_of

    try:
        return Catalog.load(overlay_folders(arguments))
    except CatalogError as error:
        raise SpecError(issues_of(error)) from None


def progress_printer(arguments: argparse.Namespace) -> Callable[[str], None] | None:
    """Return a function that prints a line of progress; None with --quiet.

    A reader of progress that has gone is no reason to lose an answer that goes to a file.
    """
    if arguments.quiet:
        return None

    def say(line: str) -> None:
        try:
            print(terminal(line), file=sys.stderr, flush=True)
        except OSError:
            if not arguments.output or arguments.output == "-":
                raise
            abandon_progress()

    return say


def add_cells(parser: argparse.ArgumentParser) -> None:
    """Add --set of a command that reads measurements."""
    parser.add_argument(
        "--set",
        metavar="COLUMN=VALUE",
        action="append",
        default=[],
        help=helped("help.cells_set"),
    )


def cells_of(pairs: list[str]) -> dict[str, str]:
    """Parse COLUMN=VALUE pairs. Raises SpecError for one without either part."""
    from planner.errors import Issue, SpecError

    split = [pair.partition("=") for pair in pairs]
    problems = [
        Issue("--set", Message.of("option.column_and_value", given=pair).text())
        for pair, (name, _, value) in zip(pairs, split, strict=True)
        if not (name.strip() and value.strip())
    ]
    if problems:
        raise SpecError(problems)
    return {name.strip(): value.strip() for name, _, value in split}
