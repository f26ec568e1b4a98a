"""Draw scenarios whose demand has a factor of its own in every window of the calendar, with factors on prices and times of delivery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from models.arrays import Floats, Ints
from models.statistics.sampling import triangular
from planner.problem.facts import OfferFacts, ResolvedSpec
from planner.problem.forecasts.demand import stream
from planner.problem.scenarios import Scenarios, demand_by_window, draw, uncertain_prices


@dataclass(frozen=True, slots=True)
class Drawn:
    """Scenarios, and the factor on the demand of each workload in every window, [scenario, window].

    `lead_s`: time from an order to its delivery of each offer whose systems may be late, [scenario]; all orders of an offer share it, with tiers of KV
    cache or without.
    """

    scenarios: Scenarios
    growth: Mapping[str, Floats]
    lead_s: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def prices(self) -> Floats:
        """Factors on the uncertain prices, [scenario, price]."""
        return _columns(self.scenarios.prices, self.count)

    @property
    def leads(self) -> Floats:
        """Times of delivery, [scenario, offer]."""
        return _columns(self.lead_s, self.count)

    @property
    def count(self) -> int:
        """Number of scenarios."""
        return self.scenarios.count

    def paired(self, performance: Ints, growth: Floats, prices: Ints, leads: Ints) -> Drawn:
        """Build the scenarios whose errors come from the draws `performance`, prices and deliveries from others, with factors on demand [scenario, workload, window]."""
        drawn = self.scenarios
        found = replace(
            drawn,
            demand={name: np.ones(len(performance)) for name in drawn.demand},
            serving={chip: {label: v[performance] for label, v in each.items()} for chip, each in drawn.serving.items()},
            training={run: values[performance] for run, values in drawn.training.items()},
            prices={path: values[prices] for path, values in drawn.prices.items()},
            count=len(performance),
        )  # fmt: skip
        late = {path: values[leads] for path, values in self.lead_s.items()}
        return Drawn(found, {name: growth[:, w] for w, name in enumerate(self.growth)}, late)


def drawn(problem: ResolvedSpec, count: int, seed: int) -> Drawn:
    """Draw scenarios of a problem with a block `robust`, which names its uncertainties."""
    scenarios = draw(problem, count, seed)
    growth = {
        w.name: demand_by_window(problem, w, count, seed)
        if w.spec.demand.forecast is not None
        else np.repeat(scenarios.demand[w.name][:, None], problem.calendar.windows, axis=1)
        for w in problem.serving
    }
    return Drawn(
        scenarios, growth, {offer.order: _lead(offer, count, seed) for offer in problem.offers if offer.is_late}
    )


def _lead(offer: OfferFacts, count: int, seed: int) -> Floats:
    """Draw the time from an order to its delivery, triangular, [scenario] [s]."""
    assert offer.lead_s is not None
    return np.asarray(triangular(stream(seed, f"delivery {offer.order}").random(count), *offer.lead_s))


def _columns(values: Mapping[str, Floats], count: int) -> Floats:
    return np.array(list(values.values())).reshape(-1, count).T


def as_predicted(problem: ResolvedSpec) -> Drawn:
    """Return the one scenario in which all is as predicted."""
    ones = {w.name: np.ones(1) for w in problem.serving}
    prices = {path: np.ones(1) for path, _ in uncertain_prices(problem)}
    late = {o.order: np.array([o.lead_s[1]]) for o in problem.offers if o.lead_s is not None and o.is_late}
    growth = {name: np.ones((1, problem.calendar.windows)) for name in ones}
    return Drawn(Scenarios(ones, {}, {}, prices, 1), growth, late)
