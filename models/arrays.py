"""Names of the array types that the models and the planner share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Result = Floats | float
"""What a closed form returns: an array where an argument is one, a number where all are numbers."""
