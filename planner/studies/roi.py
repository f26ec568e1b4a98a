"""Compute the monthly value of a gain of utilisation, against the team that achieves it and a public cloud.

With a fleet of cost C per month that is used to the share u (MFU) of its peak, a gain of g = delta u / u
    adds the work that costs C g today, or saves, for the same work on fewer chips, C g / (1 + g).
The saving is that of a smaller fleet from the start; chips already bought cost the same until their life ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from catalog.errors import UnknownName
from catalog.exchange import per_usd
from catalog.lookup import Catalog
from catalog.units import MONTH_S, UnitError
from models.economics import capital_recovery_factor
from planner.errors import Issue, SpecError, unknown_record, words_of
from planner.facts.prices import RENTED, landlord_rents, market
from planner.messages import Message, named
from planner.money.components import COMPONENTS
from planner.plan import Plan
from planner.report.words import whole
from planner.spec.model import parse_spec
from planner.spec.quantities import read_money

MONTHS = 12
FIXED_COSTS = tuple(key for key, component in COMPONENTS.items() if component.fixed)
GAINS = ("1 point", "2 points", "5 points", "10 points")
RELATIVE = ("1%", "2%", "5%", "10%")
EXAMPLE = "1B CNY/month"
_PER_CHIP = re.compile(r"\s*(.+?)\s*/\s*(?:gpu|chip|card)s?\s*[-/ ·*]\s*([a-z]+)\s*", re.IGNORECASE)  # amount, time


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet. `cost`: per month; `mfu`: mean weighted by cost, None if unknown; `of`: the source of both."""

    cost: float
    currency: str
    chips: float | None
    mfu: float | None
    of: str


LANDLORDS = "landlords"  # in place of a way to rent: all landlords of a chip


@dataclass(frozen=True, slots=True)
class MarketRent:
    """Known rents of one chip of a system by a way to rent it [currency/month]; `of_fleet`: rents of the whole fleet [currency/month], least and most.

    `landlords`: how many ask for a chip (then named by `system`) of whatever system, on demand or reserved, each the cheapest offer; else 0.
    `middle`: their median.
    """

    system: str
    how: str
    least: float
    most: float
    of_fleet: tuple[float, float]
    landlords: int = 0
    middle: float = 0.0

    @property
    def row(self) -> dict[str, Any]:
        """Write it as JSON."""
        return {
            "system": self.system, "how": self.how, "least_per_chip": self.least, "most_per_chip": self.most,
            "fleet_least": self.of_fleet[0], "fleet_most": self.of_fleet[1],
            **({"landlords": self.landlords, "median_per_chip": self.middle} if self.landlords else {}),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Returns:
    """`rows`: one per gain, amounts per month; `break_even`: relative gains that pay for the team, by added work and by a smaller fleet; `market`:
    what the same chips rent for elsewhere."""

    fleet: Fleet
    team: float | None
    baseline: float | None
    rows: list[dict[str, Any]]
    break_even: tuple[float, float] | None
    market: tuple[MarketRent, ...] = ()

    @property
    def document(self) -> Mapping[str, Any]:
        """Return everything as JSON."""
        fleet = {name: getattr(self.fleet, name) for name in ("cost", "currency", "chips", "mfu", "of")}
        even = (
            None if self.break_even is None else {"added_work": self.break_even[0], "smaller_fleet": self.break_even[1]}
        )
        found = {"fleet": fleet, "team": self.team, "baseline": self.baseline, "break_even": even, "gains": self.rows}
        return found | ({"market": [rent.row for rent in self.market]} if self.market else {})

    @property
    def words(self) -> list[str]:
        """Summarise the market, the fleet, the largest gain, the team and the public cloud."""
        fleet, currency = self.fleet, self.fleet.currency
        market = [self._against(rent) for rent in self.market]
        told = {"cost": whole(fleet.cost), "currency": currency, "of": fleet.of}
        told |= {} if fleet.chips is None else {"chips": whole(fleet.chips)}
        told |= {} if fleet.mfu is None else {"mfu": f"{fleet.mfu:.1%}"}
        code = "roi.fleet" + ("" if fleet.chips is None else "_chips") + ("" if fleet.mfu is None else "_used")
        last, said = self.rows[-1], [Message.of(code, **told).text()]
        gain = {
            "gain": last["gain"],
            "more": f"{last['relative']:.1%}",
            "worth": whole(last["added_work"]),
            "currency": currency,
            "less": whole(last["smaller_fleet"]),
        }
        if last["chips_freed"] is None:
            said.append(Message.of("roi.gain", **gain).text())
        else:
            said.append(Message.of("roi.gain_freed", **gain, chips=whole(last["chips_freed"])).text())
        if self.break_even is not None:
            said.append(
                Message.of(
                    "roi.team",
                    cost=whole(self.team or 0.0),
                    currency=currency,
                    added=f"{self.break_even[0]:.2%}",
                    smaller=f"{self.break_even[1]:.2%}",
                ).text()
            )
        if self.baseline is not None:
            difference = self.baseline - fleet.cost - (self.team or 0.0)
            cloud = {"cost": whole(self.baseline), "currency": currency, "difference": whole(abs(difference))}
            who = Message.of("roi.with_team" if self.team else "roi.the_fleet").text()
            code = "roi.cloud_dearer" if difference >= 0 else "roi.cloud_cheaper"
            said.append(Message.of(code, **cloud, fleet=who).text())
        return market + said

    def _against(self, rent: MarketRent) -> str:
        """Hold the cost of the fleet against a range of known rents, and say what the largest gain is worth at them."""
        fleet, currency, relative = self.fleet, self.fleet.currency, self.rows[-1]["relative"]
        assert fleet.chips is not None  # where a market is asked for
        own = fleet.cost / fleet.chips
        if rent.landlords:
            span = {
                "least": whole(rent.least),
                "most": whole(rent.most),
                "middle": whole(rent.middle),
                "currency": currency,
            }
            return Message.of("roi.landlords", count=rent.landlords, chip=rent.system, **span).text()
        told = {
            "per_chip": whole(own), "currency": currency, "system": rent.system, "how": named("obtained", rent.how), "least": whole(rent.least),
            "most": whole(rent.most), "gain": self.rows[-1]["gain"],
            "low": whole(rent.of_fleet[0] * relative), "high": whole(rent.of_fleet[1] * relative),
        }  # fmt: skip
        if own > rent.most:
            return Message.of("roi.above_market", **told, times=f"{own / rent.most:.3g}").text()
        if own < rent.least:
            return Message.of("roi.below_market", **told, times=f"{rent.least / own:.3g}").text()
        return Message.of("roi.within_market", **told).text()

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (heading, rows), formatted for people."""
        unit = f"{self.fleet.currency} a month"
        names = {
            "added_work": f"added work, {unit}",
            "smaller_fleet": f"smaller fleet, {unit}",
            "net": f"less the team, {unit}",
            "against_baseline": f"cheaper than the cloud, {unit}",
        }
        rows = [
            {
                "gain": row["gain"],
                "more work": f"{row['relative']:.2%}",
                "MFU": "" if row["mfu"] is None else f"{row['mfu']:.1%}",
                "chips freed": "" if row["chips_freed"] is None else whole(row["chips_freed"]),
                **{words: whole(row[key]) for key, words in names.items() if row[key] is not None},
            }
            for row in self.rows
        ]
        return [(Message.of("studies.head_gain").text(), rows)]


def market_rents(fleet: Fleet, system: str, catalog: Catalog) -> tuple[MarketRent, ...]:
    """Find what the chips of a stated fleet rent for as a system of the catalog, on demand and reserved, and what landlords ask for its chip in any.

    Raises SpecError for an unknown system, for a fleet without a number of chips, and where the catalog knows no rent.
    """
    if fleet.chips is None:
        raise SpecError([Issue("--market", Message.of("option.market_needs_chips").text())])
    try:
        record, rate = catalog.get("systems", system), per_usd(catalog, fleet.currency)
    except UnknownName as error:
        raise SpecError([Issue("--market", unknown_record(error))]) from None
    found, sources = [], set()
    for how in RENTED:
        known = market(catalog, record, how)
        if known is None or rate is None or known.source in sources:
            continue
        sources.add(known.source)
        least, most = (price * rate * MONTH_S for price in (known.least, known.most))
        found.append(MarketRent(record.name, how, least, most, (least * fleet.chips, most * fleet.chips)))
    if not found:
        raise SpecError([Issue("--market", Message.of("option.no_market", system=record.name).text())])
    if rate is not None and (
        asked := [rent * rate * MONTH_S for rent in landlord_rents(catalog, record.words("chip"))]
    ):
        ends = asked[0], asked[-1]
        whole = ends[0] * fleet.chips, ends[1] * fleet.chips
        found.append(MarketRent(record.words("chip"), LANDLORDS, *ends, whole, len(asked), median(asked)))
    return tuple(found)


def returns(
    fleet: Fleet, gains: Sequence[str] = (), *, team: str | None = None, baseline: str | None = None,
    rents: tuple[MarketRent, ...] = (),
) -> Returns:  # fmt: skip
    """Compute the worth of each gain: texts such as "4 points" of MFU, or "10%" more work. Raises SpecError naming the argument."""
    paid, cloud = (
        None if text is None else monthly(text, name, fleet.currency)
        for text, name in ((team, "--team"), (baseline, "--baseline"))
    )
    rows = [_row(fleet, text, paid, cloud) for text in gains or (GAINS if fleet.mfu is not None else RELATIVE)]
    even = None
    if paid is not None and fleet.cost > paid:
        even = paid / fleet.cost, paid / (fleet.cost - paid)
    return Returns(fleet, paid, cloud, rows, even, rents)


def _row(fleet: Fleet, text: str, team: float | None, baseline: float | None) -> dict[str, Any]:
    relative = _relative(fleet, text)
    saved, less = fleet.cost * relative / (1 + relative), relative / (1 + relative)
    return {
        "gain": text.strip(),
        "relative": relative,
        "mfu": None if fleet.mfu is None else fleet.mfu * (1 + relative),
        "chips_freed": None if fleet.chips is None else fleet.chips * less,
        "added_work": fleet.cost * relative,
        "smaller_fleet": saved,
        "net": None if team is None else saved - team,
        "against_baseline": None if baseline is None else baseline - (fleet.cost - saved) - (team or 0.0),
    }


def _relative(fleet: Fleet, text: str) -> float:
    """Parse a gain as a share of today's work.

    >>> _relative(Fleet(1e9, "CNY", 1e4, 0.4, ""), "4 points")
    0.1
    """
    found = re.fullmatch(r"\s*\+?(\d+(?:\.\d+)?)\s*(%|points?)\s*", text)
    if not found or not float(found[1]):
        raise SpecError(
            [
                Issue(
                    "--gain",
                    Message.of("option.gain", given=text).text(),
                )
            ]
        )
    share = float(found[1]) / 100
    if found[2] != "%" and fleet.mfu is None:
        raise SpecError(
            [
                Issue(
                    "--gain",
                    Message.of("option.gain_needs_mfu", given=text).text(),
                )
            ]
        )
    relative = share if found[2] == "%" or fleet.mfu is None else round(share / fleet.mfu, 12)
    if fleet.mfu is not None and fleet.mfu * (1 + relative) > 1:
        raise SpecError(
            [Issue("--gain", Message.of("option.gain_above_peak", given=text, mfu=f"{fleet.mfu:.1%}").text())]
        )
    return relative


def monthly(text: str, argument: str, currency: str | None = None) -> float:
    """Parse an amount per time, and convert it to an amount per month. Raises SpecError."""
    return _amount(text, argument, currency)[0]


def _amount(text: str, argument: str, currency: str | None) -> tuple[float, str]:
    try:
        amount, stated = read_money(text, "s", EXAMPLE, 0.0, float("inf"))
    except (UnitError, ValueError) as error:
        raise SpecError([Issue(argument, words_of(error))]) from None
    if currency is not None and stated != currency:
        raise SpecError(
            [Issue(argument, Message.of("option.amount_in_currency", currency=currency, given=text).text())]
        )
    return amount * MONTH_S, stated


def stated_fleet(cost: str, chips: float | None, mfu: float | None) -> Fleet:
    """Take a fleet as its owner states it: `cost` of all of it, or of a chip such as "2.4 USD/GPU-hour". Raises SpecError."""
    if mfu is not None and not 0 < mfu <= 1:
        raise SpecError([Issue("--mfu", Message.of("studies.share_above_zero", given=f"{mfu:g}").text())])
    if chips is not None and not chips > 0:
        raise SpecError([Issue("--chips", Message.of("option.chips_above_zero", given=f"{chips:g}").text())])
    each = _PER_CHIP.fullmatch(cost)
    if each and chips is None:
        raise SpecError([Issue("--cost", Message.of("option.cost_needs_chips", given=cost).text())])
    amount, currency = _amount(f"{each[1]}/{each[2]}" if each else cost, "--cost", None)
    amount *= chips if each and chips is not None else 1.0
    if not amount:
        raise SpecError([Issue("--cost", Message.of("option.more_than_nothing", example=EXAMPLE).text())])
    return Fleet(amount, currency, chips, mfu, Message.of("roi.as_stated").text())


def planned_fleet(plan: Plan) -> Fleet:
    """Take the fleet of a plan: its fixed costs as a level monthly payment of the same present value, and the mean MFU weighted by cost.

    Plans discount what falls due in a year to its end, so that a constant rent is returned as it is paid.
    """
    if not plan.has_answer:
        raise SpecError([Issue("plan", Message.of("option.no_fleet_in_plan", status=plan.status).text())])
    years = plan.document["spec"].get("horizon", {}).get("years", 1)
    per_month = float(capital_recovery_factor(discount_rate(plan), years)) / MONTHS
    cost = sum(line["amount"] for line in plan.document["cost_lines"] if line["component"] in FIXED_COSTS)
    if cost <= 0:
        raise SpecError([Issue("plan", Message.of("option.no_systems_in_plan").text())])
    known = [(row["cost"], row["mfu"]) for row in plan.document["workloads"] if row["mfu"]]
    weight = sum(amount for amount, _ in known)
    mfu = sum(amount * share for amount, share in known) / weight if weight > 0 else None
    return Fleet(
        cost * per_month,
        plan.document["spec"].get("currency", "USD"),
        plan.totals["chips"],
        mfu,
        f"plan {plan.document['name']}: {', '.join(c for c in FIXED_COSTS if plan.document['costs'].get(c))}",
    )


def discount_rate(plan: Plan) -> float:
    """Return the discount rate per year that a plan was made with: stated in its spec, or assumed."""
    stated = parse_spec(plan.document["spec"]).horizon.discount_rate
    assumed = (row["value"] for row in plan.document["assumptions"] if row["path"] == "horizon.discount_rate")
    return float(str(next(assumed)).split()[0]) if stated is None else stated
