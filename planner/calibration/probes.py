"""Turn what `planner.probe` measured into an overlay: factors on the rates of one chip, and narrower intervals for it.

A kernel of bare PyTorch is not one of an engine, so its share of the peak replaces nothing. What counts is the difference from the share that
is expected of the chip: that of the reference probes (record `probe_reference` of the catalog), times what the fit says of its generation
beside theirs. Of the logarithm d of measured over expected the share w = t^2 / (t^2 + s^2) counts, where t is how far chips differ beyond what the
fit knows of this one, and s how badly a kernel tells it: spread among engines, among the measurements, among probes of one chip on other
machines (record `probe_repeat`), and, without a reference of the same chip, among chips. Only compute by format, attention, memory,
launch and links move. Not here: own runs (`planner.calibration.fit`).
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from catalog.lookup import Catalog
from catalog.records import Record
from models.serving.constants import FAMILIES
from models.transformer.architecture import Architecture
from planner.calibration.fit import MIN_PRIOR_SPREAD, calibrated_figure
from planner.errors import Issue, SpecError, close_matches
from planner.files import write_file
from planner.messages import Message
from planner.probe import SCHEMA
from planner.problem.intervals import LABELS, Z80, relatives, seen_chips
from planner.resolve.chip_rates import peak_flop_per_s, stated

REFERENCE = "probe_reference"
REPEAT = "probe_repeat"
MOST = 1.02  # share of a published rate that a measurement may reach, for rounding of clocks and data sheets
RATES = {"gemm": ("flop", "bytes"), "prefill attention": ("flop",), "read": ("bytes",), "gather": ("bytes",)}
SIZES = {"gemm": ("m",), "all-reduce": ("bytes",)}
FEW_ROWS = 16  # rows of a product, at which reading its weights takes nearly all of the time


@dataclass(frozen=True, slots=True)
class Part:
    """A rate that a probe informs: label of the errors that it shares, constant and its factor by generation in the serving model."""

    level: str  # model and label of its spread among chips and engines
    factor: str = ""  # factor of a generation in the catalog: serving.FACTOR_FAMILY
    labels: tuple[str, ...] = ()  # figures of serving whose interval it narrows


PARTS = {
    "16bit": Part("training dense", "compute", ("ttft", "throughput")),
    "8bit": Part("training dense", "compute"),
    "attention": Part("training dense"),
    "memory": Part("serving tpot", "memory", ("tpot", "throughput")),
    "launch": Part("serving tpot", "launch"),
    "scaleup": Part("training dense"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What a probe says of one rate: shares of the published rate (seconds of a launch), and what counts of their difference."""

    part: str
    measured: float
    expected: float
    share: float  # share of ln(measured / expected) that counts
    spread: float  # spread left in the logarithm of the factor
    factor: float

    def row(self) -> dict[str, Any]:
        """Write the finding as a row of a table."""
        low, high = (self.factor * math.exp(side * Z80 * self.spread) for side in (-1.0, 1.0))
        figures = {"measured": self.measured, "expected": self.expected, "share": self.share, "factor": self.factor}
        return {"part": Message.of(f"probe.part.{self.part}").text(), **figures, "low": low, "high": high}


@dataclass(frozen=True, slots=True)
class Probed:
    """What the calibration by a probe did: the file written, its chip, and the findings."""

    written: Path
    chip: str
    findings: tuple[Finding, ...]

    def as_json(self) -> dict[str, Any]:
        """Write the document of `--format json`."""
        return {"chip": self.chip, "parts": [finding.row() for finding in self.findings]}


# -- reading -----------------------------------------------------------------------------------------------------------


def is_probe(path: Path) -> bool:
    """Tell whether a file is a probe: JSON whose `schema` says so."""
    if path.suffix.lower() != ".json":
        return False
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and str(found.get("schema", "")).startswith(SCHEMA.partition("/")[0])


def read_probe(path: Path) -> dict[str, Any]:
    """Read a probe. Raises SpecError for another form."""
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise SpecError([Issue(str(path), _said("not_json", reason=str(error), name=path.name))]) from None
    if found.get("schema") != SCHEMA:
        words = _said("schema", known=SCHEMA, found=str(found.get("schema")))
        raise SpecError([Issue(f"{path}: schema", words)])
    rows = found.get("measurements")
    if not isinstance(rows, list):
        raise SpecError([Issue(f"{path}: measurements", _said("row"))])
    problems = [Issue(f"{path}: measurements[{i}]", _said("row")) for i, row in enumerate(rows) if not _sound(row)]
    if problems:
        raise SpecError(problems)
    return found


def _sound(row: Any) -> bool:
    """Tell whether a measurement has what `shares` reads, with positive times and rates."""
    if not isinstance(row, dict) or not isinstance(row.get("shape"), dict):
        return False
    rates = RATES.get(row.get("kind", ""), ())
    numbers = [row.get("seconds"), *(row.get(f"{rate}_per_s") for rate in rates)]
    numbers += [row["shape"].get(size) for size in SIZES.get(row["kind"], ())] if "kind" in row else [None]
    words = all(isinstance(row.get(name), str) for name in ("kind", "format", "name"))
    return words and all(isinstance(n, int | float) and math.isfinite(n) and n > 0 for n in numbers)


def _said(code: str, **words: str) -> str:
    return Message.of(f"probe.{code}", **words).text()


def chip_of(document: Mapping[str, Any], catalog: Catalog, named: str | None, path: str) -> Record:
    """Find the chip that was probed: as named, else by what its driver calls it. Raises SpecError for one that the catalog lacks."""
    device = named or str((document.get("device") or {}).get("name", ""))
    for name in (device, device.removeprefix("NVIDIA "), device.removeprefix("AMD Instinct ")):
        if catalog.has("chips", name):
            return catalog.get("chips", name)
    near = close_matches(device, catalog.names("chips")) or list(catalog.names("chips"))[:1]
    raise SpecError([Issue(f"{path}: device.name", _said("unknown_chip", device=device, near=near[0]))])


def shares(document: Mapping[str, Any], chip: Record, path: str = "probe") -> dict[str, list[float]]:
    """Return by part what each measurement reached of the published rate of the chip [1]; of a launch its seconds.

    Matrix products count at their most rows, products of at most 16 rows for memory. Raises SpecError for more than a chip can do.
    """
    found: dict[str, list[float]] = {name: [] for name in PARTS}
    rows, read = list(document["measurements"]), stated(chip)
    peaks = {
        "16bit": peak_flop_per_s(read, "bf16"),
        "8bit": peak_flop_per_s(read, "fp8") or peak_flop_per_s(read, "int8"),
    }
    memory, link = read("hbm_bytes_per_s"), read("scaleup_bytes_per_s")
    for part, numbers in (("16bit", ("bf16", "fp16")), ("8bit", ("fp8", "int8"))):
        products = [row for row in rows if row["kind"] == "gemm" and row["format"] in numbers]
        best = [row for row in products if row["format"] == next(n for n in numbers if _has(products, n))]
        most = max((row["shape"]["m"] for row in best), default=0)
        if peaks[part]:
            found[part] = [row["flop_per_s"] / peaks[part] for row in best if row["shape"]["m"] == most > FEW_ROWS]
        if memory and best and part == "16bit":
            few = max((row["shape"]["m"] for row in best if row["shape"]["m"] <= FEW_ROWS), default=0)
            found["memory"] = [row["bytes_per_s"] / memory for row in best if row["shape"]["m"] == few]
    if memory:
        found["memory"] += [row["bytes_per_s"] / memory for row in rows if row["kind"] in ("gather", "read")]
    if peaks["16bit"]:
        prompts = [row for row in rows if row["kind"] == "prefill attention" and row["format"] in ("bf16", "fp16")]
        found["attention"] = [row["flop_per_s"] / peaks["16bit"] for row in prompts]
    found["launch"] = [row["seconds"] for row in rows if row["kind"] == "launch" and row["name"] == "graph node"]
    if link:
        sums = [row for row in rows if row["kind"] == "all-reduce" and "bytes_per_s" in row]
        largest = max((row["shape"]["bytes"] for row in sums), default=0)
        found["scaleup"] = [row["bytes_per_s"] / link for row in sums if row["shape"]["bytes"] == largest]
    _check_possible(found, chip, path)
    return {part: values for part, values in found.items() if values}


def _has(rows: Iterable[Mapping[str, Any]], numbers: str) -> bool:
    return any(row["format"] == numbers for row in rows)


def _check_possible(found: Mapping[str, Sequence[float]], chip: Record, path: str) -> None:
    """Raise SpecError where a measurement is above a published rate."""
    problems = [
        Issue(path, _said("above_peak", measured=f"{max(values):.0%}", chip=chip.name, part=part))
        for part, values in found.items()
        if part != "launch" and values and max(values) > MOST
    ]
    if problems:
        raise SpecError(problems)


# -- what it says ------------------------------------------------------------------------------------------------------


def findings(measured: Mapping[str, Sequence[float]], chip: Record, catalog: Catalog) -> list[Finding]:
    """Compare what a chip reached with the rates expected of it, part by part, and say how much of the difference counts."""
    found = []
    for part, values in measured.items():
        known = _references(part, catalog)
        if not known:
            continue
        same = [share for name, share in known if name == chip.name]
        family = chip.words("family") or ""
        expected = same or [
            share * _generation(part, family, catalog) / _generation(part, _family(name, catalog), catalog)
            for name, share in known
        ]
        middle, usual = statistics.median(values), math.exp(statistics.fmean(map(math.log, expected)))
        own, kernel = _spreads(part, values, chip, catalog, bool(same))
        share = own**2 / (own**2 + kernel**2)
        factor = math.exp(share * math.log(middle / usual))
        found.append(Finding(part, middle, usual, share, own * math.sqrt(1.0 - share), factor))
    return found


def _references(part: str, catalog: Catalog) -> list[tuple[str, float]]:
    """List (chip, share) of the reference probes; of links what the collectives of training reach on the chips of the fit."""
    if part == "scaleup":
        return [("", catalog.get("constants", "training.intra_efficiency").value("value"))]
    record = catalog.get("constants", REFERENCE)
    pairs = ((name.split("|"), name) for name in record.figures)
    return [(chip, record.value(name)) for (chip, of), name in pairs if of == part]


def _family(chip: str, catalog: Catalog) -> str:
    return (catalog.get("chips", chip).words("family") or "") if chip else ""


def _generation(part: str, family: str, catalog: Catalog) -> float:
    """Return the factor of a generation on a part in the serving model [1]; 1 for one without."""
    name = PARTS[part].factor
    if not name or family not in FAMILIES:
        return 1.0
    return catalog.get("constants", f"serving.{name}_{family}").value("value")


def _spreads(part: str, values: Sequence[float], chip: Record, catalog: Catalog, same: bool) -> tuple[float, float]:
    """Return standard deviations of logarithms: of the chip around what the fit knows of it, and of a kernel as a sign of it.

    A chip of the fit differs from the mean of many by what a single machine does; one of a generation of the fit beyond this as chips do, and
    another as generations do.
    """
    model, label = PARTS[part].level.split()
    level = catalog.get("constants", f"{model}_levels")
    chips, engines = level.value(f"{label}_chip"), level.value(f"{label}_engine")
    factor, seen = PARTS[part].factor, seen_chips(catalog, "serving") | seen_chips(catalog, "training")
    logs = [
        math.log(catalog.get("constants", f"serving.{factor}_{name}").value("value")) for name in FAMILIES if factor
    ]
    generations = float(np.std(logs)) if logs else chips
    among = min(chips, generations)
    if chip.name in seen:
        own = MIN_PRIOR_SPREAD
    else:
        further = among if chip.name in relatives(catalog, seen) else max(chips, generations)
        own = math.hypot(MIN_PRIOR_SPREAD, further)
    scatter = statistics.stdev(map(math.log, values)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    record = catalog.get("constants", REPEAT)
    repeat = record.value(part) if record.get(part) else 0.0
    return own, math.hypot(engines, scatter, repeat, 0.0 if same else among)


def narrowed(found: Sequence[Finding], chip: Record, catalog: Catalog, model: str) -> dict[str, float]:
    """Return by label the factor on the logarithms of the bounds of a chip [1]: what a probe takes from their variance.

    The chip's part of the variance of a band shrinks to what the probe leaves of it; the rest of the band stays.
    """
    seen = seen_chips(catalog, model)
    tier = (
        "new_source" if chip.name in seen else "new_chip" if chip.name in relatives(catalog, seen) else "new_generation"
    )
    bands, levels = (catalog.get("constants", f"{model}_{what}") for what in ("interval", "levels"))
    kept = {}
    for label in LABELS[model]:
        parts = [f for f in found if (model == "training" and f.part == "16bit") or label in PARTS[f.part].labels]
        if parts:
            share = min(finding.share for finding in parts)
            own = MIN_PRIOR_SPREAD if tier == "new_source" else levels.value(f"{label}_chip")
            low, high = (bands.value(f"{tier}_{label}_{side}") for side in ("low", "high"))
            whole = math.log(high / low) / (2.0 * Z80)
            kept[label] = math.sqrt(max(0.0, 1.0 - share * min(own / whole, 1.0) ** 2))
    return kept


# -- writing -----------------------------------------------------------------------------------------------------------


def calibrate_probes(
    paths: Sequence[Path], folder: Path, catalog: Catalog, further: Mapping[str, str] = {}
) -> list[Probed]:
    """Write one overlay of the probes into the folder, `probe.json`; each is of another chip.

    `further`: "chip" names a chip that its driver calls otherwise. Raises SpecError for a probe that says nothing, of a chip that is not known,
    or of one that another is of.
    """
    overlay: dict[str, Any] = {"sources": {}, "chips": [], "constants": []}
    written = folder / "probe.json"
    done: list[Probed] = []
    problems: list[Issue] = []
    for path in paths:
        document = read_probe(path)
        chip = chip_of(document, catalog, further.get("chip"), str(path))
        found = findings(shares(document, chip, str(path)), chip, catalog)
        if not found:
            problems.append(Issue(str(path), _said("nothing", chip=chip.name)))
        if chip.name in (each.chip for each in done):
            problems.append(Issue(str(path), _said("twice", chip=chip.name)))
        done.append(Probed(written, chip.name, tuple(found)))
        for kind, part in _overlay(document, chip, found, catalog).items():
            overlay[kind] = overlay[kind] | part if isinstance(part, dict) else overlay[kind] + part
    if problems:
        raise SpecError(problems)
    if done:
        folder.mkdir(parents=True, exist_ok=True)
        overlay["constants"] = _joined(overlay["constants"])
        write_file(written, json.dumps(overlay, indent=1) + "\n")
    return done


def _overlay(document: Mapping[str, Any], chip: Record, found: Sequence[Finding], catalog: Catalog) -> dict[str, Any]:
    """Write what a probe says as records of the catalog."""
    source, device = f"OWN-PROBE {chip.name}", str((document.get("device") or {}).get("name", chip.name))
    title = {"title": _said("title", chip=chip.name), "date": document.get("date"), "confidence": "B"}
    constants = [*_launch_records(found, chip, catalog, source, device)]
    for model in LABELS:
        kept = narrowed(found, chip, catalog, model)
        figures = {f"{chip.name}|{label}": calibrated_figure(value, source) for label, value in kept.items()}
        constants.append({"name": f"{model}_probe", "figures": figures})
    chips = [{"name": chip.name, "figures": dict(_chip_figures(found, source, device))}]
    return {"sources": {source: title}, "chips": chips, "constants": constants}


def _joined(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the figures of records of one name together; of one figure stated twice the later counts."""
    by_name: dict[str, dict[str, Any]] = {}
    for record in records:
        by_name.setdefault(record["name"], {}).update(record["figures"])
    return [{"name": name, "figures": figures} for name, figures in by_name.items()]


def _chip_figures(found: Iterable[Finding], source: str, device: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the figures of the chip record."""
    for finding in found:
        if finding.part != "launch":
            yield f"reached_{finding.part}", _figure(finding, finding.factor, source, "1", device)


def _launch_records(
    found: Iterable[Finding], chip: Record, catalog: Catalog, source: str, device: str
) -> Iterator[dict[str, Any]]:
    """Yield the factor of the launch of the chip's generation, where it has one."""
    family = chip.words("family") or ""
    for finding in found:
        if finding.part == "launch" and family in FAMILIES:
            name = f"serving.launch_{family}"
            value = catalog.get("constants", name).value("value") * finding.factor
            yield {"name": name, "figures": {"value": _figure(finding, value, source, "1", device)}}


def _figure(finding: Finding, value: float, source: str, unit: str, device: str) -> dict[str, Any]:
    low, high = (value * math.exp(side * Z80 * finding.spread) for side in (-1.0, 1.0))
    counted, values = f"{finding.share:.0%}", (finding.measured, finding.expected)
    note = Message.of("probe.note", device=device, measured=values[0], expected=values[1], share=counted).text()
    return calibrated_figure(value, source, unit, low, high, note)


def reference_figures(documents: Sequence[Mapping[str, Any]], chip: Record) -> dict[str, float]:
    """Return the figures of the record `probe_reference` by part: the geometric mean over probes of one chip of the median in each."""
    return {f"{chip.name}|{part}": math.exp(statistics.fmean(logs)) for part, logs in _medians(documents, chip).items()}


def repeat_figures(documents: Sequence[Mapping[str, Any]], chip: Record) -> dict[str, float]:
    """Return the figures of the record `probe_repeat` by part [1]: standard deviation of ln(median) over probes of one chip."""
    return {part: statistics.stdev(logs) for part, logs in _medians(documents, chip).items()}


def _medians(documents: Sequence[Mapping[str, Any]], chip: Record) -> dict[str, list[float]]:
    by_probe = [shares(document, chip) for document in documents]
    return {part: [math.log(statistics.median(found[part])) for found in by_probe] for part in by_probe[0]}


# -- shapes of an architecture -----------------------------------------------------------------------------------------


def shapes_of(name: str, arch: Architecture, tp: int = 1) -> dict[str, Any]:
    """List the weights [n outputs, k inputs] that a chip multiplies in a layer under tensor parallelism, and its heads, for `planner.probe`.

    Raises SpecError for degrees that do not divide the heads, and for networks without a product.
    """
    if tp < 1 or arch.heads % tp:
        raise SpecError([Issue("--tp", _said("no_tp", got=str(tp)))])
    gate = 2 if arch.gated else 1
    sizes = [("dense in", gate * arch.ffn // tp, arch.hidden), ("dense out", arch.hidden, arch.ffn // tp)]
    if arch.mla:
        value = arch.v_head_dim or arch.qk_nope_dim
        sizes += [("latent", (arch.q_lora_rank or 0) + arch.kv_lora_rank + arch.qk_rope_dim, arch.hidden)]
        query = arch.heads // tp * (arch.qk_nope_dim + arch.qk_rope_dim)
        sizes += [("query", query, arch.q_lora_rank or arch.hidden), ("out", arch.hidden, arch.heads // tp * value)]
    else:
        heads = (arch.heads + 2 * max(arch.kv_heads, tp)) // tp
        sizes += [("query key value", heads * arch.head_dim, arch.hidden)]
        sizes += [("out", arch.hidden, arch.heads // tp * arch.head_dim)]
    if arch.experts:
        width = arch.expert_hidden or arch.hidden
        sizes += [("expert in", gate * arch.expert_ffn, width), ("expert out", width, arch.expert_ffn)]
    products = [{"name": of, "n": int(n), "k": int(k)} for of, n, k in sizes if n > 0 and k > 0]
    if not products:
        raise SpecError([Issue("--architecture", _said("no_shapes", name=name))])
    found: dict[str, Any] = {"name": name, "products": products}
    if not arch.mla:  # whose kernels PyTorch does not have: heads of the standard set
        heads_kv = {"heads": arch.heads // tp, "kv_heads": max(arch.kv_heads // tp, 1), "head_dim": arch.head_dim}
        found["attention"] = {key: int(value) for key, value in heads_kv.items()}
    return found
