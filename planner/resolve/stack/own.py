"""Say how a user's own figures were read: runs that a calibration was fitted to, and architectures that the catalog does not ship."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from catalog.huggingface import UNKNOWN_CODE
from catalog.lookup import Catalog
from catalog.records import Record
from models.formats import element_bytes, kind_of
from models.transformer.architecture import Architecture, parameter_counts
from models.transformer.attention import kv_bytes, kv_bytes_per_token, state_bytes
from planner.facts import Fact
from planner.facts.own_runs import OwnRuns, unused_runs
from planner.messages import Message
from planner.problem.facts import ServingFacts, SystemFacts, TrainingFacts
from planner.resolve.constants import by_kind

OWN = "override"  # kind of a figure that a user states
ECHOED = "bf16"


def own_runs(catalog: Catalog, model: str) -> frozenset[OwnRuns]:
    """List what the user's own runs were measured on, from the names of the calibration's factors."""
    keys = (key.split("|") for key in by_kind(catalog.get("constants", f"{model}_anchor").figures))
    serving = model == "serving"  # engine|chip|precision|metric; of training source|chip|precision
    return frozenset(OwnRuns(key[1], key[2], key[0] if serving else "") for key in keys)


def unused_run_facts(
    catalog: Catalog, path: str, workload: ServingFacts | TrainingFacts, systems: Iterable[SystemFacts]
) -> Iterator[Fact]:
    """Name the own runs that a workload does not use on the systems that it may run on."""
    serving = isinstance(workload, ServingFacts)
    if measured := own_runs(catalog, "serving" if serving else "training"):
        pairs = product(systems, workload.spec.precision)
        if isinstance(workload, ServingFacts):
            stated, engine = workload.spec.arithmetic, workload.engine.base
            possible = {workload.measured_as(at.chip, name) for at, name in pairs if at.serves(name, stated)}
        else:
            engine, possible = "", {(at.chip, kind_of((), name)) for at, name in pairs if at.trains(name)}
        yield from unused_runs(path, workload.name, measured, possible, engine)


def echo(record: Record, shape: Architecture) -> Message:
    """Say how large an architecture is: parameters, weights and KV cache in 16 bit."""
    counts, width = parameter_counts(shape), element_bytes(ECHOED)
    return Message.of(
        "own.architecture_experts" if shape.experts else "own.architecture", name=record.name, parameters=counts.total / 1e9,
        weights=counts.total * width / 1e9, cache=float(kv_bytes(shape, 1.0, width) - state_bytes(shape)) / 1e6,
        full=float(kv_bytes_per_token(shape, width)) / 1e6, precision=ECHOED,
        **({"active": counts.active / 1e9} if shape.experts else {}),
    )  # fmt: skip


def architecture_facts(record: Record, shape: Architecture) -> Iterator[Fact]:
    """Say how an architecture of the user's own was read, from a config or figure by figure; nothing of one of the catalog."""
    figure = record.get("layers")
    if figure is None or figure.kind != OWN:
        return
    path = f"architectures/{record.name}"
    yield Fact(path, echo(record, shape))
    if UNKNOWN_CODE in record.words("note"):
        yield Fact(path, Message.of("own.unknown_code", name=record.name, kind=record.words("family") or "?"))
