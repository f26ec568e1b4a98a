"""Read how many rented systems run in each hour, and write them into the rows of the fleet."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arrays import Bools, Floats, Ints
from planner.formulate.formulation import Formulation
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import Term, counted_by_hour
from solvers.model.preemption import predecessors
from solvers.search.hourly import USED, at_work
from solvers.solution import Solution


def by_hour(problem: ResolvedSpec, form: Formulation) -> Bools:
    """[holding]: its systems are counted by the hour."""
    return np.array([counted_by_hour(problem, form.fleet_options[k].offer) for k, _ in form.holdings], dtype=bool)


def running_systems(
    problem: ResolvedSpec, form: Formulation, solution: Solution, count: Ints, active: Floats
) -> tuple[Ints, Ints]:
    """Return (systems in each slot [holding, slot], systems of each holding [holding]).

    A holding has as many as run at once, and more where the program counts them and a least number of systems, or the width of a job, asks it.
    They are as the program counts them, or as many as the activity needs where it is read from a program with fractions of systems. Work
    that is so little that the solver rounds its systems away runs on one. `active`: replicas [point, slot].
    """
    covers = np.array([term.mask(problem.calendar) for _, term in form.holdings], dtype=bool)
    covers = covers.reshape(len(form.holdings), problem.calendar.slots)
    running, hourly = count[:, None] * covers.astype(np.int64), by_hour(problem, form)
    if not hourly.any():
        return running, count
    if "on" in solution.values:
        on: Floats = np.rint(solution.values["on"]) * covers
    else:
        on = np.ceil(at_work(form.data, solution.values)[form.data.holding_option] - USED) * covers
    needed = np.zeros((len(form.fleet_options), problem.calendar.slots))
    points, options = form.data.point_uses[:, 0], form.data.point_uses[:, 1]
    np.add.at(needed, options, form.data.point_uses_systems[:, None] * active[points])
    needed = (needed > 0)[form.data.holding_option] * covers
    on = np.where((needed.any(axis=1) & ~on.any(axis=1))[:, None], needed, on)
    running = np.where(hourly[:, None], on.astype(np.int64), running)
    most = on.max(axis=1, initial=0.0).astype(np.int64)
    asked = np.minimum(count, np.maximum(_least(problem, form), _widest_job(form, solution)))
    return running, np.where(hourly, np.where(most > 0, np.maximum(most, asked), 0), count)


def _least(problem: ResolvedSpec, form: Formulation) -> Ints:
    """[holding]: least number of its systems that the spec asks for, of its offer or of each kind at a site."""
    asked = problem.spec.simplicity.least_systems or 1
    return np.array([max(form.fleet_options[k].offer.least, asked) for k, _ in form.holdings], dtype=np.int64)


def _widest_job(form: Formulation, solution: Solution) -> Ints:
    """[holding]: systems of its fleet option that the widest job takes at full width, of which fewer may run over a whole slot."""
    data = form.data
    used = (solution.values["y"] > 0.5) & (data.point_job >= 0)
    point, option = data.point_uses.T
    systems = np.zeros(len(form.fleet_options))
    np.maximum.at(systems, option, np.where(used[point], data.point_uses_systems, 0.0))
    widest: Ints = np.ceil(systems - USED).astype(np.int64)[data.holding_option]
    return widest


def starts_of(problem: ResolvedSpec, form: Formulation, running: Ints) -> Ints:
    """Count the systems that start in each slot [holding, slot], where they are counted by the hour: the rise of their fleet option."""
    hourly = by_hour(problem, form)
    option = np.array([k for k, _ in form.holdings], dtype=np.int64)
    of_option = np.zeros((len(form.fleet_options), problem.calendar.slots), dtype=np.int64)
    np.add.at(of_option, option[hourly], running[hourly])
    rise = np.maximum(of_option - of_option[:, predecessors(np.asarray(problem.calendar.next, dtype=np.int64))], 0)
    covers = np.array([term.mask(problem.calendar) for _, term in form.holdings], dtype=bool).reshape(running.shape)
    return np.where(covers & hourly[:, None], rise[option], 0)


def hours_of(problem: ResolvedSpec, term: Term, running: Ints) -> dict[str, Any]:
    """State for a row of the fleet how many of its systems run in each slot of its window."""
    return {"running": [int(count) for count in running[term.mask(problem.calendar)]]}
