"""Replay the deployments of a plan request by request: `flopwatt replay`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from models.arrays import Floats, sum_of
from models.serving.continuous_batching import ServingPoint
from models.serving.percentiles import latency_s
from planner.errors import Issue, SpecError
from planner.messages import Message, say
from planner.plan import Plan
from planner.replay.closed import at_rate
from planner.replay.deployments import Deployed, deployments_of
from planner.replay.outcome import both_means, compared, goodput, reasons, row_of
from planner.replay.pools import RANDOM, ROUTERS
from planner.replay.requests import Requests, drawn, traced
from planner.replay.simulate import Run, simulate, tiers_of
from planner.report.heads import headed
from planner.solving.variants import resolved_anew
from planner.spec.model import parse_spec
from planner.verify.quality import as_chosen

REQUESTS, REPLICAS, SEED = 20_000, 1, 1
FEWEST, MOST = 100, 10_000_000
MOST_REPLICAS = 256
SAMPLES = 120
BUSIEST, TYPICAL, TRACE = "busiest", "typical", "trace"
FLAT = 0.99  # typical over busiest load from which on one stands for both
STEPS = "▁▂▃▄▅▆▇█"
COLUMNS = 60  # columns of a chart in text


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay has found: `document` with all of it, sentences, a table for each deployment and load, and one flat table."""

    document: dict[str, Any]
    words: list[str]
    sections: list[tuple[str, list[dict[str, Any]]]]
    rows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Asked:
    """How to replay: requests of each load (most of a trace), seed, router, and replicas that are simulated at most."""

    requests: int = REQUESTS
    seed: int = SEED
    router: str = RANDOM
    replicas: int = REPLICAS


def replay(
    plan: Plan, trace: Path | None = None, *, overlays: Sequence[Path] = (), asked: Asked = Asked(), place: str = "plan"
) -> Replayed:
    """Simulate every deployment of a plan on drawn requests of its busiest and its typical hour, or on the requests of a trace.

    `place` names the plan in errors. Raises SpecError for a plan without an answer, options out of range, or a file that is no trace;
    ModuleNotFoundError where simpy is missing, and OSError for a missing file.
    """
    _check(plan, asked, place)
    problem = as_chosen(resolved_anew(parse_spec(plan.document["spec"]), overlays), plan.document)
    deployments, left_out = deployments_of(plan, problem)
    if not deployments:
        reason = left_out[0]["reason"] if left_out else say("replay.nothing_served")
        raise SpecError([Issue(place, Message.of("replay.no_deployment", reason=reason).text())])
    loads = [_load(each, hour, trace, asked) for each in deployments for hour in _hours(each, trace)]
    notes = [
        say("replay.load_shared"),
        *({say("replay.classes_in_order")} if any(each.classes for each in deployments) else ()),
    ]
    document = {
        "plan": plan.document["name"],
        "requests": asked.requests,
        "seed": asked.seed,
        "router": asked.router,
        "trace": trace.name if trace else None,
        "loads": loads,
        "left_out": left_out,
        "notes": [str(note) for note in notes],
    }
    return Replayed(document, _words(loads, left_out, notes), _sections(loads), _rows(loads))


def _hours(deployed: Deployed, trace: Path | None) -> tuple[str, ...]:
    """List the loads of a deployment; one alone where its demand is flat."""
    if trace is not None:
        return (TRACE,)
    return (BUSIEST, TYPICAL) if deployed.typical < FLAT * deployed.busiest else (BUSIEST,)


def _check(plan: Plan, asked: Asked, place: str) -> None:
    """Raise SpecError with all that is wrong with the options at once, ModuleNotFoundError without simpy."""
    problems = []
    if not plan.has_answer:
        problems.append(Issue(place, Message.of("option.no_plan_to_test").text()))
    for option, value, least, most in (
        ("--requests", asked.requests, FEWEST, MOST),
        ("--replicas", asked.replicas, 1, MOST_REPLICAS),
    ):
        if not least <= value <= most:
            words = Message.of("cli.number_out_of_range", least=least, most=most, given=value).text()
            problems.append(Issue(option, words))
    if asked.seed < 0:
        problems.append(Issue("--seed", Message.of("option.number_not_negative", given=str(asked.seed)).text()))
    if asked.router not in ROUTERS:
        words = Message.of("replay.unknown_router", names=", ".join(ROUTERS), given=asked.router).text()
        problems.append(Issue("--router", words))
    if find_spec("simpy") is None:
        problems.append(Issue("replay", Message.of("replay.no_simpy").text()))
    if problems:
        raise SpecError(problems)


def _load(deployed: Deployed, hour: str, trace: Path | None, asked: Asked) -> dict[str, Any]:
    """Replay one deployment under one load."""
    simulated = min(deployed.replicas, asked.replicas)
    pace = deployed.pace
    if trace is None:
        each = (deployed.busiest if hour == BUSIEST else deployed.typical) / deployed.replicas
        stream = replace(deployed.stream, requests_per_s=each * simulated / pace.rate)
        requests = drawn(stream, asked.requests, asked.seed, simulated * _inside(at_rate(deployed.point_at, each)))
    else:
        requests = _of_trace(deployed, trace, simulated, asked)
        each = _rate(requests.arrivals_s) / simulated * pace.rate
    run = simulate(
        deployed.server, requests, simulated, asked.router, asked.seed, requests_per_s=each / pace.rate, samples=SAMPLES
    )
    point = at_rate(deployed.point_at, each)
    tiers = tiers_of(deployed.server, each)
    means = both_means(deployed, run, point, None if tiers is None else sum_of(tiers.hits))
    rows = compared(deployed, run, point)
    return {
        "workload": deployed.workload, "point": deployed.point, "site": deployed.site, "hour": hour,
        "replicas": deployed.replicas, "simulated": simulated,
        "requests_per_s": each, "load": each / deployed.capacity,
        "latencies": [row_of(row) for row in rows],
        "goodput": goodput(deployed, run, point),
        "limits_s": dict(deployed.limits),
        "means": means,
        "reasons": reasons(rows, means, run.evicted, point is None),
        "counts": _counts(requests, run),
        "series": _series(run, pace.rate),
    }  # fmt: skip


def _of_trace(deployed: Deployed, trace: Path, simulated: int, asked: Asked) -> Requests:
    """Read a trace, of which a deployment takes its share and each of its replicas as much as any other; the simulated ones take theirs.

    Of a trace without times, requests arrive at random at the mean rate of the plan. Times are on the clock of the engine.
    """
    pace = deployed.pace.rate
    whole = replace(deployed.stream, requests_per_s=deployed.typical / deployed.share)
    found = traced(trace, whole, asked.requests, asked.seed)
    mine = deployed.share * simulated / deployed.replicas
    if mine < 1.0:
        chosen = np.random.default_rng(asked.seed + 7).random(len(found)) < mine
        if chosen.sum() < 2:
            few = Message.of("replay.trace_too_short", count=int(chosen.sum()), point=deployed.point).text()
            raise SpecError([Issue(trace.name, few)])
        found = found.take(chosen)
    return replace(found, arrivals_s=found.arrivals_s * pace)


def _inside(point: ServingPoint | None) -> float:
    """Predict the requests that a replica holds at once, by Little's law; 0 where it is overloaded."""
    stay = np.inf if point is None else float(latency_s(point, "e2e", "mean"))
    return float(point.requests_per_s) * stay if point is not None and np.isfinite(stay) else 0.0


def _rate(arrivals_s: Floats) -> float:
    """Compute the mean rate of arrivals [1/s]."""
    span = float(arrivals_s[-1] - arrivals_s[0])
    return (len(arrivals_s) - 1) / span if span > 0 else float(len(arrivals_s))


def _counts(requests: Requests, run: Run) -> dict[str, int]:
    """Count what became of the requests: arrived = ended + refused."""
    return {
        "arrived": run.arrived, "counted": run.counted, "ended": run.ended, "refused": run.refused, "evicted": run.evicted,
        "left_out": requests.left_out,
    }  # fmt: skip


def _series(run: Run, pace: float) -> dict[str, list[float]]:
    """Write the state over time, on the user's clock."""
    series = run.series
    return {
        "time_s": [seconds / pace for seconds in series.times_s], "waiting": series.waiting, "running": series.running, "cache": series.cache,
    }  # fmt: skip


# -- words and tables --------------------------------------------------------------------------------------------------


def _words(loads: Sequence[dict[str, Any]], left_out: Sequence[dict[str, str]], notes: Sequence[str]) -> list[str]:
    """Say what was replayed, what differs and why, and what was left out."""
    found = []
    for load in loads:
        goodput, counts = load["goodput"], load["counts"]
        found.append(
            say(
                "replay.summary", point=load["point"], hour=say(f"replay.hour_{load['hour']}"), replicas=load["replicas"],
                simulated=load["simulated"], rate=f"{load['requests_per_s']:.4g}", load=f"{load['load']:.0%}", counted=counts["counted"],
            )
        )  # fmt: skip
        if load["limits_s"]:
            closed = "-" if goodput["closed_share"] is None else f"{goodput['closed_share']:.1%}"
            rate = f"{goodput['requests_per_s']:.4g}"
            found.append(say("replay.goodput", share=f"{goodput['share']:.1%}", closed=closed, rate=rate))
        if counts["refused"]:
            found.append(say("replay.refused", count=counts["refused"]))
        found += [say("replay.why", reason=reason) for reason in load["reasons"]]
        series = load["series"]
        if series["time_s"]:
            found.append(
                say("replay.waiting_over_time", chart=chart(series["waiting"]), most=f"{max(series['waiting']):.0f}")
            )
            found.append(
                say("replay.cache_over_time", chart=chart(series["cache"]), most=f"{max(series['cache']):.0%}")
            )
    found += [say("replay.left_out", point=row["point"], reason=row["reason"]) for row in left_out]
    return [*found, *notes]


def chart(values: Sequence[float]) -> str:
    """Draw the means of equal parts of a series as bars from zero up.

    >>> chart([0.0, 1.0, 2.0, 4.0])
    '▁▃▅█'
    """
    parts = [float(part.mean()) for part in np.array_split(np.asarray(values, float), min(COLUMNS, len(values)))]
    high = max(parts)
    return "".join(STEPS[round(part / high * (len(STEPS) - 1)) if high > 0 else 0] for part in parts)


def _sections(loads: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [
        (
            say("heading.replayed", point=load["point"], hour=say(f"replay.hour_{load['hour']}")),
            headed([_cells(row) for row in load["latencies"]]),
        )
        for load in loads
    ]


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    """Write a latency as cells of a table."""
    difference = row["difference"]
    return {
        "latency": f"{row['metric']} {row['percentile']}",
        "replayed_seconds": _seconds(row["replayed_s"]),
        "closed_form_seconds": _seconds(row["closed_s"]),
        "closed_over_replayed": "-" if difference is None else f"{difference:+.1%}",
        "at_full_load": _seconds(row["planned_s"]),
        "limit_at_site": _seconds(row["limit_s"]),
    }


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _rows(loads: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    shared = ("workload", "point", "site", "hour", "replicas", "simulated", "requests_per_s", "load")
    return [{**{key: load[key] for key in shared}, **row} for load in loads for row in load["latencies"]]
