"""Name the rules that leave candidates out without a proof that none of them would lower the cost or carbon, and count what they left out.

Not here: rules that prove it. Points that keep no limit, or that another one dominates in all that the program sees, are not missed by a bound.
"""

from __future__ import annotations

from collections import Counter

from planner.candidates.points import Candidates
from planner.messages import Said

UNPROVEN = frozenset({
    "dropped.over_point_count",  # a number, and no proof
    "dropped.no_fewer_systems",  # power is not compared
    "dropped.between_shares",
    "dropped.numbers_between",
    "dropped.further_corners",
    "dropped.too_many_workers",
    "dropped.idle_pools",  # power is not compared
    "dropped.one_worker_suffices",  # power is not compared
    "dropped.lesser_batch",  # power is not compared
    "dropped.over_demand",  # power is not compared; a part of one is not counted as efficient as all of it
    "dropped.width_not_offered",
})  # fmt: skip
"""Codes of the reasons under which candidates are left out that a bound does not cover. Layouts of training are compared in full: those of one width draw the same power."""
UNPROVEN_OF_WHOLE = UNPROVEN | {"dropped.dominated_point"}
"""Also with whole replicas: beaten on systems and power per request, by a replica that may be too large for a small demand."""


def points_considered(candidates: Candidates) -> int:
    """Count the operating points that the program chooses from."""
    return sum(len(pool.points) for pool in candidates.pools) + sum(map(len, candidates.training.values()))


def left_out(candidates: Candidates, whole: bool) -> list[tuple[Said, int]]:
    """List the reasons that prove nothing with the candidates that each left out, most first; `whole`: whether replicas are whole."""
    codes = UNPROVEN_OF_WHOLE if whole else UNPROVEN
    found: Counter[Said] = Counter()
    for counts in candidates.dropped.values():
        for reason, count in counts.items():
            if isinstance(reason, Said) and reason.message.code in codes and count:
                found[reason] += count
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))
