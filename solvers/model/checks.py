"""Checks of the joint program's input that its parts share: shapes, indices, ranges and costs.

Each yields a message per mistake. Mistakes here are the caller's, not the user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from solvers.arrays import Floats, Functionals, Ints


def wrong_shapes(owner: object, shapes: Mapping[str, tuple[int, ...]], prefix: str = "") -> Iterator[str]:
    """Compare the shapes of fields with the expected ones."""
    for name, shape in shapes.items():
        found = getattr(owner, name).shape
        if found != shape:
            yield f"{prefix}{name}: shape {found}, expected {shape}"


def wrong_costs(
    costs: Mapping[str, tuple[Functionals, tuple[int, ...]]], prefix: str = "", *, least: float = -np.inf
) -> Iterator[str]:
    """Compare the coefficients of functionals with their expected shapes, and find values that are not finite or below `least`."""
    for name, (functionals, shape) in costs.items():
        for functional, values in functionals.items():
            if values.shape != shape or not np.isfinite(values).all() or (values < least).any():
                floor = "" if np.isinf(least) else f", at least {least:g}"
                yield f"{prefix}{name}[{functional}]: expected finite values of shape {shape}{floor}"


def wrong_indices(ranges: Iterable[tuple[str, Ints, int, int]], prefix: str = "") -> Iterator[str]:
    """Find indices outside [low, high), given as (field, indices, low, high)."""
    for name, values, low, high in ranges:
        if values.size and (values.min() < low or values.max() >= high):
            yield f"{prefix}{name}: index outside [{low}, {high})"


def negative_values(values: Mapping[str, Floats], prefix: str = "", *, finite: bool = True) -> Iterator[str]:
    """Find values below 0, not a number, or infinite where that is not permitted."""
    for name, array in values.items():
        if array.size and (np.isnan(array).any() or array.min() < 0 or (finite and not np.isfinite(array).all())):
            yield f"{prefix}{name}: expected {'finite ' if finite else ''}values of at least 0"
