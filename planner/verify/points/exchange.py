"""Read again which lines carry the KV caches of a point with prefill at one site and decode at another, and what they carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.formats import element_bytes
from models.transformer.attention import kv_bytes
from planner.evaluate.disaggregated import CacheLine
from planner.evaluate.serving import lengths_of
from planner.messages import Message
from planner.problem.engine import EngineChoice
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.problem.lines import Carrier
from planner.verify.fleet.options import CheckedOption

MOST_LOAD = 0.7  # share of what other traffic leaves free on a line


@dataclass(frozen=True, slots=True)
class CacheFlow:
    """Caches of one point by slot [byte/s], along regions joined by lines of a kind, and the prompts that come the other way."""

    workload: str
    nodes: Sequence[str]
    kind: str
    caches: Sequence[float]
    prompts: Sequence[float]


def stands_apart(row: Mapping[str, Any]) -> bool:
    """Tell whether the row of a point, or of one that stands by, states pools at another site than its own."""
    return any(pool.get("site", row["site"]) != row["site"] for pool in row["pools"])


def way_of(problem: ResolvedSpec, workload: ServingFacts, row: Mapping[str, Any]) -> Carrier:
    """Find the way that a point states. Raises ValueError where the spec has no such way."""
    first, last = row["pools"][0], row["pools"][-1]
    kind = str(row.get("path", {}).get("design"))
    offered = problem.lines.exchanges if problem.lines is not None and workload.spec.across_sites else {}
    ways = offered.get((workload.name, first["site"], row["site"]), ())
    found = next((way for way in ways if way.kind == kind), None)
    if found is None or last.get("site") != row["site"] or row.get("power_cap") is not None:
        raise ValueError(Message.of("path.verify_no_line", point=row["id"], kind=kind).text())
    return found


def line_for(problem: ResolvedSpec, workload: ServingFacts, row: Mapping[str, Any]) -> CacheLine | None:
    """Return what a line gives one cache of a point: a share of one unit of the narrowest line of its way; None for a point of one site."""
    if not stands_apart(row) or problem.lines is None:
        return None
    way = way_of(problem, workload, row)
    units = [problem.lines.lines[line].unit_bytes_per_s for line, _ in way.uses]
    return CacheLine((1.0 - MOST_LOAD) * min(units), sum(problem.lines.lines[line].rtt_s for line, _ in way.uses))


def cache_bytes(workload: ServingFacts, choice: EngineChoice) -> float:
    """Compute the KV cache of the mean prompt, over all calls of a session: each has what tools and answers before it added [byte]."""
    tokens, session = lengths_of(workload, choice), workload.spec.session
    prompt = float(tokens.prompt)
    if session is not None and session.calls > 1:
        more = session.calls - 1.0
        square = (1.0 + session.calls_cv**2 * (session.calls / more) ** 2) * more**2
        prompt += (square + more) / (2.0 * session.calls) * float(session.growth + tokens.output)
    return float(kv_bytes(workload.architecture, prompt, element_bytes(choice.kv_precision)))


def site_of(row: Mapping[str, Any], pool: Mapping[str, Any]) -> str:
    """Return the site of a pool: its own, or that of its point."""
    return str(pool.get("site", row["site"]))


def joined_by_a_line(options: Sequence[CheckedOption]) -> bool:
    """Tell whether two pools have networks that a line between their sites can join."""
    first, second = options
    return first.site.region != second.site.region and min(each.scaleout_bytes_per_s for each in options) > 0
