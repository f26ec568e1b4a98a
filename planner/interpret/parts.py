"""Plan rows of limits on the parts of a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from models.arrays import Bools
from planner.problem.limit_labels import MOST_KINDS, MOST_SITES, LimitLabel
from planner.problem.phases import API

if TYPE_CHECKING:
    from planner.interpret.decisions import Decisions


def part_limits(decided: Decisions) -> Iterator[tuple[LimitLabel, float, float, str]]:
    """Yield (key, value, limit, unit): sites with systems, and the most kinds of systems at one site at a time."""
    asked, slots = decided.problem.spec.simplicity, decided.problem.calendar.slots
    held: dict[tuple[str, str], Bools] = defaultdict(lambda: np.zeros(slots, dtype=bool))
    for _, _, option, mask in decided.held():
        if option.offer.how != API:
            held[option.site.region, option.system.name] |= mask
    if asked.most_sites is not None:
        yield MOST_SITES, float(len({site for site, _ in held})), float(asked.most_sites), "site"
    if asked.most_kinds is not None:
        kinds = [sum(mask.astype(int) for (at, _), mask in held.items() if at == site) for site, _ in held]
        most = max((int(np.max(counts)) for counts in kinds), default=0)
        yield MOST_KINDS, float(most), float(asked.most_kinds), "kind"
