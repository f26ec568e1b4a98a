"""Array types that the models and the planner share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Result = Floats | float
"""Result of a closed form: an array where an argument is one, a number where all are numbers."""


def as_result(values: NDArray[Any] | float) -> Result:
    """Turn an array without axes into a number, and leave any other as it is.

    Shapes and units [as given]: unchanged. Reference: NumPy user guide, indexing with an empty tuple.

    >>> as_result(np.asarray(2.0)), as_result(np.array([1.0, 2.0])).tolist()
    (np.float64(2.0), [1.0, 2.0])
    """
    result: Result = np.asarray(values)[()]
    return result
