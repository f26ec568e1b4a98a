"""The fleet of a plan as the check reads it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from catalog.units import YEAR_S
from models.network.group_links import Plant
from planner.problem.fabrics import bands, reach_of, scaleout_bytes_per_s
from planner.problem.facts import OfferFacts, Problem, ServingFacts, SiteFacts, SystemFacts
from planner.spec.fabrics import PROVIDER

Key = tuple[str, str, str, str, int | None, str]  # site, system, how, fabric, its size, offer


@dataclass(frozen=True, slots=True)
class CheckedOption:
    """One system of a fleet row: prices in the spec's currency, power of the system with its share of the fabric."""

    site: SiteFacts
    system: SystemFacts
    offer: OfferFacts
    fabric: str
    owned: bool
    capital: float
    fabric_capital: float
    facility_capital: float
    rent_per_s: float
    idle_it_w: float
    plant: Plant | None
    largest: float
    nameplate_w: float = 0.0  # of one system of our own and its share of the fabric

    @property
    def scaleout_bytes_per_s(self) -> float:
        return scaleout_bytes_per_s(self.plant) if self.owned else self.system.nic_bytes_per_s


class FleetOptions:
    """Looks up what a fleet row means; a row that the spec does not offer raises KeyError."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.sites = {site.region: site for site in problem.sites}
        self.offers = {offer.path: offer for offer in problem.offers}
        self._known: dict[Key, CheckedOption] = {}

    def __getitem__(self, key: tuple) -> CheckedOption:
        key = key[:6]  # whoever holds it
        if key not in self._known:
            self._known[key] = self._option(*key)
        return self._known[key]

    def _option(
        self, region: str, system_name: str, how: str, fabric: str, size: int | None, offer_path: str
    ) -> CheckedOption:
        site, offer = self.sites[region], self.offers[offer_path]
        system = self.problem.systems[system_name]
        if offer.system != system_name or offer.how != how or (site.systems and system_name not in site.systems):
            raise KeyError(f"{system_name} ({how}) is not offered in {region}")
        price = offer.prices[region]
        if how != "buy":
            if fabric != PROVIDER or size is not None:
                raise KeyError(f"a rented system stands on the provider's fabric, not on {fabric}")
            return CheckedOption(
                site, system, offer, fabric, False, 0.0, 0.0, 0.0, price, system.idle_w, None, math.inf
            )
        if fabric not in site.fabrics:
            raise KeyError(f"{fabric} is not a fabric of {region}")
        known = bands(fabric, system, site.network, reach_of(site, offer, system))
        band = next((band for band in known if size == (band.plant.systems if band.plant else None)), None)
        if band is None:
            raise KeyError(f"no {fabric} network of {system_name} is built for {size} systems")
        return CheckedOption(
            site=site, system=system, offer=offer, fabric=fabric, owned=True,
            capital=price,
            fabric_capital=band.price,
            facility_capital=(system.power_w + band.power_w) * site.facility_cost_per_w,
            rent_per_s=0.0,
            idle_it_w=system.idle_w + band.power_w,
            plant=band.plant,
            largest=band.largest,
            nameplate_w=system.power_w + band.power_w,
        )  # fmt: skip


def tokens_price(site: SiteFacts, workload: ServingFacts, begin_s: float) -> float:
    """Of one request that an API answers in a window that begins then; nothing at a site of our own."""
    if site.api is None:
        return 0.0
    lengths = workload.spec.lengths
    return (site.api.input_price * lengths.input + site.api.output_price * lengths.output) * (
        1 + site.api.price_change
    ) ** (begin_s / YEAR_S)


def worth_of(problem: Problem, site: SiteFacts) -> float:
    """Present worth of a unit per second from when the site is there [s]."""
    calendar = problem.calendar
    there = [bool(calendar.edges_s[w] >= site.from_s - 1e-6) for w in range(calendar.windows)]
    return sum(float(s * d) for s, d, w in zip(calendar.seconds, calendar.discount, calendar.window) if there[int(w)])
