"""The calibration target "serving": TPOT, TTFT and throughput of serving runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from models.arrays import Floats
from models.formats import kind_of
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import memory_bytes_per_chip
from models.serving.many_runs import MEANS, Case, Predictor
from models.serving.priors import SERVING_PRIORS, serving_level
from models.serving.workload import Lengths, Precisions
from planner.calibration.serving_cases import MeasuredServing, in_score, measured_serving
from planner.calibration.serving_loads import OTHER_WAYS
from planner.calibration.target import CalibrationTarget, Observation
from planner.messages import Message

QUANTILES_OF = (
    "ttft_"  # start of the metrics that are quantiles of TTFT: scored, with the interval of TTFT, and never fitted
)


ALIKE = 1e-6  # relative difference of rates by rounding
FAST = 1e9  # rate that no run serves [1/s]
ROUNDS = 8  # halvings of the bounds on a rate that holds a number of requests in flight


def statistic_of(metric: str) -> str:
    """Return the metric whose interval and offset a figure shares: a quantile of TTFT is as uncertain as its mean.

    >>> statistic_of("ttft_p99"), statistic_of("tpot")
    ('ttft', 'tpot')
    """
    return "ttft" if metric.startswith(QUANTILES_OF) else metric


def predictor(cases: Sequence[Case], observations: Sequence[tuple[int, str]]) -> Predictor:
    """Build the function from constants to ln(predicted): the figure that a row reports, which may be the median of TTFT."""
    asked = [(i, "ttft_p50" if metric == "ttft" and cases[i].median_ttft else metric) for i, metric in observations]
    return Predictor(cases, asked)


def environment(m: MeasuredServing, metric: str) -> str:
    """Name the offset that the user's rows of one engine, chip and precision share."""
    return (
        f"{m.case.engine}|{m.chip}|{kind_of(m.case.arch.checkpoints, m.case.weight_precision)}|{statistic_of(metric)}"
    )


def memory(m: MeasuredServing, values: Mapping[str, float]) -> tuple[float, float]:
    """Return what one request per attention rank needs on a chip of the decode pool, and the usable memory of the chip [byte]."""
    constants, run, layout = ServingConstants.from_values(values), m.case, m.case.decode.layout
    needed = memory_bytes_per_chip(
        run.arch, ServingLayouts(**layout), layout["dp"], lengths=Lengths(run.input_tokens, run.output_tokens),
        precisions=Precisions(run.weight_precision, run.kv_precision), constants=constants,
    )  # fmt: skip
    return float(needed), float(constants.usable_memory * run.chip.hbm_bytes)


def at_other_rate(
    cases: Sequence[MeasuredServing], observations: Sequence[Observation], values: Mapping[str, float], times: float
) -> Floats:
    """Predict ln of the factor on the TTFT of open arrivals at a multiple of their rate [1]; 0 for all else.

    Where a run without end would not complete as many times the requests, a run that ends has the TTFT of all its requests at once, and one
    without end an infinite one.
    """
    rows = [i for i, o in enumerate(observations) if o.label == "ttft" and cases[o.case].case.regime == "open"]
    found = np.zeros(len(observations))
    if rows:
        here = [cases[observations[i].case].case for i in rows]
        there = [replace(run, load=run.load * times) for run in here]
        asked = [(place, observations[i].metric) for place, i in enumerate(rows)]
        first, moved = (predictor(runs, asked)(values) for runs in (here, there))
        served = [(place, "throughput") for place in range(len(rows))]
        before, after = (
            predictor([replace(run, requests=0.0) for run in runs], served)(values) for runs in (here, there)
        )
        ends = np.array([run.requests for run in here])
        together = [replace(run, regime="burst", load=max(run.requests, 1.0), requests=0.0) for run in here]
        most = np.where(ends > 0.0, np.maximum(predictor(together, asked)(values) - first, moved - first), np.inf)
        found[rows] = np.where(after - before < np.log(times) - ALIKE, most, moved - first)
    return found


def by_other_ways(
    cases: Sequence[MeasuredServing], observations: Sequence[Observation], values: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """Predict ln of the least and of the most factor on each observation over the ways in which its requests may have come; 0 where they are stated.

    As many as are in flight all at once; or at random, at the rate that holds as many in flight: the rate follows the machine then, so that such
    a run is not more uncertain by its load.
    """
    least, most = np.zeros(len(observations)), np.zeros(len(observations))
    for way in OTHER_WAYS:
        rows = [i for i, o in enumerate(observations) if way in cases[o.case].ways]
        if rows:
            here = [cases[observations[i].case].case for i in rows]
            asked = [(place, observations[i].metric) for place, i in enumerate(rows)]
            there = at_random(here, asked, values) if way == "open" else predictor(_all_as(here, way), asked)(values)
            moved = there - predictor(here, asked)(values)
            least[rows], most[rows] = np.minimum(least[rows], moved), np.maximum(most[rows], moved)
    return least, most


def at_random(runs: Sequence[Case], asked: Sequence[tuple[int, str]], values: Mapping[str, float]) -> Floats:
    """Predict ln of figures of runs whose requests come at random at the rate r that holds `load` of them in flight:  r (TTFT + (O - 1) TPOT) = load.

    Where the highest rate that is served holds fewer, the others wait before they are admitted: TTFT = load / r - (O - 1) TPOT.
    Reference: Little, Operations Research 9 (1961).
    """
    held, tokens = (np.array([getattr(run, name) for run in runs]) for name in ("load", "output_tokens"))
    means = [(place, metric) for metric in MEANS for place in range(len(runs))]

    def at(rate: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        each, first, served = np.exp(predictor(_all_as(runs, "open", rate), means)(values)).reshape(len(MEANS), -1)
        return each, first, served, first + (tokens - 1.0) * each

    _, _, served, longest = at(np.full(len(runs), FAST))
    most = served / tokens
    low = np.minimum(held / longest, most)
    high = np.minimum(held / at(low)[-1], most)
    for _ in range(ROUNDS):
        rate = np.sqrt(low * high)
        more = rate * at(rate)[-1] > held
        low, high = np.where(more, low, rate), np.where(more, rate, high)
    there = _all_as(runs, "open", high)
    each, first, served, _ = at(high)
    waits = np.log(np.maximum(held * tokens / served - (tokens - 1.0) * each, first) / first)
    found: Floats = predictor(there, asked)(values)
    found += np.array([waits[place] if metric.startswith("ttft") else 0.0 for place, metric in asked])
    return found


def _all_as(runs: Sequence[Case], way: str, loads: Floats | None = None) -> list[Case]:
    """Load runs another way."""
    amounts = [run.load for run in runs] if loads is None else loads.tolist()
    return [replace(run, regime=way, load=amount) for run, amount in zip(runs, amounts, strict=True)]


SERVING = CalibrationTarget(
    name="serving",
    build_case=measured_serving,
    metrics_of=lambda m: m.measured,
    no_metric_reason="row.no_serving_metric",
    predictor=predictor,
    in_metric_unit=lambda m, metric, value, values: value,
    memory=memory,
    priors=SERVING_PRIORS,
    level_of=serving_level,
    fitted_metrics=MEANS,
    # The first token waits in queues, and its noise floor is several times that of the others.
    outlier_scale={"tpot": 0.15, "ttft": 0.4, "throughput": 0.13},
    offset_spread={"tpot": 0.2, "ttft": 0.4, "throughput": 0.2},
    in_score=in_score,
    interval_label=lambda m, metric: statistic_of(metric),
    interval_labels=MEANS,
    offset_key=environment,
    source_evenness=0.0,  # the scores weigh rows alike, too
    rate_label="throughput",
    at_other_rate=at_other_rate,
    by_other_ways=by_other_ways,
    data_weight=0.1,
    offset_words=Message.of(
        "calibration.offset_of_engine", metric="{3}", engine="{0}", chip="{1}", precision="{2}"
    ).text(),
)
