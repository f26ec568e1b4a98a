"""Limits on rented lines, and on the spread of workloads over zones."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from catalog.lookup import Catalog
from catalog.units import YEAR_S, show
from planner.limits.limit import Limit, of_the_spec
from planner.messages import Message, enumerated
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.problem.limit_labels import largest_share
from planner.problem.lines import LineNetwork
from planner.spec.document import Edits, at
from planner.spec.lines import SECURITY, Line

CLASSES = {"encrypted": Message.of("limit.class_encrypted").text(), "private": Message.of("limit.class_private").text()}


def line_limits(
    document: Mapping[str, Any], problem: ResolvedSpec, catalog: Catalog, names: Collection[str]
) -> Iterator[Limit]:
    """Yield the requirements of these workloads on lines and zones, and the limits of the lines on offer."""
    for workload in of_the_spec(problem.serving):
        if workload.name in names:
            if problem.lines is not None:
                yield from _demands(document, problem.lines, workload)
            yield from _spread(document, workload)
    if problem.lines is not None:
        yield from _offers(document, problem.spec.lines or (), problem.lines, catalog)


def _demands(document: Mapping[str, Any], network: LineNetwork, workload: ServingFacts) -> Iterator[Limit]:
    """Yield the class and the availability that traffic requires of its lines, and the time for updates of weights."""
    of: dict[str, tuple[str, float | None]] = {"": ("requests", workload.spec.availability)}
    for name, kind in (
        ("control", workload.spec.traffic.control),
        ("telemetry", workload.spec.traffic.telemetry),
        ("weights", workload.spec.traffic.weights),
    ):
        of[f"traffic.{name}."] = (name, kind.availability)
    for inside, (traffic, availability) in of.items():
        path = f"{workload.path}.{inside}security"
        written = at(document, path)
        if written in CLASSES:
            lower = SECURITY[: SECURITY.index(written)]
            yield Limit(
                path,
                Message.of("limit.line_class", traffic=traffic, workload=workload.name).text(),
                Message.of(
                    "limit.line_class_words", traffic=traffic, workload=workload.name, class_of_lines=CLASSES[written]
                ).text(),
                written,
                loose=((path, SECURITY[0]),),
                choices=tuple(((path, name),) for name in reversed(lower)),
            )
        path = f"{workload.path}.{inside}availability"
        written = at(document, path)
        if written and availability is not None:
            levels = {line.availability for line in network.lines if line.availability < availability}
            yield Limit(
                path,
                Message.of("limit.line_availability", traffic=traffic, workload=workload.name).text(),
                Message.of(
                    "limit.line_availability_words",
                    traffic=traffic,
                    workload=workload.name,
                    share=f"{availability:.6%}",
                ).text(),
                written,
                loose=((path, 0),),
                choices=tuple(((path, value),) for value in (*sorted(levels, reverse=True), 0)),
            )
    path, window_s = f"{workload.path}.traffic.weights.window", workload.spec.traffic.weights.window
    if window_s is not None:
        words = Message.of("limit.update_time_words", workload=workload.name, time=show(window_s, "s")).text()
        yield Limit(
            path,
            Message.of("limit.update_time", workload=workload.name).text(),
            words,
            at(document, path),
            loose=((path, "365 d"),),
            unit="s",
            amount=window_s,
            most=YEAR_S,
        )


def _spread(document: Mapping[str, Any], workload: ServingFacts) -> Iterator[Limit]:
    """Yield largest shares, numbers of zones and failures that a workload must outlast."""
    asked, path = workload.spec.spread, f"{workload.path}.spread"
    if asked is None:
        return
    if asked.largest_share is not None and asked.largest_share < 1:
        wider = [round(float(share), 2) for share in np.arange(0.05, 1.001, 0.05) if share > asked.largest_share + 1e-9]
        yield Limit(
            *largest_share(workload), Message.of("limit.largest_share_words", share=f"{100 * asked.largest_share:.3g}", workload=workload.name).text(),
            asked.largest_share, loose=((f"{path}.largest_share", None),), choices=tuple(((f"{path}.largest_share", share),) for share in wider),
        )  # fmt: skip
    if asked.zones > 1:
        yield Limit(
            f"{path}.zones", Message.of("limit.zones", workload=workload.name).text(), Message.of("limit.zones_words", workload=workload.name, zones=asked.zones, share=f"{100 * asked.least_share:.3g}").text(),
            asked.zones, loose=((f"{path}.zones", 1),), choices=tuple(((f"{path}.zones", zones),) for zones in range(asked.zones - 1, 0, -1)),
        )  # fmt: skip
    if asked.survive:
        give_up = ((f"{path}.survive", 0),)
        yield Limit(
            f"{path}.survive",
            Message.of("limit.survive", workload=workload.name).text(),
            Message.of("limit.survive_words", workload=workload.name).text(),
            asked.survive,
            loose=give_up,
            choices=(give_up,),
        )


def _offers(
    document: Mapping[str, Any], offered: Sequence[Line], network: LineNetwork, catalog: Catalog
) -> Iterator[Limit]:
    """Yield the kinds of lines that are not on offer, and of those that are, numbers of units and times of set-up."""
    made = list(document["lines"])
    everywhere = {catalog.get("lines", line.kind).name for line in offered if not line.between}
    missing = [name for name in catalog.names("lines") if name not in everywhere]
    if missing:
        kinds = dict.fromkeys(catalog.get("lines", line.kind).name for line in offered)
        words = Message.of("limit.lines_words", kinds=enumerated(kinds, "or")).text()
        plain, in_time = ([{"kind": name, **more} for name in missing] for more in ({}, {"setup": "0 s"}))
        choices = tuple((("lines", [*made, line]),) for line in (*plain, *in_time))
        loose = (("lines", [*made, *in_time]),)
        yield Limit("lines", Message.of("limit.lines").text(), words, made, loose=loose, choices=choices)
    for i, line in enumerate(offered):
        where = Message.of("limit.line_between", ends=enumerated(line.between)).text() if line.between else ""
        kind = catalog.get("lines", line.kind).name
        if line.units is not None:
            path = f"lines[{i}].units"
            more = tuple(((path, max(line.units, 1) * factor),) for factor in (2, 4, 16, 64))
            words = Message.of("limit.line_units_words", count=line.units, kind=kind, where=where).text()
            any_number: Edits = ((path, None),)
            name = Message.of("limit.line_units_of", kind=kind, where=where).text()
            yield Limit(path, name, words, line.units, loose=any_number, choices=(*more, any_number))
        ready_s = next((facts.ready_s for facts in network.lines if facts.path == f"lines[{i}]"), 0.0)
        if ready_s:
            path, at_once = f"lines[{i}].setup", ((f"lines[{i}].setup", "0 s"),)
            words = Message.of("limit.line_ready_words", kind=kind, where=where, time=show(ready_s, "s")).text()
            name, written = Message.of("limit.line_setup", kind=kind, where=where).text(), at(document, path)
            yield Limit(path, name, words, written, loose=at_once, choices=(at_once,))
