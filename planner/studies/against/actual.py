"""Hold a plan against what was measured since: which assumption was off, what each error is worth a month, and the plan after it.

Each kind of file has a reader of its own: logs of benchmarks and runs (`runs`), traces and rows of a CSV (`load`, `points`, `prices`).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalog.errors import CatalogError
from catalog.lookup import Catalog
from planner.calibration.benchmark_files import is_benchmark_file
from planner.calibration.measurements import FILES
from planner.calibration.training_logs import is_training_log
from planner.errors import Issue, SpecError, issues_of
from planner.facts import Fact
from planner.messages import Message, listed, say
from planner.pipeline import solve_document
from planner.plan import Plan
from planner.problem.facts import ResolvedSpec
from planner.report.words import amount, share_words, signed
from planner.resolve.names import catalog_of
from planner.solving.standing import Progress
from planner.solving.variants import resolved
from planner.spec.document import edited
from planner.studies.against.assumption import Assumption
from planner.studies.against.figures_file import NUMBERS, PROGRESS, TEXTS, Figures, Names, metric_of, read_figures
from planner.studies.against.load import of_rows, of_trace, serving_workloads
from planner.studies.against.points import of_points
from planner.studies.against.prices import of_power, of_prices
from planner.studies.against.runs import of_runs
from planner.studies.against.worth import AS_PLANNED, NOT_TRIED, Stake, monthly_share, stakes, with_actual
from planner.studies.base.planned import Base
from planner.studies.compare import TABLES, Comparison, compare
from planner.ways_in.trace_rows import CSV_LAYOUTS
from planner.ways_in.traces import read_trace

TOTAL_S = 900.0
"""Time for the plans with one actual figure each."""
SHOWN = ("parts", "fleet", "deployments", "limits", "spec")
"""Tables of the difference to the plan after it that people read."""
LARGE = 0.15
"""Error from which the first sentence names the error after calibration."""
ROWS, TRACE, RUNS = "rows", "trace", "runs"
_KEY = re.compile(r'"(\w+)"\s*:')


@dataclass(frozen=True, slots=True)
class Actual:
    """A plan held against what was measured: `stakes` by money, `after`: the plan with all actual figures, None without an answer to compare with.

    `overlay`: folder of calibrated constants on which the plan after it stands; None where no model was calibrated.
    """

    plan: Plan
    stakes: tuple[Stake, ...]
    base: Base | None
    after: Plan | None
    overlay: Path | None
    notes: tuple[Fact, ...] = ()
    comparison: Comparison | None = field(default=None, repr=False)

    @property
    def largest(self) -> Stake | None:
        """Return the assumption that was off most; None where all were right."""
        off = [stake for stake in self.stakes if stake.how != AS_PLANNED]
        return max(off, key=lambda stake: stake.assumption.error, default=None)

    @property
    def is_complete(self) -> bool:
        """Tell whether every error was priced, or there is a reason other than time why not."""
        return all(stake.how != NOT_TRIED for stake in self.stakes)

    @property
    def difference(self) -> float | None:
        """Return the objective of the plan after less that of the plan; None where either has none."""
        if self.after is None or not self.after.has_answer:
            return None
        return self.after.value - self.plan.value

    @property
    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "plan": self.plan.document["name"],
            "unit": self.plan.objective["unit"],
            "value": self.plan.value,
            "months": 1.0 / monthly_share(self.plan),
            "base": None if self.base is None else self.base.row(),
            "assumptions": self.rows,
            "after": None if self.after is None else {"status": self.after.status, "value": self.after.document["objective"]["value"]},
            "difference": self.difference,
            "comparison": None if self.comparison is None else self.comparison.document,
            "notes": [fact.row() for fact in self.notes],
        }  # fmt: skip

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return the assumptions as one flat table."""
        return [stake.row() for stake in self.stakes]

    @property
    def words(self) -> list[str]:
        """Name the largest error, the one that most money hangs on, and what the plan comes to with all actual figures."""
        largest = self.largest
        if largest is None:
            return [say("actual.all_as_planned", count=len(self.stakes))]
        return [*self._largest_words(largest), *self._money_words(), *self._after_words()]

    def _largest_words(self, largest: Stake) -> list[str]:
        figure = largest.assumption
        told = {"name": figure.name, "planned": figure.shown(figure.planned), "actual": figure.shown(figure.actual), "factor": f"{figure.factor:.3g}"}  # fmt: skip
        code = {True: "actual.largest_outside", False: "actual.largest_inside", None: "actual.largest"}
        words = [say(code[figure.is_outside], **told)]
        if figure.error_after is not None and figure.error > LARGE:
            words.append(say("actual.calibrated", name=figure.name, before=f"{figure.error:.1%}", after=f"{figure.error_after:.1%}"))  # fmt: skip
        return words

    def _money_words(self) -> list[str]:
        unit = self.plan.objective["unit"]
        words = [] if self.base is None else [self.base.message.text()]
        dear = next((stake for stake in self.stakes if stake.a_month), None)
        if dear is not None and dear.a_month is not None:
            code = "actual.costs_more" if dear.a_month > 0 else "actual.costs_less"
            how = say(f"actual.how_{dear.how}")
            words.append(say(code, name=dear.assumption.name, money=f"{amount(abs(dear.a_month))} {unit}", how=how))
        doubt = max((stake.doubt for stake in self.stakes if abs(stake.difference or 0.0) <= stake.doubt), default=0.0)
        if doubt > 0.0:
            words.append(say("actual.doubt", money=f"{amount(doubt * monthly_share(self.plan))} {unit}"))
        without = [stake.assumption.name for stake in self.stakes if stake.a_month is None]
        if without:
            words.append(say("actual.not_priced", names=listed(without)))
        return words

    def _after_words(self) -> list[str]:
        if self.after is None:
            return []
        if self.difference is None:
            return [say("actual.no_plan_after", status=say(f"status.{self.after.status}"))]
        unit, share = self.plan.objective["unit"], self.difference / abs(self.plan.value) if self.plan.value else 0.0
        money = f"{amount(abs(self.difference) * monthly_share(self.plan))} {unit}"
        code = "actual.after_more" if self.difference > 0 else "actual.after_less"
        words = [say(code, value=f"{amount(self.after.value)} {unit}", money=money, share=share_words(abs(share)))]
        return [*words, *(self.comparison.words[1:4] if self.comparison is not None else [])]

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (heading, rows) of the assumptions, and of the fleet where the plan after it has another."""
        unit = self.plan.objective["unit"]
        rows = [self._printed(stake, unit) for stake in self.stakes]
        found = [(say("actual.head_assumptions", unit=unit), rows)]
        if self.comparison is not None:
            found += [
                (say("actual.head_after", table=TABLES[table]), rows)
                for table, rows in self.comparison.printed(SHOWN)
                if rows
            ]
        return found

    def _printed(self, stake: Stake, unit: str) -> dict[str, str]:
        figure = stake.assumption
        outside = figure.is_outside
        cells = {
            "assumption": figure.name,
            "planned": figure.shown(figure.planned),
            "actual": figure.shown(figure.actual),
            "factor": f"{figure.factor:.3g}",
            "interval": "" if outside is None else say("actual.outside" if outside else "actual.inside"),
            "after": "" if figure.error_after is None else f"{figure.error_after:.1%}",
            "month": "" if stake.a_month is None else signed(stake.a_month),
            "by": say(f"actual.how_{stake.how}"),
        }
        return {say(f"actual.column_{name}"): cell for name, cell in cells.items()}


def against_actual(
    plan: Plan, files: Sequence[str | Path], folder: Path, *, overlays: Sequence[Path] = (), cells: Mapping[str, str] = {}, total_s: float = TOTAL_S,
    limits: Mapping[str, str] = {}, progress: Progress | None = None,
) -> Actual:  # fmt: skip
    """Hold a plan against files, each a log, a trace or a CSV; "NAME=FILE" says whose requests a trace holds. Calibrated constants go into `folder`.

    `limits`: `time_limit` and `memory` of each new plan, in place of the limits in the spec's `solver`.

    Raises SpecError for a plan without an answer and with the problems of all files at once, OSError for a missing file.
    """
    if not plan.has_answer:
        raise SpecError([Issue("plan", Message.of("actual.plan_without_answer", status=plan.status).text())])
    problem = resolved(plan.document["spec"], overlays)
    catalog = catalog_used(problem, overlays)
    read = assumptions_of(plan, problem, catalog, files, folder, cells)
    assumptions, notes, calibrated = read.assumptions, read.notes, read.calibrated
    if not assumptions:
        raise SpecError([Issue("--actual", Message.of("actual.nothing_to_compare").text())])
    asked = edited(plan.document["spec"], tuple((f"solver.{name}", value) for name, value in limits.items()))
    found, base = stakes(plan, asked, assumptions, overlays, total_s=total_s, progress=progress)
    overlay = folder if calibrated else None
    after = _after(plan, asked, [stake.assumption for stake in found], overlays, overlay, progress)
    comparison = compare(plan, after) if after is not plan else None
    return Actual(plan, tuple(found), base, after, overlay, tuple(notes), comparison)


def catalog_used(problem: ResolvedSpec, overlays: Sequence[Path]) -> Catalog:
    """Load the catalog with the overlays and the spec's own records."""
    try:
        return catalog_of(problem.spec, overlays, {})
    except CatalogError as error:
        raise SpecError(issues_of(error)) from None


def _after(
    plan: Plan, asked: Mapping[str, Any], assumptions: Iterable[Assumption], overlays: Sequence[Path], overlay: Path | None,
    progress: Progress | None,
) -> Plan:  # fmt: skip
    """Solve the spec that is `asked` with every actual figure; calibrated constants stand in the overlay, not in the spec. The plan itself where nothing that it uses is off."""
    off = [each for each in assumptions if each.used and not each.is_same]
    if not off:
        return plan
    stated = [each for each in off if each.after is None]
    document = with_actual(asked, stated)
    return solve_document(document, overlays=[*overlays, *([overlay] if overlay else [])], progress=progress)


# -- files -------------------------------------------------------------------------------------------------------------


def all_rows(rows: list[Figures]) -> list[Figures]:
    """Take all rows of figures."""
    return rows


@dataclass(frozen=True, slots=True)
class Files:
    """What files say: the assumptions that they measured, notes on how they were read, and whether models were calibrated."""

    assumptions: list[Assumption]
    notes: list[Fact]
    calibrated: bool


def assumptions_of(
    plan: Plan, problem: ResolvedSpec, catalog: Catalog, files: Sequence[str | Path], folder: Path, cells: Mapping[str, str],
    chosen: Callable[[list[Figures]], list[Figures]] = all_rows,
) -> Files:  # fmt: skip
    """Read all files; `chosen`: the rows of figures that count. Raises SpecError with the problems of all files, OSError for a missing one."""
    problems: list[Issue] = []
    found: list[Assumption] = []
    notes: list[Fact] = []
    rows: list[Figures] = []
    names = _names(plan, problem)
    runs: list[Path] = []
    for given in files:
        workload, path = _named(str(given), names.workloads)
        try:
            kind = kind_of(path)
            if kind == RUNS:
                runs.append(path)
            elif kind == TRACE:
                trace = read_trace(path)
                notes += trace.notes
                found += of_trace(plan, _whose(workload, names, path.name), trace)
            else:
                rows += read_figures(path, names)
        except SpecError as error:
            problems += error.problems
    rows = chosen(rows)
    readers: list[Callable[[], list[Assumption]]] = [
        lambda: _of_rows(plan, problem, catalog, rows, names),
        lambda: of_prices(plan, problem, catalog, rows),
    ]
    for read in readers:
        try:
            found += read()
        except SpecError as error:
            problems += error.problems
    found += of_power(plan, problem, rows)
    if runs and not problems:
        held, calibrated = of_runs(runs, folder, catalog, cells, problem)
        found, notes = [*found, *held], [*notes, *calibrated.notes]
    if problems:
        raise SpecError(problems)
    return Files(found, notes, bool(runs))


def _are_figures(text: str) -> bool:
    """Tell whether all keys of a JSON list are columns of figures."""
    keys = {key.lower() for key in _KEY.findall(text)}
    return bool(keys) and all(key in (*TEXTS, *NUMBERS) or metric_of(key) for key in keys)


def kind_of(path: Path) -> str:
    """Tell a log of runs, a trace of requests and a CSV of figures apart, by ending, first character or header. Raises OSError for a missing file."""
    if is_training_log(path):
        return RUNS
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".json", ".jsonl")):
        with open(path, "rb") as file:
            start = file.read(4096).decode("utf-8", "ignore").lstrip("\ufeff \t\r\n")
        first = start.partition("\n")[0]
        pairs = start.startswith("[") and start[1:].lstrip().startswith("[")
        if name.endswith(".json") and start.startswith("[") and _are_figures(start):
            return ROWS
        return TRACE if path.suffix == ".gz" or pairs or '"input_length"' in first else RUNS
    if is_benchmark_file(path):
        return RUNS
    if path.suffix.lower() == ".gz":
        return TRACE
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        header = {cell.strip().lower() for cell in next(csv.reader(file), [])}
    if any({name.lower() for name in layout.columns} <= header for layout in CSV_LAYOUTS):
        return TRACE
    return RUNS if any(header & {name.lower() for name in columns.own} for columns in FILES.values()) else ROWS


def _names(plan: Plan, problem: ResolvedSpec) -> Names:
    ways = dict.fromkeys(offer.how for offer in problem.offers)
    sites = [site.region for site in problem.sites if site.api is None]
    jobs = [each.name for each in problem.spec.workloads if each.kind != "serving"]
    return Names(list(serving_workloads(plan)), sites, list(problem.systems), list(ways), jobs)


def _named(given: str, workloads: Iterable[str]) -> tuple[str, Path]:
    """Split "NAME=FILE" where NAME is a workload."""
    before, equals, rest = given.partition("=")
    return (before, Path(rest)) if equals and before in workloads else ("", Path(given))


def _whose(workload: str, names: Names, place: str) -> str:
    """Return the workload that is named, or the only one. Raises SpecError where there are several."""
    if workload or len(names.workloads) == 1:
        return workload or next(iter(names.workloads))
    raise SpecError([Issue(place, Message.of("actual.whose", names=", ".join(names.workloads) or "-").text())])


def _of_rows(
    plan: Plan, problem: ResolvedSpec, catalog: Catalog, rows: Sequence[Figures], names: Names
) -> list[Assumption]:
    """Hold load and operating points against rows, workload by workload."""
    found: list[Assumption] = []
    about = [
        row for row in rows if any(name not in ("price", "power_kw", "systems", *PROGRESS) for name in row.numbers)
    ]
    for stated in dict.fromkeys(row.text("workload") for row in about):
        workload = _whose(stated, names, "workload")
        here = [row for row in about if row.text("workload") == stated]
        found += of_rows(plan, here, workload)
        found += of_points(plan, problem, catalog, here, workload)
    return found
