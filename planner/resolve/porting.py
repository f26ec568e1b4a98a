"""Resolve the one-off cost of porting an architecture to a chip family, and the workloads that it applies to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planner.errors import close_matches
from planner.messages import Message
from planner.problem.facts import SystemFacts, WorkloadFacts
from planner.problem.porting import PortingFacts
from planner.resolve.context import ResolveContext
from planner.spec.porting import Porting
from planner.spec.workloads import Serving


def resolve_porting(
    context: ResolveContext, workloads: Sequence[WorkloadFacts], systems: Mapping[str, SystemFacts]
) -> tuple[PortingFacts, ...]:
    """Resolve the `porting` of the spec into one cost for each architecture and family, booked as assumptions."""
    return (*_of_families(context, workloads, systems), *_of_exchanges(context, workloads))


def _of_exchanges(context: ResolveContext, workloads: Sequence[WorkloadFacts]) -> Iterator[PortingFacts]:
    """Yield the cost of connecting the engines of two vendors for each workload that allows it, booked as an assumption."""
    for workload in workloads:
        if not isinstance(workload.spec, Serving) or workload.spec.kv_exchange is None:
            continue
        asked, path = workload.spec.kv_exchange, f"{workload.path}.kv_exchange"
        amount, currency = asked.porting
        context.assume_stated(f"{path}.porting", amount, currency, ("porting", "*", "*"), note=asked.note)
        cost = context.convert(asked.porting, path=f"{path}.porting")
        yield PortingFacts(path, "", workload.spec.architecture, cost, (workload.name,), exchange=True)


def _of_families(
    context: ResolveContext, workloads: Sequence[WorkloadFacts], systems: Mapping[str, SystemFacts]
) -> tuple[PortingFacts, ...]:
    """Resolve the entries of `porting`."""
    if context.spec.porting is None:
        return ()
    for i, entry in enumerate(context.spec.porting):
        amount, currency = entry.amount
        context.assume_stated(f"porting[{i}].cost", amount, currency, ("porting", "*", "*"), note=entry.note)
        if entry.hours is not None:
            context.assume_stated(f"porting[{i}].hours", entry.hours, "h", note=entry.note)
    runs: dict[str, str] = {}  # architecture's record by workload
    for workload in workloads:
        record = context.find("architectures", workload.spec.architecture, f"{workload.path}.architecture")
        if record is not None:
            runs[workload.name] = record.name
    families = sorted({system.family for system in systems.values()} - {""})
    found: dict[tuple[str, str], PortingFacts] = {}
    for i, entry in enumerate(context.spec.porting):
        path = f"porting[{i}]"
        _check_family(context, entry, path, families)
        for architecture in _architectures(context, entry, path, runs):
            if (architecture, entry.family) in found:
                message = Message.of("resolve.porting_twice", name=architecture, family=entry.family).text()
                context.add_problem(path, message)
                continue
            cost = context.convert(entry.amount, path=f"{path}.cost")
            users = tuple(name for name, run in runs.items() if run == architecture)
            facts = PortingFacts(path, entry.family, architecture, cost, users)
            found[architecture, entry.family] = facts
    return tuple(found.values())


def _check_family(context: ResolveContext, entry: Porting, path: str, families: Sequence[str]) -> None:
    if entry.family not in families:
        close, known = close_matches(entry.family, families), ", ".join(families)
        context.add_problem(
            f"{path}.family",
            Message.of("resolve.unknown_family", family=entry.family, close=close, known=known).text(),
        )


def _architectures(context: ResolveContext, entry: Porting, path: str, runs: Mapping[str, str]) -> list[str]:
    """List the architectures that an entry is about: the one that it names, or all that the workloads run."""
    running = list(dict.fromkeys(runs.values()))
    if not entry.architecture:
        return running
    record = context.find("architectures", entry.architecture, f"{path}.architecture")
    if record is None:
        return []
    if record.name not in running:
        known = ", ".join(sorted(running))
        context.add_problem(
            f"{path}.architecture",
            Message.of("resolve.architecture_unused", name=entry.architecture, known=known).text(),
        )
        return []
    return [record.name]
