"""Read again which lines join the pools of a point that stand at two sites, and what they carry: KV caches, or weights and responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.formats import element_bytes
from models.reinforcement.synchronise import Line
from models.transformer.attention import kv_bytes
from models.transformer.checkpoint import checkpoint_bytes
from planner.evaluate.disaggregated import CacheLine
from planner.evaluate.serving import lengths_of
from planner.messages import Message
from planner.problem.engine import EngineChoice
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.problem.lines import Carrier
from planner.problem.reinforcement import ReinforcementFacts
from planner.verify.findings import RELATIVE_TOL
from planner.verify.fleet.options import CheckedOption

TOKEN_BYTES = 4.0 + 4.0  # number of a token, and its log-probability in 32 bit
MOST_LOAD = 0.7  # share of what other traffic leaves free on a line


@dataclass(frozen=True, slots=True)
class Flow:
    """What the pools of one point send each other by slot [byte/s], along regions joined by lines of a kind, and back.

    `kept`: what the line must hold for both, their bytes included.
    """

    workload: str
    traffic: str
    nodes: Sequence[str]
    kind: str
    sent: tuple[Sequence[float], Sequence[float]]
    kept: tuple[Sequence[float], Sequence[float]]


def stands_apart(row: Mapping[str, Any]) -> bool:
    """Tell whether the row of a point, or of one that stands by, states pools at another site than its own."""
    return any(pool.get("site", row["site"]) != row["site"] for pool in row["pools"])


def way_of(problem: ResolvedSpec, workload: ServingFacts | ReinforcementFacts, row: Mapping[str, Any]) -> Carrier:
    """Find the way that a point states. Raises ValueError where the spec has no such way."""
    first, last = row["pools"][0].get("site"), row["pools"][-1].get("site")
    own = last if isinstance(workload, ServingFacts) else first
    kind = str(row.get("path", {}).get("design"))
    offered = problem.lines.exchanges if problem.lines is not None and workload.spec.across_sites else {}
    found = next((way for way in offered.get((workload.name, first, last), ()) if way.kind == kind), None)
    if found is None or own != row["site"] or row.get("power_cap") is not None:
        raise ValueError(Message.of("path.verify_no_line", point=row["id"], kind=kind).text())
    return found


def line_for(problem: ResolvedSpec, workload: ServingFacts, row: Mapping[str, Any]) -> CacheLine | None:
    """Return what a line gives one cache of a point: a share of one unit of the narrowest line of its way; None for a point of one site."""
    if not stands_apart(row) or problem.lines is None:
        return None
    way = way_of(problem, workload, row)
    units = [problem.lines.lines[line].unit_bytes_per_s for line, _ in way.uses]
    return CacheLine((1.0 - MOST_LOAD) * min(units), sum(problem.lines.lines[line].rtt_s for line, _ in way.uses))


def weight_line(problem: ResolvedSpec, job: ReinforcementFacts, row: Mapping[str, Any]) -> Line | None:
    """Return what a job reserves of a line between update and rollout; None for a point of one site. Raises ValueError for a part of a unit."""
    if not stands_apart(row) or problem.lines is None:
        return None
    way, rate = way_of(problem, job, row), float(row["path"]["bytes_per_s"])
    unit = min(problem.lines.lines[line].unit_bytes_per_s for line, _ in way.uses)
    if rate < unit * (1 - RELATIVE_TOL) or abs(rate / unit - round(rate / unit)) > RELATIVE_TOL:
        raise ValueError(
            Message.of("path.verify_units_of_line", point=row["id"], rate=f"{rate:g}", unit=f"{unit:g}").text()
        )
    return Line(rate, sum(problem.lines.lines[line].rtt_s for line, _ in way.uses), response_bytes(job))


def response_bytes(job: ReinforcementFacts) -> float:
    """Compute what the rollout sends back in an iteration: prompts, responses and what tools added to them, a token and its log-probability each [byte]."""
    spec = job.spec
    tokens = float(spec.lengths.prompt + spec.lengths.response)
    if spec.tools is not None:
        tokens += spec.tools.calls * spec.tools.answer
    return float(spec.prompts * spec.samples * tokens * TOKEN_BYTES)


def weight_bytes(job: ReinforcementFacts, row: Mapping[str, Any]) -> float:
    """Compute the weights of an iteration in the precision of its rollout [byte]."""
    return float(checkpoint_bytes(job.architecture, row["pools"][-1]["precision"]))


def over_the_line(job: ReinforcementFacts, line: Line, row: Mapping[str, Any], synchronisation_s: float) -> None:
    """Check a synchronisation against the least that weights and responses take over a line. Raises ValueError where it is shorter."""
    least = (weight_bytes(job, row) + line.back_bytes) / line.bytes_per_s + line.rtt_s
    if synchronisation_s < least * (1 - RELATIVE_TOL):
        raise ValueError(
            Message.of(
                "path.verify_weights_too_fast", point=row["id"], given=f"{synchronisation_s:g}", least=f"{least:g}"
            ).text()
        )


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
