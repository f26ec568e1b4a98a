"""The command `schema`: the JSON Schema of a spec, a plan or a case."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from planner.cli.options import add_common_options
from planner.cli.output import write_out
from planner.exit_codes import OK

if TYPE_CHECKING:
    from planner.cli.options import Commands


def add_schema(commands: Commands) -> None:
    """Add the command `schema`."""
    schema = commands.add_parser(
        "schema",
        help="print the JSON Schema of a spec, a plan, a case, a case of co-design or of KV tiers, or a question about the edge",
    )
    schema.add_argument(
        "of",
        nargs="?",
        choices=("spec", "plan", "case", "codesign", "kv_tiers", "edge"),
        default="spec",
        help="what `plan` reads or prints, what `estimate` and `layouts` read, or what `codesign`, `kv-tiers` or `edge` reads (default: spec)",
    )
    schema.add_argument(
        "--format",
        choices=("json", "md"),
        default="json",
        help="JSON Schema, or its keys as a page in Markdown (default: json)",
    )
    schema.add_argument("--output", metavar="FILE", help="write it there instead of standard output")
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
