"""Compare what a simulation has found with the closed forms: latencies, goodput, and which mean explains a difference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.arrays import Floats
from models.serving.continuous_batching import ServingPoint
from planner.messages import say
from planner.replay.closed import mean_parts, quantile_s, within
from planner.replay.deployments import Deployed
from planner.replay.simulate import Run

METRICS = ("ttft", "tpot", "e2e")
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
APART = 0.20  # difference of a latency from its closed form from which on a reason is looked for
TOLD = 0.10  # difference of a mean from which on it is a reason
MOST_REASONS = 3
OF_TTFT = ("prompt", "arrival_scv", "prompt_scv", "hits", "wait_s", "prefill_s", "step_s", "batch")
OF_TPOT = ("output", "prompt", "output_scv", "batch", "step_s", "hits")
LOADED = (
    "arrival_scv",
    "prompt_scv",
    "output_scv",
)  # that a distribution has whatever its mean; compared by difference, not by ratio


@dataclass(frozen=True, slots=True)
class Compared:
    """A latency as simulated and by the closed forms [s]; None where the closed forms have none, or nothing ended."""

    metric: str
    percentile: str
    replayed_s: float | None
    closed_s: float | None
    planned_s: float | None  # what the plan states at full load
    limit_s: float | None

    @property
    def difference(self) -> float | None:
        """Return closed form over simulation, less one."""
        if not self.replayed_s or self.closed_s is None:
            return None
        return self.closed_s / self.replayed_s - 1.0


def compared(deployed: Deployed, run: Run, point: ServingPoint | None) -> list[Compared]:
    """Set every percentile beside that of the closed forms."""
    pace, found = deployed.pace, []
    times = {
        "ttft": run.ttft_s * pace.first_token,
        "tpot": run.tpot_s * pace.decode,
        "e2e": _whole(run, pace.first_token, pace.decode),
    }
    for metric in METRICS:
        for name, share in SHARES.items():
            seen = float(np.quantile(times[metric], share)) if len(times[metric]) else None
            closed = None if point is None else quantile_s(point, metric, share)
            planned, limit = deployed.planned_s.get(f"{metric}.{name}"), deployed.limits.get(metric)
            found.append(Compared(metric, name, seen, closed, planned, limit))
    return found


def _whole(run: Run, first_token: float, decode: float) -> Floats:
    return run.ttft_s * first_token + (run.e2e_s - run.ttft_s) * decode


def goodput(deployed: Deployed, run: Run, point: ServingPoint | None) -> dict[str, float | None]:
    """Compute the share of requests that keep all limits, simulated and predicted, and their rate of one replica [request/s].

    Requests that were refused or did not end keep none.
    """
    limits, pace = deployed.limits, deployed.pace
    kept = np.ones(len(run.ttft_s), dtype=bool)
    if "ttft" in limits:
        kept &= run.ttft_s * pace.first_token <= limits["ttft"]
    if "tpot" in limits:
        slow = np.zeros(len(kept), dtype=bool)
        slow[run.within] = run.tpot_s * pace.decode > limits["tpot"]
        kept &= ~slow
    if "e2e" in limits:
        kept &= _whole(run, pace.first_token, pace.decode) <= limits["e2e"]
    share = float(kept.sum()) / run.counted if run.counted else 0.0
    return {
        "share": share,
        "closed_share": None if point is None or not limits else within(point, limits),
        "requests_per_s": share * run.means["rate"] * pace.rate,
    }


def both_means(
    deployed: Deployed, run: Run, point: ServingPoint | None, predicted_hits: float | None
) -> dict[str, dict[str, float]]:
    """Return the means by name, each as simulated and, where the closed forms have it, as they do."""
    lengths = deployed.stream.lengths
    pace = deployed.pace
    closed: dict[str, float] = {
        "prompt": float(lengths.prompt), "output": float(lengths.output), "prompt_scv": float(lengths.scv_of_input),
        "output_scv": float(lengths.scv_of_output), "arrival_scv": deployed.stream.arrival_scv,
    }  # fmt: skip
    if predicted_hits is not None:
        closed["hits"] = predicted_hits
    if point is not None:
        closed |= mean_parts(point, deployed.server.prefill is not None)
    by = {"step_s": pace.decode, "wait_s": pace.first_token, "prefill_s": pace.first_token, "rate": pace.rate}
    return {
        name: {"replayed": value * by.get(name, 1.0), **({"closed": closed[name]} if name in closed else {})}
        for name, value in run.means.items()
    }


def reasons(
    rows: list[Compared], means: Mapping[str, Mapping[str, float]], evicted: int, overloaded: bool
) -> list[str]:
    """Say which means differ most where latencies differ by more than a fifth; none where they do not."""
    apart = {row.metric for row in rows if row.difference is not None and abs(row.difference) > APART}
    if overloaded:
        return [say("replay.overloaded")]
    if not apart:
        return []
    wanted = {*(OF_TTFT if apart & {"ttft", "e2e"} else ()), *(OF_TPOT if apart & {"tpot", "e2e"} else ())}
    found: list[tuple[float, str]] = []
    for name in wanted:
        both = means[name]
        if "closed" in both and (size := _apart(name, both["replayed"], both["closed"])) > TOLD:
            words = say(f"replay.because_{name}", replayed=_shown(both["replayed"]), closed=_shown(both["closed"]))
            found.append((size, words))
    told = [words for _, words in sorted(found, reverse=True)[:MOST_REASONS]]
    if evicted:
        told.append(say("replay.because_evicted", count=evicted))
    return told or [say("replay.because_shape")]


def _apart(name: str, replayed: float, closed: float) -> float:
    if name in LOADED or name == "hits":
        return abs(replayed - closed)
    return abs(math.log(replayed / closed)) if replayed > 0 and closed > 0 else 0.0


def _shown(value: float) -> str:
    return f"{value:.3g}"


def row_of(row: Compared) -> dict[str, Any]:
    """Write a comparison as JSON."""
    return {
        "metric": row.metric, "percentile": row.percentile, "replayed_s": row.replayed_s, "closed_s": row.closed_s,
        "difference": row.difference, "planned_s": row.planned_s, "limit_s": row.limit_s,
    }  # fmt: skip
