"""Limits that a spec states about lines and the spread over zones: in words, how they could give way, and what they are worth.

The others are in `planner.limits.limits`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from catalog.lookup import Catalog
from catalog.units import YEAR_S, show
from planner.limits.limit import Limit, of_the_spec
from planner.problem.facts import Problem, ServingFacts
from planner.problem.limit_labels import largest_share
from planner.spec.changes import either
from planner.spec.document import at
from planner.spec.lines import SECURITY

CLASSES = {"encrypted": "an encrypted line or one of their own", "private": "a line of their own"}


def line_limits(
    document: Mapping[str, Any], problem: Problem, catalog: Catalog, names: Collection[str]
) -> Iterator[Limit]:
    for workload in of_the_spec(problem.serving):
        if workload.name in names:
            if problem.lines is not None:
                yield from _demands(document, problem, workload)
            yield from _spread(document, workload)
    if problem.lines is not None:
        yield from _offers(document, problem, catalog)


def _demands(document: Mapping[str, Any], problem: Problem, workload: ServingFacts) -> Iterator[Limit]:
    """Class and availability that traffic asks of its lines."""
    of = {
        "": "requests",
        "traffic.control.": "control",
        "traffic.telemetry.": "telemetry",
        "traffic.weights.": "weights",
    }
    for inside, traffic in of.items():
        path = f"{workload.path}.{inside}security"
        written = at(document, path)
        if written in CLASSES:
            lower = SECURITY[: SECURITY.index(written)]
            yield Limit(
                path, f"class of lines for {traffic} of {workload.name}", f"{traffic} of {workload.name} need {CLASSES[written]}", written,
                loose=((path, SECURITY[0]),), choices=tuple(((path, name),) for name in reversed(lower)),
            )  # fmt: skip
        path = f"{workload.path}.{inside}availability"
        written = at(document, path)
        if written:
            asked = workload.spec
            for part in inside.split(".")[:-1]:
                asked = getattr(asked, part)
            lower = sorted(
                {line.availability for line in problem.lines.lines if line.availability < asked.availability},
                reverse=True,
            )
            yield Limit(
                path, f"availability of lines for {traffic} of {workload.name}", f"lines for {traffic} of {workload.name} must be up {asked.availability:.6%} of the time",
                written, loose=((path, 0),), choices=tuple(((path, value),) for value in (*lower, 0)),
            )  # fmt: skip

    path, asked = f"{workload.path}.traffic.weights.window", workload.spec.traffic.weights.window
    if asked is not None:
        words = f"an update of the weights of {workload.name} must have crossed each line within {show(asked, 's')}"
        yield Limit(
            path,
            f"time for updates of {workload.name}",
            words,
            at(document, path),
            loose=((path, "365 d"),),
            unit="s",
            amount=asked,
            most=YEAR_S,
        )


def _spread(document: Mapping[str, Any], workload: ServingFacts) -> Iterator[Limit]:
    asked, path = workload.spec.spread, f"{workload.path}.spread"
    if asked is None:
        return
    if asked.largest_share is not None and asked.largest_share < 1:
        wider = [round(float(share), 2) for share in np.arange(0.05, 1.001, 0.05) if share > asked.largest_share + 1e-9]
        yield Limit(
            *largest_share(workload), f"one zone may serve at most {100 * asked.largest_share:.3g}% of {workload.name}",
            asked.largest_share, loose=((f"{path}.largest_share", None),), choices=tuple(((f"{path}.largest_share", share),) for share in wider),
        )  # fmt: skip
    if asked.zones > 1:
        yield Limit(
            f"{path}.zones", f"zones of {workload.name}", f"{workload.name} must be served from {asked.zones} zones, {100 * asked.least_share:.3g}% of every hour's requests from each",
            asked.zones, loose=((f"{path}.zones", 1),), choices=tuple(((f"{path}.zones", zones),) for zones in range(asked.zones - 1, 0, -1)),
        )  # fmt: skip
    if asked.survive:
        give_up = ((f"{path}.survive", 0),)
        yield Limit(
            f"{path}.survive",
            f"failure of a zone of {workload.name}",
            f"{workload.name} must outlast the failure of any one zone",
            asked.survive,
            loose=give_up,
            choices=(give_up,),
        )


def _offers(document: Mapping[str, Any], problem: Problem, catalog: Catalog) -> Iterator[Limit]:
    """Numbers of units, times of set-up, and kinds that are not on offer."""
    made = list(document["lines"])
    everywhere = {catalog.get("lines", line.kind).name for line in problem.spec.lines if not line.between}
    missing = [name for name in catalog.names("lines") if name not in everywhere]
    if missing:
        words = f"only {either(dict.fromkeys(catalog.get('lines', line.kind).name for line in problem.spec.lines))} can be rented"
        plain, in_time = ([{"kind": name, **more} for name in missing] for more in ({}, {"setup": "0 s"}))
        choices = tuple((("lines", [*made, line]),) for line in (*plain, *in_time))
        yield Limit("lines", "lines on offer", words, made, loose=(("lines", [*made, *in_time]),), choices=choices)
    for i, line in enumerate(problem.spec.lines):
        kind, where = catalog.get("lines", line.kind), f" between {' and '.join(line.between)}" if line.between else ""
        if line.units is not None:
            path = f"lines[{i}].units"
            more = tuple(((path, max(line.units, 1) * factor),) for factor in (2, 4, 16, 64))
            words = f"at most {line.units} units of {kind.name}{where} can be rented"
            yield Limit(
                path,
                f"units of {kind.name}{where}",
                words,
                line.units,
                loose=((path, None),),
                choices=(*more, ((path, None),)),
            )
        ready = next((facts.ready_s for facts in problem.lines.lines if facts.path == f"lines[{i}]"), 0.0)
        if ready:
            path, at_once = f"lines[{i}].setup", ((f"lines[{i}].setup", "0 s"),)
            yield Limit(
                path,
                f"set-up of {kind.name}{where}",
                f"{kind.name}{where} is ready {show(ready, 's')} after the start",
                at(document, path),
                loose=at_once,
                choices=(at_once,),
            )
