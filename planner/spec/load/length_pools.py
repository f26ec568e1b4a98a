"""Block of a spec about pools by prompt length, and the spec in which each pool is a workload of its own.

Used by the search for boundaries. Not here: the search (`planner.solving.pools`), and how a plan's pools are checked (`planner.verify.load.length_pools`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from planner.errors import Issue
from planner.messages import Message
from planner.spec.base import Block
from planner.spec.load.lengths import Lengths, PromptTokens, Requests
from planner.spec.old_keys import with_new_keys
from planner.spec.quantities import shown

BY_LENGTH, ONE = "by length", "one"
RATES = ("requests_per_s", "output_tokens", "tasks_per_s", "sessions", "users")
LEAST_SHARE = 1e-4  # share of the requests in a pool
LEAST_OUTPUT = 2.0

Cuts = Mapping[int, Sequence[int]]  # boundaries of workloads, by their position

MISSES = {"p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01}
"""Share of the requests that may miss a limit on a percentile."""
KeptLimits = dict[str, str | None]
"""Percentile that a pool keeps in place of each that is asked for; none where it need not keep the limit."""


def _rising(boundaries: list[int] | None) -> list[int] | None:
    if any(low >= high for low, high in pairwise(boundaries or ())):
        raise ValueError(Message.of("spec.boundaries_must_rise").text())
    return boundaries


class LengthPools(Block):
    """Pools of a workload by prompt length, each with layouts, systems and sites of its own."""

    boundaries: Annotated[list[PromptTokens], Field(min_length=1, max_length=2), AfterValidator(_rising)] | None = None
    """Longest prompt of each pool but the last, which takes all longer ones: one boundary for two pools, two for three; the plan looks for them if omitted."""


def _named(value: Any) -> Any:
    if value == ONE:
        return None
    if value == BY_LENGTH:
        return {}
    if isinstance(value, str) or not isinstance(value, Mapping | LengthPools | None):
        raise ValueError(Message.of("spec.pools_expected", given=shown(value)).text())
    return value


def _with_words(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [*schema["anyOf"], {"enum": [ONE, BY_LENGTH]}]


Pools = Annotated[LengthPools | None, BeforeValidator(_named), Field(json_schema_extra=_with_words)]


def wrong_pools(workload: Any) -> str:
    """Describe the fault of the pools of a workload; empty if nothing is."""
    pools, lengths = workload.pools, workload.lengths
    beside = [key for key in ("session", "media", "quality_floor") if getattr(workload, key) is not None]
    if beside:
        return Message.of("spec.pools_not_with", keys=", ".join(beside)).text()
    if lengths.histogram is None and lengths.input_cv <= 0.0:
        return Message.of("spec.pools_of_one_length").text()
    if pools.boundaries is None:
        return ""
    if lengths.edges is not None and not set(pools.boundaries) <= set(lengths.edges):
        return Message.of("spec.pools_at_edges", edges=", ".join(map(str, lengths.edges)) or "-").text()
    return "" if are_filled(lengths, pools.boundaries) else Message.of("spec.pool_is_empty").text()


def are_filled(lengths: Lengths, boundaries: Sequence[int]) -> bool:
    """Tell whether each pool has requests that can be planned for."""
    return all(
        part.share >= LEAST_SHARE and part.output >= LEAST_OUTPUT for _, _, part in parts_of(lengths, boundaries)
    )


def parts_of(lengths: Lengths, boundaries: Sequence[int]) -> list[tuple[int, int | None, Requests]]:
    """List the pools as (prompts above, longest prompt, requests); no longest of the last."""
    edges: list[int | None] = [0, *boundaries, None]
    return [
        (above or 0, most, lengths.between(above or 0, math.inf if most is None else most))
        for above, most in pairwise(edges)
    ]


def shared_limits(workload: Any, boundaries: Sequence[int]) -> tuple[KeptLimits, KeptLimits] | None:
    """Choose the percentiles of the time to first token that the pools keep together: first for all pools but the last, then for the last.

    The pool of the longest prompts, a share w of the requests, may miss a limit more often, and the others less often, with
    (1 - w) b + w c <= a: of the percentiles that a spec can state, the largest c, and the largest b with it. Then the mixture of
    all requests misses the limit with a share of a at most. None where no limit gains by it.
    """
    limits = workload.slo.ttft.limits() if workload.slo.ttft is not None and workload.classes is None else []
    longest = parts_of(workload.lengths, boundaries)[-1][2].share
    others, last = KeptLimits(), KeptLimits()
    for asked, _ in limits:
        if asked not in MISSES:  # a mean, which each pool keeps
            others[asked] = last[asked] = asked
            continue
        rest = {
            name: (MISSES[asked] - (1.0 - longest) * b) / longest for name, b in MISSES.items() if b <= MISSES[asked]
        }
        choices = [(1.0, None), *((c, name) for name, c in MISSES.items())]  # the largest first
        found = [
            (c, MISSES[first], first, second)
            for first, most in rest.items()
            for c, second in choices
            if c <= most * (1.0 + 1e-12)
        ]
        _, _, others[asked], last[asked] = max(found, key=lambda each: each[:2])
    return None if all(asked == kept for asked, kept in last.items()) else (others, last)


def pooled(spec: Any) -> dict[int, Any]:
    """Find the serving workloads with pools by length, by their position."""
    return {
        i: workload
        for i, workload in enumerate(spec.workloads)
        if workload.kind == "serving" and workload.pools is not None
    }


def pool_problems(spec: Any) -> list[Issue]:
    """List what pools by length do not go with."""
    found = pooled(spec)
    return [
        Issue(f"workloads[{i}].pools", Message.of("spec.pools_not_beside", what=what).text())
        for i, workload in found.items()
        for what, stated in (
            ("lines", spec.lines is not None),
            ("objective.maximise", spec.objective.maximise is not None),
            (
                "demand.sessions",
                any(each.kind == "serving" and each.demand.sessions is not None for each in spec.workloads),
            ),
            ("robust", spec.robust is not None and workload.pools.boundaries is None),
            ("demand.forecast", workload.demand.forecast is not None),  # pools of one demand share its draws
        )
        if stated
    ]


def part_name(name: str, above: int, most: int | None) -> str:
    """Name a pool by its prompts.

    >>> part_name("chat", 0, 2000), part_name("chat", 2000, None)
    ('chat (prompts to 2000)', 'chat (prompts from 2001)')
    """
    to = "" if most is None else f"to {most}"
    return f"{name} (prompts {' '.join(filter(None, (f'from {above + 1}' if above else '', to)))})"


def divided(document: Mapping[str, Any], spec: Any, cuts: Cuts, together: Collection[int] = ()) -> dict[str, Any]:
    """Write the spec in which each pool is a workload: the first in the place of the whole, the others behind all workloads.

    Workloads that `cuts` does not name have one pool. Every limit of the whole holds in each pool, and so for all requests together;
    pools of workloads in `together` keep the limits on the time to first token together, as `shared_limits` says.
    """
    result: dict[str, Any] = copy.deepcopy(dict(with_new_keys(document)[0]))
    for i, workload in pooled(spec).items():
        block = result["workloads"][i]
        block.pop("pools", None)
        if not (boundaries := cuts.get(i)):
            continue
        parts = [_part(block, workload, *part) for part in parts_of(workload.lengths, boundaries)]
        if i in together and (kept := shared_limits(workload, boundaries)) is not None:
            for k, part in enumerate(parts):
                _keep(part, workload, kept[k == len(parts) - 1])
        result["workloads"][i] = parts[0]
        result["workloads"] += parts[1:]
        for api in result.get("apis") or ():
            if workload.name in (api.get("workloads") or ()):
                others = [name for name in api["workloads"] if name != workload.name]
                api["workloads"] = [*others, *(part["name"] for part in parts)]
        _move_guesses(result, i)
    return result


def _part(block: Mapping[str, Any], workload: Any, above: int, most: int | None, part: Requests) -> dict[str, Any]:
    """Write a pool as a workload: the demand by its share, and its lengths."""
    demand = {key: value for key, value in block["demand"].items() if key not in RATES}
    demand["requests_per_s"] = workload.mean_requests_per_s * part.share
    if workload.demand.users is not None and workload.demand.hours is not None:
        demand["profile"] = list(workload.demand.hours)
    lengths = {
        "input": max(round(part.input), 1),
        "output": max(round(part.output), 2),
        "input_cv": part.input_cv,
        "output_cv": part.output_cv,
    }
    return {
        **copy.deepcopy(dict(block)),
        "name": part_name(workload.name, above, most),
        "demand": demand,
        "lengths": lengths,
    }


def kept_limits(workload: Any, kept: KeptLimits) -> dict[str, float]:
    """List the limits on the time to first token that a pool keeps, by percentile [s]."""
    limits: dict[str, float] = {}
    for asked, seconds in workload.slo.ttft.limits():
        if (name := kept[asked]) is not None:
            limits[name] = min(seconds, limits.get(name, seconds))
    return limits


def _keep(part: dict[str, Any], workload: Any, kept: KeptLimits) -> None:
    """Write the limits on the time to first token that a pool keeps."""
    limits = kept_limits(workload, kept)
    slo = {key: value for key, value in part["slo"].items() if key != "ttft"}
    part["slo"] = slo | ({"ttft": {name: f"{seconds!r} s" for name, seconds in limits.items()}} if limits else {})


def _move_guesses(document: dict[str, Any], i: int) -> None:
    """Let guesses at the demand stand at its rate, and those at quantiles or bands at the mean prompt."""
    guesses = document.get("assumptions")
    if not isinstance(guesses, dict):
        return
    moved: dict[str, Any] = {}
    for path, reason in guesses.items():
        head, _, rest = path.partition(f"workloads[{i}].demand.")
        if not head and rest.split(".")[0] in RATES:
            path = f"workloads[{i}].demand.requests_per_s"
        elif path.startswith(tuple(f"workloads[{i}].lengths.{key}" for key in ("histogram", "input_q", "output_q"))):
            path = f"workloads[{i}].lengths.input"
        moved.setdefault(path, reason)
    document["assumptions"] = moved
