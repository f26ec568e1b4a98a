"""Each mutation of tests/mutations.py still stands for one place of the code; `make nightly` applies them."""

from __future__ import annotations

import pytest

from tests.mutations import MUTATIONS, ROOT

FEWEST = 40


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[f"{i}-{m.file}" for i, m in enumerate(MUTATIONS, 1)])
def test_a_mutation_changes_one_place(mutation):
    changed = mutation.applied_to(ROOT)
    compile(changed, mutation.file, "exec")
    assert changed != (ROOT / mutation.file).read_text(encoding="utf-8")
    assert (ROOT / mutation.tests).is_dir()


def test_there_are_enough():
    assert len({(m.file, m.right) for m in MUTATIONS}) == len(MUTATIONS) >= FEWEST
