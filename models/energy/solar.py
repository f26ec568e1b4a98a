"""Height of the sun over a place: the shape of a solar plant's output in a clear sky. Weather and plants are not here."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from catalog.units import HOURS_PER_DAY
from models.arrays import Floats, as_result

DAYS = 365.0


def declination_deg(day_of_year: ArrayLike) -> Floats | float:
    """Compute the solar declination:  23.45 sin(360 (284 + n)/365).

    Shapes: broadcast. Units: day of the year, 1 on 1 January [1], result [degree]. Valid to about half a degree.
    Reference: Cooper, Solar Energy 12 (1969); Duffie and Beckman, Solar Engineering of Thermal Processes, equation 1.6.1a.

    >>> float(round(declination_deg(172), 2))
    23.45
    """
    return 23.45 * np.sin(2 * np.pi * (284.0 + np.asarray(day_of_year, float)) / DAYS)


def sine_of_elevation(
    latitude_deg: ArrayLike, longitude_deg: ArrayLike, day_of_year: ArrayLike, hour_utc: ArrayLike
) -> Floats | float:
    """Compute the output of a level panel in a clear sky, relative to the sun overhead:  max(0, sin f sin d + cos f cos d cos w).

    f latitude, d declination, w hour angle: 15 degrees per hour from solar noon. The equation of time (at most 16 minutes) is
    left out. Shapes: broadcast. Units: degrees, north and east positive [degree], day [1], hour of the day [h], result [1].
    Reference: Duffie and Beckman, Solar Engineering of Thermal Processes, equation 1.6.5.

    >>> float(round(sine_of_elevation(0.0, 0.0, 81, 12.0), 4)), float(sine_of_elevation(40.0, 0.0, 172, 0.0))
    (1.0, 0.0)
    """
    latitude, declination = np.radians(latitude_deg), np.radians(declination_deg(day_of_year))
    turn = (
        2
        * np.pi
        * ((np.asarray(hour_utc, float) - HOURS_PER_DAY / 2) / HOURS_PER_DAY + np.asarray(longitude_deg, float) / 360.0)
    )
    height = np.sin(latitude) * np.sin(declination) + np.cos(latitude) * np.cos(declination) * np.cos(turn)
    return as_result(np.maximum(height, 0.0))


def with_mean(shape: ArrayLike, capacity_factor: float) -> Floats:
    """Scale a profile of output over capacity to a given mean:  min(1, a s)  with a such that the mean is the capacity factor.

    Shapes: any, at least one value above 0. Units: shape and result [1]. Where too few hours have output for that mean, the
    output is 1 in all of them.
    Reference: definition of the capacity factor (IEC 60050-691).

    >>> with_mean([0.0, 1.0, 0.5, 0.0], 0.3).round(9).tolist()
    [0.0, 0.8, 0.4, 0.0]
    """
    shape = np.asarray(shape, float)
    low, high = 0.0, 1.0 / shape[shape > 0].min()
    output: Floats
    scale = capacity_factor / shape.mean()
    if scale * shape.max() <= 1.0:
        output = scale * shape
        return output
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1.0, middle * shape).mean() < capacity_factor else (low, middle)
    output = np.minimum(1.0, high * shape)
    return output
