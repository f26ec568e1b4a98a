"""The blocks of a spec that say how a site buys, stores and shapes its electricity, and which hourly series it reads.

Not here: how a series is read (`planner.spec.series`) and what the blocks cost (`planner.problem.electricity`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, WrapValidator, model_validator

from planner.spec.base import Block
from planner.spec.quantities import (
    CarbonIntensity,
    EnergyPrice,
    Joules,
    Name,
    PeakPrice,
    PowerPrice,
    Real,
    Seconds,
    Watts,
)

LEAST_SHARE = 1e-6
TARIFF = "tariff"
PeakPriceOrTariff = Annotated[
    PeakPrice,
    WrapValidator(lambda value, read: value if value == TARIFF else read(value)),
    WithJsonSchema({"type": "string", "examples": ["15 USD/kW-month", TARIFF]}),
]


class Hourly(Block):
    """A CSV file of hours (UTC) with a price, a carbon intensity, or both; units stand in its header."""

    file: Name
    """Beside the spec, or in a folder given by `--hourly`."""
    fill: Literal["linear"] | None = None
    """How blank hours are filled; they are an error where it is left out."""
    carbon: Literal["direct", "life-cycle"] = "direct"
    """Which carbon intensity is read."""


class Profile(Block):
    """A column of a CSV file with the output of a plant over its capacity, hour by hour."""

    file: Name
    """Beside the spec, or in a folder given by `--hourly`."""
    column: Name
    """Of the file: values from 0 to 1."""
    fill: Literal["linear"] | None = None
    """How blank hours are filled; they are an error where it is left out."""


class PowerPurchase(Block):
    """A contract with a plant for a share of its output."""

    name: Name
    capacity: Watts
    """Most that may be contracted, as the plant's rating."""
    least: Watts | None = None
    """Least that must be contracted; none where it is left out."""
    price: EnergyPrice
    """Per energy."""
    pays: Literal["produced", "taken"] = "produced"
    """Whether all that is produced is paid for, or only what is taken; the rest is curtailed."""
    profile: Literal["solar", "flat"] | Profile
    """Output over capacity: the sun's height at the site in a clear sky, the same at all hours, or a column of a file."""
    capacity_factor: Annotated[Real, Field(ge=LEAST_SHARE, le=1)] | None = None
    """Mean output over capacity; the catalog's assumption for a solar plant and 1 for a flat one where it is left out."""
    carbon: CarbonIntensity = 0.0
    """Of what is taken."""

    @model_validator(mode="after")
    def _consistent(self) -> PowerPurchase:
        if self.least is not None and self.least > self.capacity:
            raise ValueError("least is more than capacity; exchange them")
        if self.capacity_factor is not None and isinstance(self.profile, Profile):
            raise ValueError("capacity_factor belongs to a solar or flat profile; a file states its own")
        return self


class Battery(Block):
    """Storage behind the meter: a bank of modules, each of which charges or discharges at any time."""

    energy: Joules
    """Most that may be installed, as usable energy."""
    power: Watts
    """Most that may be installed, as power at the meter."""
    sizing: Literal["choose", "given"] = "choose"
    """Whether the plan chooses up to these sizes, or takes just them."""
    energy_price: EnergyPrice
    """Per usable energy, installed."""
    power_price: PowerPrice | None = None
    """Per power, installed; nothing where it is left out."""
    round_trip: Annotated[Real, Field(gt=0, le=1)] = 0.88
    """Energy out over energy in; the loss is half each way."""
    life: Seconds | None = None
    """Over which its price is recovered; that of the systems where it is left out."""


class Electricity(Block):
    """Electricity as a decision: bought hour by hour, under contract, and stored. Without it, each joule costs the site's price."""

    connection: Watts | None = None
    """Most that the grid delivers; any amount where it is left out."""
    demand_charge: PeakPriceOrTariff | None = None
    """Per power and month, of the largest hour of each month by local time; "tariff" takes that of the site's tariff."""
    ppa: Annotated[list[PowerPurchase], Field(max_length=20)] = []
    """Power purchase agreements."""
    battery: Battery | None = None
    """Storage behind the meter."""

    @model_validator(mode="after")
    def _names(self) -> Electricity:
        names = [contract.name for contract in self.ppa]
        if len(set(names)) < len(names):
            raise ValueError("ppa: a name stands twice; names must differ")
        return self


class Series(Block):
    """What was read from a CSV file; written by `flopwatt`, so that a plan holds all that it was made from."""

    start: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}$", examples=["2024-01-01T00"])]
    """First hour (UTC)."""
    sha256: str = ""
    """Of the file."""
    columns: Annotated[
        dict[Name, Annotated[list[Real | None], Field(min_length=1, max_length=366 * 24)]], Field(min_length=1)
    ]
    """A value for each hour from the first; null where the file has none."""

    @property
    def filled(self) -> list[str]:
        """Columns that hold anything."""
        return [name for name, values in self.columns.items() if any(value is not None for value in values)]


def _as_block(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


HourlyFile = Annotated[Hourly, BeforeValidator(_as_block, json_schema_input_type=Hourly | str)]
