"""docs/architectures.md is what `make docs` writes."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_networks_is_current():
    spec = importlib.util.spec_from_file_location("build_architectures", ROOT / "docs/build_architectures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs/architectures.md").read_text(encoding="utf-8") == module.page()
