"""Choose how reinforcement learning is run on given pools: way to run, and the layouts of both pools.

The closed forms are in `models.reinforcement`, a given split is evaluated in `planner.evaluate.reinforcement`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.reinforcement.iteration import COLOCATED, Iteration
from models.reinforcement.synchronise import Line
from models.serving.decode import ServingLayouts
from models.training.layouts import Layouts, with_levels
from planner.candidates.layouts import fastest_layout, layout_choices, legal_sizes
from planner.candidates.serving import serving_layouts
from planner.evaluate.layouts import TrainingSetup, carries
from planner.evaluate.reinforcement import (
    Engines,
    Figures,
    RolloutPool,
    UpdatePool,
    engines_of,
    fitting,
    fitting_updates,
    held_in_rollout,
    iteration_of,
    updates_of,
)
from planner.problem.constants import ModelConstants
from planner.problem.facts import ScaleOut, SystemFacts
from planner.problem.reinforcement import ReinforcementFacts

EIGHTHS = 8
MOST_ENGINE_LAYOUTS = 400  # layouts of a pool; further ones are far larger than a batch needs


@dataclass(frozen=True, slots=True)
class Split:
    """A way to run on given pools, in the best layouts found."""

    way: str
    update: UpdatePool
    pool: RolloutPool | None  # None where responses are given
    engines: Engines | None
    engine: int  # position of the rollout layout
    found: Iteration  # arrays over the rollout layouts; position `engine` counts

    @property
    def iteration_s(self) -> float:
        """Return the time of an iteration [s]."""
        return float(self.found.iteration_s[self.engine])

    @property
    def rollout(self) -> tuple[RolloutPool, Engines, int] | None:
        """Return the rollout pool, its layouts, and the position of the one chosen."""
        return None if self.pool is None or self.engines is None else (self.pool, self.engines, self.engine)


class SplitSearch:
    """Search for the splits of one job; the best layouts of each pool are cached by system, network, chips and precision."""

    def __init__(self, job: ReinforcementFacts, constants: ModelConstants):
        self.job, self.constants = job, constants
        self._updates: dict[tuple[object, ...], UpdatePool | None] = {}
        self._engines: dict[tuple[object, ...], Engines | None] = {}
        self.kept: dict[
            tuple[object, ...], tuple[Split | None, Figures | None]
        ] = {}  # best splits, by systems and networks
        self.evaluated = 0

    def update(self, setup: TrainingSetup, chips: int) -> UpdatePool | None:
        """Find the fastest update layout on a number of chips; None where none fits."""
        key = _key(setup, chips)
        if key not in self._updates:
            self._updates[key] = self._fastest(setup, legal_sizes(self.job, chips, setup.system))
        return self._updates[key]

    def known(self, setup: TrainingSetup, chips: int, update: UpdatePool) -> None:
        """Fix the update layout on a number of chips."""
        self._updates[_key(setup, chips)] = update

    def _fastest(self, setup: TrainingSetup, sizes: Layouts) -> UpdatePool | None:
        if not len(sizes):
            return None
        self.evaluated += len(sizes)
        found = fastest_layout(setup, sizes)
        if not len(found):
            return None
        updates = updates_of(setup, found.layouts, self.job)
        if not fitting(updates, setup.system)[0]:  # the longest sample, or critic and reference, need another layout
            every = with_levels(sizes, layout_choices(setup.system))
            able = fitting_updates(setup, every.take(carries(setup, every)), self.job)
            if able is None:
                return None
            updates = able.take(int(np.lexsort((able.step.step_s, able.scoring_s + able.update_s))[0]))
        return UpdatePool(setup, updates)

    def engines(self, pool: RolloutPool, layouts: ServingLayouts | None = None) -> Engines | None:
        """Evaluate the rollout layouts of a pool. `layouts`: those to choose from, all that an engine can run if None."""
        pool = replace(pool, line=None)  # which joins it to the update, and takes no part in the rollout itself
        key = (pool, None if layouts is None else id(layouts))
        if key not in self._engines:
            if layouts is None:
                layouts = serving_layouts(self.job.architecture, pool.system, pool.scaleout.bytes_per_s > 0)
                layouts = layouts.take(np.flatnonzero(np.asarray(layouts.chips) <= pool.chips)[:MOST_ENGINE_LAYOUTS])
            self.evaluated += len(layouts)
            self._engines[key] = engines_of(self.job, pool, layouts, self.constants)
        return self._engines[key]

    def split(
        self, way: str, update: UpdatePool, pool: RolloutPool | None, layouts: ServingLayouts | None = None
    ) -> Split | None:
        """Choose the rollout layout of the shortest iteration; None where none fits."""
        if pool is None:
            return Split(way, update, None, None, 0, iteration_of(self.job, way, update, None, None, self.constants))
        engines = self.engines(pool, layouts)
        if engines is None:
            return None
        found = iteration_of(self.job, way, update, engines, pool, self.constants)
        best = int(np.argmin(found.iteration_s))
        return Split(way, update, pool, engines, best, found) if np.isfinite(found.iteration_s[best]) else None


def _key(setup: TrainingSetup, chips: int) -> tuple[object, ...]:
    return setup.system.name, setup.scaleout, setup.plant, setup.precision, chips


def shares_of(units: int) -> list[int]:
    """List the units of a rollout pool that are tried of a number of them: eighths, and one."""
    return (
        sorted({max(round(units * eighth / EIGHTHS), 1) for eighth in range(1, EIGHTHS)} - {units}) if units > 1 else []
    )


def splits_of(
    search: SplitSearch, setups: Sequence[TrainingSetup], chips: int, unit: int, rolling: int | None = None
) -> list[Split]:
    """Find the best split of each way and each share of `chips` in whole units, the shortest iteration first. `rolling`: the only share, if stated."""
    found = (
        list(colocated(search, setups, chips))
        if COLOCATED in search.job.spec.ways or search.job.spec.algorithm == "dpo"
        else []
    )
    system, scaleout = setups[0].system, setups[0].scaleout
    shares = [count * unit for count in shares_of(chips // unit)] if rolling is None else [rolling]
    for share in shares:
        found += separate(search, setups, chips - share, (system, scaleout, share))
    best: dict[tuple[str, int], Split] = {}
    for split in found:
        key = split.way, split.update.chips
        if key not in best or split.iteration_s < best[key].iteration_s:
            best[key] = split
    return sorted(best.values(), key=lambda split: split.iteration_s)


def colocated(search: SplitSearch, setups: Iterable[TrainingSetup], chips: int) -> Iterator[Split]:
    """Yield the splits in which one pool of `chips` takes turns; the only ones where responses are given."""
    spec = search.job.spec
    for setup in setups:
        update = search.update(setup, chips)
        if update is None:
            continue
        if spec.algorithm == "dpo":
            pools: Sequence[RolloutPool | None] = (None,)
        else:
            held = held_in_rollout(update)
            able = [p for p in spec.rollout_precision if setup.system.serves(p)]
            pools = [RolloutPool(setup.system, setup.scaleout, chips, precision, held) for precision in able]
        yield from (found for pool in pools if (found := search.split(COLOCATED, update, pool)) is not None)


def separate(
    search: SplitSearch,
    setups: Iterable[TrainingSetup],
    chips: int,
    rollout: tuple[SystemFacts, ScaleOut, int],
    line: Line | None = None,
) -> Iterator[Split]:
    """Yield the splits with `chips` that update beside a rollout pool (system, network, chips), in each way that the job allows.

    `line`: joins the sites of both pools, where they stand at two.
    """
    spec, (system, scaleout, rolling) = search.job.spec, rollout
    ways = [way for way in spec.ways if way != COLOCATED]
    if spec.algorithm == "dpo" or not ways:
        return
    pools = [RolloutPool(system, scaleout, rolling, p, line=line) for p in spec.rollout_precision if system.serves(p)]
    for setup in setups:
        update = search.update(setup, chips)
        if update is not None:
            yield from (
                found for way in ways for pool in pools if (found := search.split(way, update, pool)) is not None
            )
