"""Compare the figures of a measured row with the roofline of its chips and with each other; the rules are in `planner.facts.measurements`."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.errors import UnknownName
from catalog.figures import Figure
from catalog.lookup import Catalog
from catalog.records import Record
from models.formats import WEIGHT_FORMATS, element_bytes
from models.transformer.architecture import parameter_counts
from planner.calibration.measurements import MeasuredCase, Row
from planner.calibration.serving_cases import MeasuredServing
from planner.calibration.serving_loads import completed_per_s, in_flight
from planner.calibration.training_cases import MeasuredTraining
from planner.facts import Fact
from planner.facts import measurements as known
from planner.facts.lengths import beyond_context
from planner.facts.measurements import Chips
from planner.ways_in.formats import UNSTATED_FORMATS

COUNTS = ("n_chips", "chips_per_node", "tp", "pp", "dp", "ep", "cp", "vpp", "micro_batch")
NARROWEST_BYTES = min(
    float(element_bytes(name)) for name in WEIGHT_FORMATS
)  # bits of a weight whose format the row leaves open
FORWARD, BACKWARD = (
    2.0,
    4.0,
)  # FLOPs of one weight and token; backward: half for activations, half for the weights' gradients


def facts_of(case: MeasuredCase, catalog: Catalog) -> list[Fact]:
    """List the faults of a row: what its chips cannot do, and figures that contradict each other."""
    chip = catalog.get("chips", case.chip)
    found = [known.not_whole(case.row.place, column, case.row.number(column) or 0.0) for column in COUNTS]
    if isinstance(case, MeasuredServing):
        tokens, network = (
            case.case.input_tokens + case.case.output_tokens,
            catalog.get("architectures", case.architecture),
        )
        noted = beyond_context(f"{case.row.place}, isl", "measured.longer_than_context", tokens, network, refuses=False)
        found.append(known.beyond_any_context(case.row.place, tokens) or noted)
        found += [*_serving_rooflines(case, chip, catalog), *_loads(case)]
    elif isinstance(case, MeasuredTraining):
        found += _training_rooflines(case, chip, catalog)
    return [fact for fact in found if fact is not None]


def chips_of(record: Record, count: float, catalog: Catalog) -> Chips:
    """Read what a chip does at most: its bandwidth, and the highest of its dense peaks."""
    bandwidth = record.get("hbm_bytes_per_s")
    peaks = [figure for name, figure in record.figures.items() if name.endswith("flop_per_s")]
    peak = max(peaks, key=lambda figure: figure.number, default=None)
    sources = (_cited(catalog, figure) if figure else "" for figure in (bandwidth, peak))
    return Chips(record.name, count, bandwidth.number if bandwidth else 0.0, peak.number if peak else 0.0, *sources)


def _cited(catalog: Catalog, figure: Figure) -> str:
    """Return the title of the first source of a figure, or its name where it is the user's own."""
    if not figure.source:
        return ""
    try:
        return catalog.source(figure.source[0]).title
    except UnknownName:
        return figure.source[0]


def _serving_rooflines(case: MeasuredServing, chip: Record, catalog: Catalog) -> Iterator[Fact | None]:
    """Compare TPOT and TTFT with the reading of the weights, and the rate with their arithmetic."""
    row, active = case.row, parameter_counts(case.case.arch).active
    open_format = row.text["weight_dtype"].lower() in UNSTATED_FORMATS
    width = NARROWEST_BYTES if open_format else element_bytes(case.case.weight_precision)
    readers = chips_of(chip, _chips_of_a_token(row, case.chips), catalog)
    per_step = max(row.number("tokens_per_step") or 1.0, 1.0)
    for metric, steps in (("tpot", per_step), ("ttft", 1.0)):
        if seconds := case.measured.get(metric):
            yield known.time_below_roofline(row.place, f"{metric}_ms", seconds, active * width / steps, readers)
    if rate := case.measured.get("throughput"):
        column = "output_tokens_per_s_total"
        yield known.rate_above_roofline(row.place, column, rate, FORWARD * active, chips_of(chip, case.chips, catalog))


def _chips_of_a_token(row: Row, chips: float) -> float:
    """Count the chips that read weights for one token at the same time: the chips of its stage, or all where the row states no layout."""
    tp = row.count("tp")
    return min(chips, tp * max(1, row.count("dp"))) if tp and row.text["mode"] != "disaggregated" else chips


def _loads(case: MeasuredServing) -> Iterator[Fact | None]:
    """Compare what was in flight by Little's law with clients, ceiling and peak, and the times of requests with their parts."""
    row, held = case.row, in_flight(case.row)
    stated, first_ms, token_ms = (row.number(name) for name in ("e2e_ms", "ttft_ms", "tpot_ms"))
    if case.case.regime in ("closed", "open"):
        exact = bool(stated and row.number("requests_per_s"))
        for column in ("concurrency", "peak_in_flight"):
            yield known.more_in_flight(row.place, held, row.number(column) or 0.0, column, exact)
    if case.case.regime == "closed":
        yield known.idle_clients(row.place, held, case.case.load)
    if case.case.regime == "open":
        yield known.more_than_arrive(row.place, completed_per_s(row), case.case.load)
    if stated and first_ms and token_ms:
        request_s, first_s, token_s = (ms * known.MILLI for ms in (stated, first_ms, token_ms))
        yield known.times_disagree(row.place, request_s, first_s, token_s, case.case.output_tokens)


def _training_rooflines(case: MeasuredTraining, chip: Record, catalog: Catalog) -> Iterator[Fact | None]:
    """Compare the tokens of a step with the arithmetic of the weights that one uses: 6 FLOPs each, 4 where they are frozen."""
    row, run = case.row, case.case
    chips = chips_of(chip, case.chips, catalog)
    work = FORWARD + (BACKWARD / 2.0 if run.recipe.adapter_rank else BACKWARD)
    if case.step_s:
        rate = run.global_batch_sequences * run.sequence_tokens / case.step_s
        column = "step_time_s" if row.number("step_time_s") else "tokens_per_s_per_chip"
        yield known.rate_above_roofline(row.place, column, rate, work * parameter_counts(run.arch).active, chips)
    elif case.tflops:
        yield known.work_above_peak(row.place, case.tflops * 1e12, chips)
