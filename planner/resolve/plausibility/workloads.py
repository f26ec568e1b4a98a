"""Compare the workloads of a spec or a case with known figures: lengths, demand, latency limits, media, training runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from catalog.errors import UnknownName
from catalog.records import Record
from models.arrays import sum_of
from models.transformer.architecture import Architecture, parameter_counts
from planner.facts import Fact, loads
from planner.facts.lengths import beyond_context
from planner.facts.names import alike
from planner.facts.networks import encoder_of_another_size, unlike_its_count
from planner.facts.ranges import beyond
from planner.messages import Argument
from planner.resolve.ledger import Ledger
from planner.spec.reinforcement import Reinforcement
from planner.spec.workloads import Serving, Training

AnyWorkload = Serving | Training | Reinforcement


def workload_facts(
    ledger: Ledger, path: str, workload: AnyWorkload, shapes: Mapping[str, Architecture]
) -> Iterator[Fact]:
    """Yield conflicts with known figures in a workload; `shapes`: its networks by their keys, such as "architecture"."""
    for key, record in _networks(ledger, workload):
        yield from _known([_lengths(path, key, workload, record)])
    for key, shape in shapes.items():
        network = _record(ledger, getattr(workload, key, None))
        if network is not None:
            ledger.compared.add(f"architectures/{network.name}/total_parameters")
            yield from _known([unlike_its_count(f"{path}.{key}", network, parameter_counts(shape).total)])
    yield from _media(path, workload)
    if isinstance(workload, Serving):
        yield from _known(_serving(path, workload))
        yield from alike((f"{path}.classes[{i}].name", each.name) for i, each in enumerate(workload.classes or ()))
    if isinstance(workload, Training):
        yield from _known(_training(path, workload, shapes.get("architecture")))


def _known(facts: Iterable[Fact | None]) -> Iterator[Fact]:
    yield from (fact for fact in facts if fact is not None)


def _record(ledger: Ledger, name: str | None) -> Record | None:
    try:
        return None if name is None else ledger.catalog.get("architectures", name)
    except UnknownName:
        return None


def _networks(ledger: Ledger, workload: AnyWorkload) -> Iterator[tuple[str, Record]]:
    """Yield (key, record) of each network that holds the tokens of a workload, its context marked as read."""
    keys = [("architecture", workload.architecture)]
    if isinstance(workload, Serving):
        keys += [(f"alternatives[{i}]", each.architecture) for i, each in enumerate(workload.alternatives or ())]
    for key, name in keys:
        record = _record(ledger, name)
        if record is not None:
            ledger.compared.add(f"architectures/{record.name}/max_context")
            yield key, record


def _lengths(path: str, key: str, workload: AnyWorkload, network: Record) -> Fact | None:
    """Compare the longest mean sequence of a workload with the context of one of its networks."""
    place = path if key == "architecture" else f"{path}.{key}.architecture"
    if isinstance(workload, Training):
        return beyond_context(
            f"{place}.sequence_tokens", "lengths.sequence", workload.sequence_tokens, network, refuses=False
        )
    if key == "architecture":
        place += ".lengths" if getattr(workload, "session", None) is None else ".session"
    if isinstance(workload, Reinforcement):
        own, longest = workload.lengths, workload.longest_tokens
        parts: dict[str, Argument] = {
            "prompt": own.prompt,
            "limit": own.limit,
            "answers": longest - own.prompt - own.limit,
        }
        return beyond_context(place, "lengths.response", longest, network, parts)
    media, output = sum_of(each.tokens for each in workload.media or ()), workload.lengths.output
    first = workload.lengths.input + media
    if workload.session is not None:
        session = workload.session
        tokens = first + output + (session.calls - 1.0) * (session.growth + output)
        parts = {"input": round(first), "output": output, "growth": session.growth, "calls": session.calls}
        return beyond_context(place, "lengths.session", tokens, network, parts)
    parts = {"input": workload.lengths.input, "output": output}
    if media:
        return beyond_context(place, "lengths.media", first + output, network, parts | {"media": round(media)})
    return beyond_context(place, "lengths.request", first + output, network, parts)


def _media(path: str, workload: AnyWorkload) -> Iterator[Fact]:
    """Compare the encoders of a workload with their layers."""
    for i, media in enumerate(getattr(workload, "media", None) or ()):
        encoder = media.encoder
        place = f"{path}.media[{i}].encoder.parameters"
        yield from _known([encoder_of_another_size(place, encoder.parameters, encoder.layers, encoder.hidden)])


def _users(path: str, workload: Serving) -> Iterator[Fact | None]:
    """Say what rate the users of a workload come to, and compare their number with that of mankind."""
    users = workload.demand.users
    if users is None:
        return
    yield loads.rate_of_users(
        path, users.count * users.share_at_once, users.requests_per_user_s,
        workload.mean_requests_per_s / (1.0 if workload.session is None else workload.session.calls),
    )  # fmt: skip
    yield loads.more_than_people(f"{path}.count", users.count)


def _serving(path: str, workload: Serving) -> Iterator[Fact | None]:
    """Compare demand, latency limits and drafts of a serving workload."""
    if workload.demand is not None:
        tokens = workload.prompt_tokens + workload.lengths.output
        if workload.demand.users is not None:
            yield from _users(f"{path}.demand.users", workload)
        yield loads.beyond_the_world(f"{path}.demand", workload.mean_requests_per_s * tokens)
    if workload.slo.tpot is not None:
        for percentile, limit in workload.slo.tpot.limits():
            place = f"{path}.slo.tpot.{percentile}"
            yield loads.no_limit(place, limit)
            yield loads.too_fast(place, limit)
    if workload.speculation is not None:
        yield loads.too_certain(f"{path}.speculation.acceptance", workload.speculation.acceptance)


def _training(path: str, workload: Training, shape: Architecture | None) -> Iterator[Fact | None]:
    """Compare a training run with the largest that are known."""
    yield beyond(f"{path}.tokens", "load.tokens", workload.tokens, loads.TEXT, "token")
    yield beyond(f"{path}.batch_tokens", "load.batch", workload.batch_tokens, loads.BATCH, "token")
    if shape is not None:
        work = loads.operations(parameter_counts(shape).active, workload.tokens)
        yield beyond(f"{path}.tokens", "load.operations", work, loads.OPERATIONS, "FLOP")
