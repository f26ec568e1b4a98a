"""Jobs run at other hours where whole counts leave them too few systems, and at their own where they do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.decomposition.integer_recovery import nearest_schedule
from solvers.decomposition.linking import FirstStagePoint
from solvers.decomposition.reformulation import Reformulation
from solvers.interface import ProgressReporter
from solvers.model.build import build
from tests.solvers.decomposition.test_decomposition import two_jobs


def questions(hours):
    """Two jobs of two hours each on two systems, of four, and so many hours to run in."""
    data = two_jobs(4)
    data = replace(
        data, slot_window=np.zeros(hours, dtype=int), slot_hours_s=np.full(hours, 3600.0), point_cost={"cost": np.zeros((4, hours))}, demand=np.zeros((0, 0, hours)),
        job_window_mask=np.ones((2, hours), dtype=bool),
    )  # fmt: skip
    dec = Reformulation(data, "cost", build, 1, ProgressReporter())
    return dec.recovery_model(np.arange(2), dec.view.training).master


@pytest.fixture(scope="module")
def master():
    return questions(3)


def point(master, systems):
    """Both jobs on the first fleet option in the first two hours."""
    first_stage, running = np.zeros(master.first_stage.size), np.zeros((len(master.placements), master.view.slots))
    first_stage[master.first_stage.columns["n"][0]] = systems
    first = np.isin(master.placements, (0, 2))
    first_stage[master.first_stage.columns["y"][master.placements[first]]] = 1.0
    running[first, :2] = 1.0
    return FirstStagePoint(first_stage, running)


FREE = np.zeros((2, 3))


def test_hours_that_there_are_systems_for_stay(master):
    before = point(master, 4)
    after = nearest_schedule(master, before, np.arange(12.0).reshape(4, 3), FREE)
    assert after.first_stage is before.first_stage and np.allclose(after.running, before.running, atol=1e-6)


@pytest.mark.parametrize(("systems", "left"), [(3, [0, 0, 0]), (4, [1, 0, 0]), (4, [0, 2, 0]), (4, [1, 1, 0])])
def test_as_little_as_may_be_runs_later(master, systems, left):
    before = point(master, systems)
    taken = np.array([left, [0, 0, 0]], dtype=float)
    after = nearest_schedule(master, before, np.ones((4, 3)), taken)
    assert (master.uses @ after.running <= systems * np.array([[1], [0]]) - taken + 1e-9).all()
    assert np.allclose(after.running.sum(axis=1), before.running.sum(axis=1))  # both are done
    over = np.maximum(master.uses @ before.running - (systems * np.array([[1], [0]]) - taken), 0.0).sum() / 2
    assert np.abs(after.running - before.running).sum() == pytest.approx(2 * over, abs=1e-5)


def test_they_go_where_it_is_cheaper():
    master = questions(4)
    before = point(master, 3)
    price = np.tile([1.0, 1.0, 2.0, 1.5], (4, 1))
    after = nearest_schedule(master, before, price, np.zeros((2, 4)))
    assert after.running[:, 2].max() < 1e-5 and after.running[:, 3].sum() == pytest.approx(1.0, abs=1e-5)


def test_where_hours_are_too_few_there_is_none(master):
    assert nearest_schedule(master, point(master, 2), np.ones((4, 3)), FREE) is None
