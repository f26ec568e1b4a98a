"""The array types that annotations in `solvers` use. Shapes stand beside each field or argument in square brackets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

Functionals = Mapping[str, Floats]
"""Coefficients of one block in each functional (cost, carbon, ...), by the functional's name."""


def no_ints(*shape: int) -> Ints:
    """An array of integers that is absent, of this (usually empty) shape."""
    return np.zeros(shape, dtype=np.int64)


def no_floats(*shape: int) -> Floats:
    """An array of numbers that is absent, of this (usually empty) shape."""
    return np.zeros(shape)


def no_bools(*shape: int) -> Bools:
    """A mask that is absent, of this (usually empty) shape."""
    return np.zeros(shape, dtype=bool)
