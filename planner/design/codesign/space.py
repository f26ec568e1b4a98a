"""The space of a co-design case: variants of its architecture, and the chips on which each is tried at each precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from models.transformer.architecture import Architecture
from models.transformer.variants import with_experts, with_heads, with_latent, with_linear, with_width, with_windows
from planner.errors import Issue, SpecError
from planner.estimate.case import CaseFacts, resolve_case
from planner.messages import Message
from planner.spec.base import problems_of
from planner.spec.old_keys import OF_CASES, in_written_keys, with_new_keys
from planner.spec.stack.codesign import AS_NAMED, SHARES, Attention, Codesign, CodesignCase, Experts
from planner.spec.workloads import Precision, Serving
from planner.ways_in.kinds import CASE, CODESIGN, wrong_kind

GQA_HEADS = 8
WINDOW_TOKENS = 4096
# Tried where none is stated, on chips that compute in them; FP16 is as fast and as large as BF16.
TRIED: tuple[Precision, ...] = ("bf16", "fp8", "int8", "fp4")
MOST_VARIANTS = 100_000  # compared at once: about 12 kB of the answer each
AXES = ("attention", "experts", "width", "precision")


@dataclass(frozen=True, slots=True)
class Shape:
    """A variant of the architecture, with its place on each axis."""

    architecture: Architecture
    attention: str
    experts: str
    width: float


@dataclass(frozen=True, slots=True)
class Variant:
    """One architecture at one precision on one chip, by their places in the space."""

    shape: int
    precision: str
    chip: int


@dataclass(frozen=True, slots=True)
class Space:
    """All variants; the first shape is the named architecture."""

    architecture: str  # name of the architecture
    block: Codesign
    shapes: tuple[Shape, ...]
    chips: tuple[CaseFacts, ...]
    variants: tuple[Variant, ...]
    impossible: tuple[str, ...]  # combinations of axes that no architecture has, with the reason


def resolve_space(document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> Space:
    """Check a case and build its space. Raises SpecError with all problems at once."""
    case = _parsed(document)
    chips = _chips(document, case, overlays)
    block = case.codesign
    count = (1 + len(block.attention)) * (1 + len(block.experts)) * (1 + len(block.width))
    count *= sum(len(_precisions(case, facts)) for facts in chips)
    if count > MOST_VARIANTS:
        raise SpecError([Issue("codesign", Message.of("codesign.too_many", count=count, most=MOST_VARIANTS).text())])
    shapes, impossible = _shapes(chips[0].architecture, block)
    variants = [
        Variant(shape, precision, chip)
        for chip, facts in enumerate(chips)
        for precision in _precisions(case, facts)
        for shape in range(len(shapes))
    ]
    if not variants:
        asked = ", ".join(case.codesign.precision or case.workload.precision)
        raise SpecError([Issue("codesign.precision", Message.of("codesign.no_precision", precisions=asked).text())])
    return Space(case.workload.architecture, case.codesign, shapes, chips, tuple(variants), impossible)


def by_changes(space: Space) -> list[int]:
    """Order the variants by the number of axes on which they differ from the named architecture at the first precision of their chip."""
    named, first = space.shapes[0], dict[int, str]()
    for variant in space.variants:
        first.setdefault(variant.chip, variant.precision)

    def changes(place: int) -> int:
        variant = space.variants[place]
        shape = space.shapes[variant.shape]
        changed = [getattr(shape, axis) != getattr(named, axis) for axis in ("attention", "experts", "width")]
        return sum([*changed, variant.precision != first[variant.chip]])

    return sorted(range(len(space.variants)), key=changes)


def _parsed(document: Mapping[str, Any]) -> CodesignCase:
    today, renamed = with_new_keys(document, OF_CASES)
    try:
        case = CodesignCase.model_validate(today)
    except ValidationError as error:
        other = wrong_kind(today, CODESIGN, CASE)
        raise SpecError(other or in_written_keys(problems_of(error, CodesignCase), renamed)) from None
    problems = []
    if not isinstance(case.workload, Serving):
        problems.append(Issue("workload.kind", Message.of("codesign.serving_only").text()))
    elif case.workload.disaggregation == "always":
        problems.append(Issue("workload.disaggregation", Message.of("codesign.single_pools").text()))
    if isinstance(case.workload, Serving):
        problems += [
            Issue(f"workload.{name}", Message.of("codesign.not_part").text())
            for name in ("session", "media", "kv_precision")
            if getattr(case.workload, name) is not None
        ]
    if case.load is not None and (case.load.requests_per_s or case.load.concurrency):
        problems.append(Issue("load", Message.of("codesign.most_load").text()))
    problems += [
        Issue(name, Message.of("codesign.not_part").text())
        for name in ("pools", "power_cap", "rollout_chips")
        if getattr(case, name) is not None
    ]
    if problems:
        raise SpecError(problems)
    return case


def _chips(document: Mapping[str, Any], case: CodesignCase, overlays: Sequence[Path]) -> tuple[CaseFacts, ...]:
    """Resolve the case on each of its systems."""
    plain = {name: value for name, value in document.items() if name != "codesign"}
    asked = [("", case.system, case.chips)] + [
        (f"codesign.systems[{i}].", entry.system, entry.chips or case.chips)
        for i, entry in enumerate(case.codesign.systems)
    ]
    found: list[CaseFacts] = []
    problems: list[Issue] = []
    for path, system, chips in asked:
        try:
            facts = resolve_case(
                {**plain, "system": system, "chips": chips}, overlays, found[0].ledger.catalog if found else None
            )
        except SpecError as error:
            problems += [
                replace(p, path=path + p.path) if p.path in ("system", "chips", "topology", "fabric") else p
                for p in error.problems
            ]
            continue
        if any(facts.system.name == other.system.name for other in found):
            problems.append(
                Issue(f"{path}system", Message.of("codesign.compared_already", system=facts.system.name).text())
            )
        found.append(facts)
    if problems:
        raise SpecError(problems)
    return tuple(found)


def _precisions(case: CodesignCase, facts: CaseFacts) -> list[str]:
    """List the precisions to try on a chip: that of the named architecture first, the workload's best that the chip has."""
    tried = [name for name in TRIED if facts.system.trains(name)]
    asked = [*case.workload.precision, *(case.codesign.precision or tried)]
    return [name for name in dict.fromkeys(asked) if facts.system.serves(name, facts.serving.spec.arithmetic)]


def _shapes(named: Architecture, block: Codesign) -> tuple[tuple[Shape, ...], tuple[str, ...]]:
    """Combine the axes; (distinct architectures, those that cannot be with their reason)."""
    attentions = [Attention(kind=AS_NAMED), *block.attention]
    widths: list[float] = [1.0, *(float(factor) for factor in block.width)]
    shapes: dict[Architecture, Shape] = {}
    impossible: dict[str, None] = {}
    for width in widths:
        for experts in [None, *block.experts]:
            for attention in attentions:
                try:
                    found = _shape(named, attention, experts, width)
                except ValueError as error:
                    impossible[f"{attention.label}, experts {_experts_label(experts)}, width {width:g}: {error}"] = None
                    continue
                shapes.setdefault(found.architecture, found)
    return tuple(shapes.values()), tuple(impossible)


def _shape(named: Architecture, attention: Attention, experts: Experts | None, width: float) -> Shape:
    arch = named if experts is None else with_experts(named, experts.experts, experts.topk, experts.expert_ffn)
    if width != 1.0:
        arch = with_width(arch, width)
    return Shape(_attending(arch, attention), attention.label, _experts_label(experts), width)


def _experts_label(experts: Experts | None) -> str:
    return AS_NAMED if experts is None else experts.label


def _attending(arch: Architecture, attention: Attention) -> Architecture:
    """Give an architecture a kind of attention. Raises ValueError where it cannot have it."""
    kind = attention.kind
    if kind in ("mha", "gqa", "mqa"):
        heads = {"mha": arch.heads, "mqa": 1, "gqa": attention.kv_heads or GQA_HEADS}[kind]
        return with_heads(arch, heads)
    if kind == "mla":
        return with_latent(arch, attention.kv_lora_rank or 0, attention.q_lora_rank or 0)
    if kind in SHARES:
        share = attention.share or SHARES[kind]
        if kind == "linear":
            return with_linear(arch, share)
        return with_windows(arch, share, attention.window_tokens or WINDOW_TOKENS)
    return arch
