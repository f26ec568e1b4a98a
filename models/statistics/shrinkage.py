"""Strength of shrinkage by level: how far constants of one kind may leave their priors, chosen by what groups left out have to say.

A level holds constants of one kind, such as the factors of chip generations on compute. It knows no chip and no file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Bools, Floats, sum_of
from models.statistics.fitting import Linearised, group_weights

ROWS = "rows"  # level of the measurements themselves: how much they count against all priors
STEPS = (2.0, 0.5)  # by which a strength is tried
LEAST, MOST = 0.25, 4.0  # spreads over those of the priors between which a strength is sought
LEAST_GAIN = 1e-3  # gain in the loss of a row, below which a strength stays as it is
SWEEPS = 3


def shrunk(at: Linearised, strengths: Mapping[str, float], level_of: Callable[[str], str]) -> Linearised:
    """Scale the spreads of the priors by the strength of their level, and the squared weights of the rows by that of `ROWS`; 1 where none is given.

    Shapes: as the fit. Units: [1]. Reference: Gelman and Hill, Data Analysis Using Regression and Multilevel Models (2007), chapter 12.

    >>> from models.statistics.fitting import Prior
    >>> at = Linearised(lambda c: np.zeros(1), np.zeros(1), np.ones(1), {"a": Prior(1.0, 0.2)}, {"a": 1.0}, np.ones((1, 1)))
    >>> shrunk(at, {"compute": 2.0}, lambda name: "compute").priors["a"].spread
    0.4
    """
    priors = {
        name: replace(prior, spread=prior.spread * strengths.get(level_of(name), 1.0))
        for name, prior in at.priors.items()
    }
    return replace(at, priors=priors, weights=at.weights * np.sqrt(strengths.get(ROWS, 1.0)))


@dataclass(frozen=True, slots=True)
class Tangent:
    """Normal equations of the rows of each fold at a fit, from which a fit without a fold follows by one small system.

    The robust weights 1 / (1 + (r/s)^2) come from the fit to all rows.
    """

    slope: Floats  # rows x constants
    missed: Floats  # ln(predicted / measured) at the fit
    scale: Floats
    outs: Sequence[Bools]  # rows of each fold
    normals: Floats  # fold x constants x constants
    pulls: Floats  # fold x constants
    off: Floats  # distance of the transformed constants from the centres of their priors, at the fit
    room: Floats  # up to the physical bounds

    @classmethod
    def of(cls, at: Linearised, folds: Sequence[str]) -> Tangent:
        """Sum up the normal equations of each fold."""
        missed = at.predict(at.values) - at.log_measured
        scale = np.broadcast_to(np.asarray(at.scale, float), missed.shape)
        weight = (at.weights / scale) ** 2 / (1.0 + (missed / scale) ** 2)
        labels = np.asarray(folds, dtype=str)
        outs = [labels == fold for fold in sorted(set(labels.tolist()))]
        weighted = at.slope * weight[:, None]
        free = [(prior.to_free(at.values[name]), prior) for name, prior in at.priors.items()]
        return cls(
            at.slope, missed, scale, outs,
            np.stack([weighted[out].T @ at.slope[out] for out in outs]), np.stack([weighted[out].T @ missed[out] for out in outs]),
            np.array([x - prior.to_free(prior.centre) for x, prior in free]),
            np.array([prior.to_free(prior.upper) - x if np.isfinite(prior.upper) else np.inf for x, prior in free]),
        )  # fmt: skip

    def left_out(self, spreads: Floats, rows: float) -> Floats:
        """Predict ln(predicted / measured) of every row by the fit without its fold, at these spreads of the priors."""
        precision, found = spreads**-2.0, np.empty_like(self.missed)
        normal, pull = self.normals.sum(axis=0), self.pulls.sum(axis=0)
        for out, own, own_pull in zip(self.outs, self.normals, self.pulls, strict=True):
            system = rows * (normal - own) + np.diag(precision)
            step = np.linalg.solve(system, -(rows * (pull - own_pull) + precision * self.off))
            found[out] = self.missed[out] + self.slope[out] @ np.minimum(step, self.room)
        return found


def loss(missed: Floats, scale: Floats, votes: Floats) -> float:
    """Compute the mean of ln(1 + (r/s)^2), weighed by `votes`.

    Shapes: one axis each. Units: ln(predicted / measured) [1]. Reference: Holland and Welsch (1977) (Cauchy loss).

    >>> loss(np.array([0.0, 1.0]), np.ones(2), np.array([1.0, 1.0])).__round__(4)
    0.3466
    """
    return float(np.average(np.log1p((missed / scale) ** 2), weights=votes))


def chosen_strengths(
    at: Linearised, level_of: Callable[[str], str], leave_outs: Sequence[Sequence[str]], groups: Sequence[str]
) -> dict[str, float]:
    """Choose the strength of each level by the least loss of rows left out, summed over several ways of leaving out.

    Strengths are doubled or halved one after another, and change only where that pays. Rows of a group weigh 1/sqrt(n) each, so that a
    large group does not stand for all. Predictions are taken along their slopes, so that no refit needs the models.
    Shapes: a fold of every row by way, and a group of every row. Units: [1].
    Reference: Stone, J. Royal Statistical Society B 36 (1974) (cross-validatory choice); `Tangent`.

    >>> from models.statistics.fitting import Prior
    >>> at = Linearised(lambda c: np.full(4, np.log(c["a"])), np.full(4, 0.5), np.ones(4), {"a": Prior(1.0, 0.05)}, {"a": 1.0}, np.ones((4, 1)))
    >>> chosen_strengths(at, lambda name: "all", [["x", "y", "z", "x"]], list("abcd"))["all"] > 1.0
    True
    """
    tangents, votes = [Tangent.of(at, folds) for folds in leave_outs], group_weights(groups)
    levels = [level_of(name) for name in at.priors]
    spreads = np.array([prior.spread for prior in at.priors.values()])

    def cost(strengths: Mapping[str, float]) -> float:
        each = spreads * np.array([strengths[level] for level in levels])
        return sum_of(loss(t.left_out(each, strengths[ROWS]), t.scale, votes) for t in tangents)

    found = dict.fromkeys((ROWS, *sorted(set(levels))), 1.0)
    best = cost(found)
    for _ in range(SWEEPS):
        before = best
        for level in found:
            for step in STEPS:
                while LEAST <= (tried := found[level] * step) <= MOST:
                    here = cost({**found, level: tried})
                    if here > best - LEAST_GAIN * len(tangents):
                        break
                    best, found[level] = here, tried
        if best > before - LEAST_GAIN:
            break
    return found
