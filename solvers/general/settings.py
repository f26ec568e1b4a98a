"""Sizes and shares of time of the steps by which a large program is taken apart (`solvers.general.solve`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralSettings:
    """Sizes and shares of time of the steps."""

    rough_columns: int = 4_000
    """Columns of the merged program whose solution says which slots differ least, about."""
    first_stage_columns: int = 16_000
    """Columns of the merged program that the first stage is chosen on, about."""
    least_groups: int = 12
    """Groups of slots of that program in any case, so that there are some of much and of little load."""
    together_columns: int = 80_000
    """Columns of a merged program with rows of failures up to which all is chosen on it, instead of first what failures do not touch."""
    bound_columns: int = 40_000
    """The same, of the one that the better duals and the counts come from."""
    least_bound_groups: int = 24
    """Groups of slots of that one in any case."""
    merged_lp_share: float = 0.3
    """Of the time left, for the LP of a merged program."""
    first_stage_share: float = 0.35
    """Of the time left then, for its first stage."""
    searched_columns: int = 3_000
    """Columns up to which the first stage is searched for, not dived for."""
    used: float = 1e-3
    """Value of an integer in the LP from which on a first stage may use it."""
    further_share: float = 0.2
    """Of the other integers, those of the smallest reduced costs, which it may use too."""
    attempts: int = 6
    """First stages that are tried, with less said of what slots can do each time."""
    recounts: int = 3
    """Of them, those for which binaries stay as they were chosen, one after the other."""
    counted: float = 0.3
    """Value of a count in the LP over more groups of slots from which on the search for counts may use it."""
    counts_gap: float = 0.002
    """Gap to which counts are searched for."""
    counts_share: float = 0.5
    """Of the time for counts that is left after that LP."""
    failure_rounds: int = 2
    """Times that the LP for counts is solved again with the slots of failures that lack something."""
    failures_lack: float = 1e-3
    """What that is: a share of what rows of a failure ask for in a slot."""
    searched_counts_columns: int = 100_000
    """Columns of the merged program up to which counts are searched for."""
    rounded_share: float = 0.4
    """Of the fractional counts, those that are rounded up in a first round; twice the share in each further one."""
    first_stage_gap: float = 0.005
    """Gap to which the first stage is searched for."""
    coarser: int = 4
    """By how much fewer columns the first stage is chosen on where the LP of a merged program does not end."""
    refinements: int = 2
    """Times that counts are chosen again with the slots apart of parts that needed more."""
    part_gap: float = 0.001
    """Gap to which each part is solved."""
    step: float = 0.1
    """First factor of a step of the ascent; halved where a step fails, longer by half where one succeeds."""
    least_step: float = 0.002
    """Factor at which the ascent ends."""


SETTINGS = GeneralSettings()
