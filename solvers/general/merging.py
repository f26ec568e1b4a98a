"""Build merged programs of about so many columns: few slots merged evenly at first, then those that differ least by its solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvers.arrays import Ints
from solvers.general.aggregation import NONE, Merged, groups_of, merge
from solvers.general.deferred_rows import Lighter
from solvers.general.grouping import Grouping
from solvers.general.merged_lp import solve_merged_lp
from solvers.general.settings import GeneralSettings
from solvers.program import Program


@dataclass(frozen=True, slots=True)
class Merging:
    """A program whose slots are merged; `grouping`: None before it is known which of them differ least."""

    program: Program
    light: Lighter
    slots: int
    grouping: Grouping | None = None

    def merged(self, columns: int, alone: Ints | None = None) -> Merged:
        """Merge slots to a program of about so many columns, besides those of `alone`, slots that stay apart; the busiest ones if None."""
        structure = self.light.structure
        timed = max(int(((structure.slot >= 0) & (np.diff(structure.arrays.matrix.indptr) > 0)).sum()), 1)
        most = max(columns * self.slots // timed, 1)
        if alone is None:
            alone = self.light.busiest if most > 1 else NONE
        if self.grouping is None:
            return merge(self.program, structure, groups_of(structure, self.slots, most, alone))
        return merge(self.program, structure, self.grouping.groups(most, alone))


def merging_of(program: Program, light: Lighter, slots: int, settings: GeneralSettings, limit_s: float) -> Merging:
    """Solve a program of few groups of slots to find out which slots differ least; evenly merged ones where that does not end in time."""
    evenly = Merging(program, light, slots)
    solved = solve_merged_lp(evenly.merged(settings.rough_columns), limit_s)
    return (
        evenly if solved is None else Merging(program, light, slots, Grouping(program, light.structure, slots, solved))
    )
