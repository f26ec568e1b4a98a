"""Start Streamlit on the dashboard from the command line. Streamlit is imported only then."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from planner.dashboard.frozen.life import KEEP_DAYS
from planner.dashboard.frozen.shelf import READONLY

REQUIREMENT = "streamlit>=1.67"
MISSING = f'The dashboard needs Streamlit, which is missing. Install it: python -m pip install "{REQUIREMENT}"'
OPTIONS = (
    "--browser.gatherUsageStats=false",
    "--client.toolbarMode=minimal",
    "--client.showErrorDetails=none",  # no traces, paths or texts of specs on the page
    "--server.enableCORS=true",  # requests of other sites are refused: the hosts allowed are those that the server has
    "--server.enableXsrfProtection=true",
    "--server.showEmailPrompt=false",
    "--server.fileWatcherType=none",  # an installed package does not change while it runs
    "--server.maxUploadSize=5",  # MB; a spec has a few kB
    "--theme.light.primaryColor=#0072B2",  # as in the charts; the default red would look like an alarm
    "--theme.light.textColor=#101010",  # captions have 60 % of it: 5 to 1 on white, where the default comes to 3.9
    "--theme.dark.primaryColor=#2A8FD0",
    "--theme.metricValueFontSize=1.6rem",  # an amount with its unit fits a card, on a phone too
)


def has_streamlit() -> bool:
    """Test whether Streamlit is installed."""
    return find_spec("streamlit") is not None


def options(port: int | None, address: str, headless: str | None) -> list[str]:
    """Build the arguments of `streamlit` for the page."""
    asked = {"port": port, "address": address, "headless": headless}
    script = str(Path(__file__).with_name("serve.py"))
    return [
        "run",
        script,
        *OPTIONS,
        *(f"--server.{name}={value}" for name, value in asked.items() if value is not None),
    ]


def launch(
    port: int | None = None,
    address: str = "localhost",
    headless: str | None = None,
    readonly: str | None = None,
    keep_days: int | None = None,
) -> None:
    """Serve the dashboard until interrupted.

    `readonly`: a folder of stored plans, which it shows and nothing else; `keep_days`: for how many days a plan link may open.
    """
    from streamlit.web.cli import main

    if readonly is not None:
        os.environ[READONLY] = str(Path(readonly).resolve())
    if keep_days is not None:
        os.environ[KEEP_DAYS] = str(keep_days)
    main(options(port, address, headless), prog_name="streamlit", standalone_mode=False)
