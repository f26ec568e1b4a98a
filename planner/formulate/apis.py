"""Program data of tokens that an API sells."""

from __future__ import annotations

import numpy as np

from catalog.units import YEAR_S
from models.arrays import Floats, sum_of
from planner.problem.calendar import Calendar
from planner.problem.facts import ServingFacts, SiteFacts


def request_price(site: SiteFacts, workload: ServingFacts, calendar: Calendar) -> Floats:
    """Price one request in each slot [T]; zero at a site of our own."""
    parts = price_parts(site, workload, calendar).values()
    return sum_of(parts, np.zeros(calendar.slots))


def token_costs(site: SiteFacts, workload: ServingFacts, calendar: Calendar) -> dict[str, Floats]:
    """Split the present value of one request per second over each slot [T] by the path of the stated price; empty at a site of our own."""
    worth = calendar.seconds * calendar.discount
    return {path: worth * price for path, price in price_parts(site, workload, calendar).items()}


def price_parts(site: SiteFacts, workload: ServingFacts, calendar: Calendar) -> dict[str, Floats]:
    """Split the price of one request in each slot [T] by the path of the stated price; empty at a site of our own."""
    if site.api is None:
        return {}
    asked = workload.spec
    years: Floats = calendar.edges_s[calendar.window] / YEAR_S
    change = (1.0 + site.api.price_change) ** years
    return {
        f"{site.path}.input": site.api.input_price * asked.prompt_tokens * change,
        f"{site.path}.output": site.api.output_price * asked.lengths.output * change,
    }
