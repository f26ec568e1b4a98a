"""Draw scenarios whose demand has a factor of its own in every window of the calendar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Floats, Ints
from planner.problem.facts import ResolvedSpec
from planner.problem.scenarios import Scenarios, demand_by_window, draw


@dataclass(frozen=True, slots=True)
class Drawn:
    """Scenarios, and the factor on the demand of each workload in every window, [scenario, window]."""

    scenarios: Scenarios
    growth: Mapping[str, Floats]

    @property
    def count(self) -> int:
        """Number of scenarios."""
        return self.scenarios.count

    def paired(self, performance: Ints, growth: Floats) -> Drawn:
        """Build the scenarios whose errors come from the draws `performance`, with factors on demand [scenario, workload, window]."""
        drawn = self.scenarios
        found = replace(
            drawn,
            demand={name: np.ones(len(performance)) for name in drawn.demand},
            serving={chip: {label: v[performance] for label, v in each.items()} for chip, each in drawn.serving.items()},
            training={run: values[performance] for run, values in drawn.training.items()},
            prices={},
            count=len(performance),
        )  # fmt: skip
        return Drawn(found, {name: growth[:, w] for w, name in enumerate(self.growth)})


def drawn(problem: ResolvedSpec, count: int, seed: int) -> Drawn:
    """Draw scenarios of a problem with a block `robust`, which names its uncertainties."""
    scenarios = draw(problem, count, seed)
    growth = {
        w.name: demand_by_window(problem, w, count, seed)
        if w.spec.demand.forecast is not None
        else np.repeat(scenarios.demand[w.name][:, None], problem.calendar.windows, axis=1)
        for w in problem.serving
    }
    return Drawn(scenarios, growth)


def as_predicted(problem: ResolvedSpec) -> Drawn:
    """Return the one scenario in which all is as predicted."""
    ones = {w.name: np.ones(1) for w in problem.serving}
    return Drawn(Scenarios(ones, {}, {}, {}, 1), {name: np.ones((1, problem.calendar.windows)) for name in ones})
