"""Say what the runs of a plan lose beside their computation. What each loss is: `planner.evaluate.losses`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from planner.messages import Message, say
from planner.plan import Plan
from planner.plan.rows.workloads import Workload

NAMED_SHARE = 0.05  # share of a run's time or of an iteration, from which on a loss is named


def question() -> str:
    """Write what the sentences answer."""
    return say("losses.question")


def clauses(plan: Plan) -> list[str]:
    """Name each cause that takes more than a twentieth of a job's time or of its iteration, the largest first."""
    found = sorted(
        chain.from_iterable(_of_workload(row) for row in plan.document["workloads"]), key=lambda item: -item[0]
    )
    return [message.text() for _, message in found]


def sections(plan: Plan) -> list[tuple[str, list[dict[str, str]]]]:
    """List (heading, rows) of the sentences; without rows where nothing is named."""
    return [(question(), [{"": sentence} for sentence in clauses(plan)])]


def _of_workload(workload: Workload) -> Iterator[tuple[float, Message]]:
    """Yield (share, sentence) of each loss of a job that counts, at the point where it is largest."""
    worst: dict[str, float] = {}
    for point in workload["points"]:
        for cause, share in point.get("losses", {}).items():
            worst[cause] = max(share, worst.get(cause, 0.0))
    for cause, share in worst.items():
        if share > NAMED_SHARE:
            yield share, Message.of(f"losses.{cause}", job=workload["name"], share=f"{share:.1%}")
