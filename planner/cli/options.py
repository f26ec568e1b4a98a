"""Options that several commands share, and what they read from files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

FORMATS = ("table", "json", "csv", "md")


def add_common_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--catalog",
        metavar="DIR",
        action="append",
        default=[],
        help="folder of JSON overlays on the catalog (may be repeated)",
    )
    parser.add_argument(
        "--hourly",
        metavar="DIR",
        action="append",
        default=[],
        help="folder of the hourly CSV files that a spec names (may be repeated)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on standard error")


def add_solver_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        help='change one value of the spec, such as limits.budget="420M CNY"',
    )
    parser.add_argument("--gap", type=float, help="stop at this gap, a fraction")
    parser.add_argument("--time-limit", metavar="TIME", help='stop the solver after this time, such as "60 s"')
    parser.add_argument("--solver", choices=("highs", "pulp"), help="solver backend")
    parser.add_argument("--seed", type=int, help="seed of the solver")


def positive_count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= 1024:
        raise argparse.ArgumentTypeError("expected a number of processes from 1 to 1024")
    return count


# -- input and output --------------------------------------------------------------------------------------------------


def spec_document(arguments: argparse.Namespace) -> dict[str, Any]:
    from planner.spec.document import changed
    from planner.spec.series import with_series

    document = changed(read_json(arguments.spec), arguments.set, solver_overrides(arguments))
    return with_series(document, hourly_folders(arguments, arguments.spec))


def read_json(path: str) -> dict[str, Any]:
    from planner.spec.document import read_document

    return read_document(sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes())


def solver_overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    """Those of the command line, which go before the spec's own."""
    names = {"gap": "gap", "time_limit": "time_limit", "seed": "seed", "backend": "solver"}
    return {key: value for key, name in names.items() if (value := getattr(arguments, name, None)) is not None}


def hourly_folders(arguments: argparse.Namespace, source: str) -> list[Path]:
    """Where the files are looked for that a spec names: in the folders given, then beside it."""
    return [Path(name) for name in arguments.hourly] + ([] if source == "-" else [Path(source).parent])


def overlay_folders(arguments: argparse.Namespace) -> list[Path]:
    return [Path(folder) for folder in arguments.catalog]


def progress_printer(arguments: argparse.Namespace):
    if arguments.quiet:
        return None
    return lambda line: print(line, file=sys.stderr, flush=True)
