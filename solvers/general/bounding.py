"""Keep the best bound of a large program: from duals of merged slots, placed on single slots, then by steps along the supergradient."""

from __future__ import annotations

import math
from dataclasses import dataclass

from solvers.arrays import Floats
from solvers.general.aggregation import Merged
from solvers.general.dual_bound import DualBound
from solvers.general.dual_placement import placed
from solvers.general.merged_lp import MergedLp, solve_merged_lp
from solvers.general.planning import say
from solvers.general.settings import GeneralSettings
from solvers.interface import Options
from solvers.mip import relative_gap


@dataclass(slots=True)
class Bounding:
    """The best bound so far, of the minimised objective, and the duals that prove it. `sign`: -1 where the objective is maximised."""

    relaxation: DualBound
    sign: float
    options: Options
    begin: float
    settings: GeneralSettings
    bound: float = -math.inf
    duals: Floats | None = None

    def relaxed(self, merged: Merged, rough: bool) -> MergedLp | None:
        """Solve the LP of a merged program; None where time is up first."""
        found = solve_merged_lp(merged, self.settings.merged_lp_share * self._left_s(), rough=rough)
        if found is None:
            self.options.note_time_up()
        return found

    def raise_by(self, solved: MergedLp | None) -> None:
        """Raise the bound by the duals of a merged program."""
        if solved is None:
            return
        merged = solved.merged
        y = placed(self.relaxation.structure, merged.spread_duals(solved.duals), self.relaxation.upper)
        found, _ = self.relaxation.at(y, self._left_s)
        if found > self.bound:
            self.bound, self.duals = found, y
        say(self.options, f"bound {self.sign * found:,.6g} by {merged.occurring():,} columns of merged slots")

    def climb(self, value: float, gap: float, limits: Options) -> None:
        """Raise the bound by supergradient steps towards the value of a plan, after Polyak (1969), until time is up or the gap is reached."""
        if self.duals is None or not math.isfinite(self.bound) or not math.isfinite(value):
            return
        relaxation, factor, slope = self.relaxation, self.settings.step, None

        def left_s() -> float:
            return limits.left_s(self.begin)

        while left_s() > 0 and relative_gap(value, self.bound) > gap and factor > self.settings.least_step:
            if slope is None:
                _, x = relaxation.at(self.duals, left_s)
                slope = relaxation.slope(self.duals, x)
            direction, norm = slope
            if norm <= 0:
                return
            trial = relaxation.projected(self.duals + factor * (value - self.bound) / norm * direction)
            found, x = relaxation.at(trial, left_s)
            if found > self.bound:
                self.bound, self.duals, slope, factor = found, trial, relaxation.slope(trial, x), 1.5 * factor
                continue
            factor *= 0.5

    def _left_s(self) -> float:
        return self.options.left_s(self.begin)
