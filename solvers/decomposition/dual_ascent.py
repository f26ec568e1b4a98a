"""Dual ascent: improve the Lagrangian bound of very large programs, whose duals come from merged slots, over all slots.

The bound is concave in the duals: alpha of systems and sigma of watts in each slot, omega of the width that a job keeps throughout, and
pi of supply; the duals of requests follow from them (`Reformulation.complete_duals`). Use is the smoothed response to the duals: work
goes where it costs least (`smoothed_response.py`). Two moves alternate:

    profile  alpha_{k,t} <- alpha_{k,t} (used_{k,t} / mean_t used_{k,t})^step,  omega of the same fleet option by the width kept, scaled
             so that the earnings of a system in a window stay;  sigma_{r,t} likewise by watts
    totals   pi_s <- pi_s (used_s / supply_s)^step,  sigma_r <- sigma_r (used_r / limit_r)^step,  with use weighted by what it pays;
             alpha and omega scaled by the largest factor at which no holding earns more than it costs

These are multiplicative weights along a smoothed supergradient: Arora, Hazan, Kale, Theory of Computing 8 (2012). A step is accepted if
the bound rises. When neither move raises it further, the smoothing width shrinks; why wide comes first: Nesterov, Mathematical
Programming 103 (2005). A site's limit counts as far as the site is open, by its fixed cost and the value of its power.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from solvers.arrays import Floats
from solvers.decomposition.lagrangian_bound import Duals, LagrangianBound
from solvers.decomposition.smoothed_response import SmoothedResponse, smoothed_response

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Reformulation


@dataclass(frozen=True, slots=True)
class DualAscentSettings:
    """Tuning constants of the dual ascent."""

    # cost difference, relative, at which an alternative gets 1 / e of the work of the cheapest
    smoothing_widths: tuple[float, ...] = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)
    first_step: float = 8e-3  # exponent of the first step of each width
    step_growth: float = 1.3  # factor on the step after the bound rose
    step_shrink: float = 0.4  # factor on the step after it did not
    least_step: float = 5e-4  # exponent below which a move ends
    least_gain: float = 1e-5  # gain, relative to the bound, below which a move ends
    least_ratio: float = 0.2  # least ratio of use to its mean or limit that a step takes into account
    largest_ratio: float = 5.0  # largest such ratio
    even_use_share: float = 0.1  # use added to every slot, as a share of the mean or limit
    even_use: float = 1e-3  # use added to every slot, in systems or watts of the scaled units
    least_supply_price: float = 2e-3  # least dual of a supply that is exceeded, as a share of the cost of a system
    repeat_gain: float = 3e-5  # gain, relative to the bound, of a pass over the widths above which another pass follows
    repeat_from: int = 1  # width with which that pass begins
    gate_share: float = 0.1  # share of the merged duals of gates that is kept, where that raises the bound


SETTINGS = DualAscentSettings()


class DualAscent:
    """State of the ascent: the best `duals` so far, and the `bound` that they prove."""

    def __init__(self, dec: Reformulation, start: Duals) -> None:
        self._dec, self._at, first_stage = dec, start, dec.first_stage
        self._windows = np.zeros((dec.view.slots, dec.data.windows))
        self._windows[np.arange(dec.view.slots), dec.view.window] = 1.0
        width = [(row, *index[1:]) for row, (block, index) in enumerate(first_stage.keys) if block == "width"]
        self._widths, *place = np.array(width, dtype=np.int64).reshape(-1, 3).T
        self._width_index = tuple(place)  # fleet option and window of each row of width
        self._width_of = first_stage.matrix[self._widths].maximum(0.0)
        self._supplies = np.array(
            [row for row, (block, _) in enumerate(first_stage.keys) if block == "supply"], dtype=np.int64
        )
        self._supplied = self._options_supplied()
        self._usual = (
            self._supplied @ dec.option_cost / np.maximum(self._supplied.sum(axis=1), 1.0)
        )  # mean cost of a system
        self._gates = SETTINGS.gate_share
        self._completed, self.duals, self.bound = self._evaluate(start, self._gates)
        self._choose_gate_share()
        self._width, self._before, self._first = 0, self.bound.value, True  # state of this pass over the widths
        self._turn, self._steps, self._done = 0, [0.0, 0.0], [False, False]  # state of the two moves
        self._restart_steps()

    def run(self, enough: Callable[[], bool]) -> None:
        """Take steps until none raises the bound, or `enough` says so."""
        response, moves = self._respond(), (self._move_profiles, self._move_totals)
        while self._width < len(SETTINGS.smoothing_widths) and not enough():
            kind = self._turn
            moved = moves[kind](response, self._steps[kind])
            completed, full_duals, bound = self._evaluate(moved, self._gates)
            gain = (bound.value - self.bound.value) / max(abs(self.bound.value), 1.0)
            self._steps[kind] *= SETTINGS.step_growth if gain > 0 else SETTINGS.step_shrink
            if gain > 0:
                self._at, self._completed, self.duals, self.bound = moved, completed, full_duals, bound
                self._dec.progress.report(bound=bound.value)
            self._done[kind] = 0 < gain < SETTINGS.least_gain or self._steps[kind] < SETTINGS.least_step
            self._turn = kind if self._done[1 - kind] else 1 - kind
            narrower = all(self._done)
            if narrower:
                self._width += 1
                repeat_above = self._before + SETTINGS.repeat_gain * abs(self._before)
                if self._width == len(SETTINGS.smoothing_widths) and self.bound.value > repeat_above:
                    self._width, self._before, self._first = SETTINGS.repeat_from, self.bound.value, False
                self._restart_steps()
                self._choose_gate_share()
            if gain > 0 or narrower:
                response = self._respond()

    def _restart_steps(self) -> None:
        self._turn, self._steps, self._done = 0, [SETTINGS.first_step] * 2, [False, False]

    def _respond(self) -> SmoothedResponse:
        return smoothed_response(self._dec, self._completed, self.bound.pricing_reduced_cost, self._smoothing)

    @property
    def _smoothing(self) -> float:
        return SETTINGS.smoothing_widths[min(self._width, len(SETTINGS.smoothing_widths) - 1)]

    def _move_profiles(self, response: SmoothedResponse, step: float) -> Duals:
        """Shift duals towards the slots, and the jobs that keep systems throughout, that use more."""
        at, windows, mean = self._at, self._windows, response.systems.mean(axis=1)
        option, window = self._width_index
        alpha, sigma = (
            at.alpha * _weight(response.systems, mean[:, None], step),
            at.sigma * _weight(response.watts, response.watts.mean(axis=1)[:, None], step),
        )
        sigma *= _ratio(at.sigma @ windows, sigma @ windows) @ windows.T
        moved = replace(at, alpha=alpha, sigma=sigma, rows=at.rows.copy())
        moved.rows[self._widths] *= _weight(self._width_of @ response.job_columns, mean[option], step)
        scale = _ratio(self._earnings(at), self._earnings(moved))
        moved.rows[self._widths] *= scale[option, window]
        return replace(moved, alpha=alpha * (scale @ windows.T))

    def _move_totals(self, response: SmoothedResponse, step: float) -> Duals:
        """Move the duals of supply and of site power by their use, and scale the duals of systems with them."""
        at, dec, data, (option, _) = self._at, self._dec, self._dec.data, self._width_index
        earned = self._earnings(at)
        paid = (at.alpha * response.systems).sum(axis=1)
        np.add.at(paid, option, -at.rows[self._widths] * (self._width_of @ response.job_columns))
        held = np.divide(
            paid, earned.sum(axis=1), out=np.zeros(len(paid)), where=earned.sum(axis=1) > 0
        )  # systems, where they earn
        wanted, limit = self._supplied @ held, dec.first_stage.row_upper[self._supplies]
        price = np.maximum(
            -at.rows[self._supplies], np.where(wanted > limit, SETTINGS.least_supply_price * self._usual, 0.0)
        ) * _weight(wanted, limit, step)
        idle = np.zeros(data.sites)
        np.maximum.at(each := np.zeros(len(held)), data.holding_option, data.holding_power_w)
        np.add.at(idle, data.option_site, each * held)
        limits = dec.power_limit.reshape(data.sites, -1)
        limits = np.broadcast_to(np.where(np.isfinite(limits), limits, 0.0), (data.sites, data.windows))[
            :, dec.view.window
        ]
        # the first pass gets further with all sites taken as open
        worth = (at.sigma * limits).sum(axis=1) * (1.0 if self._first else self._open_share())
        factor = np.where(
            limits.any(axis=1), _weight((at.sigma * (response.watts + idle[:, None])).sum(axis=1), worth, step), 1.0
        )
        rows = at.rows.copy()
        rows[self._supplies] = -price
        scale = self._scale(earned, at.rows - rows, (at.sigma @ self._windows) * (factor - 1)[:, None])
        rows[self._widths] *= scale[option]
        return replace(at, alpha=at.alpha * scale[:, None], sigma=at.sigma * factor[:, None], rows=rows)

    def _open_share(self) -> Floats:
        """Estimate how far each site [R] is open, by the value of its power beyond its fixed cost."""
        first_stage = self._dec.first_stage
        place = first_stage.columns["open"]
        beyond, fixed = np.append(self.bound.reduced_cost, -np.inf)[place], np.append(first_stage.cost, 1.0)[place]
        return 1 / (1 + np.exp(np.clip(beyond / np.maximum(self._smoothing * fixed, 1e-300), -50.0, 50.0)))

    def _earnings(self, duals: Duals) -> Floats:
        """Sum what a system of each fleet option earns in each window [K, V], in its slots and from jobs that keep it."""
        earned = duals.alpha @ self._windows
        np.add.at(earned, self._width_index, -duals.rows[self._widths])
        return earned

    def _scale(self, earned: Floats, dearer: Floats, power: Floats) -> Floats:
        """Return the largest factor [K] on the earnings of systems at which no holding gains on its cost.

        `dearer`: rise of the duals of first-stage rows; `power` [R, V]: rise of the duals of watts."""
        dec, data = self._dec, self._dec.data
        place, option, covers = dec.first_stage.columns["n"], data.holding_option, data.covers()
        more = np.append(dec.first_stage.matrix.T @ dearer, 0.0)[place] + data.holding_power_w * (
            covers * power[data.option_site[option]]
        ).sum(axis=1)
        now = (covers * earned[option]).sum(axis=1)
        some, scale = (place >= 0) & (now > 0), np.full(len(earned), np.inf)
        np.minimum.at(scale, option[some], np.maximum(1 + more[some] / now[some], 0.0))
        return np.where(np.isfinite(scale), scale, 1.0)

    def _options_supplied(self) -> sparse.csr_array:
        """Build the incidence matrix [rows of supply, K] of supplies and fleet options."""
        n, fleet_options = self._dec.first_stage.columns["n"], len(self._dec.data.option_site)
        of = np.full(self._dec.first_stage.size, -1)
        of[n[n >= 0]] = self._dec.data.holding_option[n >= 0]
        part = self._dec.first_stage.matrix[self._supplies].tocoo()
        pairs = np.unique(np.column_stack([part.row, of[part.col]])[of[part.col] >= 0], axis=0)
        return sparse.csr_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(len(self._supplies), fleet_options))

    def _choose_gate_share(self) -> None:
        """Keep or drop the share of the duals of gates, whichever bound is higher: keeping often helps at first, and later not."""
        for gates in {0.0, SETTINGS.gate_share} - {self._gates}:
            completed, full_duals, bound = self._evaluate(self._at, gates)
            if bound.value > self.bound.value:
                self._gates, self._completed, self.duals, self.bound = gates, completed, full_duals, bound

    def _evaluate(self, duals: Duals, gates: float) -> tuple[Duals, Duals, LagrangianBound]:
        completed = self._dec.complete_duals(duals)
        full_duals = completed.mixed(replace(duals, beta=completed.beta), 1 - gates) if gates else completed
        return completed, full_duals, self._dec.lagrangian_bound(full_duals)


def _weight(response: Floats, of: Floats, step: float) -> Floats:
    s = SETTINGS
    ratio = (response + s.even_use_share * of + s.even_use) / ((1 + s.even_use_share) * of + s.even_use)
    return np.clip(ratio, s.least_ratio, s.largest_ratio) ** step


def _ratio(before: Floats, after: Floats) -> Floats:
    return np.divide(before, after, out=np.ones_like(before), where=after > 0)
