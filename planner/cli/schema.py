"""The command `schema`: the JSON Schema of a spec, a plan or a case."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.cli.options import add_common_options
from planner.cli.output import write_out
from planner.exit_codes import OK

if TYPE_CHECKING:
    from planner.cli.options import Commands


def add_schema(commands: Commands) -> None:
    """Add the command `schema`."""
    schema = commands.add_parser(
        "schema",
        help=helped("help.schema"),
    )
    schema.add_argument(
        "of",
        nargs="?",
        choices=("spec", "plan", "case", "codesign", "kv_tiers", "edge", "claims"),
        default="spec",
        help=helped("help.schema_of"),
    )
    schema.add_argument(
        "--format",
        choices=("json", "md"),
        default="json",
        help=helped("help.schema_format"),
    )
    schema.add_argument("--output", metavar="FILE", help=helped("help.schema_output"))
    add_common_options(schema)
    schema.set_defaults(run=_schema)


def _schema(arguments: argparse.Namespace) -> int:
    if arguments.of == "plan":
        from planner.plan.schema import plan_schema_text

        text = plan_schema_text(arguments.format)
    else:
        from planner.spec.schema import schema_text

        text = schema_text(arguments.of, arguments.format)
    write_out(arguments, text)
    return OK
