"""Answer as the commands do, with Python objects: each function has the name of its command.

Each takes a path or a mapping where the command takes a file, and a `planner.Plan` in place of the file of a plan. `overlays` are folders of
overlays on the catalog (`--catalog`). Heavy modules are imported when a function runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, overload

from planner.messages import Message
from planner.plan import Plan, load_plan, parse_plan

if TYPE_CHECKING:
    from catalog.lookup import Catalog
    from planner.audit.answer import Audit
    from planner.calibration.fit import Calibrated
    from planner.calibration.scores import Validation
    from planner.estimate.answer import Estimate
    from planner.facts import Fact
    from planner.replay.answer import Replayed
    from planner.report.why.ratios import Ratio
    from planner.report.why.stale import Stale
    from planner.robust.promises import Promises
    from planner.studies.against.actual import Actual
    from planner.studies.against.causes import Why
    from planner.studies.compare import Comparison
    from planner.studies.measure import Measure
    from planner.studies.replan.answer import Replanned
    from planner.studies.variants.answer import Variants
    from planner.ways_in.benchmarks import Benchmark
    from planner.ways_in.draft import Sources
    from planner.ways_in.history.forecast import Forecasts
    from planner.ways_out.formats import Export

Source = str | Path | Mapping[str, Any]
PlanSource = str | Path | Mapping[str, Any] | Plan


@dataclass(frozen=True, slots=True)
class Given:
    """What a person has, each as the option of `flopwatt init` takes it; None for a source that is not given."""

    model: str | None = None
    config: str | None = None
    vllm: str | None = None
    sglang: str | None = None
    trtllm: str | None = None
    trace: str | None = None
    log: str | None = None
    fleet: str | None = None
    users: int | None = None
    rate: float | None = None
    lengths: str | None = None
    systems: str | None = None
    work: str | None = None  # "serve" if omitted, "train" or "both"
    tokens: str | None = None
    deadline: str | None = None
    region: str | None = None
    cells: Mapping[str, str] = field(default_factory=dict)  # what results of `log` lack, by column (`--set`)


OPTIONS = tuple(each.name for each in fields(Given) if each.name not in ("region", "cells"))


@overload
def estimate(case: Source, *, overlays: Sequence[Path] = ()) -> Estimate: ...
@overload
def estimate(
    case: Source, *, overlays: Sequence[Path] = (), without: Sequence[str] = (), sweep: Sequence[str] = ()
) -> Estimate | Variants: ...
def estimate(
    case: Source, *, overlays: Sequence[Path] = (), without: Sequence[str] = (), sweep: Sequence[str] = ()
) -> Estimate | Variants:
    """Evaluate one case: times, rates, memory; `answer` is None where nothing fits, with the `reason`.

    `without`: features such as "pools" to take out, each alone and all together; `sweep`: texts `PATH=VALUES`, of which all combinations are
    answered. Either returns the variants side by side. Raises SpecError, also for both; OSError.
    """
    from planner.estimate.answer import estimate

    document = _document(case, overlays)
    if not without and not sweep:
        return estimate(document, overlays)
    from planner.studies.variants.answer import answer_variants, variants_of

    return answer_variants(variants_of(document, without or None, sweep), overlays)


def layouts(case: Source, *, overlays: Sequence[Path] = (), best: int = 10) -> dict[str, Any]:
    """Rank the layouts of a training case, or the splits of one of reinforcement learning, fastest first.

    Returns the counts with the rows under `layouts` or `splits`, none where nothing fits. Raises SpecError, OSError.
    """
    from planner.estimate.case import best_layouts, resolve_case
    from planner.estimate.reinforcement import best_splits

    document = _document(case, overlays)
    if isinstance(document.get("workload"), dict) and document["workload"].get("kind") == "reinforcement":
        return best_splits(resolve_case(document, overlays), best)
    rows, counts = best_layouts(document, overlays, best)
    return {**counts, "layouts": rows}


def characterise(document: Source, *, overlays: Sequence[Path] = (), hourly: Sequence[Path] = ()) -> dict[str, Any]:
    """State what the workloads of a case or spec ask of chips, and of a spec also the `value` of systems. Raises SpecError, OSError."""
    from planner.design.characterise.answer import characterise
    from planner.design.characterise.value import value_of_systems
    from planner.estimate.limits import SearchLimits
    from planner.spec.document import read_spec

    stated = _document(document, overlays)
    if "workloads" not in stated:
        return characterise(stated, overlays)
    stated = read_spec(document, hourly, overlays)
    return {**characterise(stated, overlays), "value": value_of_systems(stated, overlays, SearchLimits())}


def validate(
    file: str | Path, *, overlays: Sequence[Path] = (), leave_out: str | None = None, cells: Mapping[str, str] = {}
) -> Validation:
    """Score the models on a file of measurements; `cells`: what rows lack, by column (`--set`). Raises SpecError, OSError."""
    from planner.calibration.scores import validate

    return validate(Path(file), _catalog(overlays), leave_out, cells)


def calibrate(
    files: str | Path | Sequence[str | Path], folder: str | Path, *, overlays: Sequence[Path] = (), cells: Mapping[str, str] = {}
) -> Calibrated:  # fmt: skip
    """Fit the constants to measured runs and write the overlay into `folder`; `cells`: what rows lack, by column. Raises SpecError, OSError."""
    from planner.calibration.fit import calibrate

    paths = [files] if isinstance(files, str | Path) else files
    return calibrate([Path(path) for path in paths], Path(folder), _catalog(overlays), cells)


def robust(plan: PlanSource, *, overlays: Sequence[Path] = (), scenarios: int = 1000, seed: int = 1) -> Promises:
    """Count the sampled scenarios in which a plan keeps its promises. Raises SpecError, also for a plan without an answer; OSError."""
    from planner.robust.promises import robust

    return robust(_plan(plan), overlays=overlays, scenarios=scenarios, seed=seed)


def forecast(file: str | Path, *, zone: str = "UTC") -> Forecasts:
    """Forecast each workload of a CSV of past demand, as blocks `demand` of a spec; see `planner.ways_in.history`. Raises SpecError, OSError."""
    from planner.ways_in.history.forecast import forecast

    return forecast(file, zone)


def replay(
    plan: PlanSource, trace: str | Path | None = None, *, overlays: Sequence[Path] = (), requests: int = 20_000, seed: int = 1, router: str = "random",
    replicas: int = 1,
) -> Replayed:  # fmt: skip
    """Simulate the deployments of a plan request by request, on drawn requests or on a trace. Raises SpecError, OSError."""
    from planner.replay.answer import Asked, replay

    asked = Asked(requests, seed, router, replicas)
    return replay(_plan(plan), Path(trace) if trace else None, overlays=overlays, asked=asked)


@overload
def compare(first: PlanSource, second: PlanSource) -> Comparison: ...
@overload
def compare(first: PlanSource, second: PlanSource, *, why: Literal[True], overlays: Sequence[Path] = ()) -> Why: ...
@overload
def compare(
    first: PlanSource, *, actual: Sequence[str | Path], folder: str | Path | None = None, overlays: Sequence[Path] = (), cells: Mapping[str, str] = {}
) -> Actual: ...  # fmt: skip
def compare(
    first: PlanSource, second: PlanSource | None = None, *, actual: Sequence[str | Path] = (), folder: str | Path | None = None,
    overlays: Sequence[Path] = (), cells: Mapping[str, str] = {}, why: bool = False,
) -> Comparison | Actual | Why:  # fmt: skip
    """List all differences between two plans, attribute them to causes (`why`), or hold one plan against files of what was measured since (`actual`).

    `folder`: where calibrated constants go as an overlay, nowhere if omitted; `cells`: what rows of logs lack, by column. Raises SpecError if
    amounts are in different currencies, for neither or both of a second plan and files, and for malformed files; OSError.
    """
    from planner.errors import Issue, SpecError
    from planner.studies.compare import compare

    if (second is None) == (not actual):
        code = "actual.one_plan" if second is None else "actual.two_plans"
        raise SpecError([Issue("compare", Message.of(code).text())])
    if second is not None and why:
        from planner.studies.against.causes import why as attributed

        return attributed(_plan(first), _plan(second), overlays=overlays)
    if second is not None:
        return compare(_plan(first), _plan(second))
    from planner.studies.against.actual import against_actual

    with TemporaryDirectory() as spare:
        home = Path(spare if folder is None else folder)
        found = against_actual(_plan(first), actual, home, overlays=overlays, cells=cells)
        return found if folder is not None else replace(found, overlay=None)


def replan(
    plan: PlanSource, observed: str | Path | Sequence[str | Path], *, day: date | None = None, overlays: Sequence[Path] = (),
    folder: str | Path | None = None, cells: Mapping[str, str] = {},
) -> Replanned:  # fmt: skip
    """Plan again from `day` on (the latest date in the files if omitted): owned systems and commitments stay, and the figures of `observed` files count.

    `folder`: where calibrated constants go as an overlay, nowhere if omitted; `cells`: what rows of logs lack, by column. Raises SpecError for a plan
    without an answer, a day outside its horizon and malformed files; OSError.
    """
    from planner.studies.replan.answer import replan

    files = [observed] if isinstance(observed, str | Path) else observed
    with TemporaryDirectory() as spare:
        home = Path(spare if folder is None else folder)
        found = replan(_plan(plan), files, home, day=day, overlays=overlays, cells=cells)
        return found if folder is not None else replace(found, overlay=None)


def audit(claims: Source | None = None, *, only: Sequence[str] = (), overlays: Sequence[Path] = ()) -> Audit:
    """Judge the claims of a file or a mapping, or the 86 that are shipped; `only`: names of systems. Raises SpecError, OSError."""
    from planner.audit.answer import audit, judge
    from planner.audit.reading import claims_of, parse_claims

    if isinstance(claims, Mapping):
        return judge(parse_claims(claims_of(claims), _catalog(overlays), Path()), only)
    return audit(claims, only=only, overlays=overlays)


def stale(plan: PlanSource) -> list[Stale]:
    """List the dated figures that carry the cost of a plan, the oldest first. Raises SpecError, OSError."""
    from planner.report.why.stale import stale

    return stale(_plan(plan))


def ratios(plan: PlanSource) -> list[Ratio]:
    """Build the six ratios of a plan beside their published ranges: tokens/s and kW per chip, cost of a token, busy share, loads a day, lead time."""
    from planner.report.why.ratios import ratios

    return ratios(_plan(plan))


def measure(
    plan: PlanSource, *, overlays: Sequence[Path] = (), budget: float | None = None, scenarios: int = 240, seed: int = 2
) -> Measure:
    """Rank measurements by what their results are worth for the choice of a fleet. Raises SpecError, OSError."""
    from planner.studies.measure import measure

    return measure(_plan(plan), overlays=overlays, budget=budget, scenarios=scenarios, seed=seed)


def export(
    plan: PlanSource, folder: str | Path, *, to: str | Sequence[str], overlays: Sequence[Path] = (), overwrite: bool = False
) -> Export:  # fmt: skip
    """Write a plan into `folder` as files of other tools, and return them with what they leave out; `to`: formats, or "all".

    Raises SpecError for an unknown format, a plan without an answer, and other files that stand there without `overwrite`; OSError.
    """
    from planner.ways_out.files import write_files
    from planner.ways_out.formats import export

    names = to.split(",") if isinstance(to, str) else to
    found = export(_plan(plan), [name.strip() for name in names], overlays)
    write_files(Path(folder), found.files, overwrite)
    return found


def init(*, overlays: Sequence[Path] = (), **given: Any) -> dict[str, Any]:
    """Draft a spec from what a person has, named as the fields of `Given`; guesses stand under `assumptions`.

    Raises SpecError with the problems of all sources at once, OSError for an unreadable file, and TypeError for another name.
    """
    return draft_of(Given(**given), overlays)[0]


def draft_of(given: Given, overlays: Sequence[Path]) -> tuple[dict[str, Any], tuple[Fact, ...]]:
    """Return the checked spec drafted from the given sources, and how each source was read; see `init`."""
    from planner.errors import Issue, SpecError
    from planner.pipeline import checked
    from planner.ways_in.draft import drafted

    if not any(getattr(given, name) for name in OPTIONS):
        options = ", ".join(f"--{name}" for name in OPTIONS)
        raise SpecError([Issue("init", Message.of("ways_in.no_source", options=options).text())])
    catalog = _catalog(overlays)
    sources, notes = _sources(given, catalog)
    document, read = drafted(sources, catalog)
    try:
        checked(document, overlays=overlays)
    except SpecError as error:  # a config is known by its file, not by its place in the draft
        file = given.config or given.model or ""
        raise SpecError(
            Issue(each.path.replace("catalog.architectures[0].config", file, 1) if file else each.path, each.message)
            for each in error.problems
        ) from None
    return document, (*notes, *read)


def _document(source: Source, overlays: Sequence[Path]) -> dict[str, Any]:
    """Read a spec or a case, with models of the hub as records of its own."""
    from planner.spec.document import read_document
    from planner.ways_in.named import with_hub_models

    document = source if isinstance(source, Mapping) else read_document(Path(source).read_bytes())
    return with_hub_models(document, overlays)


def _plan(source: PlanSource) -> Plan:
    if isinstance(source, Plan):
        return source
    return parse_plan(json.dumps(source)) if isinstance(source, Mapping) else load_plan(source)


def _catalog(overlays: Sequence[Path]) -> Catalog:
    from catalog.errors import CatalogError
    from catalog.lookup import Catalog
    from planner.errors import SpecError, issues_of

    try:
        return Catalog.load(overlays)
    except CatalogError as error:
        raise SpecError(issues_of(error)) from None


def _sources(given: Given, catalog: Catalog) -> tuple[Sources, list[Fact]]:
    """Read every file and command that is named. Raises SpecError with the problems of all of them."""
    from planner.errors import Issue, SpecError
    from planner.ways_in.accelerators import region_called
    from planner.ways_in.draft import Sources, home
    from planner.ways_in.fleets import read_fleet
    from planner.ways_in.launch import SGLANG, TRTLLM, VLLM, read_launch
    from planner.ways_in.stated import MOST_RATE, lengths_of, systems_of
    from planner.ways_in.traces import read_trace
    from planner.ways_in.training import BOTH, TRAIN, Run, work_problems

    problems = work_problems(given.work or "", {name: getattr(given, name) for name in OPTIONS})
    notes: list[Fact] = []

    def tried(read: Any) -> Any:
        try:
            return read()
        except SpecError as error:
            problems.extend(error.problems)
            return None

    region = region_called(given.region, catalog) if given.region else ""
    if given.region and not region:
        from catalog.errors import UnknownName
        from planner.errors import unknown_record

        try:
            catalog.get("regions", given.region)
        except UnknownName as error:
            problems.append(Issue("--region", unknown_record(error)))
    commands = {VLLM: given.vllm, SGLANG: given.sglang, TRTLLM: given.trtllm}
    engine = next((engine for engine, command in commands.items() if command), VLLM)
    command = commands[engine]
    launch = tried(lambda: read_launch(command, engine)) if command else None
    fleet = tried(lambda: read_fleet(Path(given.fleet), catalog)) if given.fleet else None
    zone = catalog.get("regions", home(region, fleet)).words("timezone")
    trace = tried(lambda: read_trace(Path(given.trace), zone)) if given.trace else None
    log = tried(lambda: _benchmark(Path(given.log), given.cells, catalog)) if given.log else None
    lengths = tried(lambda: lengths_of(given.lengths)) if given.lengths else None
    systems = tried(lambda: systems_of(given.systems, catalog)) if given.systems else ()
    if given.rate is not None and not 0.0 < given.rate < MOST_RATE:
        problems.append(Issue("--rate", Message.of("ways_in.expected_number", most=MOST_RATE).text()))
    if given.cells and not given.log:
        problems.append(Issue("--set", Message.of("ways_in.set_without_log").text()))
    config = tried(lambda: _config(given, launch.model if launch else log.model if log else "", catalog, notes))
    if problems:
        raise SpecError(problems)
    found = (given.users or 0, region, given.rate or 0.0, lengths, systems)
    run = Run(given.tokens or "", given.deadline or "", given.work == TRAIN) if given.work in (TRAIN, BOTH) else None
    return Sources(config, given.model or "", launch, trace, log, fleet, *found, run=run), notes


def _benchmark(path: Path, further: Mapping[str, str], catalog: Catalog) -> Benchmark:
    """Read the busiest result of a benchmark; `further`: what results lack, by column. Raises SpecError for a file that is none."""
    from planner.calibration.benchmark_files import benchmark_cells
    from planner.calibration.measurements import FILES, filled
    from planner.ways_in.benchmarks import benchmark_of

    columns = FILES["serving"]
    cells = benchmark_cells(path, (*columns.text, *columns.numbers))
    return benchmark_of([filled(each, further) for each in cells], catalog)


def _named_by(file: Path) -> str:
    """Name a model by its file, such as NAME.config.json, else by the folder; of a cache of the hub by the folder of the model."""
    if stem := file.stem.removesuffix("config").rstrip("._-"):
        return stem
    folder = file.absolute().parent
    cached = folder.parent.parent.name if folder.parent.name == "snapshots" else ""
    return cached.rpartition("--")[2] or folder.name


def _config(given: Given, launched: str, catalog: Any, notes: list[Fact]) -> tuple[str, dict[str, Any]] | None:
    """Return (name, config) of the model: of the file, of a folder that is served, or of the hub; None for one that the catalog has."""
    from planner.errors import SpecError
    from planner.facts import Fact
    from planner.spec.document import read_document
    from planner.ways_in.hub import PREFIX, hub_config
    from planner.ways_in.named import known_architecture, near_architecture

    model = given.model or launched
    name = model.removeprefix(PREFIX).rstrip("/").rpartition("/")[2]
    file = Path(given.config) if given.config else Path(model) / "config.json"
    if given.config or (model and not model.startswith(PREFIX) and file.is_file()):
        config = read_document(file.read_bytes())
        stated = str(config.get("_name_or_path") or "").rstrip("/").rpartition("/")[2]
        return name or stated or _named_by(file), config
    if not model or known_architecture(model, catalog)[0]:
        return None
    try:
        config, place = hub_config(model)
    except SpecError:
        if near_architecture(model, catalog):  # stands for the model, as a guess
            return None
        raise
    notes.append(Fact("--model", Message.of("ways_in.model_read", model=model, place=place)))
    return name, config
