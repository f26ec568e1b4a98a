"""Resolve the terms of systems that are paid for by the hour: the time that they take to start, and the least time for which they run."""

from __future__ import annotations

from dataclasses import replace

from planner.messages import Message
from planner.problem.facts import OfferFacts
from planner.problem.phases import BY_WINDOW
from planner.resolve.context import ResolveContext
from planner.spec.offers import Offer

TERMS = {"start_time": "rented_start_time", "least_run": "rented_least_run"}  # key of an offer: default of the catalog


def with_hourly_terms(context: ResolveContext, facts: OfferFacts, offer: Offer | None = None) -> OfferFacts:
    """Add start time and least run to an offer on demand or on the spot market: stated, or from the catalog; booked as assumptions."""
    if facts.how not in BY_WINDOW:
        return facts
    found = {}
    for key, default in TERMS.items():
        path, scope = f"{facts.path}.{key}", ("rent", "*", facts.system)
        stated = None if offer is None else getattr(offer, key)
        if stated is None:
            found[key] = context.ledger.default(default, path, Message.of(f"hourly.{key}").text(), scope)
        else:
            context.assume_stated(path, stated, "s", scope, note=offer.note if offer is not None else "")
            found[key] = stated
    return replace(facts, start_s=found["start_time"], least_run_s=found["least_run"])
