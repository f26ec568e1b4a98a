"""Published ranges of six ratios that tell at a glance whether a plan is plausible. Figures as their sources state them, in SI.

Not here: the ratios of a plan (`planner.report.why.ratios`).
"""

from __future__ import annotations

from catalog.units import DAY_S
from planner.facts.ranges import Known
from planner.messages import say

WEEK_S = 7 * DAY_S
MILLION = 1e6

WORK = Known(
    5.1e12,
    7.6e14,
    say("ratio.source.work"),
)
"""Output tokens per second and chip at full load, times the parameters that a token uses [parameter token/s]: rates of models of other sizes compare."""
POWER = Known(
    810.0,
    2650.0,
    say("ratio.source.power"),
)
"""Power of a chip with its share of server, network and cooling, at the meter [W]."""
COST = Known(
    0.04 / MILLION,
    75.0 / MILLION,
    say("ratio.source.cost"),
)
"""List price of an output token, prompts of a usual request included in the cost that it is compared with [USD/token]."""
BUSY = Known(
    0.52,
    0.90,
    say("ratio.source.busy"),
)
"""Share of chips at work, averaged over time."""
LOADS = Known(
    0.0,
    2.0,
    say("ratio.source.loads"),
)
"""Loads of weights per worker and day."""
LEAD = Known(
    8 * WEEK_S,
    52 * WEEK_S,
    say("ratio.source.lead"),
)
"""Time from order to delivery of servers with chips [s]."""
