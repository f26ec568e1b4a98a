"""The audit of packages ends badly for a vulnerability or a failure, and well, with the reason, where its data are out of reach."""

from __future__ import annotations

import importlib.util
import json
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
        ([UNKNOWN], 0, ["audit skipped: none of 1 packages could be looked up (not found)"]),
    ],
)
def test_what_was_found(audit, packages, code, said):
    assert audit.judged(code, json.dumps({"dependencies": packages}), "") == (code, said)


def test_data_out_of_reach_are_told_apart_from_a_failure(audit):
    code, said = audit.judged(1, "", "Traceback\nrequests.exceptions.ConnectionError: Max retries exceeded\n")
    assert code == 0 and said[0].startswith("audit skipped: the data are out of reach (requests.exceptions")
    assert audit.judged(2, "", "pip-audit: error: unrecognized arguments: --x") == (
        1,
        ["audit failed: pip-audit: error: unrecognized arguments: --x"],
    )
    assert audit.judged(1, "", "No module named pip_audit") == (1, ["audit failed: No module named pip_audit"])
