"""The kind "serving" of measurements: which metrics a row has, how far they are believed, and what their fits are keyed by."""

from __future__ import annotations

from models.serving.many_runs import Predictor
from models.serving.priors import SERVING_PRIORS
from planner.calibration.kind import Kind, Question
from planner.calibration.serving_cases import in_score, measured_serving

METRICS = ("tpot", "ttft", "throughput")


def environment(m: Question, metric: str) -> str:
    """Key of the offset that own rows of one engine, chip and precision share."""
    return f"{m.case.engine}|{m.chip}|{m.case.weight_precision}|{metric}"


SERVING = Kind(
    name="serving",
    question=measured_serving,
    measured=lambda m: m.measured,
    nothing="no TTFT, TPOT or output tokens/s",
    predictor=Predictor,
    shown=lambda m, metric, value, values: value,
    priors=SERVING_PRIORS,
    fitted=METRICS,
    # The first token waits in queues, and its noise floor is several times that of the others.
    scale={"tpot": 0.15, "ttft": 0.4, "throughput": 0.13},
    offset={"tpot": 0.2, "ttft": 0.4, "throughput": 0.2},
    in_score=in_score,
    label=lambda m, metric: metric,
    labels=METRICS,
    anchor=environment,
    evenness=0.0,  # the scores weigh rows alike, too
    weight=0.1,
    anchor_words="offset of {3} with {0} on {1} at {2}",
)
