"""Embodied carbon of hardware. The figures of manufacture are inputs; carbon of operation is energy times the intensity of its hour."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result


def embodied_carbon_kg(made_kg: ArrayLike, used_s: ArrayLike, life_s: ArrayLike) -> Result:
    """Compute the share of embodied carbon that a use answers for:  M = TE x (time reserved / life).

    Shapes: broadcast. Units: made TE [kg], used and life [s], result [kg]. Valid for life > 0; a use longer than the life
    answers for the replacements too.
    Reference: ISO/IEC 21031:2024 (Software Carbon Intensity), M = TE x TS x RS with all of the hardware reserved (RS = 1);
    Gupta et al., ACT, ISCA 2022, eq. 1.

    >>> float(embodied_carbon_kg(1312.0, 3.0, 6.0))
    656.0
    """
    return as_result(np.asarray(made_kg, float) * np.asarray(used_s, float) / np.asarray(life_s, float))
