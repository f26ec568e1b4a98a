"""Folders of exports: nothing that is there is lost or mixed in unless asked for."""

from __future__ import annotations

import os

import pytest

from planner.errors import SpecError
from planner.ways_out.files import File, write_files

FILES = (File("a/run.sh", "one\n", runs=True), File("b/c/d.yaml", "two\n"))


def test_files_are_written_and_scripts_may_run(tmp_path):
    write_files(tmp_path / "new", FILES)
    assert (tmp_path / "new/b/c/d.yaml").read_text() == "two\n"
    assert os.access(tmp_path / "new/a/run.sh", os.X_OK) and not os.access(tmp_path / "new/b/c/d.yaml", os.X_OK)
    write_files(tmp_path / "new", FILES)  # the same again changes nothing


@pytest.mark.parametrize("path", ["a/run.sh", "a/stale.sh", "b/c/e.yaml", "b"])
def test_other_files_stop_it_before_anything_is_written(tmp_path, path):
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("mine\n")
    with pytest.raises(SpecError, match=f"(?m)^{path}: .*--overwrite"):
        write_files(tmp_path, FILES)
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == [tmp_path / path]


def test_folders_of_other_formats_are_left_alone(tmp_path):
    (tmp_path / "z").mkdir()
    (tmp_path / "z/mine").write_text("mine\n")
    write_files(tmp_path, FILES)
    assert (tmp_path / "z/mine").read_text() == "mine\n"


def test_overwriting_replaces_files_of_the_same_name_alone(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/run.sh").write_text("mine\n")
    (tmp_path / "a/stale.sh").write_text("mine\n")
    write_files(tmp_path, FILES, overwrite=True)
    assert (tmp_path / "a/run.sh").read_text() == "one\n" and (tmp_path / "a/stale.sh").read_text() == "mine\n"
