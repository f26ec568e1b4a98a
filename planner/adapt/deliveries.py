"""Deliveries that may come late: the windows in which each scenario has the systems, and what each date knows of them.

All orders of an offer take the same time in a scenario. A system comes no earlier than planned, and in the first window that begins after it has come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats, Ints
from planner.adapt.dates import BORDER_TOL_S, Dates
from planner.adapt.groups import chosen
from planner.problem.facts import OfferFacts
from planner.spec.offers import DeliveryTime

NEVER = np.inf


def borders(times: Sequence[DeliveryTime]) -> Iterator[float]:
    """Yield the moments at which orders of the start that come late are counted from: half way from typical to high, and high."""
    for each in times:
        _, typical, high = each.levels
        if high > typical:
            yield from (float(round(typical + share * (high - typical))) for share in (0.5, 1.0))


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of offers whose systems may be late: holdings, with the offer and the moment of each."""

    offers: tuple[str, ...]  # paths
    holding: Ints  # positions among the holdings of the model
    offer: Ints  # position among `offers` of each of these holdings
    ordered_s: Floats
    edges_s: Floats  # borders of the calendar

    def covers(self, planned: Bools, leads: Floats) -> Bools:
        """Return the windows in which systems are there, [S, U, V], by times of delivery [S, offer]."""
        found = np.repeat(planned[None], len(leads), axis=0)
        for u, o, at in zip(self.holding, self.offer, self.ordered_s, strict=True):
            late = self.edges_s[None, :-1] < (at + leads[:, o])[:, None] - BORDER_TOL_S
            found[:, u] &= ~late
        return found

    def known(self, leads: Floats, dates: Dates) -> Floats:
        """Return what each date knows of the times of delivery, [date, S, offer]: the time once the first order has come, `NEVER` before."""
        at = np.asarray(dates.at_s)[:, None, None]
        return np.where(leads[None] <= at + BORDER_TOL_S, leads[None], NEVER)


def groups_of(leads: Floats, most: int) -> tuple[Ints, Floats]:
    """Select representatives of draws of times of delivery [draw, offer], with their weights; one where nothing is late."""
    return (
        chosen(leads / max(float(leads.max(initial=0.0)), 1.0), most)
        if leads.shape[1]
        else (np.zeros(1, dtype=np.int64), np.ones(1))
    )


def arrived(known: Floats) -> Ints:
    """Number the scenarios that are alike in what has come, [date, S], by what each date knows [date, S, offer]."""
    rows = [np.unique(each, axis=0, return_inverse=True)[1].ravel() for each in known] if known.shape[2] else []
    return np.array(rows) if rows else np.zeros(known.shape[:2], dtype=np.int64)


def followed(known: Floats, leads: Floats, own: Floats) -> Ints:
    """Return the group that each scenario follows at each date, [date, S]: of those that it could still be told from, the next in what has come by then.

    `known` and `own`: of groups and of scenarios, [date, G or S, offer]; `leads` of groups [G, offer].
    """
    dates, count = own.shape[:2]
    far = 2.0 * float(leads.max(initial=0.0)) + 1.0
    alike = arrived(known)
    there = np.ones((count, len(leads)), dtype=bool)
    found = np.zeros((dates, count), dtype=np.int64)
    for d in range(dates):
        mine, theirs = (np.where(np.isfinite(each[d]), each[d], far) for each in (own, known))
        distance = ((mine[:, None, :] - theirs[None, :, :]) ** 2).sum(axis=2)
        found[d] = np.argmin(np.where(there, distance, np.inf), axis=1)
        there &= alike[d][None, :] == alike[d][found[d]][:, None]
    return found


def orders_of(
    offers: Sequence[OfferFacts], holding_offer: Sequence[OfferFacts], stage: Ints, dates: Dates, edges_s: Floats
) -> Orders:
    """List the orders of holdings [U], each with its offer and the date at which it is decided."""
    paths = tuple(dict.fromkeys(offer.order for offer in offers if offer.is_late))
    place = {path: o for o, path in enumerate(paths)}
    mine = [u for u, offer in enumerate(holding_offer) if offer.order in place]
    return Orders(
        paths, np.array(mine, dtype=np.int64), np.array([place[holding_offer[u].order] for u in mine], dtype=np.int64),
        np.array([dates.at_s[int(stage[u])] for u in mine]), np.asarray(edges_s, dtype=float),
    )  # fmt: skip
