"""The array types that annotations in `solvers` use. Shapes stand beside each field or argument in square brackets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
