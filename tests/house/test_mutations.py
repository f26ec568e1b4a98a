"""Each mutation of tests/mutations.py still stands for one place of the code; `make nightly` applies them."""

from __future__ import annotations

import pytest

from tests.mutations import MUTATIONS, ROOT, Record

FEWEST = 40


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[f"{i}-{m.file}" for i, m in enumerate(MUTATIONS, 1)])
def test_a_mutation_changes_one_place(mutation):
    changed = mutation.applied_to(ROOT)
    compile(changed, mutation.file, "exec")
    assert changed != (ROOT / mutation.file).read_text(encoding="utf-8")
    assert (ROOT / mutation.tests).is_dir()


def test_there_are_enough():
    assert len({(m.file, m.right) for m in MUTATIONS}) == len(MUTATIONS) >= FEWEST


def test_outcomes_of_the_same_tree_are_kept_and_those_of_another_are_not(tmp_path):
    file = tmp_path / "record.json"
    Record(file, "of this tree").keep("7", "test_a.py::test_b")
    assert Record(file, "of this tree").tried == {"7": "test_a.py::test_b"}
    assert Record(file, "of another tree").tried == {} == Record(None, "of this tree").tried
