"""The command `dashboard`: serve the dashboard until interrupted."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.helps import helped
from planner.exit_codes import OK, USAGE
from planner.messages import Message

if TYPE_CHECKING:
    from planner.cli.options import Commands


MOST_PORT = 65535


def add_dashboard(commands: Commands) -> None:
    """Add the command `dashboard`."""
    dashboard = commands.add_parser("dashboard", help=helped("help.dashboard"))
    dashboard.add_argument(
        "--server.port",
        dest="port",
        type=_port,
        metavar="PORT",
        help=helped("help.dashboard_port"),
    )
    dashboard.add_argument(
        "--server.address",
        dest="address",
        metavar="HOST",
        default="localhost",
        help=helped("help.dashboard_address", host="localhost"),
    )
    dashboard.add_argument(
        "--server.headless", dest="headless", choices=("true", "false"), help=helped("help.dashboard_headless")
    )
    dashboard.add_argument("--readonly", metavar="DIR", help=helped("help.dashboard_readonly"))
    dashboard.add_argument("--keep-days", type=_days, metavar="N", help=helped("help.dashboard_keep"))
    dashboard.set_defaults(run=_dashboard)


def _port(text: str) -> int:
    """Parse the number of a port."""
    port = int(text)
    if not 1 <= port <= MOST_PORT:
        raise argparse.ArgumentTypeError(Message.of("cli.port_expected", most=str(MOST_PORT)).text())
    return port


def _days(text: str) -> int:
    """Parse a number of days."""
    from planner.dashboard.frozen.life import MOST_DAYS

    days = int(text)
    if not 1 <= days <= MOST_DAYS:
        raise argparse.ArgumentTypeError(Message.of("cli.days_expected", most=str(MOST_DAYS)).text())
    return days


def _dashboard(arguments: argparse.Namespace) -> int:
    from planner.dashboard.launch import MISSING, has_streamlit, launch

    if not has_streamlit():
        print(MISSING, file=sys.stderr)
        return USAGE
    if arguments.readonly is not None and not Path(arguments.readonly).is_dir():
        print(Message.of("cli.no_folder_of_plans", name=arguments.readonly).text(), file=sys.stderr)
        return USAGE
    launch(arguments.port, arguments.address, arguments.headless, arguments.readonly, arguments.keep_days)
    return OK
