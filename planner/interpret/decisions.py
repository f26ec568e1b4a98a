"""Decisions of a solution, in the units of the problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.candidates.fleet_options import FleetOption
from planner.formulate.formulation import Formulation
from planner.interpret.electricity import MeterDecisions
from planner.interpret.lines import LineDecisions
from planner.interpret.spread import spread_rows
from planner.problem.facts import Problem
from planner.problem.phases import Term


@dataclass(frozen=True, slots=True)
class Decisions:
    """What the solver chose: `count` per holding, `active` replicas [point, slot], `flow` requests/s [arc, slot]."""

    problem: Problem
    form: Formulation
    count: np.ndarray
    active: np.ndarray
    flow: np.ndarray
    used: tuple[int, ...]  # points at work in any slot
    opened: np.ndarray  # [site]
    lines: LineDecisions | None = None  # None where there is no choice of lines
    meters: MeterDecisions | None = None  # None where no site's electricity is a decision

    def spread(self) -> list[dict[str, Any]]:
        return spread_rows(self.problem, self.form.arcs, self.flow)

    def held(self) -> Iterator[tuple[Term, int, FleetOption, np.ndarray]]:
        """(when and at what price, count, fleet option, mask of its slots) of everything obtained."""
        for u, (k, term) in enumerate(self.form.holdings):
            if self.count[u]:
                yield term, int(self.count[u]), self.form.fleet_options[k], term.mask(self.problem.calendar)

    def most_held(self) -> dict[int, tuple[FleetOption, int]]:
        """FleetOptions, by identity, with the most systems that are held of each at once."""
        most: dict[int, tuple[FleetOption, np.ndarray]] = {}
        for _, count, option, mask in self.held():
            _, held = most.setdefault(id(option), (option, np.zeros(len(mask), dtype=int)))
            held += count * mask
        return {key: (option, int(held.max())) for key, (option, held) in most.items()}

    def site_power_w(self, owned_only: bool) -> np.ndarray:
        """[site, slot] power at the meter [W]; with `owned_only` what counts against a site's limit."""
        place = {site.region: r for r, site in enumerate(self.problem.sites)}
        power = np.zeros((len(place), self.problem.calendar.slots))
        for _, count, option, mask in self.held():
            if option.owned or not owned_only:
                power[place[option.site.region], mask] += count * option.idle_at_meter_w
        for p in self.used:
            for use in self.form.points[p].uses:
                if use.option.owned or not owned_only:
                    power[place[use.option.site.region]] += use.extra_it_w * use.option.site.pue * self.active[p]
        return power
