"""The audit of packages ends badly for a vulnerability or a failure, and as skipped, with the reason, where nothing was looked up."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / ".ci" / "audit.py"
GOOD = {"name": "numpy", "version": "2.0", "vulns": []}
BAD = {"name": "old", "version": "1.0", "vulns": [{"id": "CVE-1", "fix_versions": ["1.1"]}]}
UNKNOWN = {"name": "ours", "skip_reason": "not found"}


@pytest.fixture(scope="module")
def audit():
    spec = importlib.util.spec_from_file_location("audit", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("packages", "code", "said"),
    [
        ([GOOD], 0, ["audit: 0 of 1 packages are vulnerable"]),
        ([GOOD, BAD], 1, ["old 1.0: CVE-1, fixed in 1.1", "audit: 1 of 2 packages are vulnerable"]),
        ([GOOD, UNKNOWN], 0, ["not looked up: ours", "audit: 0 of 1 packages are vulnerable"]),
        ([], 77, ["audit skipped: none of 0 packages could be looked up (no package is installed)"]),
        ([UNKNOWN], 77, ["audit skipped: none of 1 packages could be looked up (not found)"]),
    ],
)
def test_what_was_found(audit, packages, code, said):
    assert audit.judged(code, json.dumps({"dependencies": packages}), "") == (code, said)


def test_data_out_of_reach_are_told_apart_from_a_failure(audit):
    code, said = audit.judged(1, "", "Traceback\nrequests.exceptions.ConnectionError: Max retries exceeded\n")
    assert code == 77 and said[0].startswith("audit skipped: the data are out of reach (requests.exceptions")
    assert audit.judged(2, "", "pip-audit: error: unrecognized arguments: --x") == (
        1,
        ["audit failed: pip-audit: error: unrecognized arguments: --x"],
    )
    assert audit.judged(1, "", "No module named pip_audit") == (1, ["audit failed: No module named pip_audit"])


PIP_AUDIT = "import sys; print('Max retries exceeded', file=sys.stderr); sys.exit(1)"


def test_a_skipped_audit_is_no_success_unless_that_was_asked_for(audit, capsys):
    command = [sys.executable, "-c", PIP_AUDIT]
    assert audit.main(command) == 77
    assert audit.main(command, skip_allowed=True) == 0
    assert capsys.readouterr().out.count("audit skipped: ") == 2


def test_a_failure_stays_one_where_skipping_is_allowed(audit):
    assert audit.main([sys.executable, "-c", "import sys; sys.exit('cannot parse')"], skip_allowed=True) == 1


def test_the_nightly_run_includes_an_audit_that_may_not_be_skipped():
    shown = subprocess.run(
        ["make", "--dry-run", "--always-make", "nightly"],
        cwd=SOURCE.parents[1],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert ".ci/audit.py" in shown and "--skip-allowed" not in shown
    allowed = subprocess.run(
        ["make", "--dry-run", "--always-make", "audit", "SKIP=allowed"],
        cwd=SOURCE.parents[1],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "--skip-allowed" in allowed
