"""Prices of all slots made better for the bound, where they come from merged ones.

The bound is concave in the prices alpha of systems and sigma of watts in each slot, omega of the width that a job keeps throughout, pi of supply, and
the prices of requests follow (`Reformulation.completed`). With what is used where everything is done where it costs least (used.py), two moves take turns:

    profile  alpha_{k,t} <- alpha_{k,t} (used_{k,t} / mean_t used_{k,t})^step,  omega of the same fleet option by the width kept, scaled so that what a system
             earns in a window stays;  sigma_{r,t} alike by watts
    totals   pi_s <- pi_s (used_s / supply_s)^step,  sigma_r <- sigma_r (used_r / limit_r)^step,  both with use weighted by what it pays, and alpha
             and omega scaled by the most with which no holding earns more than it costs

Multiplicative weights along a smoothed supergradient: Arora, Hazan, Kale, Theory of Computing 8 (2012). A step is kept where it proves more; where
neither does any longer, what shares with the least is drawn narrower: Nesterov, Mathematical Programming 103 (2005), for why wide comes first.
A site's limit counts as far as the site is open, by its fixed cost and what its power is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from solvers.arrays import Floats
from solvers.decomposition.lagrangian_bound import Duals, LagrangianBound
from solvers.decomposition.smoothed_response import SmoothedResponse, smoothed_response

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Reformulation

STEP = 8e-3  # the first one, of each width
LONGER, SHORTER, SHORTEST = (
    1.3,
    0.4,
    5e-4,
)  # times its length after one that proves more or less, and the length at which none follows
LITTLE = 1e-5  # of the bound: where a step gains less, none follows
ALIKE = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4)  # widths: what costs so much more, relatively, has 1 / e of the share
LEAST, MOST = 0.2, 5.0  # between which use is counted, of the mean or of the limit
EVEN, NOTHING = (
    0.1,
    1e-3,
)  # of the mean or of the limit, and systems or watts of each slot, that count as used in any case
SCARCE = 2e-3  # of what a system costs, that one is worth at least where more are used than are supplied
AGAIN, SECOND = 3e-5, 1  # of the bound: where a round over the widths gains more, another follows from this width on
GATES = 0.1  # of what demand pays for open gates at the merged prices, that is kept, where that proves more than nothing of it


class DualAscent:
    """On the way up: the best `duals` so far, and what they prove."""

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
        )  # what a system costs
        self._gates = GATES
        self._completed, self.duals, self.bound = self._evaluate(start, GATES)
        self._choose_gate_share()
        self._width, self._before, self._first = 0, self.bound.value, True  # of these rounds over the widths
        self._restart_steps()

    def run(self, enough: Callable[[], bool]) -> None:
        """As long as steps gain, and it is not enough."""
        response, moves = self._respond(), (self._move_profiles, self._move_totals)
        while self._width < len(ALIKE) and not enough():
            kind = self._turn
            moved = moves[kind](response, self._steps[kind])
            completed, full_duals, bound = self._evaluate(moved, self._gates)
            gain = (bound.value - self.bound.value) / max(abs(self.bound.value), 1.0)
            self._steps[kind] *= LONGER if gain > 0 else SHORTER
            if gain > 0:
                self._at, self._completed, self.duals, self.bound = moved, completed, full_duals, bound
                self._dec.progress.report(bound=bound.value)
            self._done[kind] = 0 < gain < LITTLE or self._steps[kind] < SHORTEST
            self._turn = kind if self._done[1 - kind] else 1 - kind
            narrower = all(self._done)
            if narrower:
                self._width += 1
                if self._width == len(ALIKE) and self.bound.value > self._before + AGAIN * abs(self._before):
                    self._width, self._before, self._first = SECOND, self.bound.value, False
                self._restart_steps()
                self._choose_gate_share()
            if gain > 0 or narrower:
                response = self._respond()

    def _restart_steps(self) -> None:
        self._turn, self._steps, self._done = 0, [STEP, STEP], [False, False]

    def _respond(self) -> SmoothedResponse:
        return smoothed_response(self._dec, self._completed, self.bound.pricing_reduced_cost, self._alike)

    @property
    def _alike(self) -> float:
        return ALIKE[min(self._width, len(ALIKE) - 1)]

    def _move_profiles(self, response: SmoothedResponse, step: float) -> Duals:
        """Prices moved to the slots, and to the jobs that keep systems throughout, that use more."""
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
        """Prices of supply and of a site's power moved by how much of it is used, and what systems earn with them."""
        at, dec, data, (option, _) = self._at, self._dec, self._dec.data, self._width_index
        earned = self._earnings(at)
        paid = (at.alpha * response.systems).sum(axis=1)
        np.add.at(paid, option, -at.rows[self._widths] * (self._width_of @ response.job_columns))
        held = np.divide(
            paid, earned.sum(axis=1), out=np.zeros(len(paid)), where=earned.sum(axis=1) > 0
        )  # systems, where they earn
        wanted, limit = self._supplied @ held, dec.first_stage.row_upper[self._supplies]
        price = np.maximum(-at.rows[self._supplies], np.where(wanted > limit, SCARCE * self._usual, 0.0)) * _weight(
            wanted, limit, step
        )
        idle = np.zeros(data.sites)
        np.maximum.at(each := np.zeros(len(held)), data.holding_option, data.holding_power_w)
        np.add.at(idle, data.option_site, each * held)
        limits = dec.power_limit.reshape(data.sites, -1)
        limits = np.broadcast_to(np.where(np.isfinite(limits), limits, 0.0), (data.sites, data.windows))[
            :, dec.view.window
        ]
        worth = (at.sigma * limits).sum(axis=1) * (
            1.0 if self._first else self._open_share()
        )  # as if all sites were open it gets further at first
        factor = np.where(
            limits.any(axis=1), _weight((at.sigma * (response.watts + idle[:, None])).sum(axis=1), worth, step), 1.0
        )
        rows = at.rows.copy()
        rows[self._supplies] = -price
        scale = self._scale(earned, at.rows - rows, (at.sigma @ self._windows) * (factor - 1)[:, None])
        rows[self._widths] *= scale[option]
        return replace(at, alpha=at.alpha * scale[:, None], sigma=at.sigma * factor[:, None], rows=rows)

    def _open_share(self) -> Floats:
        """[R]: how far open each site is, by what its power is worth beyond its fixed cost."""
        first_stage = self._dec.first_stage
        place = first_stage.columns["open"]
        beyond, fixed = np.append(self.bound.reduced_cost, -np.inf)[place], np.append(first_stage.cost, 1.0)[place]
        return 1 / (1 + np.exp(np.clip(beyond / np.maximum(self._alike * fixed, 1e-300), -50.0, 50.0)))

    def _earnings(self, duals: Duals) -> Floats:
        """[K, V]: what a system earns in each window, by its slots and by the jobs that keep it."""
        earned = duals.alpha @ self._windows
        np.add.at(earned, self._width_index, -duals.rows[self._widths])
        return earned

    def _scale(self, earned: Floats, dearer: Floats, power: Floats) -> Floats:
        """[K]: the most by which what systems earn can be scaled where rows of supply are so much dearer, and watts [R, V], that no holding earns
        more beyond its cost than before."""
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
        """[rows of supply, K]: 1 where the row counts systems of the fleet option."""
        n, fleet_options = self._dec.first_stage.columns["n"], len(self._dec.data.option_site)
        of = np.full(self._dec.first_stage.size, -1)
        of[n[n >= 0]] = self._dec.data.holding_option[n >= 0]
        part = self._dec.first_stage.matrix[self._supplies].tocoo()
        pairs = np.unique(np.column_stack([part.row, of[part.col]])[of[part.col] >= 0], axis=0)
        return sparse.csr_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(len(self._supplies), fleet_options))

    def _choose_gate_share(self) -> None:
        """Whether what demand pays for gates is kept: at first it often proves more, and later on less."""
        for gates in {0.0, GATES} - {self._gates}:
            completed, full_duals, bound = self._evaluate(self._at, gates)
            if bound.value > self.bound.value:
                self._gates, self._completed, self.duals, self.bound = gates, completed, full_duals, bound

    def _evaluate(self, duals: Duals, gates: float) -> tuple[Duals, Duals, LagrangianBound]:
        completed = self._dec.complete_duals(duals)
        full_duals = completed.mixed(replace(duals, beta=completed.beta), 1 - gates) if gates else completed
        return completed, full_duals, self._dec.lagrangian_bound(full_duals)


def _weight(response: Floats, of: Floats, step: float) -> Floats:
    return np.clip((response + EVEN * of + NOTHING) / ((1 + EVEN) * of + NOTHING), LEAST, MOST) ** step


def _ratio(before: Floats, after: Floats) -> Floats:
    return np.divide(before, after, out=np.ones_like(before), where=after > 0)
