"""Levels of prediction errors: how far whole sources, chips and engines differ, and how far runs within them. It knows no chip and no file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats

FARTHEST = (
    4.0  # robust standard deviations beyond which an error counts as that far, so that single rows decide nothing
)
RESIDUAL = "residual"  # name of the level of single runs
_LOG_SPREADS = (-6.0, 2.0)  # between which the logarithm of a standard deviation is sought


def clipped(missed: ArrayLike) -> Floats:
    """Draw errors beyond FARTHEST robust standard deviations of their median in to that:  1.4826 median |e - median e|.

    Shapes: one axis. Units: as the errors. Reference: Huber and Ronchetti, Robust Statistics, 2nd ed. (2009), chapter 1 (winsorising).

    >>> bool(clipped([-0.1, 0.0, 0.1, 50.0]).max() < 1.0)
    True
    """
    errors = np.asarray(missed, float)
    middle = np.median(errors)
    reach = FARTHEST * 1.4826 * np.median(np.abs(errors - middle))
    found: Floats = np.clip(errors, middle - reach, middle + reach) if reach > 0.0 else errors
    return found


def level_spreads(missed: ArrayLike, levels: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Estimate the standard deviation of each level of errors, and of single runs, by restricted maximum likelihood:

    e = mu + sum over levels of u_level[group] + r,  u ~ N(0, s_level^2),  r ~ N(0, s^2). `levels` names the group of every error by level;
    levels may cross (a chip in several sources). Returns {level: s_level, ..., "residual": s}.
    Shapes: errors along one axis. Units: ln(measured / predicted) [1]. Errors far out are drawn in by `clipped` first.
    Reference: Patterson and Thompson, Biometrika 58 (1971); Searle, Casella and McCulloch, Variance Components, Wiley (1992), chapter 6.

    >>> rng = np.random.default_rng(1)
    >>> sources = np.repeat(np.arange(60), 20)
    >>> missed = rng.normal(0, 0.3, 60)[sources] + rng.normal(0, 0.1, 1200)
    >>> {name: round(s, 1) for name, s in level_spreads(missed, {"source": [str(s) for s in sources]}).items()}
    {'source': 0.3, 'residual': 0.1}
    """
    errors = clipped(missed)
    names, members, owner = list(levels), [], []
    for k, name in enumerate(names):
        _, inverse = np.unique(np.asarray(levels[name], dtype=str), return_inverse=True)
        members.append(np.eye(int(inverse.max()) + 1)[inverse])
        owner += [k] * members[-1].shape[1]
    design, count = np.concatenate([*members, np.zeros((len(errors), 0))], axis=1), len(errors)
    inner = np.stack([np.ones(count), errors])
    inside, across, alone = design.T @ design, inner @ design, inner @ inner.T
    level_of = np.array(owner, dtype=int)

    def loss(logs: Floats) -> float:
        """Compute twice the negative restricted log-likelihood; V^-1 by the matrix inversion lemma."""
        residual = np.exp(logs[-1])
        root = np.exp(logs[level_of]) / residual
        core = np.eye(len(root)) + root[:, None] * inside * root
        lower = np.linalg.cholesky(core)
        half = np.linalg.solve(lower, (across * root).T)
        (ones, cross), (_, square) = (alone - half.T @ half) / residual**2
        quadratic = square - cross**2 / ones
        determinant = 2.0 * count * logs[-1] + 2.0 * np.sum(np.log(np.diag(lower)))
        return float(determinant + np.log(ones) + quadratic)

    start = np.log(max(float(np.std(errors)), 1e-2)) - 0.5 * np.ones(len(names) + 1)
    from scipy.optimize import minimize  # slow to import

    found = minimize(loss, np.clip(start, *_LOG_SPREADS), bounds=[_LOG_SPREADS] * len(start), method="L-BFGS-B")
    return {name: float(np.exp(log)) for name, log in zip((*names, RESIDUAL), found.x, strict=True)}


def row_weights(groups: Sequence[str], shared: float) -> Floats:
    """Weigh each row by what it adds on the next group:  1 / (1 + (n - 1) rho)  in a group of n rows.

    rho = 0, where rows of a group are no more alike than others, weighs rows alike; rho = 1 weighs groups alike.
    Shapes: one axis. Units: [1]. Reference: Kish, Survey Sampling, Wiley (1965), section 5.4 (design effect of clusters).

    >>> row_weights(["a", "a", "a", "b"], 1.0).round(2).tolist(), row_weights(["a", "a", "b"], 0.0).tolist()
    ([0.33, 0.33, 0.33, 1.0], [1.0, 1.0, 1.0])
    """
    _, inverse, counts = np.unique(np.asarray(groups, dtype=str), return_inverse=True, return_counts=True)
    found: Floats = np.asarray(1.0 / (1.0 + (counts[inverse] - 1.0) * shared), float)
    return found


def weighted_quantiles(values: ArrayLike, weights: ArrayLike, levels: ArrayLike) -> Floats:
    """Compute quantiles of weighted values at rank q (1 + 1/n) of their cumulated weight, n = (sum w)^2 / sum w^2 values' worth.

    With equal weights these are the quantiles at rank q (n + 1), which hold for the next value and not only for those seen. With rows
    weighed by `row_weights`, they hold for a row of a group that was not seen.
    Shapes: values and weights along one axis, levels any. Units: as the values.
    Reference: Dunn, Wasserman and Ramdas, J. American Statistical Association 118 (2023) (prediction for a new group, pooled CDFs).

    >>> weighted_quantiles([0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.0, 1.0], [0.2, 0.5]).round(3).tolist()
    [0.0, 1.5]
    """
    values, weights = np.asarray(values, float), np.asarray(weights, float)
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    seen = weights.sum() ** 2 / np.sum(weights**2)
    found: Floats = np.interp(np.asarray(levels, float) * (1.0 + 1.0 / seen), share, values[order])
    return found


def share_with_error(inside: ArrayLike, groups: Sequence[str], weights: ArrayLike | None = None) -> tuple[float, float]:
    """Compute a share over rows and its standard error where rows come in groups:  sum w i / sum w,  by the linearised ratio over groups.

    Shapes: one axis. Units: [1]. With one group the error is infinite.
    Reference: Cochran, Sampling Techniques, 3rd ed. (1977), section 9A.2 (clusters of unequal size).

    >>> share_with_error([True, True, False, True], ["a", "b", "c", "d"])[0]
    0.75
    """
    hit = np.asarray(inside, float)
    weight = np.ones_like(hit) if weights is None else np.asarray(weights, float)
    share = float(np.sum(weight * hit) / weight.sum())
    _, group = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    count = int(group.max()) + 1
    if count < 2:
        return share, float("inf")
    excess = np.bincount(group, weight * (hit - share))
    return share, float(np.sqrt(count / (count - 1.0) * np.sum(excess**2)) / weight.sum())
