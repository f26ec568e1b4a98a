"""The command `flopwatt`: parse the arguments, run one command, and turn errors into an exit code.

Exit codes: 0 done, 1 a bug, 2 wrong usage or missing file, 3 invalid spec or data, 4 proven infeasible,
5 limit reached without the asked gap, 6 plan does not hold, 7 over the budget, 130 interrupted, 141 the reader of standard output is gone.

Each command stands in one of the other files: a function `add_…` for its arguments, and one that runs it. What a command needs is
imported when it runs, so that `flopwatt --help` stays fast.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from planner.cli.batch import add_batch, add_sweep
from planner.cli.calibration import add_calibrate, add_validate
from planner.cli.cases import add_estimate, add_layouts
from planner.cli.catalog import add_catalog
from planner.cli.claims import add_audit
from planner.cli.compare import add_compare, add_replan
from planner.cli.dashboard import add_dashboard
from planner.cli.design import add_designs
from planner.cli.export import add_export
from planner.cli.helps import helped
from planner.cli.init import add_init
from planner.cli.measure import add_measure
from planner.cli.options import answer_options
from planner.cli.output import check_outputs, take_workbook
from planner.cli.plan import HTML, add_check, add_plan, add_report, add_show, add_verify
from planner.cli.prices import add_stale
from planner.cli.probe import add_probe
from planner.cli.resources import hold_to_memory, not_installed, out_of_memory
from planner.cli.robust import add_forecast, add_replay, add_robust
from planner.cli.schema import add_schema
from planner.cli.streams import abandon_output, prepare_streams
from planner.cli.studies import add_studies
from planner.errors import LimitReached, SpecError
from planner.escape import terminal
from planner.exit_codes import BROKEN_PIPE, INTERRUPTED, INVALID, LIMIT, USAGE
from planner.messages import Message
from planner.version import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    prepare_streams()
    arguments = build_parser().parse_args(argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        take_workbook(arguments)
        check_outputs(arguments)
        if not getattr(arguments, "without_arrays", False):
            hold_to_memory()
        return run(arguments)
    except SpecError as error:
        print(error, file=sys.stderr)
        return INVALID
    except LimitReached as error:
        print(error, file=sys.stderr)
        return LIMIT
    except BrokenPipeError:  # the reader has read enough, as `head` does
        abandon_output()
        return BROKEN_PIPE
    except OSError as error:
        print(terminal(f"{error.filename or 'file'}: {error.strerror or error}"), file=sys.stderr)
        return USAGE
    except (MemoryError, ImportError) as error:
        if (words := out_of_memory(error) or not_installed(error)) is None:
            raise
        print(words, file=sys.stderr)
        return LIMIT if out_of_memory(error) else USAGE
    except KeyboardInterrupt:
        print(Message.of("cli.interrupted").text(), file=sys.stderr)
        return INTERRUPTED


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands, in the order in which `flopwatt --help` lists them."""
    parser = argparse.ArgumentParser(prog="flopwatt", description=helped("help.description"))
    parser.add_argument("--version", action="version", version=f"flopwatt {__version__}")
    commands, shared = parser.add_subparsers(metavar="COMMAND", required=True), answer_options()
    add_init(commands)
    add_plan(commands, answer_options(HTML))
    add_show(commands, answer_options(HTML))
    add_report(commands)
    add_export(commands)
    add_batch(commands)
    add_sweep(commands, shared)
    add_schema(commands)
    add_check(commands, shared)
    add_verify(commands, shared)
    add_layouts(commands, shared)
    add_estimate(commands, shared)
    add_designs(commands, shared)
    add_catalog(commands, shared)
    add_stale(commands, shared)
    add_validate(commands, shared)
    add_calibrate(commands)
    add_probe(commands)
    add_robust(commands, shared)
    add_replay(commands, shared)
    add_forecast(commands, shared)
    add_measure(commands, shared)
    add_compare(commands, shared)
    add_replan(commands, shared)
    add_studies(commands, shared)
    add_audit(commands, answer_options(HTML))
    add_dashboard(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
