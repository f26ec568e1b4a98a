"""Documents that are stored with gzip are read as they are; damaged or endless ones are refused in words."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner import packed
from planner.cli.main import main
from planner.errors import SpecError
from planner.exit_codes import INVALID, OK
from planner.spec.document import read_document


@given(st.binary(max_size=2000))
def test_what_was_packed_comes_back(data):
    assert packed.unpacked(gzip.compress(data)) == data
    assert data.startswith(packed.MAGIC) or packed.unpacked(data) == data


@given(st.binary(min_size=1, max_size=300), st.data())
def test_a_file_that_ends_early_is_refused(data, drawn):
    whole = gzip.compress(data)
    with pytest.raises(ValueError, match="damaged gzip"):
        packed.unpacked(whole[: drawn.draw(st.integers(2, len(whole) - 1))])
    with pytest.raises(ValueError, match="goes on after"):
        packed.unpacked(whole + b"more")


def test_a_file_that_never_ends_is_refused(monkeypatch):
    monkeypatch.setattr(packed, "MOST_BYTES", 1_000_000)
    with pytest.raises(SpecError, match="more than 1 MB"):
        read_document(gzip.compress(b" " * 1_000_001))


def test_plans_and_specs_are_read_from_gzip(small_plan, capsys, tmp_path):
    path = tmp_path / "plan.json.gz"
    path.write_bytes(gzip.compress(small_plan.to_json().encode()))
    assert main(["show", str(path)]) == OK
    capsys.readouterr()
    assert planner.load_plan(path).document == small_plan.document
    spec = tmp_path / "spec.json.gz"
    spec.write_bytes(gzip.compress(json.dumps(small_plan["spec"]).encode()))
    assert main(["check", str(spec)]) == OK
    path.write_bytes(path.read_bytes()[:-9])
    assert main(["show", str(path)]) == INVALID
    assert "damaged gzip file" in capsys.readouterr().err
