"""Blocks of a spec about electricity: how a site buys, contracts and stores it, and which hourly series it reads.

Not here: how a series is read (`planner.spec.series`) and what the blocks cost (`planner.problem.electricity`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, WrapValidator, model_validator

from catalog.contents import PARTS, SEPARATE, STATES
from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import (
    WHOLE,
    CarbonIntensity,
    EnergyPrice,
    Fraction,
    Joules,
    LifeSeconds,
    Name,
    PeakPrice,
    PowerPrice,
    Real,
    Watts,
)
from planner.spec.series import series_key, wrong_columns, wrong_value

LEAST_SHARE = 1e-6
TARIFF = "tariff"
PeakPriceOrTariff = Annotated[
    PeakPrice,
    WrapValidator(lambda value, read: value if value == TARIFF else read(value)),
    PlainSerializer(lambda value: value),  # as it was read: a price, or the word
    WithJsonSchema({"type": "string", "examples": ["15 USD/kW-month", TARIFF]}),
]


def _part(example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "examples": [*STATES, example]})


_STATE_OR_PRICE = WrapValidator(lambda value, read: value if value in STATES else read(value))
_AS_READ = PlainSerializer(lambda value: value)
PartPrice = Annotated[EnergyPrice, _STATE_OR_PRICE, _AS_READ, _part("0.03 USD/kWh")]
PartPeakPrice = Annotated[PeakPrice, _STATE_OR_PRICE, _AS_READ, _part("15 USD/kW-month")]


class Contents(Block):
    """What the price of electricity at a site contains. Each part is "included" in the price, "separate" (the catalog's figure for the region is due on
    top) or "unknown", or states the figure that is due on top. Parts that are left out keep the contents that are known of the price: a price in the
    spec contains all but the charges that stand beside it, a file holds a market's price of energy, and records of the catalog state theirs."""

    energy: Literal["included", "unknown"] | None = None
    """The energy itself."""
    delivery: PartPrice | None = None
    """Networks, losses and supply."""
    demand: PartPeakPrice | None = None
    """Charges on the largest power of each month; a figure needs the block `electricity`."""
    levies: PartPrice | None = None
    """Taxes and levies that are not refunded."""

    def states(self) -> dict[str, str]:
        """Return the state of each part that is stated; a figure is separate."""
        stated = {part: getattr(self, part) for part in PARTS}
        return {part: SEPARATE if isinstance(value, tuple) else value for part, value in stated.items() if value}

    def amount(self, part: str) -> tuple[float, str] | None:
        """Return the figure of a part, None where none is stated."""
        value = getattr(self, part)
        return value if isinstance(value, tuple) else None


class Hourly(Block):
    """A CSV file of hours (UTC) with a price, a carbon intensity, or both, whose header states the units; or a file as ENTSO-E, entsoe-py, Ember, SMARD, OMIE,
    PJM, AEMO, Electricity Maps and the British grid publish it."""

    file: Name
    """Beside the spec, or in a folder given by `--hourly`."""
    zone: Name | None = None
    """Area of a published file that holds several, by its name there."""
    fill: Literal["linear"] | None = None
    """How blank hours are filled; they are an error if omitted."""
    carbon: Literal["direct", "life-cycle"] = "direct"
    """Which carbon intensity counts."""

    @property
    def series(self) -> str:
        """Return the name under which the spec holds the contents."""
        return series_key(self.file, self.zone)


class Profile(Block):
    """A column of a CSV file with the hourly output of a plant over its capacity."""

    file: Name
    """Beside the spec, or in a folder given by `--hourly`."""
    column: Name
    """Of the file: values from 0 to 1."""
    fill: Literal["linear"] | None = None
    """How blank hours are filled; they are an error if omitted."""


class PowerPurchase(Block):
    """A contract with a plant for a share of its output."""

    name: Name
    capacity: Watts
    """Most capacity that may be contracted, by the plant's rating."""
    least: Watts | None = None
    """Least capacity that must be contracted; none if omitted."""
    price: EnergyPrice
    """Price per energy."""
    pays: Literal["produced", "taken"] = "produced"
    """Whether all energy that is produced is paid for, or only what is taken; the rest is curtailed."""
    profile: Literal["solar", "flat"] | Profile
    """Output over capacity: by the sun's elevation at the site in a clear sky, constant, or a column of a file."""
    capacity_factor: Annotated[Real, Field(ge=LEAST_SHARE, le=1)] | None = None
    """Mean output over capacity; the catalog's assumption for a solar plant and 1 for a flat one if omitted."""
    carbon: CarbonIntensity = 0.0
    """Carbon intensity of the energy that is taken."""
    kind: Literal["on-site", "grid", "financial"] = "grid"
    """"grid": through the connection and the meter, so that delivery, levies and demand charges are due on its energy; "on-site": behind the meter;
    "financial": energy is bought from the grid, and the contract pays or takes the difference from the market's price on all that is produced."""
    sale_fee: EnergyPrice | None = None
    """Fee at which energy that is produced and not taken is sold at the market's price of the hour, where the site's price is that of a market; if
    omitted, it is curtailed."""

    @model_validator(mode="after")
    def _consistent(self) -> PowerPurchase:
        if self.pays == "taken" and (self.kind == "financial" or self.sale_fee is not None):
            raise ValueError(Message.of("electricity.taken_has_no_surplus").text())
        if self.kind == "financial" and self.sale_fee is not None:
            raise ValueError(Message.of("electricity.financial_has_no_surplus").text())
        if self.least is not None and self.least > self.capacity:
            raise ValueError(Message.of("spec.least_above_capacity").text())
        if self.capacity_factor is not None and isinstance(self.profile, Profile):
            raise ValueError(Message.of("spec.capacity_factor_of_file").text())
        return self


class Battery(Block):
    """Storage behind the meter: a bank of modules, each of which charges or discharges at any moment."""

    energy: Joules
    """Most usable energy that may be installed."""
    power: Watts
    """Most power at the meter that may be installed."""
    sizing: Literal["choose", "given"] = "choose"
    """Whether the plan chooses sizes up to these, or takes exactly these."""
    energy_price: EnergyPrice
    """Price per usable energy, installed."""
    power_price: PowerPrice | None = None
    """Price per power, installed; none if omitted."""
    round_trip: Annotated[Real, Field(gt=0, le=1)] = 0.88
    """Round-trip efficiency, energy out over energy in; the loss is the same each way."""
    life: LifeSeconds | None = None
    """Life over which its price is recovered; that of the systems if omitted."""


class Electricity(Block):
    """Electricity as a decision: bought from the grid hour by hour, under contract, and stored. Without the block, each joule costs the site's price."""

    connection: Watts | None = None
    """Most power that the grid delivers; unlimited if omitted."""
    demand_charge: PeakPriceOrTariff | None = None
    """Price per power and month of the largest hour of each month by local time; "tariff" takes that of the site's tariff."""
    ppa: Annotated[list[PowerPurchase], Field(max_length=20)] = []
    """Power purchase agreements."""
    battery: Battery | None = None
    """Storage behind the meter."""

    @model_validator(mode="after")
    def _names(self) -> Electricity:
        names = [contract.name for contract in self.ppa]
        if len(set(names)) < len(names):
            raise ValueError(Message.of("spec.contract_name_twice").text())
        return self


class Series(Block):
    """Contents of a CSV file; written by `flopwatt`, so that a plan holds all its inputs."""

    start: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}$", examples=["2024-01-01T00"])]
    """First hour (UTC)."""
    sha256: str = ""
    """Hash of the file."""
    layout: Annotated[str, Field(max_length=100)] = ""
    """Published layout of the file; that of columns with units if omitted."""
    zone: Annotated[str, Field(max_length=200)] = ""
    """Area that was read."""
    per_hour: Annotated[int, Field(ge=1, le=3600), WHOLE] = 1
    """Most values of an hour that were averaged."""
    estimated: Fraction = 0.0
    """Share of the rows that the publisher estimated."""
    columns: Annotated[
        dict[Name, Annotated[list[Real | None], Field(min_length=1, max_length=366 * 24)]], Field(min_length=1)
    ]
    """A value for each hour from the first; null where the file has none."""

    @model_validator(mode="after")
    def _sensible(self) -> Series:
        problems = [wrong_columns(list(self.columns)), *(wrong_value(*column) for column in self.columns.items())]
        if problem := next(filter(None, problems), ""):
            raise ValueError(problem)
        return self

    @property
    def filled(self) -> list[str]:
        """List the columns that hold any value."""
        return [name for name, values in self.columns.items() if any(value is not None for value in values)]


def _as_block(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


HourlyFile = Annotated[Hourly, BeforeValidator(_as_block, json_schema_input_type=Hourly | str)]
