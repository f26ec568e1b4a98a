"""List what a plan holds on a day as entries of `owned` and `rented`: systems delivered by then, and commitments that still run.

Systems on demand and on the spot market are held by the hour, and systems reserved without a term by the month: neither binds the plan from the day on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from catalog.units import DAY_S, HOUR_S
from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.adapt import Adaptation
from planner.plan.rows.fleet import FleetRow
from planner.problem.calendar import BORDER_TOL_S
from planner.problem.facts import OfferFacts, ResolvedSpec
from planner.report.why.oldest import BUY
from planner.spec.economics import OwnedSystems

RESERVED, PROVIDER = "reserved", "provider"
YOUNGEST_D = 30
"""Least age that a spec takes of an owned system, in days: younger ones count as that old."""

Place = tuple[str, str, str]  # site, system, how


@dataclass(frozen=True, slots=True)
class Holding:
    """Systems that a plan has bought or reserved by a day. `came`: the day of their delivery; `price`: of one, per second where it is rented."""

    offer: OfferFacts
    site: str
    topology: str
    count: int
    came: date
    price: float
    phase: str | None = None
    late: int = 0

    @property
    def place(self) -> Place:
        """Return the site, the system and the way to obtain it, by which deliveries are counted."""
        return self.site, self.offer.system, self.offer.how


def planned_holdings(plan: Plan, problem: ResolvedSpec, day: date) -> list[Holding]:
    """List what the plan has obtained by `day`: bought systems that are not retired, and reserved ones, from the start of the horizon on.

    Systems that are ordered by then and come later, by the `delivery` of their offer, are `late`.
    """
    offers = {offer.path: offer for offer in problem.offers}
    edges, start = problem.calendar.edges_s, problem.calendar.start
    found = list(_signed(plan, problem, day))
    for row in () if plan.document.get("adaptation") else plan.fleet:
        offer = offers.get(row["offer"])
        if offer is None or offer.owned is not None or offer.rented is not None or offer.how not in (BUY, RESERVED):
            continue
        if offer.how == RESERVED and not offer.term_s:  # held by the month
            continue
        first, last = row.get("windows") or (0, problem.calendar.windows - 1)
        came = start + timedelta(days=int(float(edges[first]) // DAY_S))
        gone = math.inf if float(edges[last + 1]) > float(edges[-1]) - BORDER_TOL_S else float(edges[last + 1])
        if _ordered(offer, came) <= day and (day - start).days * DAY_S < gone:
            price = row.get("price", offer.prices[row["site"]])
            count, late = (int(row["count"]), 0) if came <= day else (0, int(row["count"]))
            found.append(Holding(offer, row["site"], row["topology"], count, came, float(price), _phase(row), late))  # fmt: skip
    return found


def _signed(plan: Plan, problem: ResolvedSpec, day: date) -> Iterator[Holding]:
    """Yield the systems that a plan with `adapt` signs at the start and that have come by `day`; none for another plan, whose fleet is obtained as it stands."""
    offers = {offer.path: offer for offer in problem.offers}
    for row in (plan.document.get("adaptation") or {"sign": []})["sign"]:
        offer = offers.get(row["offer"])
        if (
            offer is None
            or offer.owned is not None
            or offer.rented is not None
            or (offer.how == RESERVED and not offer.term_s)
        ):
            continue
        came = problem.calendar.start + timedelta(days=int(row["from_s"] // DAY_S))
        if offer.how in (BUY, RESERVED) and _ordered(offer, came) <= day:
            count, late = (int(row["count"]), 0) if came <= day else (0, int(row["count"]))
            yield Holding(
                offer, row["site"], row["topology"], count, came, float(offer.prices[row["site"]]), late=late
            )  # fmt: skip


def _ordered(offer: OfferFacts, came: date) -> date:
    """Return the day on which systems that come on a day are ordered: the typical time of delivery before, where the offer states one."""
    return came if offer.lead_s is None else came - timedelta(days=math.ceil(offer.lead_s[1] / DAY_S))


def _phase(row: FleetRow) -> str | None:
    return row.get("obtained")


def as_delivered(
    holdings: Sequence[Holding], delivered: Mapping[Place, int], problem: ResolvedSpec, day: date
) -> list[Holding]:
    """Set the counts to what was `delivered` at each place, the earliest first; the rest of each is `late`. Places that are not named are as planned.

    Systems that the plan does not have at a place came on `day`, at the price of the offer. Raises SpecError for one that no offer has there.
    """
    left = Counter(delivered)
    found: list[Holding] = []
    order = sorted(range(len(holdings)), key=lambda i: holdings[i].came)
    last = {holdings[i].place: i for i in order}
    for i in order:
        each = holdings[i]
        if each.place not in delivered:
            found.append(each)
            continue
        ordered = each.count + each.late
        more = left[each.place] if last[each.place] == i else min(left[each.place], ordered)
        left[each.place] -= more
        found.append(
            replace(each, count=more, late=max(ordered - more, 0), came=min(each.came, day) if more else each.came)
        )
    problems = []
    for place, count in delivered.items():
        if place in last or not count:
            continue
        offer = next(
            (
                o
                for o in problem.offers
                if (o.system, o.how) == place[1:] and place[0] in o.prices and not (o.owned or o.rented)
            ),
            None,
        )
        if offer is None or offer.how not in (BUY, RESERVED):
            told = Message.of("replan.not_offered", system=place[1], how=place[2], site=place[0])
            problems.append(Issue("delivered", told.text()))
        else:
            found.append(Holding(offer, place[0], PROVIDER, count, day, offer.prices[place[0]]))
    if problems:
        raise SpecError(problems)
    return found


def owned_entries(holdings: Iterable[Holding], day: date, currency: str) -> list[dict[str, Any]]:
    """Write bought systems as entries of `owned`, one for each kind, site, network, day of delivery and price."""
    counts: Counter[tuple[str, str, str, int, float]] = Counter()
    for each in holdings:
        if each.offer.how == BUY:
            age = max((day - each.came).days, YOUNGEST_D)
            counts[each.offer.system, each.site, each.topology, age, each.price] += each.count
    return [
        {
            "system": system, "region": site, "count": count, "age": f"{age} d", "price": f"{price:.12g} {currency}",
            **({} if topology == PROVIDER else {"topology": topology}),
        }
        for (system, site, topology, age, price), count in counts.items()
        if count
    ]  # fmt: skip


def rented_entries(holdings: Iterable[Holding], day: date, currency: str) -> list[dict[str, Any]]:
    """Write reserved systems whose term still runs as entries of `rented`; a term that has ended counts as begun anew."""
    counts: Counter[tuple[str, str, float, date, float, bool]] = Counter()
    for each in holdings:
        offer = each.offer
        if offer.how != RESERVED:
            continue
        term = timedelta(days=round(offer.term_s / DAY_S))
        until = each.came + term * (1 + (day - each.came) // term)
        counts[offer.system, each.site, each.price, until, offer.exit_fee, offer.with_software] += each.count
    return [
        {
            "system": system, "region": site, "count": count, "price": f"{price * HOUR_S:.12g} {currency}/h", "until": until.isoformat(),
            "exit_fee": fee, **({"includes": ["software"]} if covered else {}),
        }
        for (system, site, price, until, fee, covered), count in counts.items()
        if count
    ]  # fmt: skip


def orders(
    holdings: Iterable[Holding], expected: Mapping[Place, date], day: date, currency: str
) -> Iterator[dict[str, Any]]:
    """Write open orders as offers of as many systems at their site and price, from the expected day on; where none is known from the planned one, `day` at the earliest."""
    for each in holdings:
        if each.late:
            rent = each.offer.how == RESERVED
            price = f"{each.price * (HOUR_S if rent else 1.0):.12g} {currency}" + ("/h" if rent else "")
            comes = max(expected.get(each.place, each.came), day)
            later = {"available_from": comes.isoformat()} if comes > day else {}
            term = {"term": f"{each.offer.term_s / DAY_S:.12g} d", "exit_fee": each.offer.exit_fee} if rent else {}
            covered = {"includes": ["software"]} if each.offer.with_software else {}
            yield {
                "system": each.offer.system, "how": each.offer.how, "price": price, "supply": each.late, "regions": [each.site], **later, **term, **covered,
            }  # fmt: skip


# -- entries that the plan started with --------------------------------------------------------------------------------


def aged(
    entries: Sequence[Mapping[str, Any]], plan: Plan, elapsed_s: float, stated: Sequence[OwnedSystems]
) -> list[dict[str, Any]]:
    """Return the entries of `owned` from a day on: what the plan kept and moved, older by the time since; `stated`: the same entries, parsed.

    Of a plan with `adapt` counts what its first stage keeps.
    """
    rows = {row["path"]: row for row in plan.document.get("owned") or ()}
    adapted: Adaptation | None = plan.document.get("adaptation")
    kept = None if adapted is None else adapted.get("kept")
    found = []
    for i, (entry, parsed) in enumerate(zip(entries, stated, strict=True)):
        row = rows.get(f"owned[{i}]")
        if kept is not None:
            stays = Counter({each["site"]: each["count"] for each in kept if each["offer"] == f"owned[{i}]"})
        else:
            stays = Counter({entry["region"]: parsed.count if row is None else row["kept"] + row["idle"]})
            stays.update({} if row is None else row["moved"])
        older = {**entry, "age": f"{parsed.age + elapsed_s:.0f} s"}
        if parsed.lease_end is not None:
            if parsed.lease_end <= elapsed_s:
                continue
            older["lease_end"] = f"{parsed.lease_end - elapsed_s:.0f} s"
        found += [{**older, "region": region, "count": count} for region, count in stays.items() if count]
    return found


def running(
    entries: Sequence[Mapping[str, Any]], plan: Plan, day: date, until_of: Mapping[int, date]
) -> list[dict[str, Any]]:
    """Return the entries of `rented` on `day`: less what the plan has given back, with what it has extended; `until_of`: ends of the contracts by entry.

    A plan with `adapt` gives nothing back and extends nothing before its later dates, which decide anew.
    """
    adapts = plan.document.get("adaptation") is not None
    rows = {} if adapts else {row["path"]: row for row in plan.document.get("rented") or ()}
    found = []
    for i, entry in enumerate(entries):
        row = rows.get(f"rented[{i}]")
        back = [] if row is None else [each for each in row["given_back"] if date.fromisoformat(each["day"]) <= day]
        if until_of[i] > day:
            if count := int(entry["count"]) - sum(each["count"] for each in back):
                found.append({**entry, "count": count, "until": until_of[i].isoformat()})
            continue
        for more in [] if row is None else row["extended"]:
            if date.fromisoformat(more["day"]) > day and more["count"]:
                price = entry.get("extension_price") or entry["price"]
                found.append({**entry, "count": int(more["count"]), "until": more["day"], "price": price})
    return found
