"""The command `audit`: judge claims and print the verdicts."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from planner.cli.helps import helped
from planner.cli.options import overlay_folders
from planner.cli.output import as_json, rows_as, write_out
from planner.errors import Issue, SpecError
from planner.escape import markdown, terminal
from planner.exit_codes import OK
from planner.messages import DEFAULT, LANGUAGES, Message, say, translated

if TYPE_CHECKING:
    from planner.cli.options import Commands

HTML = "html"  # a format of this command beside the usual ones


def add_audit(commands: Commands, shared: argparse.ArgumentParser) -> None:
    """Add the command `audit`."""
    audit = commands.add_parser("audit", parents=[shared], help=helped("help.audit"))
    audit.add_argument("file", metavar="FILE", nargs="?", help=helped("help.audit_file"))
    audit.add_argument("--only", metavar="SYSTEM", action="append", default=[], help=helped("help.audit_only"))
    audit.add_argument("--claim", metavar="ID", help=helped("help.audit_claim"))
    audit.add_argument("--language", choices=LANGUAGES, default=DEFAULT, help=helped("help.audit_language"))
    audit.add_argument("--new", action="store_true", help=helped("help.audit_new"))
    audit.set_defaults(run=_audit)


def _audit(arguments: argparse.Namespace) -> int:
    from planner.audit.answer import audit

    if arguments.new:
        if arguments.file or arguments.claim or arguments.only:
            raise SpecError([Issue("--new", Message.of("audit.one_of").text())])
        return _new(arguments)
    found = audit(arguments.file, only=arguments.only, overlays=overlay_folders(arguments))
    if arguments.claim is not None:
        one = found.one(arguments.claim)
        _write(arguments, one.document(), [one.flat()], [], one.derivation())
        return OK
    short = arguments.format == "table"
    lines = [found.words, *([say("audit.more_of_each")] if short else [])]
    _write(arguments, found.document, found.rows, lines, found.sections(short))
    return OK


def _write(
    arguments: argparse.Namespace,
    document: Any,
    rows: list[dict[str, Any]],
    lines: list[str],
    sections: list[tuple[str, list[dict[str, Any]]]],
) -> None:
    """Write the document as JSON, flat rows as CSV, or sentences and tables as text, Markdown or HTML."""
    form, language = arguments.format, arguments.language
    lines = [translated(line, language) for line in lines]
    sections = [
        (translated(heading, language), [_in_language(row, language) for row in table]) for heading, table in sections
    ]
    if form == "json":
        return write_out(arguments, as_json(document))
    if form == "csv":
        return write_out(arguments, rows_as("csv", rows))
    if form == HTML:
        from planner.audit.page import page

        return write_out(arguments, page(lines, sections, language))
    if form == "md":
        from planner.audit.page import in_markdown
        from planner.tables import as_markdown

        parts = [f"{markdown(line)}\n" for line in lines]
        parts += [f"## {markdown(heading)}\n\n{as_markdown(table, in_markdown)}" for heading, table in sections]
    else:
        parts = [f"{terminal(line)}\n" for line in lines]
        parts += [f"{terminal(heading)}\n\n{rows_as(form, table)}" for heading, table in sections]
    return write_out(arguments, "\n".join(parts))


def _in_language(row: dict[str, Any], language: str) -> dict[str, Any]:
    """Say heads and cells of a row in a language; what a file of claims states stays as it is."""
    return {
        translated(head, language): translated(cell, language) if isinstance(cell, str) else cell
        for head, cell in row.items()
    }


def _new(arguments: argparse.Namespace) -> int:
    """Ask for a claim on a terminal, judge it, and write it as a file of claims."""
    from planner.audit.reading import as_file
    from planner.cli.claims.new import asked
    from planner.cli.options import load_catalog

    if sys.stdin is None or not sys.stdin.isatty():
        raise SpecError([Issue("--new", Message.of("audit.new_needs_terminal").text())])
    try:
        document, judged = asked(load_catalog(arguments))
    except EOFError:
        raise SpecError([Issue("--new", Message.of("audit.new_ended").text())]) from None
    for heading, rows in judged.derivation():
        print(f"{terminal(heading)}\n\n{rows_as('table', rows)}", file=sys.stderr)
    write_out(arguments, as_file([document]))
    named = arguments.output and arguments.output != "-"
    words = say("audit.written", file=arguments.output, count=1) if named else say("audit.written_alone")
    print(terminal(words), file=sys.stderr)
    return OK
