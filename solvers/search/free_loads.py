"""Find a plan as if loads of weights were free, and keep it where its loads, counted and made fewer, are within their limit.

Slots that are decided in turn use up the limit of a day early, which leaves little for the later ones of a fleet that is tight. Where that costs much,
slots without the limit are another start.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from solvers.arrays import Bools, Floats
from solvers.interface import Options
from solvers.model.build import build
from solvers.model.data import PlanData
from solvers.program import Program
from solvers.search.consolidation import restricted
from solvers.search.hourly import with_starts, without_starts
from solvers.search.relaying import with_loads
from solvers.search.slot_rounding import round_replicas


def with_free_loads(
    data: PlanData, values: Mapping[str, Floats], kept: Bools, options: Options
) -> tuple[Program, dict[str, Floats]] | None:
    """Return (program of `data`, a plan whose whole replicas were decided without price or limit of loads); None where its loads break the limit.

    `values`: a plan with divisible replicas. `kept` [P]: the points that may serve.
    """
    begin, part = time.perf_counter(), restricted(data, kept)
    free = replace(part, relays=None)
    rounded = with_starts(free, round_replicas(without_starts(free), values, options), options)
    if rounded is None:
        return None
    program = build(part)
    left = replace(options, time_limit_s=max(options.left_s(begin), 0.0))
    found = with_loads(program, part, rounded[1], left)
    return None if found is None else (program, dict(found))
