"""The plan document: save it, load it, and test its limits. Its construction: `planner.interpret.document`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from planner.errors import Issue, SpecError
from planner.files import write_file
from planner.messages import Message, codes_in
from planner.packed import unpacked
from planner.plan.embedded import is_report, plan_text
from planner.plan.notebook import html, rows_of, short
from planner.plan.rows.document import PlanDocument
from planner.plan.rows.fleet import Deployment, Fabric, FleetRow
from planner.plan.rows.framing import Assumption, FactRow, Objective, Provenance
from planner.plan.rows.money import BY_THE_BOUND, CostLine, Limit, Totals
from planner.plan.rows.quality import RunnerUp
from planner.plan.rows.time import Slot, SlotRoute
from planner.plan.rows.workloads import Workload
from planner.plan.upgrade import FIRST, LATEST, upgraded
from planner.tables import as_frame
from planner.ways_in.kinds import PLAN, wrong_kind, wrong_text

PLAN_SCHEMA_VERSION = LATEST
KEYS = (
    "schema_version", "name", "status", "objective", "bound", "bound_of", "gap", "totals", "fleet", "fabrics", "workloads",
    "routes", "schedule", "costs", "cost_lines", "carbon_lines", "limits", "runner_up", "dropped", "assumptions", "provenance",
    "versions", "solver", "diagnosis", "catalog_digest", "spec",
)  # fmt: skip
TABLES = (
    "fleet",
    "fabrics",
    "workloads",
    "routes",
    "schedule",
    "cost_lines",
    "carbon_lines",
    "limits",
    "runner_up",
    "assumptions",
    "provenance",
)


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """A plan as the JSON document of docs/plan.md; amounts in the spec's currency, quantities in SI.

    Each table is a property with typed rows; a plan without the table has no rows.
    """

    document: PlanDocument

    def __repr__(self) -> str:
        return short(self.document)

    def _repr_html_(self) -> str:
        return html(self.document)

    def __getitem__(self, key: str) -> Any:
        document: Mapping[str, Any] = self.document
        return document[key]

    def table(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a table by its name; none where the plan has no such table."""
        document: Mapping[str, Any] = self.document
        rows: Sequence[Mapping[str, Any]] = document.get(name) or ()
        return rows

    @property
    def fleet(self) -> list[FleetRow]:
        """Return what to obtain: systems by site, kind and way to obtain them."""
        return self.document["fleet"]

    @property
    def deployments(self) -> list[Deployment]:
        """Return the serving points with their whole replicas and pools."""
        return self.document.get("deployments", [])

    @property
    def workloads(self) -> list[Workload]:
        """Return each workload with its points, latencies, use and cost."""
        return self.document["workloads"]

    @property
    def fabrics(self) -> list[Fabric]:
        """Return the networks between own systems."""
        return self.document["fabrics"]

    @property
    def routes(self) -> list[SlotRoute]:
        """Return the output tokens per second from site to origin, by workload and slot."""
        return self.document["routes"]

    @property
    def schedule(self) -> list[Slot]:
        """Return power, energy, prices and active replicas by site and slot."""
        return self.document["schedule"]

    @property
    def cost_lines(self) -> list[CostLine]:
        """Return the cost by component, site, system and way to obtain it."""
        return self.document["cost_lines"]

    @property
    def carbon_lines(self) -> list[CostLine]:
        """Return the carbon [kg] in the same rows as `cost_lines`."""
        return self.document["carbon_lines"]

    @property
    def limits(self) -> list[Limit]:
        """Return every limit with value, slack and marginal value."""
        return self.document["limits"]

    @property
    def runner_up(self) -> list[RunnerUp]:
        """Return the unused system of each site that comes closest to being used."""
        return self.document["runner_up"]

    @property
    def assumptions(self) -> list[Assumption]:
        """Return the figures that are assumed, with reason and share of the objective."""
        return self.document["assumptions"]

    @property
    def provenance(self) -> list[Provenance]:
        """Return every figure of the catalog that was used, with its source."""
        return self.document["provenance"]

    @property
    def notes(self) -> list[FactRow]:
        """Return how the spec was understood, and what in it is at odds with known figures."""
        return self.document.get("notes", [])

    @property
    def costs(self) -> dict[str, float]:
        """Return the present value by component; `cost_lines` has it by site and system as well."""
        return self.document["costs"]

    def to_frame(self, name: str, library: str | None = None) -> Any:
        """Return a table as a data frame of pandas, else of polars, whichever is installed; `library` asks for one of them.

        Raises ValueError for a name that is no table of the plan, and ImportError where neither is installed.
        """
        return as_frame(rows_of(self.document, name), library)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Plan:
        """Make a plan of a document that was put together section by section; `flopwatt schema plan` states its shape."""
        return cls(cast("PlanDocument", document))

    def total(self, name: str) -> float | None:
        """Return a total by its name; None without an answer."""
        totals: Mapping[str, Any] = self.document["totals"] or {}
        return totals.get(name)

    @property
    def status(self) -> str:
        """Return `optimal`, `within_gap`, `limit`, `infeasible` or `unbounded`."""
        return self.document["status"]

    @property
    def objective(self) -> Objective:
        """Return the sense, value and unit of the objective; the value is null without an answer."""
        return self.document["objective"]

    @property
    def value(self) -> float:
        """Return the value of the objective. Raises ValueError for a plan without an answer."""
        value = self.document["objective"]["value"]
        if value is None:
            raise ValueError(Message.of("plan.no_value", status=self.status).text())
        return value

    @property
    def totals(self) -> Totals:
        """Return the sums over the plan. Raises ValueError for a plan without an answer."""
        totals = self.document["totals"]
        if totals is None:
            raise ValueError(Message.of("plan.no_totals", status=self.status).text())
        return totals

    @property
    def gap(self) -> float | None:
        """Return |value - bound| over |value|; None without a plan or a bound."""
        return self.document["gap"]

    @property
    def found_gap(self) -> float | None:
        """Gap of the best plan found, which this one may lose to by having fewer parts; it is compared with the gap asked for."""
        simplicity = self.document.get("simplicity")
        return self.gap if simplicity is None else simplicity["best"].get("gap", self.gap)

    @property
    def has_answer(self) -> bool:
        """Tell whether the plan has a fleet: not if infeasible, unbounded, or out of time without a solution."""
        return self.document["objective"]["value"] is not None

    def to_json(self) -> str:
        return json.dumps(self.document, indent=1, allow_nan=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the document to a file. Raises OSError."""
        write_file(path, self.to_json())


def parse_plan(text: str | bytes, where: str = "plan") -> Plan:
    """Parse a plan from its JSON text, or from an HTML report that carries one; bytes may be gzip.

    Raises SpecError naming the missing or malformed part.
    """
    from planner.plan.shape import shape_problems  # pydantic: nothing that only names a plan waits for it

    try:
        text = unpacked(text) if isinstance(text, bytes) else text
    except ValueError as error:
        raise SpecError([Issue(where, str(error))]) from None
    if is_report(text if isinstance(text, bytes) else text.encode(errors="replace")):
        inside = plan_text(text.decode(errors="replace") if isinstance(text, bytes) else text)
        if inside is None:
            raise SpecError([Issue(where, Message.of("report.no_plan_inside").text())])
        text = inside
    try:
        document = json.loads(text, parse_constant=_no_number)
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise SpecError([Issue(where, Message.of("plan.half_a_character").text())]) from None
    except (ValueError, RecursionError) as error:
        other = wrong_text(text if isinstance(text, str) else text.decode(errors="replace"), PLAN, where=where)
        raise SpecError(other or [Issue(where, Message.of("plan.not_valid_json", error=str(error)).text())]) from None
    if not isinstance(document, dict):
        raise SpecError([Issue(where, Message.of("plan.no_plan_object").text())])
    missing = [key for key in KEYS if key not in document]
    if missing:
        raise SpecError(
            wrong_kind(document, PLAN, where=where)
            or [Issue(where, Message.of("plan.keys_missing", names=", ".join(missing)).text())]
        )
    version = document["schema_version"]
    if isinstance(version, bool) or version not in range(FIRST, LATEST + 1):
        words = Message.of("plan.versions", first=FIRST, last=LATEST, given=repr(version)).text()
        raise SpecError([Issue(f"{where}.schema_version", words)])
    document = upgraded(document)
    if problems := shape_problems(document):
        raise SpecError(Issue(f"{where}.{problem.path}", problem.message) for problem in problems)
    return Plan.of(document)


def _no_number(name: str) -> float:
    raise ValueError(Message.of("plan.no_json_number", number=name).text())


def load_plan(path: str | Path) -> Plan:
    """Load a plan from a file of JSON or from an HTML report. Raises SpecError, or OSError when the file cannot be read."""
    return parse_plan(Path(path).read_bytes(), str(path))


BINDING_TOL = 1e-6  # slack of a limit that binds, as a share of the limit


def binds(row: Limit) -> bool:
    """Tell whether a limit row of a plan has no slack."""
    return row["slack"] <= BINDING_TOL * abs(row["limit"])


def is_by_the_bound(row: Limit) -> bool:
    """Tell whether the marginal value of a limit row is by the bound. Plans without codes store the text of the note alone."""
    coded = row.get("note_message")
    return BY_THE_BOUND in row.get("note", "") if coded is None else "limit.by_the_bound" in codes_in(coded)
