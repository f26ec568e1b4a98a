"""Limits of workloads: latencies, dates, residency, separate pools and precision."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from catalog.units import DAY_S, YEAR_S, show
from models.formats import KINDS, RECIPE_FORMATS, WEIGHT_FORMATS
from planner.candidates.training import searched_words
from planner.limits.limit import Limit, of_the_spec
from planner.problem.facts import ResolvedSpec, ServingFacts, TrainingFacts, permitted
from planner.problem.limit_labels import latency
from planner.spec.changes import either
from planner.spec.document import at

EARLIER = (0.9, 0.75, 0.5, 0.25)  # shares of the time until a job may begin, tried in turn
METRICS = {
    "ttft": "the first token of {name}",
    "tpot": "an output token of {name}",
    "e2e": "a whole answer of {name}",
    "task": "a task of {name}",
}


def workload_limits(document: Mapping[str, Any], problem: ResolvedSpec, names: Collection[str]) -> Iterator[Limit]:
    """Yield the limits that these workloads state themselves."""
    for job in of_the_spec(problem.training):
        if job.asked in names:
            yield from _dates(document, problem, job)
            yield from _residency(problem, job)
    for workload in of_the_spec(problem.serving):
        if workload.asked in names:
            yield from _latencies(document, workload)
            yield from _residency(problem, workload)
            if workload.spec.disaggregation == "always":
                path = f"{workload.path}.disaggregation"
                allow = ((path, "allowed"),)
                words = f"{workload.name} must have separate pools for prefill and decode"
                yield Limit(path, f"pools of {workload.name}", words, "always", loose=allow, choices=(allow,))


def precision_limits(problem: ResolvedSpec, names: Collection[str]) -> list[Limit]:
    """List the precisions that these workloads allow, as limits relaxed by further precisions."""
    found = []
    stated: list[ServingFacts | TrainingFacts] = [*of_the_spec(problem.serving), *of_the_spec(problem.training)]
    for workload in stated:
        if workload.asked not in names:
            continue
        every: tuple[str, ...] = WEIGHT_FORMATS if isinstance(workload, ServingFacts) else RECIPE_FORMATS
        asked, path = list(workload.spec.precision), f"{workload.path}.precision"
        wider = tuple(((path, [*asked, name]),) for name in every if name not in (*asked, *KINDS))
        words = f"{workload.name} may be computed in {either(asked)} only"
        name, loose = f"precision of {workload.name}", ((path, list(every)),)
        found.append(Limit(path, name, words, asked, loose=loose, choices=wider))
        if isinstance(workload, ServingFacts) and (used := workload.spec.arithmetic):
            place, words = f"{workload.path}.arithmetic", f"{workload.name} may be computed in {used} only"
            free = ((place, None),)
            found.append(Limit(place, f"arithmetic of {workload.name}", words, used, loose=free, choices=(free,)))
    return found


def _latencies(document: Mapping[str, Any], workload: ServingFacts) -> Iterator[Limit]:
    """Yield the latency limits of a workload."""
    for limit in workload.spec.limits():
        path, name = latency(workload, limit)
        thing = METRICS[limit.metric].format(name=workload.name)
        share = "on average" if limit.percentile == "mean" else f"in {limit.percentile[1:]} of 100 cases"
        words = f"{thing} may take at most {show(limit.seconds, 's')} {share}"
        words += (
            ", round trip included" if limit.round_trips == 1 else ", round trips included" if limit.round_trips else ""
        )
        yield Limit(path, name, words, at(document, path), loose=((path, None),), unit="s", amount=limit.seconds)
    for i, each in enumerate(workload.spec.classes or []):
        for limit in each.limits():
            path = f"{workload.path}.classes[{i}].ttft.{limit.percentile}"
            share = "on average" if limit.percentile == "mean" else f"in {limit.percentile[1:]} of 100 cases"
            words = f"the first token of {each.name} of {workload.name} may take at most {show(limit.seconds, 's')} {share}, round trip included"
            name = f"ttft.{limit.percentile} of {each.name} of {workload.name}"
            yield Limit(path, name, words, at(document, path), loose=((path, None),), unit="s", amount=limit.seconds)


def _dates(document: Mapping[str, Any], problem: ResolvedSpec, job: TrainingFacts) -> Iterator[Limit]:
    """Yield the start of a job, which may move forward, and its deadline, which may move back."""
    if job.spec.start:
        path = f"{job.path}.start"
        earlier = tuple(((path, f"{job.spec.start * share / DAY_S:.4g} d"),) for share in EARLIER)
        words = f"{job.name} must not begin before {show(job.spec.start, 's')} after the start of the horizon"
        at_once = ((path, "0 s"),)
        name, written = f"start of {job.name}", at(document, path)
        yield Limit(path, name, words, written, loose=at_once, choices=(*earlier, at_once))
    path, years = f"{job.path}.deadline", problem.spec.horizon.years
    latest = years * YEAR_S
    yield Limit(
        path,
        f"deadline of {job.name}",
        f"{job.name} must be done {show(job.spec.deadline, 's')} after the start of the horizon, by one {searched_words()}",
        at(document, path),
        loose=((path, f"{latest / DAY_S:g} d"),),
        unit="s",
        amount=job.spec.deadline,
        most=latest,
        horizon_years=years,
    )


def _residency(problem: ResolvedSpec, workload: ServingFacts | TrainingFacts) -> Iterator[Limit]:
    """Yield the residency of a workload where it bars a site."""
    if workload.spec.residency is None:
        return
    path, rule = f"{workload.path}.residency", list(workload.spec.residency)
    barred = [site.region for site in problem.sites if not permitted(workload, site)]
    if barred:
        words = f"{workload.name} may run in {either(rule)} only" if rule else f"{workload.name} may run nowhere"
        choices = tuple(((path, [*rule, region]),) for region in barred)
        yield Limit(path, f"residency of {workload.name}", words, rule, loose=((path, None),), choices=choices)
