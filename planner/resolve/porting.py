"""What it costs once to bring an architecture to a family of chips: who must pay, and the arrays for the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from catalog.records import Record
from planner.errors import close_matches
from planner.problem.facts import PortingFacts, ServingFacts, SystemFacts, TrainingFacts
from planner.resolve.ledger import Ledger
from planner.spec.model import PlanSpec

if TYPE_CHECKING:
    pass

Find = Callable[[str, str, str], Record | None]
Money = Callable[..., float]
Wrong = Callable[[str, str], None]


def resolved_porting(
    spec: PlanSpec,
    workloads: Sequence[ServingFacts | TrainingFacts],
    systems: Mapping[str, SystemFacts],
    ledger: Ledger,
    find: Find,
    convert: Money,
    wrong: Wrong,
) -> tuple[PortingFacts, ...]:
    """The `porting` of a spec with its costs among the assumptions and its names looked up."""
    if spec.porting is None:
        return ()
    for i, entry in enumerate(spec.porting):
        amount, currency = entry.cost
        ledger.assume(f"porting[{i}].cost", amount, currency, entry.note or "stated in the spec", ("porting", "*", "*"))
    named = {
        i: r.name
        for i, e in enumerate(spec.porting)
        if e.architecture and (r := find("architectures", e.architecture, f"porting[{i}].architecture"))
    }
    runs = {
        w.name: record.name
        for w in workloads
        if (record := find("architectures", w.spec.architecture, f"{w.path}.architecture"))
    }
    return porting_facts(spec, runs, named, systems, convert, wrong)


def porting_facts(
    spec: PlanSpec,
    architectures: Mapping[str, str],
    named: Mapping[int, str],
    systems: Mapping[str, SystemFacts],
    convert: Money,
    wrong: Wrong,
) -> tuple[PortingFacts, ...]:
    """An entry for each architecture and family. `architectures`: by workload; `named`: those that the entries of the spec name."""
    families = sorted({system.family for system in systems.values()} - {""})
    found: dict[tuple[str, str], PortingFacts] = {}
    for i, porting in enumerate(spec.porting or ()):
        path = f"porting[{i}]"
        if porting.family not in families:
            wrong(
                f"{path}.family",
                f'no system on offer has chips of the family "{porting.family}"{close_matches(porting.family, families)}; known here: {", ".join(families)}',
            )
        if porting.architecture is not None and i in named and named[i] not in architectures.values():
            wrong(
                f"{path}.architecture",
                f'no workload runs "{porting.architecture}"; remove it, or name one of {", ".join(sorted(set(architectures.values())))}',
            )
        for architecture in dict.fromkeys(architectures.values()):
            if porting.architecture is None or named.get(i) == architecture:
                users = tuple(name for name, of in architectures.items() if of == architecture)
                if (
                    found.setdefault(
                        (architecture, porting.family),
                        PortingFacts(
                            path, porting.family, architecture, convert(*porting.cost, path=f"{path}.cost"), users
                        ),
                    ).path
                    != path
                ):
                    wrong(path, f'"{architecture}" on "{porting.family}" stands above already; remove one of them')
    if found and spec.robust is not None:
        wrong("porting", 'cannot stand beside "robust" yet; remove one of them')
    if found and any(getattr(w, "spread", None) is not None and w.spread.survive for w in spec.workloads):
        wrong("porting", 'cannot stand beside "survive" of a spread yet; remove one of them')
    return tuple(found.values())
