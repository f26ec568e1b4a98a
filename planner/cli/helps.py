"""Help texts of commands and options: messages of the topic `help`."""

from __future__ import annotations

from planner.messages import Message


def helped(code: str, **arguments: str) -> str:
    """Say what a command or an option is for, as `argparse` prints a help text; the message tables of other topics are not read for it."""
    return Message.of(code, **arguments).text().replace("%", "%%")
