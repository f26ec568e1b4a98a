"""Descend the ladder of fewer deployments by trials, of which the fullest slot tells what the plan would cost; finish only the plan chosen.

start     all deployments of the best plan; then those alone that serve in the fullest slot of that trial
descent   single drops, the least missed first by the linear program, until one costs nothing that the gap of the search would show; else the
          best one of all, as long as it lies within the band
finish    the rung that the band ranks first, made whole in all slots; the next one where that fails
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Bools
from solvers.interface import Options
from solvers.model.data import PlanData
from solvers.search.consolidation import Relaxation, of_same_deployments
from solvers.search.parts import Parts, Rung, parts_of, points_in_use
from solvers.search.simplest import Band, Found, Simplest, as_ladder


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppingSettings:
    """Most trials and plans."""

    trials: int = 32
    """Most trials where the fullest slot tells the cost."""
    solves: int = 8
    """Most trials where each is a plan."""
    finished: int = 3
    """Most rungs that are finished until one holds."""
    trials_share: float = 0.7
    """Of the time, for trials; the rest is kept to finish the plan chosen."""
    alike: int = 1
    """Deployments by which plans with equally few parts may differ."""


SETTINGS = DroppingSettings()


@dataclass(frozen=True, slots=True)
class Trial:
    """The findings on the plan over some points: its value, and how to finish it; `points`: those that serve in the fullest slot."""

    value: float
    finish: Callable[[], Found | None]
    points: Bools | None = None


TryOver = Callable[[Bools, float], Trial | None]


@dataclass(slots=True, eq=False)
class _Tried:
    """A trial, and its plan once it is finished."""

    kept: Bools
    deployments: int
    trial: Trial
    plan: Found | None = None
    parts: Parts | None = None

    @property
    def rung(self) -> Rung:
        """Return its step of the ladder."""
        if self.plan is None or self.parts is None:
            return Rung(self.deployments, self.trial.value, estimated=True)
        return Rung(self.parts.deployments, self.plan.value)


def by_dropping(data: PlanData, best: Found, band: Band, options: Options, try_over: TryOver) -> Simplest:
    """Look for a plan over fewer deployments; `try_over`: tries some points in so much time [s]."""
    return _Descent(data, best, band, options, try_over).found()


class _Descent:
    """The trials made so far."""

    def __init__(self, data: PlanData, best: Found, band: Band, options: Options, try_over: TryOver) -> None:
        self._data, self._best, self._band, self._options = data, best, band, options
        self._try_over, self._end_s = try_over, time.perf_counter() + options.time_limit_s
        self._trials, self._trials_end_s = (
            SETTINGS.trials,
            self._end_s - (1.0 - SETTINGS.trials_share) * options.time_limit_s,
        )
        self._tried: list[_Tried] = []
        self._seen: set[bytes] = set()
        self._least: dict[int, float] = {}  # value, minimised, without a deployment when more were left
        self._told_below = 0.0  # by which a trial over all deployments of the best plan tells less than that plan costs
        self._relaxation = Relaxation.of(data.divisible(), best.values, options)

    def found(self) -> Simplest:
        """Descend, and finish the rung that is chosen."""
        self._descend(self._start())
        parts = parts_of(self._data, self._best.values)
        plan, chosen = self._best, parts
        for finished in range(SETTINGS.finished + 1):
            least = self._band.rank(parts.deployments, self._best.value)
            rungs = [tried for tried in self._tried if self._band.allows(tried.rung.value)]
            if finished == SETTINGS.finished:  # then among the plans alone
                rungs = [tried for tried in rungs if tried.plan is not None]
            tried = min(rungs, key=self._rank, default=None)
            if tried is None or self._rank(tried) > least:
                plan, chosen = self._best, parts
                break
            if tried.plan is not None and tried.parts is not None:
                plan, chosen = tried.plan, tried.parts
                break
            self._finish(tried)
        told = [tried.rung for tried in self._tried if tried.plan or tried.deployments < chosen.deployments]
        ladder = as_ladder(Rung(parts.deployments, self._best.value), told, self._band)
        return Simplest(plan, chosen, fewest=False, others=self._alike(plan, chosen), ladder=ladder)

    def _rank(self, tried: _Tried) -> tuple[float, float]:
        return self._band.rank(tried.rung.deployments, tried.rung.value)

    def _finish(self, tried: _Tried) -> None:
        """Make the plan of a trial; forget the trial where there is none."""
        plan = tried.trial.finish() if self._left() > 0 else None
        if plan is None:
            self._tried.remove(tried)
            return
        tried.plan, tried.parts = plan, parts_of(self._data, plan.values)

    def _start(self) -> _Tried | None:
        """Try all deployments of the best plan, then those alone that the fullest slot uses, or by bisection those that the linear program leaves."""
        every = of_same_deployments(self._data, points_in_use(self._best.values))
        tried = self._try(every)
        if tried is None:
            return None
        if tried.trial.points is not None:
            return self._narrowed(self._set_against_best(tried))
        self._trials = SETTINGS.solves
        ladder = self._relaxation.dropped_one_by_one(self._band.worst, self._limits())
        most, fewest, at = (
            0,
            len(ladder),
            len(ladder),
        )  # allowed over the list before position `most`, over none from `fewest` on
        while at > most:
            narrower = self._try(ladder[at - 1])
            if narrower is not None and self._band.allows(narrower.trial.value):
                most, tried = at, narrower
            else:
                fewest = at - 1
            at = (most + fewest + 1) // 2
        return tried

    def _set_against_best(self, tried: _Tried) -> _Tried:
        """Raise what trials tell by what the first one misses of the best plan: one slot shows fractions of systems that run by the slot."""
        if self._data.hourly is not None:
            self._told_below = max(self._band.sign * (self._best.value - tried.trial.value), 0.0)
            tried.trial = self._raised(tried.trial)
        return tried

    def _raised(self, trial: Trial) -> Trial:
        return replace(trial, value=trial.value + self._band.sign * self._told_below)

    def _narrowed(self, tried: _Tried) -> _Tried:
        """Try the deployments alone that the fullest slot of a trial uses; return the trial of fewest that is allowed."""
        points = tried.trial.points
        if points is None:
            return tried
        narrower = self._try(tried.kept & of_same_deployments(self._data, points))
        return tried if narrower is None or not self._band.allows(narrower.trial.value) else narrower

    def _descend(self, tried: _Tried | None) -> None:
        """Drop one deployment after the other."""
        while tried is not None and self._band.allows(tried.trial.value):
            cheapest = self._cheapest_drop(tried)
            tried = None if cheapest is None else self._narrowed(cheapest)

    def _cheapest_drop(self, tried: _Tried) -> _Tried | None:
        """Try the drops of a trial in the order of what they cost at least, until one costs nothing, or less than any further one can.

        A drop costs at least what it costs in the linear program, and what it cost when more deployments were left.
        """
        sign, none = self._band.sign, self._options.gap * abs(self._band.best)
        cheapest: _Tried | None = None
        drops = self._relaxation.single_drops(tried.kept, self._band.worst, self._limits())
        for least, deployment in sorted((max(value, self._least.get(drop, value)), drop) for value, drop in drops):
            if cheapest is not None and least >= sign * cheapest.trial.value:
                break
            dropped = self._try(tried.kept & (self._data.deployments() != deployment))
            if dropped is None:
                continue
            self._least[deployment] = sign * dropped.trial.value
            if cheapest is None or sign * dropped.trial.value < sign * cheapest.trial.value:
                cheapest = dropped
                if sign * (dropped.trial.value - tried.trial.value) <= none:
                    break
        return cheapest

    def _try(self, kept: Bools) -> _Tried | None:
        """Try some points once; None where no plan is found, or trials or time are used up."""
        if kept.tobytes() in self._seen or self._trials <= 0 or self._left_to_try() <= 0:
            return None
        self._seen.add(kept.tobytes())
        self._trials -= 1
        trial = self._try_over(kept, self._left_to_try())
        if trial is None:
            return None
        count = len(np.unique(self._data.deployments()[kept]))
        self._tried.append(_Tried(kept, count, self._raised(trial)))
        return self._tried[-1]

    def _alike(self, plan: Found, parts: Parts) -> tuple[Found, ...]:
        """Return the other plans found with about as few parts as the one chosen, best first."""
        few = parts.deployments + SETTINGS.alike
        others = [tried.plan for tried in self._tried if tried.parts is not None and tried.parts.deployments <= few]
        kept = [other for other in others if other is not None and other is not plan and self._band.allows(other.value)]
        return tuple(sorted(kept, key=lambda other: self._band.sign * other.value))

    def _left(self) -> float:
        return self._options.noted(self._end_s - time.perf_counter())

    def _left_to_try(self) -> float:
        return self._options.noted(self._trials_end_s - time.perf_counter())

    def _limits(self) -> Options:
        return replace(self._options, time_limit_s=max(self._left_to_try(), 0.0))
