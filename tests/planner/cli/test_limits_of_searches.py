"""Every command that searches takes limits of time and memory; those without solve nothing."""

from __future__ import annotations

import argparse

from planner.cli.main import build_parser

NO_SEARCH = {
    "audit",
    "show",
    "report",
    "init",
    "schema",
    "check",
    "verify",
    "catalog",
    "stale",
    "validate",
    "calibrate",
    "roi",
    "dashboard",
    "probe",
    "export",
    "replay",
    "forecast",
}
"""Commands that print, compare or check what is there already."""


def test_every_command_that_searches_takes_limits_of_time_and_memory():
    (commands,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    options = {name: set(parser._option_string_actions) for name, parser in commands.choices.items()}
    without = {name for name, known in options.items() if not {"--time-limit", "--memory"} <= known}
    assert without == NO_SEARCH
