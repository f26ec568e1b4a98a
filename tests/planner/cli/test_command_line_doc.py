"""docs/command-line.md names every command and option that the parser has, and no other."""

import argparse
import re
from pathlib import Path

from planner.cli.main import build_parser

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "command-line.md").read_text(encoding="utf-8")
IN_CODE = re.findall(r"`([^`]+)`", PAGE)


def commands(parser: argparse.ArgumentParser, name: str = ""):
    """(name, parser) of each command, those of `catalog` in two words."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield name, parser
    for action in inner:
        for word, child in action.choices.items():
            yield from commands(child, f"{name} {word}".strip())


def options() -> set[str]:
    top = {option for action in build_parser()._actions for option in action.option_strings}
    inner = {
        option
        for _, command in commands(build_parser())
        for action in command._actions
        for option in action.option_strings
    }
    return (top | inner) - {"-h"}


def test_every_command_has_a_row():
    section = PAGE.partition("## Options")[0]
    rows = {
        re.sub(r"[^a-z -].*", "", line.split("`")[1]).strip() for line in section.splitlines() if line.startswith("| `")
    }
    assert rows == {name for name, _ in commands(build_parser())}


def test_every_option_is_named():
    named = set(re.findall(r"(?<![\w-])--?[a-z][a-z.-]*", " ".join(IN_CODE)))
    assert options() - named == set()


def test_no_option_is_named_that_does_not_exist():
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z.-]*", " ".join(IN_CODE)))
    assert named - options() == set()
