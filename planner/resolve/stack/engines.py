"""Resolve the engine and the compiler of a serving workload: fitted factors by the base of its record, and what the record states."""

from __future__ import annotations

from catalog.figures import Figure
from catalog.records import Record
from models.serving.software import Software
from planner.errors import Issue
from planner.messages import Message
from planner.problem.engine import EngineSettings, MemoryRule
from planner.resolve.constants import own_corrections
from planner.resolve.ledger import Ledger, origin_of
from planner.spec.workloads import Serving

MEMORY_FIGURES = ("memory_share", "reserved_bytes")
RULES: tuple[MemoryRule, ...] = ("share", "static", "free")
FACTORS = ("host", "launch", "first_token", "compute", "memory")
TIMES_S = ("host_step_s", "host_request_s", "layer_launch_s")
ROLES = ("engine", "compiler")  # each a key of the workload


def engine_settings(ledger: Ledger, workload: Serving, path: str) -> EngineSettings:
    """Return how the engine of a workload is set and what software it is, booking every figure of it as an assumption."""
    layers, base = [], ""
    for role in ROLES:
        name: str | None = getattr(workload, role)
        if name is None:
            continue
        record = ledger.catalog.get("engines", name)
        if role == "engine":
            base = record.words("base") or "other"
        if (software := software_of(ledger, record, f"{path}.{role}")) != Software():
            layers.append(software)
    corrections = own_corrections(ledger, base or None)
    share, rule, reserved = memory_of(ledger, workload.engine, workload.memory_utilisation, path)
    return EngineSettings(
        share,
        base=base,
        eager=workload.eager,
        software=tuple(layers),
        corrections=corrections,
        memory_rule=rule,
        reserved_bytes=reserved,
    )


def memory_of(
    ledger: Ledger, engine: str | None, stated: float | None, path: str
) -> tuple[float | None, MemoryRule, float | None]:
    """Return (share, rule, reserve in bytes) by which an engine divides a chip's memory: as stated, else as shipped.

    An engine whose record states nothing takes the figures of its base; a workload without an engine takes the defaults. The share
    is None where the rule computes it from the chip; the reserve is None for engines of single devices.
    """
    reason = Message.of("resolve.memory_utilisation").text()
    where = f"{path}.memory_utilisation"

    def usual() -> float:
        return ledger.default("memory_utilisation", where, reason) if stated is None else stated

    record = None if engine is None else ledger.catalog.get("engines", engine)
    base = "other" if record is None else record.words("base") or "other"
    if record is None or base == "other":
        kept = Message.of("memory.reserved").text()
        return usual(), "share", ledger.default("memory_reserve", f"{path}.memory_reserve", kept)
    shipped = [record, ledger.catalog.get("engines", base)]
    words = next((each.words("memory_rule") for each in shipped if each.words("memory_rule")), None)
    rule = next((rule for rule in RULES if rule == words), None)
    if rule is None:
        return usual(), "plain", None
    share, reserved = (
        next((ledger.value("engines", each.name, figure) for each in shipped if each.get(figure)), None)
        for figure in MEMORY_FIGURES
    )
    if stated is None and share is not None:
        ledger.assume(where, share, "1", reason)
    return share if stated is None else stated, rule, reserved


def wrong_role(record: Record, role: str, path: str) -> list[Issue]:
    """List the problem of a record that stands where another role is meant."""
    if record.words("role") == role:
        return []
    return [
        Issue(
            path,
            Message.of(
                "resolve.engine_of_another_role", name=record.name, role=record.words("role"), key=record.words("role")
            ).text(),
        )
    ]


def software_of(ledger: Ledger, record: Record, path: str) -> Software:
    """Read what a record states of itself, or claims of it."""
    figures = {name: each for name, each in {**record.claimed, **record.figures}.items() if name not in MEMORY_FIGURES}
    for name in figures:
        _book(ledger, record, name, path)
    families: dict[str, dict[str, float]] = {}
    for name, figure in figures.items():
        part, _, family = name.partition("_")
        if part in ("compute", "memory") and family:
            families.setdefault(family, {})[part] = figure.number
    return Software(
        **{name: figures[name].number for name in FACTORS if name in figures},
        families=tuple((name, of.get("compute", 1.0), of.get("memory", 1.0)) for name, of in sorted(families.items())),
        times_s=tuple((name, figures[name].number) for name in TIMES_S if name in figures),
    )


def _book(ledger: Ledger, record: Record, name: str, path: str) -> None:
    """Book a figure of an engine: cited where somebody measured or states it, and in any case an assumption of the plan."""
    claimed = name not in record.figures
    figure: Figure = record.claimed[name] if claimed else ledger.figure("engines", record.name, name)
    place = f"engines/{record.name}/{name}"
    code = "resolve.claimed_at" if claimed else "resolve.used_at"
    reason = Message.of(code, reason=origin_of(place, figure), path=path).text()
    ledger.assume(place, figure.printed, figure.unit, reason)
