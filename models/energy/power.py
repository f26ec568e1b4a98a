"""Electrical power of chips, systems and facilities from what they are busy with. Prices and carbon are in other modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result, sum_of

ACTIVITIES = ("compute", "memory", "communication", "host")


@dataclass(frozen=True, slots=True)
class PowerConstants:
    """Power of a chip in an activity as a share of its TDP, and of a system as a share of its rating [1]."""

    compute: float  # matrix products
    memory: float  # reading weights or KV cache
    communication: float  # exchange with other chips
    host: float  # waiting for launches and the host
    idle: float  # nothing running
    node_peak: float  # highest draw of a whole system, as a share of its rating
    training: float  # sustained draw of a whole system in training, as a share of its rating

    @classmethod
    def from_values(cls, values: Mapping[str, float]) -> PowerConstants:
        """Build from plain numbers by name [1]. Raises ValueError naming a figure that is missing, unknown, or not in (0, 1].

        Reference: ML.ENERGY power against batch; node figures arXiv:2412.08602 and arXiv:2506.14551; see the catalog.

        >>> PowerConstants.from_values({"compute": 1.0})
        Traceback (most recent call last):
        ...
        ValueError: power constants: missing communication, host, idle, memory, node_peak, training
        """
        known = {field.name for field in fields(cls)}
        wrong = sorted(name for name in known & set(values) if not 0.0 < float(values[name]) <= 1.0)
        groups = (
            ("missing", sorted(known - set(values))),
            ("unknown", sorted(set(values) - known)),
            ("not in (0, 1]", wrong),
        )
        problems = [f"{label} {', '.join(names)}" for label, names in groups if names]
        if problems:
            raise ValueError(f"power constants: {'; '.join(problems)}")
        return cls(**{name: float(values[name]) for name in known})


def chip_power_share(shares: Mapping[str, ArrayLike], constants: PowerConstants) -> Result:
    """Compute the mean power of a chip relative to its TDP:  p = sum over activities of share x p_activity, idle for the rest of 1.

    `shares`: fraction of time in compute, memory, communication and host, as `ServingPoint.bound_shares` gives them.
    Shapes: broadcast; result [1]. Median error 9 % over 113 measured points (H100 and B200, dense and MoE, batch 8 to 3,072);
    at batch 1 of small networks it overestimates.
    Reference: fit to the ML.ENERGY leaderboard's power against batch; activity-weighted power as in Hong and Kim, ISCA 2010.

    >>> c = PowerConstants(1.0, 0.9, 0.6, 0.5, 0.1, 0.82, 0.76)
    >>> round(float(chip_power_share({"compute": 0.5, "memory": 0.25, "communication": 0.0, "host": 0.0}, c)), 6)
    0.75
    """
    busy = sum_of(np.asarray(shares[name], float) for name in ACTIVITIES)
    drawn = sum_of(np.asarray(shares[name], float) * getattr(constants, name) for name in ACTIVITIES)
    return as_result(drawn + np.maximum(1.0 - busy, 0.0) * constants.idle)


def chip_utilisation(power_share: ArrayLike, constants: PowerConstants) -> Result:
    """Compute the utilisation of a chip between idle and full power:  u = (p - p_idle)/(1 - p_idle), within 0 to 1.

    Shapes: as power_share [1]; result [1]. Reference: Barroso and Hölzle, Computer 40 (2007) (energy proportionality).

    >>> c = PowerConstants(1.0, 0.9, 0.6, 0.5, 0.1, 0.82, 0.76)
    >>> round(float(chip_utilisation(0.55, c)), 6)
    0.5
    """
    return as_result(np.clip((np.asarray(power_share, float) - constants.idle) / (1.0 - constants.idle), 0.0, 1.0))


def system_power_w(idle_w: ArrayLike, max_w: ArrayLike, utilisation: ArrayLike) -> Result:
    """Compute the power of a system:  P = P_idle + (P_max - P_idle) u.

    The curvature that is known of batch size is in the activity shares behind `utilisation`, not here.
    Shapes: broadcast. Units: [W], utilisation 0 to 1 [1], result [W].
    Reference: Fan, Weber and Barroso, ISCA 2007, equation for P_est (linear form).

    >>> float(system_power_w(2000.0, 8400.0, 0.5))
    5200.0
    """
    idle = np.asarray(idle_w, float)
    return as_result(idle + (np.asarray(max_w, float) - idle) * np.asarray(utilisation, float))


def serving_power_w(
    shares: Mapping[str, ArrayLike], idle_w: ArrayLike, rated_w: ArrayLike, constants: PowerConstants
) -> Result:
    """Compute the power of a system whose chips spend their time as `shares`:  system power at the utilisation that follows from them.

    Full utilisation draws node_peak x rating. Shapes: broadcast. Units: idle and rated [W], result [W].
    Reference: models/energy/power.py chip_power_share and system_power_w; node_peak from arXiv:2412.08602 (8.4 of 10.2 kW).

    >>> c = PowerConstants(1.0, 0.9, 0.6, 0.5, 0.1, 0.82, 0.76)
    >>> busy = {"compute": 1.0, "memory": 0.0, "communication": 0.0, "host": 0.0}
    >>> round(float(serving_power_w(busy, 2000.0, 10200.0, c)), 6)
    8364.0
    """
    peak = np.maximum(constants.node_peak * np.asarray(rated_w, float), idle_w)
    return system_power_w(idle_w, peak, chip_utilisation(chip_power_share(shares, constants), constants))


def training_power_w(rated_w: ArrayLike, constants: PowerConstants) -> Result:
    """Compute the sustained power of a system in training:  training x rating.

    Shapes: as rated_w [W]; result [W]. Reference: arXiv:2506.14551 (8x H100 nodes draw 76 % of their rating).

    >>> c = PowerConstants(1.0, 0.9, 0.6, 0.5, 0.1, 0.82, 0.76)
    >>> float(training_power_w(10000.0, c))
    7600.0
    """
    return constants.training * np.asarray(rated_w, float)


def facility_power_w(it_power_w: ArrayLike, pue: ArrayLike) -> Result:
    """Compute the power at the meter of the site:  P = P_IT x PUE.

    Shapes: broadcast. Units: [W], PUE at least 1 [1], result [W].
    Reference: ISO/IEC 30134-2:2016 (power usage effectiveness).

    >>> float(facility_power_w(1000.0, 1.3))
    1300.0
    """
    return as_result(np.asarray(it_power_w, float) * np.asarray(pue, float))


def energy_per_token_j(power_w: ArrayLike, tokens_per_s: ArrayLike) -> Result:
    """Compute the energy per token:  P / rate; infinite where nothing is produced.

    Shapes: broadcast. Units: [W], [token/s], result [J/token].
    Reference: Samsi et al., From Words to Watts, IEEE HPEC 2023.

    >>> float(energy_per_token_j(500.0, 1000.0))
    0.5
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return as_result(np.where(np.asarray(tokens_per_s) > 0, np.asarray(power_w, float) / tokens_per_s, np.inf))
