"""Check the random questions of `benchmarks/scale.py` with a build-out in phases."""

from __future__ import annotations

import pytest

from benchmarks.scale_spec import SIZES, question
from planner.resolve.resolver import resolve_document
from planner.spec.series import with_series


@pytest.mark.parametrize(("size", "slots"), [("small", 3 * 24), ("medium", 168)])
def test_three_phases_cut_the_year_and_keep_its_sampled_days_whole(tmp_path, size, slots):
    document = question(SIZES[size], 3, tmp_path, 1e-3, 10.0, phases=3)
    problem = resolve_document(with_series(document, [tmp_path]))
    assert [phase.name for phase in problem.phases] == ["phase 1", "phase 2", "phase 3"]
    assert problem.calendar.slots == slots
    late = [offer for offer in problem.offers if offer.from_s]
    assert len(late) == SIZES[size].systems // 3 and all(offer.from_s == problem.phases[1].start_s for offer in late)
    for offer in late:
        assert sum(offer.phase_supply[1:]) >= offer.supply
    for workload in problem.serving:
        peaks = workload.requests_by_slot(problem.calendar).sum(axis=0)
        assert peaks[problem.calendar.window == 0].max() < 0.5 * peaks.max()


def test_one_phase_is_the_question_as_it_was(tmp_path):
    whole = question(SIZES["small"], 3, tmp_path, 1e-3, 10.0)
    assert "phases" not in whole and question(SIZES["small"], 3, tmp_path, 1e-3, 10.0, phases=1) == whole
