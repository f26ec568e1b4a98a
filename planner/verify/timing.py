"""Times and annuities that several checks use."""

from __future__ import annotations

TIME_TOL_S = 1e-6  # moments that differ by less are one


def annuity(rate: float, years: float) -> float:
    """Compute the yearly payment that repays one unit over a number of years (capital recovery factor)."""
    return 1 / years if rate == 0 else float(rate / (1 - (1 + rate) ** -years))


def paid_yearly(rate: float, years: int, begin: float, end: float) -> float:
    """Compute the present worth of one unit per year from `begin` to `end` [years], each year's part paid at its end."""
    return sum(max(min(end, k + 1.0) - max(begin, float(k)), 0.0) * (1 + rate) ** -(k + 1) for k in range(years))
