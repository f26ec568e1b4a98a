"""Limits on the power of sites that hold in some windows only. Part of `solvers.model.data.PlanData`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerStages:
    """Limits [S] on a site's power in the windows `first` to `last` only; limits of a site share no window."""

    site: Ints
    first: Ints
    last: Ints
    limit_w: Floats

    def problems(self, sites: int, windows: int, steady: Floats) -> Iterator[str]:
        """Describe wrong shapes, indices and values; `steady` [R]: limits that apply throughout."""
        if not len(self.site) == len(self.first) == len(self.last) == len(self.limit_w):
            yield "power_stages: fields of different lengths"
            return
        if self.site.size and (self.site.min() < 0 or self.site.max() >= sites):
            yield f"power_stages.site: index outside [0, {sites})"
            return
        if (self.first < 0).any() or (self.last < self.first).any() or np.isnan(self.limit_w).any():
            yield "power_stages: windows that end before they begin, or a limit that is not a number"
        there = np.zeros((sites, max(windows, int(self.last.max(initial=-1)) + 1)), dtype=int)
        for r, first, last in zip(self.site, self.first, self.last):
            there[r, first : last + 1] += 1
        if (there > 1).any() or np.isfinite(steady[self.site]).any():
            yield "power_stages: a site has one limit at a time"
