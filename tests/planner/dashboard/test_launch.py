"""The command `dashboard`, and that nothing of the dashboard weighs on the rest."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from planner.cli import main as cli
from planner.dashboard import launch
from planner.exit_codes import OK, USAGE

HOME = Path(__file__).resolve().parents[3]


def test_without_streamlit_the_command_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr(launch, "has_streamlit", lambda: False)
    assert cli.main(["dashboard"]) == USAGE
    message = capsys.readouterr().err
    assert f'python -m pip install "{launch.REQUIREMENT}"' in message and "Traceback" not in message


def test_the_command_starts_streamlit_on_the_page_with_the_port_asked_for(monkeypatch):
    streamlit = pytest.importorskip("streamlit.web.cli")
    seen = []
    monkeypatch.setattr(streamlit, "main", lambda arguments, **_: seen.extend(arguments))
    assert cli.main(["dashboard", "--server.port", "8599", "--server.headless", "true"]) == OK
    assert seen[:2] == ["run", str(HOME / "planner" / "dashboard" / "serve.py")]
    assert {"--server.port=8599", "--server.address=localhost", "--server.headless=true"} <= set(seen)
    assert {
        "--browser.gatherUsageStats=false",
        "--client.toolbarMode=minimal",
        "--server.showEmailPrompt=false",
    } <= set(seen)


def test_every_option_is_one_that_streamlit_knows():
    config = pytest.importorskip("streamlit.config")
    known = config.get_config_options()
    for option in launch.options(8599, "localhost", "true")[2:]:
        assert option.removeprefix("--").partition("=")[0] in known


def test_a_checkout_runs_with_the_same_options():
    """`streamlit run app.py` reads .streamlit/config.toml; it listens on this machine alone, as the command does."""

    def flat(block: dict, path: str = "") -> dict[str, str]:
        found = {}
        for key, value in block.items():
            if isinstance(value, dict):
                found |= flat(value, f"{path}{key}.")
            else:
                found[path + key] = str(value).lower() if isinstance(value, bool) else str(value)
        return found

    stated = flat(tomllib.loads((HOME / ".streamlit" / "config.toml").read_text()))
    asked = dict(option.removeprefix("--").split("=", 1) for option in launch.options(None, "localhost", None)[2:])
    assert stated == asked
    assert (stated["server.address"], stated["client.showErrorDetails"]) == ("localhost", "none")


def test_the_message_and_the_extra_ask_for_the_same_streamlit():
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    assert launch.REQUIREMENT in project["optional-dependencies"]["dashboard"]


@pytest.mark.parametrize("module", ["planner", "planner.cli.main", "planner.dashboard", "planner.dashboard.launch"])
def test_importing_stays_light(module):
    script = (
        f"import sys, {module}; print([m for m in ('streamlit', 'altair', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=HOME, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
