"""Fleet options of the checks: derive the option of a fleet row from the spec and the closed forms of networks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog.units import YEAR_S
from models.network.group_links import Plant
from planner.messages import Message
from planner.problem.fabrics import bands, reach_of, reach_with_others, scaleout_of
from planner.problem.facility import AIR
from planner.problem.facts import OfferFacts, ResolvedSpec, ScaleOut, ServingFacts, SiteFacts, SystemFacts
from planner.spec.fabrics import PROVIDER
from planner.verify.timing import TIME_TOL_S, risen

HeldKey = tuple[str, str, str, str, int | None, str, str]
"""Site, system, how it is obtained, fabric and its size, offer, tenant."""


@dataclass(frozen=True, slots=True)
class CheckedOption:
    """One system of a fleet row: prices in the spec's currency, power of the system with its share of the fabric."""

    site: SiteFacts
    system: SystemFacts
    offer: OfferFacts
    fabric: str
    owned: bool
    fabric_capital: float
    facility_capital: float
    idle_it_w: float
    plant: Plant | None
    largest: float  # systems that one network joins
    nameplate_w: float = 0.0  # one system of our own and its share of the fabric

    @property
    def scaleout(self) -> ScaleOut:
        """Return what the network between systems gives a chip; of a rented one the latency is unknown, and left out."""
        return scaleout_of(self.plant) if self.owned else ScaleOut(self.system.nic_bytes_per_s)

    @property
    def scaleout_bytes_per_s(self) -> float:
        """Return the scale-out bandwidth of a chip [byte/s]; 0 without a network."""
        return self.scaleout.bytes_per_s

    @property
    def pue(self) -> float:
        """Return the power at the meter over that of the system; see `meter_factor`."""
        return meter_factor(self.site, self.system, self.owned)

    @property
    def idle_at_meter_w(self) -> float:
        """Compute the power of an idle system at the meter, with its share of fabric and cooling [W]."""
        return self.idle_it_w * self.pue

    def drawn_per_j(self, hour: int, risen: float) -> dict[str, float]:
        """Price a joule at the meter by component, in an hour of a period, of a price that has `risen`; none where a meter settles the site as a whole, or for rented systems."""
        if not self.owned or self.site.electricity is not None:
            return {}
        return {"energy": float(self.site.price_per_j[hour]) * risen}

    def unearned_per_j(self, hour: int, risen: float) -> float:
        """Return what a negative price pays for energy, which our own systems do not earn while they are idle; 0 at other prices."""
        return max(-float(self.site.price_per_j[hour]), 0.0) * risen if self.owned else 0.0


def meter_factor(site: SiteFacts, system: SystemFacts, owned: bool) -> float:
    """Compute the power at the meter over that of a system: with air where the system and the hall take it, else with liquid; a provider's hall takes both."""
    by_air = AIR in system.cooling and (not owned or AIR in site.hall.cooling)
    return site.pue.air if by_air else site.pue.liquid


class FleetOptions:
    """Look up the fleet option of a key; the tenant plays no part. `annuities`: charged as by releases up to 0.2. Raises KeyError for an option that the spec does not offer."""

    def __init__(self, problem: ResolvedSpec, annuities: bool = False):
        self.problem, self.annuities = problem, annuities
        self.sites = {site.region: site for site in problem.sites}
        self.offers = {offer.path: offer for offer in problem.offers}
        self._known: dict[tuple[str, str, str, str, int | None, str], CheckedOption] = {}

    def __getitem__(self, key: HeldKey) -> CheckedOption:
        without_tenant = key[:6]
        if without_tenant not in self._known:
            self._known[without_tenant] = self._option(*without_tenant)
        return self._known[without_tenant]

    def _option(
        self, region: str, system_name: str, how: str, fabric: str, size: int | None, offer_path: str
    ) -> CheckedOption:
        site, offer = self.sites[region], self.offers[offer_path]
        system = self.problem.systems[system_name]
        if offer.system != system_name or offer.how != how or (site.systems and system_name not in site.systems):
            raise KeyError(Message.of("verify.system_not_offered", system=system_name, how=how, region=region).text())
        if region not in offer.prices:
            raise KeyError(Message.of("verify.offer_without_price", offer=offer_path, region=region).text())
        if how != "buy":
            if fabric != PROVIDER or size is not None:
                raise KeyError(Message.of("verify.rented_on_provider_fabric", fabric=fabric).text())
            return CheckedOption(site, system, offer, fabric, False, 0.0, 0.0, system.idle_w, None, math.inf)
        home = offer.owned is not None and offer.owned.region == region
        if offer.owned is not None and home and offer.owned.topology not in ("", fabric):
            raise KeyError(
                Message.of(
                    "verify.stands_on_other_fabric", offer=offer_path, topology=str(offer.owned.topology), fabric=fabric
                ).text()
            )
        if fabric not in site.topologies:
            raise KeyError(Message.of("verify.no_fabric_of_region", fabric=fabric, region=region).text())
        known = bands(fabric, system, site.fabric, reach_of(site, offer, system))
        if size is not None and not home and all(size > band.largest for band in known):
            known = bands(fabric, system, site.fabric, reach_with_others(self.problem, site, offer))
        band = next((band for band in known if size == (band.plant.systems if band.plant else None)), None)
        if band is None:
            raise KeyError(
                Message.of("verify.no_network_for", fabric=fabric, system=system_name, size=str(size)).text()
            )
        premium = 0.0 if self.annuities else site.facility_premium
        return CheckedOption(
            site=site, system=system, offer=offer, fabric=fabric, owned=True,
            fabric_capital=0.0 if home else band.price,
            facility_capital=0.0 if home else (system.power_w + band.power_w) * site.facility_cost_per_w * (1 + premium),
            idle_it_w=system.idle_w + band.power_w,
            plant=band.plant,
            largest=band.largest,
            nameplate_w=system.power_w + band.power_w,
        )  # fmt: skip


def key_of(row: Mapping[str, Any]) -> HeldKey:
    """Build the key of the fleet option of a fleet row, or of a pool with its site."""
    return (
        row["site"],
        row["system"],
        row["how"],
        row["topology"],
        row["network_size"],
        row["offer"],
        row.get("tenant", ""),
    )


def key_at(region: str, pool: Mapping[str, Any]) -> HeldKey:
    """Build the key of the fleet option of a point's pool at the point's site, or at the site that the pool states."""
    return key_of({"site": region, **pool})


def tokens_price(site: SiteFacts, workload: ServingFacts, begin_s: float) -> float:
    """Price one request that an API answers in a window that begins then; 0 at a site of our own."""
    if site.api is None:
        return 0.0
    asked = workload.spec
    at_start = site.api.input_price * asked.prompt_tokens + site.api.output_price * asked.lengths.output
    return float(at_start * (1 + site.api.price_change) ** (begin_s / YEAR_S))


def site_worth(problem: ResolvedSpec, site: SiteFacts) -> dict[str, float]:
    """Compute the present value of what a site in use costs at any size, by component: its fixed cost, and its crew; none that is free."""
    crew = site.crew_per_s * worth_of(problem, site, problem.economics.escalation.staff)
    amounts = {"site": site.fixed_cost_per_s * worth_of(problem, site), "staff": crew}
    return {component: amount for component, amount in amounts.items() if amount}


def worth_of(problem: ResolvedSpec, site: SiteFacts, escalation: float = 0.0) -> float:
    """Compute the present worth of one unit per second, which rises by a share at the end of each year, from the opening of the site on [s]."""
    calendar = problem.calendar
    open_in = [bool(calendar.edges_s[w] >= site.from_s - TIME_TOL_S) for w in range(calendar.windows)]
    return sum(
        float(s * d) * risen(escalation, float(calendar.edges_s[w]))
        for s, d, w in zip(calendar.seconds, calendar.discount, calendar.window, strict=True)
        if open_in[int(w)]
    )
