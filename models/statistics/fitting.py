"""Fitting a few shared constants to measured times: robust loss on the logarithm of the ratio, Gaussian priors. It knows no chip and no file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from models.arrays import Floats, Ints

RATIO_SCALE = 0.10  # ln(predicted / measured) beyond which a row counts as an outlier
ANCHOR_SPREAD = 0.15  # how much whole sources differ on one chip and precision, in ln(time)
STEP = 1e-4  # step of the transformed constant, for differences
WARM_ROUNDS = 3
LARGEST_MOVE = 0.5  # move of a transformed constant in one round: slopes do not reach further


@dataclass(frozen=True, slots=True)
class Prior:
    """Belief in a positive constant: centre [its unit], spread of its logarithm or log-odds [1], and a physical upper bound."""

    centre: float
    spread: float
    scale: str = "ln"
    upper: float = float("inf")

    def to_free(self, value: float) -> float:
        """Map the constant to the whole real line."""
        return float(np.log(value / (1.0 - value))) if self.scale == "logit" else float(np.log(value))

    def from_free(self, free: float) -> float:
        """Map a real number back to the constant."""
        return float(1.0 / (1.0 + np.exp(-free))) if self.scale == "logit" else float(np.exp(free))


@dataclass(frozen=True, slots=True)
class Fit:
    """Fitted constants with the standard deviation of their transformed values, and the offsets of anchored groups [ln(time)]."""

    values: Mapping[str, float]
    spreads: Mapping[str, float]
    offsets: Floats
    offset_spreads: Floats
    residuals: Floats  # ln(predicted / measured), offsets included


Predict = Callable[[Mapping[str, float]], Floats]


@dataclass(frozen=True, slots=True)
class Linearised:
    """A finished fit and the slopes at it, from which fits to fewer rows follow without new slopes."""

    predict: Predict
    log_measured: Floats
    weights: Floats
    priors: Mapping[str, Prior]
    values: Mapping[str, float]
    slope: Floats  # rows x constants
    scale: Floats | float = RATIO_SCALE  # ln(predicted / measured) beyond which a row counts as an outlier


def _membership(anchors: Ints | None, rows: int) -> Floats:
    """Build the indicator matrix rows x groups of the group of each row."""
    groups = 0 if anchors is None or not len(anchors) else int(anchors.max()) + 1
    members = np.zeros((rows, groups))
    for group in range(groups):
        members[anchors == group, group] = 1.0
    return members


def _gauss_newton(
    residuals: Callable[[Floats], Floats],
    jacobian: Callable[[Floats], Floats],
    x: Floats,
    squares: Floats,
    rows: int,
    bounds: tuple[Floats, Floats],
) -> Floats:
    """Take one robust Gauss-Newton step, which brings a cold start near the optimum for a single set of slopes."""
    slope, miss = jacobian(x), residuals(x)
    robust = squares.copy()
    robust[:rows] /= np.sqrt(1.0 + miss[:rows] ** 2)
    weighted = slope * robust[:, None]
    step = np.clip(np.linalg.solve(weighted.T @ slope, weighted.T @ miss), -LARGEST_MOVE, LARGEST_MOVE)
    # From a point on its bound the fit would not come away.
    moved: Floats = np.minimum(x - step, 0.5 * (x + bounds[1]))
    return moved


def _bounded_step(normal: Floats, pull: Floats, room: Floats) -> Floats:
    """Take a Newton step no further than `room`: constants that would pass their bound stop there, and the others adapt."""
    stopped = np.zeros(len(pull), bool)
    while True:
        step = np.where(stopped, room, 0.0)
        free = ~stopped
        step[free] = np.linalg.solve(
            normal[np.ix_(free, free)], pull[free] - normal[np.ix_(free, stopped)] @ room[stopped]
        )
        if not np.any(beyond := free & (step > room)):
            return step
        stopped |= beyond


def refit(whole: Linearised, keep: Floats, rounds: int = 4) -> dict[str, float]:
    """Refit the constants to the rows kept: Gauss-Newton steps with the slopes of the whole fit and exact residuals.

    Each round solves the weighted normal equations with the robust weights 1 / (1 + (r/s)^2) of the rows kept, which belong to the loss
    ln(1 + (r/s)^2), and predicts again. A row that is far off loses its say, as published rows of wrong layout or precision should. The rows left out have no say in the loss; only the slopes, which hardly depend on them, were taken once.
    Shapes: keep one flag per row. Units: [1].
    Reference: Holland and Welsch, Communications in Statistics A6 (1977) (iteratively reweighted least squares; Cauchy
    weights).

    >>> predict = lambda c: np.log(c["a"] * np.array([1.0, 2.0, 3.0]))
    >>> priors, measured = {"a": Prior(1.5, 1.0)}, np.log([2.0, 4.0, 60.0])
    >>> whole = Linearised(predict, measured, np.ones(3), priors, {"a": 2.1}, np.ones((3, 1)))
    >>> round(refit(whole, np.array([True, True, False]))["a"], 2)
    2.0
    """
    names = list(whole.priors)
    centres = np.array([whole.priors[n].to_free(whole.priors[n].centre) for n in names])
    uppers = np.array(
        [
            whole.priors[n].to_free(whole.priors[n].upper) if np.isfinite(whole.priors[n].upper) else np.inf
            for n in names
        ]
    )
    precision = np.array([1.0 / whole.priors[n].spread ** 2 for n in names])
    slope, measured, weights = whole.slope[keep], whole.log_measured[keep], whole.weights[keep]
    scale = np.broadcast_to(whole.scale, keep.shape)[keep]
    x = np.array([whole.priors[n].to_free(whole.values[n]) for n in names])
    values = dict(whole.values)
    for _ in range(rounds):
        ratio = whole.predict(values)[keep] - measured
        robust = (weights / scale) ** 2 / (1.0 + (ratio / scale) ** 2)
        normal = (slope * robust[:, None]).T @ slope + np.diag(precision)
        x = x + _bounded_step(normal, -(slope * robust[:, None]).T @ ratio - precision * (x - centres), uppers - x)
        values |= {n: whole.priors[n].from_free(free) for n, free in zip(names, x, strict=True)}
    return values


def along_slopes(at: Linearised) -> Linearised:
    """Replace the predictions of a fit by their tangent:  ln T(x) = ln T(x0) + S (x - x0),  x the transformed constants.

    Shapes: as the fit. Units: [1]. Valid near its values. Reference: Nocedal and Wright, Numerical Optimization, 2nd edition, section 10.3.

    >>> at = Linearised(lambda c: np.log([c["a"]]), np.zeros(1), np.ones(1), {"a": Prior(1.0, 1.0)}, {"a": 2.0}, np.ones((1, 1)))
    >>> along_slopes(at).predict({"a": 3.0}).round(3).tolist()
    [1.099]
    """
    base = at.predict(at.values)
    start = {name: prior.to_free(at.values[name]) for name, prior in at.priors.items()}

    def predict(values: Mapping[str, float]) -> Floats:
        moved = np.array([prior.to_free(values[name]) - start[name] for name, prior in at.priors.items()])
        found: Floats = base + at.slope @ moved
        return found

    return replace(at, predict=predict)


def group_weights(labels: Sequence[str]) -> Floats:
    """Weigh each row so that a large source does not drown the others:  1 / sqrt(rows of its group).

    Shapes: one axis. Units: [1]. Reference: compromise between weighting rows and weighting sources alike.

    >>> group_weights(["a", "a", "a", "a", "b"]).tolist()
    [0.5, 0.5, 0.5, 0.5, 1.0]
    """
    _, inverse, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    return 1.0 / np.sqrt(counts[inverse])


def sensitivity(predict: Predict, priors: Mapping[str, Prior], values: Mapping[str, float], base: Floats) -> Floats:
    """Differentiate ln(time) of each row by each transformed constant, by differences.

    Shapes: rows x constants. Units: ln(time) [1] per transformed unit [1].
    Reference: Nocedal and Wright, Numerical Optimization, 2nd edition, equation 8.1.

    >>> slope = sensitivity(lambda c: np.log([2.0 * c["a"], 1.0]), {"a": Prior(1.0, 0.1)}, {"a": 1.0}, np.log([2.0, 1.0]))
    >>> slope.round(6).tolist()
    [[1.0], [0.0]]
    """
    moved = [{**values, name: prior.from_free(prior.to_free(values[name]) + STEP)} for name, prior in priors.items()]
    if hasattr(predict, "many"):
        return np.asarray((predict.many(moved) - base) / STEP, float).T
    if hasattr(predict, "base"):
        predict.base(values, list(priors))
    columns = [(predict(point) - base) / STEP for point in moved]
    return np.stack(columns, axis=1) if columns else np.zeros((len(base), 0))


def fit(
    predict: Predict, log_measured: Floats, weights: Floats, priors: Mapping[str, Prior], start: Mapping[str, float], *,
    anchors: Ints | None = None, anchor_spread: Floats | float = ANCHOR_SPREAD, scale: Floats | float = RATIO_SCALE,
    evaluations: int = 6,
) -> Fit:  # fmt: skip
    """Fit constants by least robust loss.

    Minimises  sum w^2 rho((r/s)^2) + sum ((x - x0)/sigma)^2  with r = ln(predicted / measured), rho(z) = 2 (sqrt(1 + z) - 1),
    s = `scale` (of each row, or of all), x the transformed constants with prior x0 and sigma. `anchors` numbers the group of each
    row (-1: none); each group has an offset of its own with prior N(0, anchor_spread^2), one spread for all or one each.
    Shapes: rows along one axis. Units: logarithms of seconds, weights [1].
    Reference: Branch, Coleman and Li, SIAM J. Scientific Computing 21 (1999) (least squares with soft_l1 loss in scipy).

    >>> found = fit(lambda c: np.log(c["a"] * np.array([1.0, 2.0, 3.0])), np.log([2.0, 4.0, 60.0]), np.ones(3), {"a": Prior(1.5, 1.0)}, {"a": 1.5})
    >>> round(found.values["a"], 1)  # the third row is an outlier
    2.1
    """
    names = list(priors)
    centres = np.array([priors[name].to_free(priors[name].centre) for name in names])
    sigmas = np.array([priors[name].spread for name in names])
    uppers = np.array(
        [priors[name].to_free(priors[name].upper) if np.isfinite(priors[name].upper) else np.inf for name in names]
    )
    members = _membership(anchors, len(log_measured))
    groups = members.shape[1]
    x0 = np.minimum(np.array([priors[name].to_free(start[name]) for name in names]), uppers - 1e-6)
    x0 = np.concatenate([x0, np.zeros(groups)])
    offset_scale = np.full(groups, 1.0 / np.asarray(anchor_spread))
    rows, scale = len(log_measured), np.broadcast_to(np.asarray(scale, float), np.shape(log_measured))

    def constants(x: Floats) -> dict[str, float]:
        return {**start, **{name: priors[name].from_free(value) for name, value in zip(names, x, strict=False)}}

    def residuals(x: Floats) -> Floats:
        ratio = predict(constants(x)) + members @ x[len(names) :] - log_measured
        return np.concatenate([ratio / scale, (x[: len(names)] - centres) / sigmas, x[len(names) :] * offset_scale])

    def jacobian(x: Floats) -> Floats:
        values = constants(x)
        if hasattr(predict, "base"):
            predict.base(values, names)
        slope = sensitivity(predict, priors, values, predict(values)) / scale[:, None]
        below = np.zeros((len(names) + groups, len(names) + groups))
        below[range(len(below)), range(len(below))] = np.concatenate([1.0 / sigmas, offset_scale])
        return np.concatenate([np.concatenate([slope, members / scale[:, None]], axis=1), below])

    squares = np.concatenate([weights**2, np.ones(len(names) + groups)])

    def loss(z: Floats) -> Floats:
        """Compute the soft-l1 loss with each row's weight for the measurements, plain squares for the priors."""
        root = np.sqrt(1.0 + z)
        rho = np.stack([2.0 * (root - 1.0), 1.0 / root, -0.5 / root**3])
        rho[:, rows:] = np.stack([z, np.ones_like(z), np.zeros_like(z)])[:, rows:]
        weighted: Floats = rho * squares
        return weighted

    bounds = (np.full(len(x0), -np.inf), np.concatenate([uppers, np.full(groups, np.inf)]))
    for _ in range(WARM_ROUNDS):
        x0 = _gauss_newton(residuals, jacobian, x0, squares, rows, bounds)
    found = least_squares(
        residuals,
        x0,
        jac=jacobian,
        bounds=bounds,
        loss=loss,  # type: ignore[arg-type]  # scipy calls a loss of the caller with z alone, unlike its stub
        x_scale="jac" if len(x0) else 1.0,
        max_nfev=evaluations,
        xtol=1e-3,
        ftol=1e-4,
    )
    values = constants(found.x)
    ratio = found.fun[:rows] * scale
    slope = jacobian(found.x)
    robust = np.concatenate([weights**2 / np.sqrt(1.0 + (ratio / scale) ** 2), np.ones(len(names) + groups)])
    spread = np.sqrt(np.diag(np.linalg.inv((slope * robust[:, None]).T @ slope)))
    return Fit(
        values={name: values[name] for name in names}, spreads=dict(zip(names, spread[: len(names)].tolist(), strict=True)),
        offsets=found.x[len(names):], offset_spreads=spread[len(names):], residuals=ratio,
    )  # fmt: skip
