"""Array types that the models and the planner share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Part = TypeVar("Part")
Start = TypeVar("Start")
LARGEST_KEY = 1 << 62  # 64 bits with a sign
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


@overload
def sum_of(parts: Iterable[Part]) -> Part: ...
@overload
def sum_of(parts: Iterable[Part], start: Start) -> Part | Start: ...
def sum_of(parts: Iterable[Any], start: Any = 0) -> Any:
    """Add numbers or arrays from left to right: ((start + p1) + p2) + ...

    The built-in `sum` compensates rounding of numbers from Python 3.12 on, and a plan must not depend on the version.
    Shapes: arrays of shapes that broadcast. Units [as given]: of all parts the same. Reference: Python documentation, `sum`,
    "Changed in version 3.12".

    >>> sum_of([1e16, 1.0, -1e16]), sum_of([])
    (0.0, 0)
    """
    return reduce(add, parts, start)


def equal_rows(columns: Sequence[NDArray[Any]]) -> tuple[Ints, Ints]:
    """Find the distinct rows of columns: (place of the first of each, which of them each row equals).

    Whole numbers are packed into one key, so that only one sort is needed.
    Shapes: columns of one length in, `column[first][place]` equals `column`. Units: [1]; columns of whole numbers are not negative.
    Reference: mixed-radix numbers, Knuth, The Art of Computer Programming, volume 2, section 4.1.

    >>> first, place = equal_rows([np.array([4, 1, 4]), np.array([0.5, 0.5, 0.5])])
    >>> first.tolist(), place.tolist()
    ([1, 0], [1, 0, 1])
    """
    key, room = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        whole = column
        if column.dtype.kind == "f":
            whole = np.unique(column, return_inverse=True)[1].reshape(-1)
        size = int(whole.max(initial=0)) + 1
        room *= size
        if room > LARGEST_KEY:
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
            room = (int(key.max(initial=0)) + 1) * size
        key = key * size + whole
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return first, place.reshape(-1)


def picked(values: NDArray[Any] | float, index: tuple[int, ...]) -> Any:
    """Pick the value at an index of a shape to which the values broadcast.

    Shapes: the index has as many axes as the shape, or more than the values; axes of one are those that broadcast. Units: [as given].
    Reference: NumPy user guide, broadcasting.

    >>> float(picked(np.array([[1.0], [2.0]]), (0, 1, 7))), picked(3.0, (1, 1))
    (2.0, 3.0)
    """
    if not isinstance(values, np.ndarray) or not values.ndim:
        return values
    own = index[len(index) - values.ndim :]
    return values[tuple(i if size > 1 else 0 for i, size in zip(own, values.shape, strict=True))]
