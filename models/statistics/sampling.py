"""Draws of uncertain figures from uniform numbers: triangular prices, tabulated errors, and errors that go together. No predictions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from models.arrays import Floats, as_result


def triangular(uniform: ArrayLike, low: float, typical: float, high: float) -> Floats | float:
    """Invert the triangular distribution:  F(typical) = (typical - low) / (high - low), quadratic on either side.

    Shapes: as uniform. Units: low, typical, high and the result in one unit, such as [USD]; uniform [1] in 0..1.
    Reference: Kotz and van Dorp, Beyond Beta, World Scientific (2004), section 1.2.

    >>> [float(triangular(u, 2.0, 3.0, 3.0)) for u in (0.0, 0.25, 1.0)]
    [2.0, 2.5, 3.0]
    """
    u, width = np.asarray(uniform, float), high - low
    if width <= 0:
        return as_result(np.full_like(u, typical))
    below = low + np.sqrt(u * width * (typical - low))
    above = high - np.sqrt((1.0 - u) * width * (high - typical))
    return as_result(np.where(u <= (typical - low) / width, below, above))


def tabulated(uniform: ArrayLike, levels: ArrayLike, quantiles: ArrayLike) -> Floats | float:
    """Interpolate a positive figure at a level between tabulated quantiles, in the logarithm:  ln x = interp(u, levels, ln quantiles).

    Beyond the outermost levels it stays at their quantiles. Shapes: uniform any; levels and quantiles along one axis.
    Units: as the quantiles; uniform and levels [1] in 0..1.
    Reference: inverse-transform sampling; Devroye, Non-Uniform Random Variate Generation, Springer (1986), section II.2.

    >>> round(float(tabulated(0.5, [0.0, 1.0], [0.5, 2.0])), 12)
    1.0
    """
    return as_result(np.exp(np.interp(np.asarray(uniform, float), np.asarray(levels, float), np.log(quantiles))))


def correlated_uniforms(normals: ArrayLike, rank_correlation: ArrayLike) -> Floats:
    """Draw uniform numbers with given rank correlations:  u = Phi(L z),  L L' = 2 sin(pi r / 6).

    Shapes: normals [n, k] of independent standard normal numbers; rank_correlation [k, k]; result [n, k]. Units: [1].
    A matrix that is not positive definite is drawn towards the diagonal until it is.
    Reference: Nelsen, An Introduction to Copulas, Springer (2006), section 2.3, and Kruskal, J. American Statistical Association 53
    (1958), for the normal distribution's r = 6/pi asin(rho / 2).

    >>> z = np.random.default_rng(0).standard_normal((4000, 2))
    >>> u = correlated_uniforms(z, [[1.0, 0.8], [0.8, 1.0]])
    >>> round(float(np.corrcoef(u.T)[0, 1]), 1)
    0.8
    """
    wanted = 2.0 * np.sin(np.pi * np.asarray(rank_correlation, float) / 6.0)
    least = float(np.linalg.eigvalsh(wanted)[0])
    if least < 1e-9:
        share = (1e-9 - least) / (1.0 - least)
        wanted = (1.0 - share) * wanted + share * np.eye(len(wanted))
    uniforms: Floats = ndtr(np.asarray(normals, float) @ np.linalg.cholesky(wanted).T)
    return uniforms
