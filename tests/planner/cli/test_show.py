"""`flopwatt show`: a stored plan is printed as `plan` printed it, in every format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.report.paper import LINES

OK, USAGE, INVALID = 0, 2, 3
GOLDEN = Path(__file__).resolve().parents[2] / "golden"
FORMS = ["table", "json", "csv", "md", "html"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A folder for plans as `plan --format json` writes them."""
    return tmp_path_factory.mktemp("plans")


def as_stored(flopwatt, files, stored, name):
    """Plan a spec once and return the file of its plan."""
    there = stored / f"{name}.json"
    if not there.exists():
        flopwatt("plan", files / f"{name}.json", "-q", "--format", "json", "--output", there)
    return there


@pytest.mark.parametrize("name", ["tiny", "poor", "endless"])
@pytest.mark.parametrize("form", FORMS)
def test_a_stored_plan_is_printed_as_it_was(flopwatt, files, stored, name, form):
    if form == "html":
        pytest.importorskip("vl_convert")
    plan = as_stored(flopwatt, files, stored, name)
    for more in ((), ("--full",)):
        printed = flopwatt("plan", files / f"{name}.json", "-q", "--format", form, *more)
        again = flopwatt("show", plan, "--format", form, *more)
        assert bool(printed.out) == (form != "csv" or name == "tiny")
        assert (again.code, again.out, again.err) == (OK, printed.out, "")


def test_the_page_is_one_page_and_full_is_all(flopwatt, small_plan, tmp_path):
    there = tmp_path / "plan.json"
    small_plan.save(there)
    page, full = flopwatt("show", there), flopwatt("show", there, "--full")
    assert page.code == full.code == OK and page.out.splitlines()[0] == small_plan["name"]
    assert len(page.out.splitlines()) <= LINES < len(full.out.splitlines())


def test_output_and_a_folder_of_tables_are_those_of_plan(flopwatt, files, stored, tmp_path):
    plan = as_stored(flopwatt, files, stored, "tiny")
    flopwatt("plan", files / "tiny.json", "-q", "--format", "csv", "--output", f"{tmp_path}/first/")
    run = flopwatt("show", plan, "--format", "csv", "--output", f"{tmp_path}/again/")
    assert (run.code, run.out, run.err) == (OK, "", "")
    tables = {path.name: path.read_bytes() for path in (tmp_path / "first").iterdir()}
    assert tables and tables == {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    alone = flopwatt("show", plan, "--format", "md", "--output", tmp_path / "plan.md")
    assert (alone.code, alone.out) == (OK, "")
    assert (tmp_path / "plan.md").read_text(encoding="utf-8") == flopwatt("show", plan, "--format", "md").out


def test_a_dash_reads_standard_input(flopwatt, files, stored):
    plan = as_stored(flopwatt, files, stored, "tiny")
    assert flopwatt("show", "-", stdin=plan.read_bytes()).out == flopwatt("show", plan).out


@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
def test_a_plan_of_an_earlier_release_is_printed(flopwatt, form):
    run = flopwatt("show", GOLDEN / "plan_of_release_0_1.json", "--format", form)
    assert run.code == OK and run.out and not run.err


def test_what_is_no_plan_is_refused_with_its_place(flopwatt, files, tmp_path):
    missing = flopwatt("show", tmp_path / "none.json")
    assert missing.code == USAGE and "none.json" in missing.err
    assert flopwatt("show", tmp_path).code == USAGE
    spec = flopwatt("show", files / "tiny.json")
    assert spec.code == INVALID and spec.out == "" and "this is a spec: use `plan`" in spec.err
    (tmp_path / "empty.json").write_text("")
    empty = flopwatt("show", tmp_path / "empty.json")
    assert empty.code == INVALID and "not valid JSON" in empty.err
    changed = json.loads((files / "plan.json").read_text(encoding="utf-8"))
    changed["fleet"][0]["count"] = "many"
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    wrong = flopwatt("show", tmp_path / "changed.json")
    assert wrong.code == INVALID and "fleet[0].count" in wrong.err
    folder = flopwatt("show", files / "plan.json", "--output", f"{tmp_path}/tables/")
    assert folder.code == USAGE and "with --format csv" in folder.err and not folder.out
