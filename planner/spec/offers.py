"""Blocks of a spec about the ways to obtain a system: offers, and the terms of those on the spot market.

What an interruption does to a job: `planner.evaluate.interruptions`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from catalog.units import DAY_S
from planner.messages import Message
from planner.spec.base import SOME, Block
from planner.spec.facility import Assurance
from planner.spec.load.forecast import Estimates
from planner.spec.phases import OfferInTime
from planner.spec.quantities import WHOLE, Fraction, LifeSeconds, Name, Seconds, SecondsFromStart, offer_price
from planner.spec.stack.components import Components

LONGEST_S = 7 * DAY_S
"""Longest start and longest least run that a spec may state [s]."""
Covered = Literal["software"]
"""What the price of systems may cover beside them."""


class SpotTerms(Block):
    """Terms of an offer on the spot market, for "how": "spot" only."""

    interruption_interval: Seconds | None = None
    """Mean time until one system is taken away."""
    restart: SecondsFromStart = 0.0
    """Time until a replacement is available, on top of a job's recovery from any failure."""
    headroom: Fraction | None = None
    """Share of extra systems that serving holds for those taken away; without it nothing is served there."""

    def check_terms(self, how: str) -> None:
        """Check that the terms fit the way to obtain. Raises ValueError where one is missing, or belongs to another way."""
        if how == "spot" and self.interruption_interval is None:
            raise ValueError(Message.of("spec.interruption_interval_missing").text())
        terms = sorted(self.model_fields_set & set(SpotTerms.model_fields))
        if how != "spot" and terms:
            raise ValueError(Message.of("spec.only_for_spot", key=terms[0]).text())


class HourlyTerms(Block):
    """Terms of a rent that is paid for by the hour, for "how": "on_demand" and "spot" only."""

    start_time: Annotated[SecondsFromStart, Field(le=LONGEST_S)] | None = None
    """Time from order to ready, paid for at each start while nothing is served; the catalog's if omitted. Weights are loaded after it."""
    least_run: Annotated[SecondsFromStart, Field(le=LONGEST_S)] | None = None
    """Least time for which a system runs, and is paid for, once it has started; the catalog's if omitted."""

    def check_hourly(self, how: str) -> None:
        """Check that the terms belong to a rent by the hour. Raises ValueError otherwise."""
        stated = sorted(self.model_fields_set & set(HourlyTerms.model_fields))
        if how not in ("on_demand", "spot") and stated:
            raise ValueError(Message.of("hourly.only_by_hour", key=stated[0]).text())


class CommitmentTerms(Block):
    """Terms of a rent under a commitment, for "how": "reserved" only."""

    term: LifeSeconds | None = None
    """Least time for which it is rented; none if omitted."""
    exit_fee: Fraction | None = None
    """Share of the rent for the rest of the term that is due where the horizon ends before; the catalog's if omitted."""

    def check_commitment(self, how: str) -> None:
        """Check that the terms belong to a commitment. Raises ValueError otherwise."""
        stated = sorted(self.model_fields_set & set(CommitmentTerms.model_fields))
        if how != "reserved" and stated:
            raise ValueError(Message.of("spec.only_for_reserved", key=stated[0]).text())
        if self.exit_fee is not None and self.term is None:
            raise ValueError(Message.of("spec.exit_fee_alone").text())


class DeliveryTime(Estimates):
    """Time from an order until the systems serve; draws are triangular between low and high."""

    low: SecondsFromStart | None = None
    """Least time; as typical if omitted."""
    typical: SecondsFromStart
    """Most likely time, by which all plans count."""
    high: SecondsFromStart | None = None
    """Longest time; as typical if omitted."""

    @property
    def levels(self) -> tuple[float, float, float]:
        """Return low, typical and high [s]."""
        low, high = (self.typical if each is None else each for each in (self.low, self.high))
        return low, self.typical, high


class Offer(Assurance, SpotTerms, HourlyTerms, CommitmentTerms, OfferInTime):
    """A way to obtain a system; without `price` the catalog's offer of the same system and way is taken."""

    system: Name
    """A system of the catalog."""
    how: Literal["buy", "reserved", "on_demand", "spot"]
    price: (
        Annotated[
            str,
            Field(
                examples=["310000 USD", "55.04 USD/h", "6.88 USD/gpu/h"],
                json_schema_extra={"x-unit": "currency, or currency/s"},
            ),
        ]
        | None
    ) = None
    """Per system when bought, per system and time when rented; or per chip, such as "6.88 USD/gpu/h", "$6.88/gpu/hour" or "38750 USD/chip"."""
    components: Components | None = None
    """Parts of a bought system from which its price follows, in place of `price`."""
    supply: Annotated[int, Field(ge=0, le=10_000_000), WHOLE] | None = None
    """Most systems that can be obtained; unlimited if omitted."""
    least: Annotated[int, Field(ge=1, le=10_000_000), WHOLE] | None = None
    """Least systems that are obtained over all sites and phases, if any are; none if omitted."""
    regions: Annotated[list[Name], SOME] | None = None
    """Regions where it is valid; all sites if omitted."""
    delivery: DeliveryTime | None = None
    """Time from an order until its systems serve, for "how": "buy" and "reserved"; orders of the start come at the typical time, or from `available_from` on if that is
    later. With `adapt` they come as late as each scenario says."""
    includes: Annotated[list[Covered], Field(max_length=1)] = []
    """What the price covers beside the systems: "software" for the licences and support of `economics`, which are due beside it otherwise."""
    note: str = ""

    def amount(self) -> tuple[float, str] | None:
        """Return (amount, currency), per system when bought and per system and second when rented. Raises ValueError for a price per chip."""
        return None if self.price is None else offer_price(self.price, self.how == "buy")

    @field_validator("price", mode="before")
    @classmethod
    def _readable(cls, price: Any, known: ValidationInfo) -> Any:
        if price is not None and "how" in known.data:
            offer_price(price, known.data["how"] == "buy", chips=1)
        return price

    @model_validator(mode="after")
    def _in_time(self) -> Offer:
        self.check_prices(self.how == "buy")
        self.check_terms(self.how)
        self.check_commitment(self.how)
        self.check_hourly(self.how)
        if self.components is not None and (self.how != "buy" or self.price is not None):
            raise ValueError(Message.of("spec.components_only_for_bought").text())
        if self.least is not None and self.supply is not None and self.least > self.supply:
            raise ValueError(Message.of("spec.least_above_supply", least=self.least, supply=self.supply).text())
        if self.delivery is not None and self.how not in ("buy", "reserved"):
            raise ValueError(Message.of("spec.delivery_only_for_orders").text())
        if self.life is not None and self.how != "buy":
            raise ValueError(Message.of("spec.life_only_for_bought").text())
        for key in sorted(self.model_fields_set & set(Assurance.model_fields)):
            if self.how == "buy":
                raise ValueError(Message.of("spec.only_for_rented", key=key).text())
        return self
