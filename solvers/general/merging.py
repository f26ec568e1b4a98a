"""Build merged programs of about a number of columns: few slots merged evenly at first, then those that differ least by its solution."""

from __future__ import annotations

from dataclasses import dataclass, replace

from solvers.arrays import Ints
from solvers.general.aggregation import NONE, Merged, groups_of, merge
from solvers.general.deferred_rows import DeferrableRows, Lighter
from solvers.general.grouping import Grouping
from solvers.general.merged_lp import solve_merged_lp
from solvers.general.settings import GeneralSettings
from solvers.program import Program

FEW_GROUPS = 4  # groups of slots, below which a rough solution tells little of which slots differ


@dataclass(frozen=True, slots=True)
class Merging:
    """A program whose slots are merged.

    `bare`: its structure without rows of failures, `kept`: with the rows of few slots. `grouping`: None before it is known which slots differ
    least.
    """

    program: Program
    waiting: DeferrableRows
    bare: Lighter
    kept: Lighter
    slots: int
    grouping: Grouping | None = None

    def merged(self, columns: int, light: Lighter, alone: Ints | None = None, least: int = 1) -> Merged:
        """Merge slots to a program of about a number of columns, besides the columns of `alone`, slots that stay apart; the slots of failures if None.

        `least`: groups that are made in any case, where there are twice as many slots.
        """
        most = max(columns * self.slots // max(light.timed, 1), min(least, self.slots // 2), 1)
        if alone is None:
            alone = light.apart if most > 1 else NONE
        if self.grouping is None:
            group = groups_of(light.structure, self.slots, most, alone)
        else:
            group = self.grouping.groups(most, alone)
        return merge(self.program, light.structure, group, light.deferred)

    def finer(self, light: Lighter, settings: GeneralSettings, alone: Ints | None = None) -> Merged:
        """Merge slots to the program that the better duals and the counts come from."""
        return self.merged(settings.bound_columns, light, alone, settings.least_bound_groups)


def merging_of(
    program: Program, waiting: DeferrableRows, slots: int, settings: GeneralSettings, limit_s: float
) -> Merging:
    """Solve a program of few groups of slots to find out which slots differ least.

    Slots are merged evenly where that program does not end in time, or would have fewer than `FEW_GROUPS` groups.
    """
    evenly = Merging(program, waiting, waiting.lighter(waiting.busiest(0)), waiting.lighter(waiting.busiest()), slots)
    if settings.rough_columns * slots < FEW_GROUPS * evenly.bare.timed:
        return evenly
    solved = solve_merged_lp(evenly.merged(settings.rough_columns, evenly.bare), limit_s)
    if solved is None:
        return evenly
    return replace(evenly, grouping=Grouping(program, evenly.bare.structure, slots, solved))
