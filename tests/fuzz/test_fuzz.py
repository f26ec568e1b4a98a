"""Whatever is read, the answer is one of the contract: a short run of each fuzzer, and the seed of every bug found. Long: `make fuzz`."""

from __future__ import annotations

import json

import pytest

from planner.errors import MOST_CHARACTERS, MOST_SHOWN, Issue, SpecError
from tests.fuzz.targets import TARGETS, errors_of

SECONDS = 2.0
FIRST = {"specs": 983, "cases": 0, "overlays": 0, "series": 0, "plans": 0, "options": 0, "links": 0, "uploads": 0}
SEEDS = [
    ("specs", 983), ("specs", 101_038), ("plans", 11), ("plans", 110), ("plans", 1603), ("plans", 1646), ("plans", 5044), ("overlays", 270),
    ("overlays", 7_000_519), ("specs", 7_005_544), ("specs", 7_021_455), ("links", 44), ("links", 138), ("uploads", 98), ("uploads", 1085), ("uploads", 1185), ("uploads", 62_000_075),
    ("tampered", 63_001_714), ("tampered", 63_003_156),
]  # fmt: skip


@pytest.mark.parametrize("name", FIRST)
def test_a_few_seeds_of_each(name):
    import time

    began, seed = time.monotonic(), FIRST[name]
    while time.monotonic() - began < SECONDS:
        assert errors_of(name, seed) is None, f"{name} {seed}"
        seed += 1


@pytest.mark.parametrize(("name", "seed"), SEEDS)
def test_seeds_that_found_a_bug(name, seed):
    assert errors_of(name, seed) is None


def test_every_target_has_a_long_run():
    from tests.fuzz.run import COUNTS

    assert COUNTS.keys() == TARGETS.keys() and FIRST.keys() == TARGETS.keys() - {"solves", "tampered", "consistency"}


def test_messages_and_their_number_are_limited():
    error = SpecError(Issue("a" * 9999, f"{i} " + "b" * 9999) for i in range(500))
    lines = str(error).splitlines()
    assert len(lines) == MOST_SHOWN + 1 and lines[-1] == "and 450 more problems; correct these first"
    assert max(map(len, lines)) <= MOST_CHARACTERS and len(error.problems) == 500


@pytest.mark.parametrize("levels", [59, 61, 400, 900, 3000])
def test_nesting_is_refused_before_it_is_walked(levels):
    from planner.spec.document import read_document

    text = '{"a":' * levels + "1" + "}" * levels
    if levels < 60:
        assert json.dumps(read_document(text)).count("a") == levels
    else:
        with pytest.raises(SpecError, match="nested too deeply"):
            read_document(text)
