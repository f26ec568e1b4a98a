"""Find the least relaxation of a set of limits that gives a plan, as the least sum of relative changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.limits.limit import Limit
from planner.solving.limit_tests import LimitTests
from planner.solving.trials import Variant, merged
from planner.spec.changes import COUNTED
from planner.spec.document import Edits
from solvers.analysis.relief import LimitKey, least_relief, with_limits

AMOUNT_TOL = 1e-6  # share by which an amount is raised above what the solver found, for the solver's tolerance
ZERO_RELIEF_TOL = 1e-9  # a row relieved by less than this share of its amount stays as it is
SEARCH_TOL = 0.01  # latencies and deadlines are found to within this share
STEPS = (1.05, 1.25, 2.0, 5.0, 25.0, 1e3, 1e5)  # factors on a limit, tried in turn until one is far enough
CHOICE_CHANGE = 1.0  # a limit that is no number counts as much as doubling one


def least_change(tests: LimitTests, limits: Sequence[Limit], most: float) -> tuple[float, Edits]:
    """Find the least sum of relative changes of these limits that gives a plan, and its edits; infinite from `most` on.

    Limits that are no rows give way one after the other, the rest taken away; amounts then give way together.
    """
    change: float = 0.0
    edits: Edits = ()
    rows = [limit for limit in limits if limit.is_row]
    others = [limit for limit in limits if not limit.is_row]
    while others and change < most:
        limit = others.pop()
        if limit.is_number:
            step, found = _least_number(tests, limit, edits, [*rows, *others], most - change)
        else:
            step, found = _first_choice(tests, limit, edits, [*rows, *others])
        change, edits = change + step, merged(edits, found)
    if rows and change < most:
        step, found = _least_rows(tests, rows, edits, most - change)
        change, edits = change + step, merged(edits, found)
    return (change, edits) if change < most else (math.inf, ())


def _least_rows(tests: LimitTests, rows: Sequence[Limit], edits: Edits, most: float) -> tuple[float, Edits]:
    """Find the least joint growth of amounts by one integer program."""
    variant, asked = _as_asked(tests, rows, edits)
    if variant.data is None:
        return math.inf, ()
    options = tests.trials.limited_options()
    options = replace(options, time_limit_s=options.time_limit_s / 2)  # the rest is for what else may give way
    relief = least_relief(variant.data, list(asked), options, most, tests.relief_bound(rows, exact=False))
    if relief is None:
        return math.inf, ()
    change: float = 0.0
    found: Edits = ()
    for row, by in relief.items():
        limit = asked[row]
        if by > ZERO_RELIEF_TOL * max(limit.amount / limit.scale, 1.0):
            change += by * limit.scale / (limit.amount or 1.0)
            enough = limit.amount + by * limit.scale
            found += limit.grown(enough if limit.unit in COUNTED else enough * (1 + AMOUNT_TOL))
    if not any(limit.loose for limit in rows):  # else the points are those of limits taken away, not of the new ones
        tests.trials.note_plan(tests.names, merged(merged(tests.edits, edits), found))
    return change, found


def _as_asked(tests: LimitTests, rows: Sequence[Limit], edits: Edits) -> tuple[Variant, dict[LimitKey, Limit]]:
    """Return the variant with the points of the loosened limits under the limits as asked, and their rows."""
    wide = tuple(edit for limit in rows for edit in limit.loose)
    variant = tests.trials.variant(tests.names, merged(merged(tests.edits, edits), wide))
    if variant.data is None:
        return variant, {}
    asked = {variant.rows[limit.path]: limit for limit in rows}
    if not wide:
        return variant, asked
    amounts = {row: limit.amount / limit.scale for row, limit in asked.items()}
    return replace(variant, data=with_limits(variant.data, amounts)), asked


def _least_number(
    tests: LimitTests, limit: Limit, edits: Edits, loose: Sequence[Limit], most: float
) -> tuple[float, Edits]:
    """Find the least growth of a latency or a deadline by bisection: feasibility is monotone in either.

    The quick programs go first, each leaving less for the next: one pool, then the LP relaxation, then integers.
    """

    def fails(amount: float) -> bool:
        return tests.relaxation_fails(loose, merged(edits, limit.grown(amount)))

    def fails_with_one_pool(amount: float) -> bool:
        grown = merged(merged(edits, limit.grown(amount)), tests.trials.one_pool(tests.names))
        return tests.relaxation_fails(loose, grown)

    def lacks_plan(amount: float) -> bool:
        return tests.has_plan(loose, merged(edits, limit.grown(amount))) is not True

    farthest = min(limit.amount * (1 + most), limit.most)
    if math.isfinite(most) and fails(farthest):
        return math.inf, ()
    steps = [farthest] if math.isfinite(farthest) else []
    if math.isinf(most):
        steps = [limit.amount * step for step in STEPS if limit.amount * step < farthest] + steps
    quick = _least_where(fails_with_one_pool, limit.amount, steps)
    low = limit.amount
    if quick is not None and fails(quick / (1 + SEARCH_TOL)):
        low, steps = quick / (1 + SEARCH_TOL), [quick, *(step for step in steps if step > quick)]
    elif quick is not None:
        steps = [quick / (1 + SEARCH_TOL)]
    least = _least_where(fails, low, steps)
    if least is None:
        return math.inf, ()
    further = [least, *(least * step for step in (1.02, 1.1, 1.5)), *(step for step in steps if step > least)]
    low = max(low, least / (1 + SEARCH_TOL))
    found = _least_where(lacks_plan, low, [step for step in further if step <= farthest])
    return (math.inf, ()) if found is None else (found / limit.amount - 1, limit.grown(found))


def _first_choice(tests: LimitTests, limit: Limit, edits: Edits, loose: Sequence[Limit]) -> tuple[float, Edits]:
    """Find the first choice of a limit that is far enough."""
    found = next((choice for choice in limit.choices if tests.has_plan(loose, merged(edits, choice))), None)
    return (CHOICE_CHANGE, found) if found is not None else (math.inf, ())


def _least_where(short: Callable[[float], bool], low: float, steps: Sequence[float]) -> float | None:
    """Find the least amount, to one percent, that is not `short`; `low` is. None where no step is enough.

    >>> round(_least_where(lambda amount: amount < 7, 1.0, (5.0, 10.0)), 1)
    7.0
    """
    for high in steps:
        if high > low and not short(high):
            while high > low * (1 + SEARCH_TOL):
                middle = math.sqrt(low * high)
                low, high = (middle, high) if short(middle) else (low, middle)
            return high
        low = max(low, high)
    return None
