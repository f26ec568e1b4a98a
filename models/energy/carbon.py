"""Carbon of running and of making hardware. Intensities and embodied figures are inputs; no schedule lives here."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result


def operational_carbon_kg(energy_j: ArrayLike, intensity_kg_per_j: ArrayLike) -> Result:
    """Carbon of the electricity used:  C = E x I.

    Shapes: broadcast (for a typical day: energy [..., 24] with intensity [24]). Units: energy [J], intensity [kg/J], result [kg].
    Energy is that of the facility, not of the IT load. Direct or life-cycle: as the intensity is.
    Reference: ISO/IEC 21031:2024 (Software Carbon Intensity), O = E x I.

    >>> float(round(operational_carbon_kg(3.6e6, 0.4 / 3.6e6), 9))
    0.4
    """
    return np.asarray(energy_j, float) * intensity_kg_per_j


def embodied_carbon_kg(made_kg: ArrayLike, used_s: ArrayLike, life_s: ArrayLike, share: ArrayLike = 1.0) -> Result:
    """Carbon of manufacture that a use answers for:  M = TE x (time reserved / life) x (share of the hardware).

    Shapes: broadcast. Units: made [kg], used and life [s], share [1], result [kg]. Valid for life > 0; a use longer
    than the life answers for the replacements too.
    Reference: ISO/IEC 21031:2024 (Software Carbon Intensity), M = TE x TS x RS; Gupta et al., ACT, ISCA 2022, eq. 1.

    >>> float(embodied_carbon_kg(1312.0, 3.0, 6.0))
    656.0
    """
    return np.asarray(made_kg, float) * (np.asarray(used_s, float) / life_s) * share


def carbon_per_token_kg(power_w: ArrayLike, intensity_kg_per_j: ArrayLike, tokens_per_s: ArrayLike) -> Result:
    """Operational carbon of a token:  P I / rate; infinite where nothing is produced.

    Shapes: broadcast. Units: power of the facility [W], intensity [kg/J], rate [token/s], result [kg/token].
    Reference: ISO/IEC 21031:2024, SCI = (O + M) per functional unit, here O alone with the token as unit.

    >>> float(carbon_per_token_kg(1000.0, 1e-7, 100.0))
    1e-06
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = operational_carbon_kg(power_w, intensity_kg_per_j) / np.asarray(tokens_per_s, float)
    return np.where(np.asarray(tokens_per_s) > 0, rate, np.inf)[()]
