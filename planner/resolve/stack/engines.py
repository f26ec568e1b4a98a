"""Resolve the engine and the compiler of a serving workload: fitted factors by the base of its record, and what the record states."""

from __future__ import annotations

from catalog.figures import Figure
from catalog.records import Record
from models.serving.software import Software
from planner.errors import Problem
from planner.problem.engine import EngineSettings
from planner.resolve.constants import own_corrections
from planner.resolve.ledger import Ledger
from planner.spec.workloads import Serving

FACTORS = ("host", "launch", "first_token", "compute", "memory")
TIMES_S = ("host_step_s", "host_request_s", "layer_launch_s")
ROLES = ("engine", "compiler")  # each a key of the workload


def engine_settings(ledger: Ledger, workload: Serving, path: str, memory_utilisation: float) -> EngineSettings:
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
    return EngineSettings(memory_utilisation, base=base, software=tuple(layers), corrections=corrections)


def wrong_role(record: Record, role: str, path: str) -> list[Problem]:
    """List the problem of a record that stands where another role is meant."""
    if record.words("role") == role:
        return []
    return [
        Problem(path, f'"{record.name}" is of the role {record.words("role")}; name it under "{record.words("role")}"')
    ]


def software_of(ledger: Ledger, record: Record, path: str) -> Software:
    """Read what a record states of itself, or what is only claimed of it."""
    figures = {**record.claimed, **record.figures}
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
    reason = figure.note or f"stated in {', '.join(figure.source)}"
    how = "claimed, and measured by nobody: " if claimed else ""
    ledger.assume(f"engines/{record.name}/{name}", figure.printed, figure.unit, f"{how}{reason} ({path})")
