"""Program data of tokens that an API sells."""

from __future__ import annotations

import numpy as np

from catalog.units import YEAR_S
from models.arrays import Floats
from planner.problem.calendar import Calendar
from planner.problem.facts import ServingFacts, SiteFacts


def request_price(site: SiteFacts, workload: ServingFacts, calendar: Calendar) -> Floats:
    """Price one request in each slot [T]; zero at a site of our own."""
    if site.api is None:
        return np.zeros(calendar.slots)
    asked = workload.spec
    each = site.api.input_price * asked.prompt_tokens + site.api.output_price * asked.lengths.output
    years: Floats = calendar.edges_s[calendar.window] / YEAR_S
    return each * (1.0 + site.api.price_change) ** years
