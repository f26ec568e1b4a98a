"""Compare the tokens of a request, a session, a response or a sequence with the longest context of the network."""

from __future__ import annotations

from collections.abc import Mapping

from catalog.records import Record
from planner.facts import Fact
from planner.facts.ranges import listed
from planner.messages import Argument, Message


def beyond_context(
    path: str, code: str, tokens: float, network: Record, parts: Mapping[str, Argument] = {}, refuses: bool = True
) -> Fact | None:
    """Refuse tokens that one sequence of a network cannot hold: tokens <= max_context, the figure of its maker.

    `parts`: the addends of the tokens that the text of the code names. A training run may lengthen the context, so it gets a note.
    """
    most = network.get("max_context")
    if most is None or tokens <= most.number:
        return None
    told = {"tokens": round(tokens), "context": round(most.number), "network": network.name, **parts}
    return Fact(
        path, Message.of(code, **told), f"architectures/{network.name}/max_context: {listed(most.source)}", refuses
    )
