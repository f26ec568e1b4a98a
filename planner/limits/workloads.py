"""Limits of workloads: latencies, dates, residency, separate pools and precision."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from catalog.units import DAY_S, YEAR_S, show
from models.formats import KINDS, RECIPE_FORMATS, WEIGHT_FORMATS
from planner.candidates.training import searched_words
from planner.limits.limit import Limit, of_the_spec
from planner.messages import Message, enumerated
from planner.problem.facts import ResolvedSpec, ServingFacts, TrainingFacts, permitted
from planner.problem.limit_labels import latency
from planner.spec.document import at
from planner.spec.slo import LatencyLimit

EARLIER = (0.9, 0.75, 0.5, 0.25)  # shares of the time until a job may begin, tried in turn


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
                words = Message.of("limit.pools_words", workload=workload.name).text()
                yield Limit(
                    path,
                    Message.of("limit.pools", workload=workload.name).text(),
                    words,
                    "always",
                    loose=allow,
                    choices=(allow,),
                )


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
        words = Message.of("limit.precision_words", workload=workload.name, precisions=enumerated(asked, "or")).text()
        name, loose = Message.of("limit.precision", workload=workload.name).text(), ((path, list(every)),)
        found.append(Limit(path, name, words, asked, loose=loose, choices=wider))
        if isinstance(workload, ServingFacts) and (used := workload.spec.arithmetic):
            place, words = (
                f"{workload.path}.arithmetic",
                Message.of("limit.precision_words", workload=workload.name, precisions=used).text(),
            )
            free = ((place, None),)
            found.append(
                Limit(
                    place,
                    Message.of("limit.arithmetic", workload=workload.name).text(),
                    words,
                    used,
                    loose=free,
                    choices=(free,),
                )
            )
    return found


def _latencies(document: Mapping[str, Any], workload: ServingFacts) -> Iterator[Limit]:
    """Yield the latency limits of a workload."""
    for limit in workload.spec.limits():
        path, name = latency(workload, limit)
        thing = Message.of(f"limit.latency_of_{limit.metric}", workload=workload.name).text()
        words = _at_most(thing, limit)
        if limit.round_trips:
            words = Message.of(
                "limit.round_trip" if limit.round_trips == 1 else "limit.round_trips", limit=words
            ).text()
        yield Limit(path, name, words, at(document, path), loose=((path, None),), unit="s", amount=limit.seconds)
    for i, each in enumerate(workload.spec.classes or []):
        for limit in each.limits():
            path = f"{workload.path}.classes[{i}].ttft.{limit.percentile}"
            of = {"name": each.name, "workload": workload.name}
            words = Message.of(
                "limit.round_trip", limit=_at_most(Message.of("limit.latency_of_class", **of).text(), limit)
            ).text()
            name = Message.of("limit.class_ttft", percentile=limit.percentile, **of).text()
            yield Limit(path, name, words, at(document, path), loose=((path, None),), unit="s", amount=limit.seconds)


def _at_most(what: str, limit: LatencyLimit) -> str:
    """Say how long something may take, on average or in a share of all cases."""
    time = show(limit.seconds, "s")
    if limit.percentile == "mean":
        return Message.of("limit.latency_words", what=what, time=time).text()
    return Message.of("limit.latency_share_words", what=what, time=time, share=limit.percentile[1:]).text()


def _dates(document: Mapping[str, Any], problem: ResolvedSpec, job: TrainingFacts) -> Iterator[Limit]:
    """Yield the start of a job, which may move forward, and its deadline, which may move back."""
    if job.spec.start:
        path = f"{job.path}.start"
        earlier = tuple(((path, f"{job.spec.start * share / DAY_S:.4g} d"),) for share in EARLIER)
        words = Message.of("limit.start_words", job=job.name, time=show(job.spec.start, "s")).text()
        at_once = ((path, "0 s"),)
        name, written = Message.of("limit.start", job=job.name).text(), at(document, path)
        yield Limit(path, name, words, written, loose=at_once, choices=(*earlier, at_once))
    path, years = f"{job.path}.deadline", problem.spec.horizon.years
    latest = years * YEAR_S
    yield Limit(
        path,
        Message.of("limit.deadline", job=job.name).text(),
        Message.of(
            "limit.deadline_words", job=job.name, time=show(job.spec.deadline, "s"), searched=searched_words()
        ).text(),
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
        words = (
            Message.of("limit.residency_words", workload=workload.name, sites=enumerated(rule, "or")).text()
            if rule
            else Message.of("limit.residency_nowhere_words", workload=workload.name).text()
        )
        choices = tuple(((path, [*rule, region]),) for region in barred)
        yield Limit(
            path,
            Message.of("limit.residency", workload=workload.name).text(),
            words,
            rule,
            loose=((path, None),),
            choices=choices,
        )
