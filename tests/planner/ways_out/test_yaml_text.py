"""YAML as written, read by a parser of YAML."""

from __future__ import annotations

import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.ways_out.yaml_text import documents, yaml_text

TEXTS = st.one_of(st.text(max_size=12), st.sampled_from(["yes", "NO", "1e3", "0x1F", "12:30:00", "~", "- a", "a: b", "#x", "a\nb\n", "a\n\n b\n\n", "a\tb", "=", "<<", "2027-01-01", ".inf", "null", "a:b", "a #b"]))  # fmt: skip
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-9999, 9999), TEXTS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=12
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_a_parser_reads_what_was_written(document):
    assert yaml.safe_load(yaml_text(document)) == document


def test_several_documents_stay_apart():
    parts = [{"kind": "A", "script": "set -e\nexec a \\\n  --b\n"}, {"kind": "B"}]
    assert list(yaml.safe_load_all(documents(*parts))) == parts
    assert "script: |\n  set -e\n" in yaml_text(parts[0])
