"""Resolve one case: a workload on a number of chips of one system and one fabric, without sites, prices or a program.

The commands `flopwatt layouts` and `flopwatt estimate` read cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from catalog.errors import CatalogError, MissingFigure, UnknownName
from catalog.lookup import Catalog
from catalog.units import GIGA
from models.arrays import sum_of
from models.formats import RecipeFormat
from models.network.group_links import Plant
from models.training.layouts import CODES, Layouts, Rule, legal_rules, with_levels
from models.training.pipeline import DUALPIPE, ONE_F_ONE_B
from models.transformer.architecture import Architecture
from planner.candidates.layouts import (
    LayoutParts,
    LayoutSearch,
    best_of,
    layout_choices,
    layout_parts,
    layout_rows,
    search_layouts,
)
from planner.errors import Issue, SpecError, close_matches, issues_of, unknown_record, words_of
from planner.estimate.limits import SearchLimits
from planner.estimate.power import PowerCap, training_draw
from planner.evaluate.layouts import TrainingSetup, interval_of, recipe_of
from planner.evaluate.serving_layouts import domain_of
from planner.facts import Fact
from planner.facts.names import old_key
from planner.messages import Message, listed
from planner.problem.batches import nearest_batch
from planner.problem.constants import ModelConstants
from planner.problem.fabrics import largest_of, plant_of, scaleout_of, uneven, whole_network
from planner.problem.facts import ScaleOut, ServingFacts, SystemFacts, TrainingFacts
from planner.problem.reinforcement import ReinforcementFacts
from planner.resolve.architectures import shape_of
from planner.resolve.constants import model_constants
from planner.resolve.ledger import Ledger
from planner.resolve.overrides import unread
from planner.resolve.plausibility.case import case_facts
from planner.resolve.plausibility.guesses import book_guesses
from planner.resolve.power_caps import measured_curve
from planner.resolve.reinforcement import reinforcement_facts
from planner.resolve.stack.engines import ROLES, engine_settings, memory_of, software_of, wrong_role
from planner.resolve.stack.routing import with_routing, wrong_routing
from planner.resolve.systems import network_ports, system_facts
from planner.resolve.workloads import assume_batch
from planner.spec.base import problems_of
from planner.spec.fabrics import PROVIDER
from planner.spec.old_keys import OF_CASES, in_written_keys, with_new_keys
from planner.spec.reinforcement import Reinforcement
from planner.spec.stack.case import Case
from planner.spec.workloads import Serving, Training
from planner.ways_in.kinds import CASE, wrong_kind


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """A case with its names resolved and its quantities in SI."""

    case: Case
    architecture: Architecture
    system: SystemFacts
    sides: tuple[SystemFacts, SystemFacts]  # systems of prefill and decode in separate pools
    plant: Plant | None  # network between the systems; None where none is needed, or it is the provider's
    constants: ModelConstants
    power_cap: PowerCap | None
    ledger: Ledger
    reinforcement: ReinforcementFacts | None = None
    notes: tuple[Fact, ...] = ()  # what in the case is at odds with what is known

    @property
    def scaleout(self) -> ScaleOut:
        """Return what the network between systems gives a chip."""
        if self.plant is not None:
            return scaleout_of(self.plant)
        rate = self.case.network_share * self.system.nic_bytes_per_s
        return ScaleOut(0.0 if self.case.topology == "scale-up" else rate)

    @property
    def serving(self) -> ServingFacts:
        """Return the workload of a serving case. Raises TypeError for a training case."""
        if isinstance(self.case.workload, (Training, Reinforcement)):
            raise TypeError(f"the case is of {self.case.workload.kind}")
        workload = self.case.workload
        engine = engine_settings(self.ledger, workload, "workload")
        return ServingFacts("workload", workload, self.architecture, np.zeros((1, 24)), 0.0, "", engine)

    @property
    def job(self) -> TrainingFacts:
        """Return the job of a training case. Raises TypeError for a serving case."""
        if not isinstance(self.case.workload, Training):
            raise TypeError("the case is of serving")
        return TrainingFacts("workload", self.case.workload, self.architecture)

    @property
    def learning(self) -> ReinforcementFacts:
        """Return the job of a case of reinforcement learning. Raises TypeError for another case."""
        if self.reinforcement is None:
            raise TypeError(f"the case is of {self.case.workload.kind}")
        return self.reinforcement

    def training_setup(self, precision: str) -> TrainingSetup:
        """Bundle the job of a training case with its system and network at a precision."""
        return TrainingSetup(self.job, self.system, precision, self.constants, self.scaleout, uneven(self.plant))


def resolve_case(
    document: Mapping[str, Any], overlays: Sequence[Path] = (), catalog: Catalog | None = None
) -> CaseFacts:
    """Check and resolve a case. Raises SpecError with every problem of types, then of names and figures.

    `catalog`: the one with these overlays, records and overrides, where it is read already.
    """
    document, renamed = with_new_keys(document, OF_CASES)
    try:
        facts = _resolved(document, overlays, catalog)
    except SpecError as error:
        raise SpecError(in_written_keys(error.problems, renamed)) from None
    return replace(facts, notes=(*facts.notes, *(old_key(key.path, key.new) for key in renamed)))


def _resolved(document: Mapping[str, Any], overlays: Sequence[Path], catalog: Catalog | None) -> CaseFacts:
    """Check and resolve a case that has today's keys."""
    problems: list[Issue] = []
    case = None
    try:
        case = Case.model_validate(document)
    except ValidationError as error:
        if other := wrong_kind(document, CASE):
            raise SpecError(other) from None
        problems = problems_of(error, Case)
    catalog = catalog or _catalog(document, case, overlays, problems)
    ledger = Ledger(catalog)
    systems, architectures, wrong = _looked_up(document, catalog, ledger, {problem.path for problem in problems})
    problems += wrong
    if (
        case is not None
        and isinstance(case.workload, (Serving, Training, Reinforcement))
        and "workload.architecture" in architectures
    ):
        shape = architectures["workload.architecture"]
        problems += wrong_routing(shape, case.workload, "workload")
        architectures["workload.architecture"] = with_routing(shape, case.workload)
    if problems or case is None:
        raise SpecError(problems)
    system = systems["system"]
    together = domain_of(system) if isinstance(case.workload, Serving) else system.scaleup_chips
    if case.chips > together and case.chips % system.chips:
        message = Message.of("estimate.no_whole_systems", count=str(case.chips), size=str(system.chips)).text()
        raise SpecError([Issue("chips", message)])
    prefill, decode = (systems.get(f"pools.{side}.system", system) for side in ("prefill", "decode"))
    if isinstance(case.workload, Training):
        assume_batch(
            ledger, "workload", TrainingFacts("workload", case.workload, architectures["workload.architecture"])
        )
    trains = isinstance(case.workload, (Training, Reinforcement))
    facts = CaseFacts(
        case=case,
        architecture=architectures["workload.architecture"],
        system=system,
        sides=(prefill, decode),
        plant=_plant(case, system, catalog, ledger),
        constants=model_constants(ledger, trains, serves=False, learns=isinstance(case.workload, Reinforcement)),
        power_cap=None if case.power_cap is None else PowerCap(case.power_cap, measured_curve(ledger, "power_cap")),
        ledger=ledger,
        reinforcement=_learning(case, architectures, ledger),
        notes=(
            *case_facts(ledger, case, case.workload, architectures),
            *book_guesses(case, ledger),
        ),
    )
    if not trains:
        assert isinstance(case.workload, Serving)
        _check_cache(case, case.workload)
        memory_of(
            ledger, case.workload.engine, case.workload.memory_utilisation, "workload"
        )  # booked before the overrides are checked
    if unheard := unread(case.overrides, ledger, "case"):
        raise SpecError(unheard)
    return facts


def _looked_up(
    document: Mapping[str, Any], catalog: Catalog, ledger: Ledger, reported: Set[str]
) -> tuple[dict[str, SystemFacts], dict[str, Architecture], list[Issue]]:
    """Look up every name of a case but at places that are `reported` already: systems and architectures by path, and the problems found."""
    systems: dict[str, SystemFacts] = {}
    architectures: dict[str, Architecture] = {}
    problems: list[Issue] = []
    for path, kind, name in _names(document):
        if path in reported:
            continue
        try:
            record = catalog.get(kind, name)
            if kind == "systems":
                systems[path] = system_facts(record, ledger)
            elif kind == "architectures":
                architectures[path] = shape_of(record, ledger)
            elif kind == "engines":
                role = path.rpartition(".")[2]
                problems += wrong_role(record, role, path)
                software_of(ledger, record, path)  # booked before the overrides are checked
            else:
                network_ports(record, ledger)
        except UnknownName as error:
            problems.append(Issue(path, unknown_record(error)))
        except (MissingFigure, ValueError) as error:
            problems.append(Issue(path, words_of(error)))
    return systems, architectures, problems


def _check_cache(case: Case, workload: Serving) -> None:
    """Check that a cache has the tiers and the load that its other keys need. Raises SpecError."""
    cache = workload.cache
    if cache is None:
        return
    if cache.reuse is not None and not cache.tiers:
        message = Message.of("estimate.reuse_needs_tiers").text()
        raise SpecError([Issue("workload.cache.tiers", message)])
    if cache.routing is not None and case.load is not None and case.load.concurrency is not None:
        message = Message.of("estimate.clients_of_systems").text()
        raise SpecError([Issue("workload.cache.routing", message)])


def _learning(case: Case, architectures: Mapping[str, Architecture], ledger: Ledger) -> ReinforcementFacts | None:
    """Resolve the job of a case of reinforcement learning; None for another case. Raises SpecError for what such a case cannot state."""
    if not isinstance(case.workload, Reinforcement):
        return None
    if case.power_cap is not None:
        raise SpecError([Issue("power_cap", Message.of("estimate.not_for_reinforcement").text())])
    reward, critic = (architectures.get(f"workload.{name}") for name in ("reward", "critic"))
    return reinforcement_facts(
        ledger, "workload", case.workload, architectures["workload.architecture"], reward, critic
    )


def _catalog(
    document: Mapping[str, Any], case: Case | None, overlays: Sequence[Path], problems: list[Issue]
) -> Catalog:
    """Load the catalog with the case's own records and overrides. Raises SpecError with the problems known so far and its own."""
    block = document.get("catalog")
    try:
        catalog = Catalog.load(overlays, [block] if block and isinstance(block, Mapping) else [])
        if case is not None and case.overrides:
            catalog = catalog.with_overrides({path: override.model_dump() for path, override in case.overrides.items()})
        return catalog
    except CatalogError as error:
        raise SpecError([*problems, *issues_of(error)]) from None


def _names(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """List (path, kind of record, name) of every name given as text, in a case that need not be valid otherwise."""
    places = {
        "system": "systems",
        "fabric": "fabrics",
        "workload.architecture": "architectures",
        "workload.reward": "architectures",
        "workload.critic": "architectures",
        **({f"workload.{role}": "engines" for role in ROLES} if _serves(document) else {}),
        "pools.prefill.system": "systems",
        "pools.decode.system": "systems",
    }
    for path, kind in places.items():
        value: Any = document
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, str) and value.strip():
            yield path, kind, value.strip()


def _serves(document: Mapping[str, Any]) -> bool:
    workload = document.get("workload")
    return isinstance(workload, Mapping) and workload.get("kind") == "serving"


def _plant(case: Case, system: SystemFacts, catalog: Catalog, ledger: Ledger) -> Plant | None:
    """Build the network between the systems of a case; None where they need none, or use the provider's."""
    systems = case.chips // system.chips
    if case.topology == PROVIDER or systems < 2:
        return None
    if case.topology == "scale-up":
        needed = Message.of("estimate.topology_needed", system=system.name, count=systems)
        raise SpecError([Issue("topology", needed.text())])
    if not system.nic_bytes_per_s:
        raise SpecError([Issue("topology", Message.of("estimate.no_network_ports", system=system.name).text())])
    parts = replace(network_ports(catalog.get("fabrics", case.fabric), ledger), used_share=case.network_share)
    plant = plant_of(case.topology, systems, system, parts)
    if plant is None or not bool(whole_network(plant, systems, parts).holds):
        most = largest_of(case.topology, system, parts)
        told = {"fabric": case.topology, "system": case.fabric, "most": f"{most:,.0f}", "unit": system.name}
        too_small = Message.of("estimate.network_too_small", **told, given=systems)
        raise SpecError([Issue("topology", too_small.text())])
    return plant


def best_layouts(
    document: Mapping[str, Any], overlays: Sequence[Path], count: int, limits: SearchLimits | None = None
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Find the `count` fastest layouts of a training case over its precisions, and how many are legal, fit, and were not tried.

    The list is empty where nothing fits. Raises SpecError for an invalid case, or LimitReached where nothing was found before the limits.
    """
    limits = limits or SearchLimits()
    if count < 1:
        raise SpecError([Issue("--best", Message.of("estimate.layouts_to_print", given=count).text())])
    facts = resolve_case(document, overlays)
    workload, system = facts.case.workload, facts.system
    if not isinstance(workload, Training):
        raise SpecError([Issue("workload.kind", Message.of("estimate.layouts_of_training_only").text())])
    able = [precision for precision in workload.precision if system.trains(precision)]
    if not able:
        raise SpecError(
            [
                Issue(
                    "workload.precision",
                    Message.of(
                        "estimate.no_arithmetic_of_chip",
                        chip=system.chip,
                        names=", ".join(workload.precision),
                        known=", ".join(system.recipes),
                    ).text(),
                )
            ]
        )
    asked = requested_layouts(facts)
    parts = layout_parts(facts.job, facts.case.chips, system) if asked is None else [asked]
    legal = len(able) * (len(parts) if isinstance(parts, LayoutParts) else len(parts[0]))
    setups = {precision: facts.training_setup(precision) for precision in able}
    searches: dict[RecipeFormat, LayoutSearch] = {}
    for precision, setup in setups.items():
        for part in limits.within(parts):
            searches[precision] = best_of(searches.get(precision), search_layouts(setup, part), count)
    left = legal - sum_of(found.legal for found in searches.values())
    fitting = sum_of(found.fitting for found in searches.values())
    if left and not fitting:
        limits.check()
    counts = {"legal": legal, "fitting": fitting, **limits.left_out("layouts", left, legal)}
    if not fitting:
        return [], counts | {"least_bytes": min((found.least_bytes for found in searches.values()), default=math.inf)}
    best = max(searches, key=lambda p: searches[p].step.tokens_per_s.max(initial=0.0))
    interval, speed = (
        interval_of(setups[best], facts.case.chips),
        training_draw(facts.power_cap, system, facts.constants.power).speed,
    )
    rows = layout_rows(searches[best], count, interval)
    return [{"precision": best, **(row if speed == 1.0 else _slowed(row, speed))} for row in rows], counts


def _slowed(row: Mapping[str, Any], s: float) -> dict[str, Any]:
    """Stretch the times of a layout to the relative speed s under a power cap, which is the same for all layouts."""
    return {
        **row,
        "step_s": row["step_s"] / s,
        "interval_80": {"step_s": [bound / s for bound in row["interval_80"]["step_s"]]},
        **{name: row[name] * s for name in ("tokens_per_s", "mfu", "hfu")},
        "breakdown_s": {name: seconds / s for name, seconds in row["breakdown_s"].items()},
    }


def requested_layouts(facts: CaseFacts) -> Layouts | None:
    """Return the layouts that the case asks for, checked: with each level of ZeRO, recompute and offload that it leaves open; None where all
    legal ones are to be tried."""
    if facts.case.layout is None:
        return None
    layouts, chips = stated_layout(facts), facts.case.chips
    if int(layouts.chips[0]) != chips:
        words = Message.of("estimate.layout_product", count=int(layouts.chips[0]), given=chips).text()
        raise SpecError([Issue("layout", words)])
    if broken := broken_rules(facts.job, layouts, facts.system.scaleup_chips):
        raise SpecError(broken)
    stated, space = facts.case.layout, layout_choices(facts.system)
    levels: dict[str, Any] = {
        "zeros": (stated["zero"],) if "zero" in stated else space.zeros,
        "recomputes": (stated["recompute"],) if "recompute" in stated else space.recomputes,
        "offloads": (stated["offload"],) if "offload" in stated else space.offloads,
    }
    found = with_levels(layouts, replace(space, **levels))
    return (
        found if len(found) else layouts
    )  # a stated level that frameworks do not combine with these sizes is taken as it is


def stated_layout(facts: CaseFacts) -> Layouts:
    """Return the training layout that the case states. Raises SpecError for an unknown size, and for one out of its range."""
    stated, known = facts.case.layout or {}, list(Layouts.__dataclass_fields__)
    if unknown := [name for name in stated if name not in known]:
        raise SpecError(
            Issue(
                f"layout.{name}",
                Message.of("estimate.unknown_size", close=close_matches(name, known), known=", ".join(known)).text(),
            )
            for name in unknown
        )
    small = [name for name in stated if stated[name] < 1 and name not in CODES]
    over = [name for name, most in CODES.items() if stated.get(name, 0) > most]
    if small or over:
        raise SpecError(
            [
                *(Issue(f"layout.{name}", Message.of("estimate.whole_number_expected").text()) for name in small),
                *(
                    Issue(f"layout.{name}", Message.of("estimate.expected_at_most", most=CODES[name]).text())
                    for name in over
                ),
            ]
        )
    return Layouts.of(**stated)


def words_of_rule(rule: Rule) -> str:
    """Say a rule of frameworks."""
    return Message.of(f"rule.{rule.name}", **rule.figures).text()


def broken_rules(job: TrainingFacts, layouts: Layouts, scaleup_chips: int) -> list[Issue]:
    """List the rules that one layout breaks, as problems of a case; with the nearest batch where the batch does not divide."""
    rules = legal_rules(
        job.architecture,
        layouts,
        global_batch_sequences=job.batch_sequences,
        sequence_tokens=job.spec.sequence_tokens,
        scaleup_chips=scaleup_chips,
    )
    kept_not = [rule for rule, kept in rules if not kept[0]]
    broken = [words_of_rule(rule) for rule in kept_not]
    of_batch = [words_of_rule(rule) for rule in kept_not if rule.name.endswith(("_micro_batches", "batch_divides"))]
    problems = [
        Issue("layout", Message.of("estimate.refused_by_frameworks", why=words).text())
        for words in broken
        if words not in of_batch
    ]
    if not of_batch or int(layouts.pp[0]) > job.architecture.layers:
        return problems
    sequences, tokens = nearest_batch(job.spec, *_batch_unit(layouts))
    advice = Message.of(
        "estimate.batch_does_not_suit",
        count=job.batch_sequences,
        length=job.spec.sequence_tokens,
        rules=listed(of_batch),
        sequences=f"{sequences:,}",
        tokens=tokens,
    ).text()
    return [Issue("workload.batch_tokens", advice), *problems]


def _batch_unit(layouts: Layouts) -> tuple[int, int]:
    """Return (sequences of which one layout's batch must be a whole number of times, least number of times)."""
    layout = layouts.row(0)
    replicas, pp = layout["dp"] * layout["micro_batch"], layout["pp"]
    if layout["vpp"] > 1:
        return replicas * pp, 1
    if layout["schedule"] == DUALPIPE:
        return 2 * replicas, pp
    return replicas, 1 if layout["schedule"] == ONE_F_ONE_B else pp


def nothing_fits(facts: CaseFacts, counts: Mapping[str, Any]) -> str:
    """State why a training case has no layout: none is legal, or none of the legal ones fits in memory."""
    job, chips = facts.job, facts.case.chips
    if counts["legal"]:
        recipe, least = recipe_of(job), float(counts["least_bytes"])
        if not math.isfinite(least):
            return Message.of("memory.training_network", layouts=counts["legal"]).text()
        return Message.of(
            "memory.training_lacks", layouts=counts["legal"], needs=least / GIGA, memory=facts.system.hbm_bytes / GIGA,
            lacks=(least - facts.system.hbm_bytes) / GIGA,
            state=recipe.weight_bytes + recipe.gradient_bytes + recipe.optimizer_bytes,
        ).text()  # fmt: skip
    sequences, tokens = nearest_batch(job.spec, chips)
    return Message.of(
        "estimate.nothing_legal", chips=chips, heads=str(job.architecture.heads), layers=str(job.architecture.layers),
        batch=job.batch_sequences, tokens=str(tokens), sequences=sequences,
    ).text()  # fmt: skip


def without_demand(workload: Mapping[str, Any]) -> dict[str, Any]:
    """Drop from a workload of a spec what a case on one system does not need, and what names other parts of the spec."""
    dropped = ("demand", "origins", "weights_from", "alternatives", "quality_floor", "spread", "redundancy")
    return {name: value for name, value in workload.items() if name not in dropped}
