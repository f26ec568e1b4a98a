"""The calibration target "serving": TPOT, TTFT and throughput of serving runs."""

from __future__ import annotations

from models.serving.many_runs import Predictor
from models.serving.priors import SERVING_PRIORS
from planner.calibration.serving_cases import MeasuredServing, in_score, measured_serving
from planner.calibration.target import CalibrationTarget

METRICS = ("tpot", "ttft", "throughput")


def environment(m: MeasuredServing, metric: str) -> str:
    """Name the offset that the user's rows of one engine, chip and precision share."""
    return f"{m.case.engine}|{m.chip}|{m.case.weight_precision}|{metric}"


SERVING = CalibrationTarget(
    name="serving",
    build_case=measured_serving,
    metrics_of=lambda m: m.measured,
    no_metric_reason="no TTFT, TPOT or output tokens/s",
    predictor=Predictor,
    in_metric_unit=lambda m, metric, value, values: value,
    priors=SERVING_PRIORS,
    fitted_metrics=METRICS,
    # The first token waits in queues, and its noise floor is several times that of the others.
    outlier_scale={"tpot": 0.15, "ttft": 0.4, "throughput": 0.13},
    offset_spread={"tpot": 0.2, "ttft": 0.4, "throughput": 0.2},
    in_score=in_score,
    interval_label=lambda m, metric: metric,
    interval_labels=METRICS,
    offset_key=environment,
    source_evenness=0.0,  # the scores weigh rows alike, too
    data_weight=0.1,
    offset_words="offset of {3} with {0} on {1} at {2}",
)
