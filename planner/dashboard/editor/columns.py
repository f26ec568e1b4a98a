"""List the tables of a spec and the columns of each: where in the spec a cell lies, and how it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pydantic import BaseModel

from models.formats import RECIPE_FORMATS
from planner.spec.electricity import PowerPurchase
from planner.spec.lines import SECURITY
from planner.spec.model import Horizon, Objective
from planner.spec.offers import Offer
from planner.spec.reinforcement import Reinforcement
from planner.spec.sites import Site
from planner.spec.workloads import PRECISIONS, Serving

Kind = Literal["text", "figure", "switch", "choice", "names", "shares"]
"""How a cell is written: a text; a number, or a text with its unit; yes or no; one of some names; several of them; names with shares."""
CATALOG = ("architectures", "lines", "regions", "systems", "tariffs")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `key` is the place of its cells inside an entry; `of` the kind of catalog record, or the names, that a cell chooses from."""

    key: str
    kind: Kind = "figure"
    of: str | tuple[str, ...] = ()
    fixed: bool = False
    """Whether it only names the row."""

    @property
    def label(self) -> str:
        """Return the key of its heading's text."""
        return f"cell.{self.key}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the entries of a list of the spec, or (without `path`) one row of figures of the whole spec."""

    name: str
    columns: tuple[Column, ...]
    path: str = ""
    kind: str = ""
    """Kind of the workloads that it shows."""
    inner: str = ""
    """A list inside each entry, whose entries are the rows; their first column then names the entry."""
    grows: bool = True
    """Whether rows are added and removed."""
    new: dict[str, Any] = field(default_factory=dict)
    """What a new row holds."""

    @property
    def column(self) -> dict[str, Column]:
        """Return the columns by key."""
        return {column.key: column for column in self.columns}


def _choices(model: type[BaseModel], key: str) -> tuple[str, ...]:
    """Read the names that a key of a block may have from its type."""
    annotation = model.model_fields[key].annotation
    parts = (annotation, *get_args(annotation))
    return next(
        tuple(map(str, get_args(part))) for part in parts if get_args(part) and isinstance(get_args(part)[0], str)
    )


TABLES = (
    Table(
        "serving",
        (
            Column("name", "text"),
            Column("architecture", "choice", "architectures"),
            Column("demand.requests_per_s"),
            Column("demand.output_tokens"),
            Column("lengths.input"),
            Column("lengths.output"),
            Column("origins", "shares"),
            Column("slo.ttft.p95"),
            Column("slo.tpot.p95"),
            Column("slo.e2e.p95"),
            Column("precision", "names", PRECISIONS),
            Column("disaggregation", "choice", _choices(Serving, "disaggregation")),
            Column("redundancy"),
            Column("grade", "choice", _choices(Serving, "grade")),
            Column("demand.growth_per_year"),
            Column("demand.factor_by_phase", "text"),
        ),
        path="workloads",
        kind="serving",
        new={"kind": "serving"},
    ),
    Table(
        "sessions",
        (
            Column("name", "text", fixed=True),
            Column("demand.tasks_per_s"),
            Column("session.calls"),
            Column("session.calls_cv"),
            Column("session.growth"),
            Column("session.wait"),
            Column("session.wait_cv"),
            Column("slo.task.p95"),
        ),
        path="workloads",
        kind="serving",
        grows=False,
    ),
    Table(
        "training",
        (
            Column("name", "text"),
            Column("architecture", "choice", "architectures"),
            Column("tokens"),
            Column("start"),
            Column("deadline"),
            Column("sequence_tokens"),
            Column("batch_tokens"),
            Column("precision", "names", RECIPE_FORMATS),
        ),
        path="workloads",
        kind="training",
        new={"kind": "training"},
    ),
    Table(
        "reinforcement",
        (
            Column("name", "text"),
            Column("architecture", "choice", "architectures"),
            Column("algorithm", "choice", _choices(Reinforcement, "algorithm")),
            Column("iterations"),
            Column("iterations_per_hour"),
            Column("start"),
            Column("deadline"),
            Column("prompts"),
            Column("samples"),
            Column("lengths.prompt"),
            Column("lengths.response"),
            Column("lengths.limit"),
            Column("tools.calls"),
            Column("tools.service"),
            Column("rollout_precision", "names", PRECISIONS),
            Column("precision", "names", RECIPE_FORMATS),
        ),
        path="workloads",
        kind="reinforcement",
        new={"kind": "reinforcement"},
    ),
    Table(
        "sites",
        (
            Column("region", "choice", "regions"),
            Column("power"),
            Column("systems", "names", "systems"),
            Column("electricity_price"),
            Column("tariff", "choice", "tariffs"),
            Column("delivery"),
            Column("pue"),
            Column("colocation"),
            Column("building", "choice", _choices(Site, "building")),
            Column("zone", "text"),
            Column("available_from"),
            Column("power_by_phase", "text"),
        ),
        path="sites",
    ),
    Table(
        "offers",
        (
            Column("system", "choice", "systems"),
            Column("how", "choice", _choices(Offer, "how")),
            Column("price"),
            Column("supply"),
            Column("least"),
            Column("regions", "names", "regions"),
            Column("term"),
            Column("available_from"),
            Column("available_until"),
            Column("price_change_per_year"),
            Column("price_by_phase", "text"),
            Column("supply_by_phase", "text"),
        ),
        path="offers",
    ),
    Table(
        "phases",
        (Column("name", "text"), Column("start"), Column("capital"), Column("budget")),
        path="phases",
    ),
    Table(
        "owned",
        (
            Column("system", "choice", "systems"),
            Column("region", "choice", "regions"),
            Column("count"),
            Column("age"),
            Column("price"),
            Column("resale"),
            Column("book_value"),
            Column("movable", "switch"),
            Column("move_cost"),
            Column("move_time"),
            Column("lease_end"),
        ),
        path="owned",
    ),
    Table(
        "rented",
        (
            Column("system", "choice", "systems"),
            Column("region", "choice", "regions"),
            Column("count"),
            Column("price"),
            Column("until"),
            Column("notice"),
            Column("exit_fee"),
            Column("extendable", "switch"),
            Column("extension_price"),
        ),
        path="rented",
    ),
    Table(
        "lines",
        (
            Column("kind", "choice", "lines"),
            Column("between", "names", "regions"),
            Column("units"),
            Column("capacity"),
            Column("price"),
            Column("price_per_byte"),
            Column("latency_factor"),
            Column("added_latency"),
            Column("availability"),
            Column("security", "choice", SECURITY),
            Column("setup"),
        ),
        path="lines",
    ),
    Table(
        "limits",
        (
            Column("limits.budget"),
            Column("limits.capital"),
            Column("limits.carbon"),
            Column("limits.export_control", "switch"),
        ),
        grows=False,
    ),
    Table(
        "electricity",
        (
            Column("region", "text", fixed=True),
            Column("electricity.connection"),
            Column("electricity.demand_charge"),
            Column("electricity.battery.energy"),
            Column("electricity.battery.power"),
            Column("electricity.battery.energy_price"),
            Column("electricity.battery.power_price"),
        ),
        path="sites",
        grows=False,
    ),
    Table(
        "contracts",
        (
            Column("site", "choice"),
            Column("name", "text"),
            Column("capacity"),
            Column("price"),
            Column("pays", "choice", _choices(PowerPurchase, "pays")),
            Column("profile", "text"),
            Column("carbon"),
        ),
        path="sites",
        inner="electricity.ppa",
    ),
    Table(
        "horizon",
        (
            Column("horizon.start", "text"),
            Column("horizon.years"),
            Column("horizon.calendar", "choice", _choices(Horizon, "calendar")),
            Column("horizon.days"),
            Column("horizon.discount_rate"),
        ),
        grows=False,
    ),
    Table(
        "objective",
        (
            Column("objective.minimise", "choice", _choices(Objective, "minimise")),
            Column("objective.maximise", "choice", _choices(Objective, "maximise")),
            Column("objective.workload", "text"),
            Column("currency", "text"),
        ),
        grows=False,
    ),
)
