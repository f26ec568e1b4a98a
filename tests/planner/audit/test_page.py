"""The page of the documentation says what the command says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_is_up_to_date():
    spec = importlib.util.spec_from_file_location("build_audit", ROOT / "docs/build_audit.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs/audit.md").read_text(encoding="utf-8") == module.page(), "run make docs"
