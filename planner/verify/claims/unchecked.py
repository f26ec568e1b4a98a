"""List what the checks of a plan do not compute again, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.messages import Message
from planner.version import RELEASE, release

PRICED_SHARE = 0.8  # share of the scenarios: a job that ends in time in fewer may have a row in `late_jobs`
NAMES = ("flopwatt", "tokenwatt")  # names of the program: release 0.1 had the second


POLICY = (
    "tree",
    "layouts",
    "groups",
    "paths",
)  # parts of an adaptive plan that its replay reads, beside its commitments
DRAWN = frozenset(
    ("promise", "risk", "tail", "dates", "delivery", "notice", "demand", "times", "unserved", "scenarios", "seed")
)  # keys of `adapt` by which the replay draws its worlds; with another one it would draw others

BY_ANNUITIES = (
    "",
    "0.1.0",
    "0.2.0",
)  # releases that charged a purchase the annuities of the time for which it was held


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A part of a plan that was not computed again; "[]" in the path stands for any position."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def release_of(document: Mapping[str, Any]) -> str:
    """Return the release that wrote a plan, or to which the version that wrote it led, as it states it; empty if it states none."""
    return release(next((document["versions"][name] for name in NAMES if name in document["versions"]), ""))


def is_whole(document: Mapping[str, Any]) -> bool:
    """Tell whether a plan claims that its serving replicas are whole, or had to have such."""
    return "whole" in (document.get("replicas"), (document["spec"].get("solver") or {}).get("replicas"))


def pools_of(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the pools of all points in use, each with its path."""
    for w, workload in enumerate(document["workloads"]):
        for p, point in enumerate(workload["points"]):
            for i, pool in enumerate(point["pools"]):
                yield f"workloads[{w}].points[{p}].pools[{i}]", pool


def was_charged_by_annuities(document: Mapping[str, Any]) -> bool:
    """Tell whether the release that wrote a plan charged purchases by annuities, without residual value and maintenance."""
    return release_of(document) in BY_ANNUITIES


def unchecked_parts(
    document: Mapping[str, Any], same_figures: bool, unknown: Iterable[str], proven: bool = False
) -> list[Unchecked]:
    """List the parts of a plan that the checks take as stated.

    `same_figures`: whether the plan was made with the catalog at hand. `unknown`: the keys that no release wrote.
    `proven`: whether a claimed infeasibility was proven again.
    """
    parts = [
        Unchecked("spec", Message.of("unchecked.question").text()),
        *_of_the_record(document, same_figures),
    ]
    if document["objective"]["value"] is None:
        parts += _without_answer(document, proven)
    else:
        parts += _of_the_search(document)
    parts += [Unchecked(path, Message.of("unchecked.unknown").text()) for path in unknown]
    return parts


def _of_the_record(document: Mapping[str, Any], same_figures: bool) -> Iterator[Unchecked]:
    made_with = Message.of("unchecked.made_with").text()
    yield from (Unchecked(name, made_with) for name in ("versions", "schema_version"))
    if not same_figures:
        yield Unchecked("catalog_digest", Message.of("unchecked.another_catalog").text())
        yield Unchecked("provenance", Message.of("unchecked.recorded_figures").text())
        yield Unchecked("assumptions", Message.of("unchecked.same_catalog").text())
    elif release_of(document) != RELEASE:
        yield Unchecked(
            "assumptions[].reason",
            Message.of("unchecked.words_of_release", release=release_of(document) or "unknown").text(),
        )
    size = Message.of("unchecked.size").text()
    yield from (Unchecked(f"solver.{name}", size) for name in ("rows", "columns", "integers", "ended_by", "repeatable"))
    for name in ("dropped", "dropped_message", *(("coverage",) if "coverage" in document else ())):
        yield Unchecked(name, Message.of("unchecked.counts_of_candidates").text())


def is_replayed(document: Mapping[str, Any]) -> bool:
    """Tell whether the policy of an adaptive plan is stated, and all that its spec makes uncertain is drawn by the checks."""
    found, asked = document.get("adaptation") or {}, document["spec"].get("adapt") or {}
    stated = "commitments" in found and all(found.get(name) for name in POLICY) and DRAWN.issuperset(asked)
    return stated and not any(offer.get("delivery") for offer in document["spec"].get("offers") or ())


def _of_adaptation(document: Mapping[str, Any]) -> Iterator[Unchecked]:
    """Yield what the replay of a policy leaves open; all of it where the policy is not replayed."""
    if not is_replayed(document):
        yield Unchecked("adaptation", Message.of("unchecked.adaptation").text())
        return
    programs = Message.of("unchecked.adapted_programs").text()
    for name in ("fixed", "values", "gap"):
        yield Unchecked(f"adaptation.{name}", programs)
    use = Message.of("unchecked.adapted_use").text()
    for name in ("open[].share", "open[].mean", "open[].high", "needs"):
        yield Unchecked(f"adaptation.{name}", use)


def _of_the_search(document: Mapping[str, Any]) -> Iterator[Unchecked]:
    """Yield what only another search, or another program, could confirm."""
    if not is_whole(document):
        yield Unchecked("deployments", Message.of("unchecked.divisible").text())
    if document["bound"] is not None:
        yield Unchecked("bound", Message.of("unchecked.bound").text())
    if "simplicity" in document:
        searched = Message.of("unchecked.searched").text()
        yield from (Unchecked(f"simplicity.{name}", searched) for name in ("best", "fewest", "ladder"))
    if "looser" in document:
        yield Unchecked("looser[].steps[].times", Message.of("unchecked.unused_points").text())
        yield Unchecked("looser[].rate_per_chip", Message.of("unchecked.best_point").text())
        yield Unchecked("looser[].share", Message.of("unchecked.share_of_work").text())
    if "confidence_gain" in document:
        yield from (
            Unchecked(f"confidence_gain.{name}", Message.of("unchecked.plans_not_chosen").text())
            for name in ("plans", "kept_before", "value_before")
        )
    if "bound_divisible" in document:
        yield Unchecked("bound_divisible", Message.of("unchecked.divisible_bound").text())
    if document.get("adaptation"):
        yield from _of_adaptation(document)
    values = Message.of("unchecked.values").text()
    yield from (
        Unchecked(f"limits[].{name}", values)
        for name in ("marginal_value", "marginal_value_divisible", "marginal_unit")
    )
    yield from (
        Unchecked(f"limits[].{name}", Message.of("unchecked.words_on_value").text())
        for name in ("note", "note_message")
    )
    if not document["runner_up"]:
        yield Unchecked("runner_up", Message.of("unchecked.none_stated").text())
    for name in ("margin", "words", "words_message"):
        yield Unchecked(f"runner_up[].{name}", Message.of("unchecked.same_programs").text())
    yield Unchecked("runner_up[].system", Message.of("unchecked.no_other_system").text())
    yield Unchecked("runner_up[].how", Message.of("unchecked.no_other_way").text())
    if not any("memory_bytes" in pool for _, pool in pools_of(document)):
        yield Unchecked("workloads[].points[].pools[].memory_bytes", Message.of("unchecked.not_stated_before").text())
    if document.get("quality"):
        yield Unchecked("quality[].runner_up", Message.of("unchecked.another_search").text())
    if document.get("postponed"):
        for name in ("deadline_s", "waits_for", "first"):
            yield Unchecked(
                f"postponed[].{name}",
                Message.of("unchecked.waiting_jobs").text(),
            )
    if "dispatch" in document and document["dispatch"] is None:
        yield Unchecked("dispatch", Message.of("unchecked.time_was_up").text())
    if document.get("dispatch"):
        for name in ("slots", "cost", "carbon_kg", "unmet", "unfinished", "left_out", "seconds"):
            yield Unchecked(
                f"dispatch.{name}",
                Message.of("unchecked.dispatch").text(),
            )
    if document.get("lines"):
        yield Unchecked("lines[].busiest_slot", Message.of("unchecked.same_peak").text())
    if any("session" in workload for workload in document["workloads"]):
        yield Unchecked("workloads[].session.slot", Message.of("unchecked.as_many_calls").text())
    if "flopwatt" not in document["versions"]:
        yield Unchecked("workloads[].utilisation", Message.of("unchecked.defined_otherwise").text())
    if document.get("confidence"):
        jobs = {w["name"] for w in document["spec"]["workloads"] if w.get("kind") == "training"}
        yield from _of_confidence(document["confidence"], jobs)
    if document.get("robustness"):
        yield from _of_robustness()


def _of_confidence(found: Mapping[str, Any], jobs: set[str]) -> Iterator[Unchecked]:
    yield Unchecked("confidence.open", Message.of("unchecked.long_scenarios").text())
    yield Unchecked("confidence.breaks_first.promise", Message.of("unchecked.largest_error").text())
    yield Unchecked("confidence.upgrade", Message.of("unchecked.kinds_and_shares").text())
    if found.get("hired"):
        yield Unchecked("confidence.hired.cost", Message.of("unchecked.hired").text())
        yield Unchecked("confidence.hired.systems", Message.of("unchecked.hired").text())
    elif found["kept"] < PRICED_SHARE:  # whether enough scenarios can be kept by hiring, so that the rent is stated
        yield Unchecked("confidence.hired", Message.of("unchecked.hired").text())
    priced = {row["workload"] for row in found.get("late_jobs", ())}
    if "late_jobs" not in found or any(found["workloads"].get(job, 1.0) < PRICED_SHARE for job in jobs - priced):
        yield Unchecked("confidence.late_jobs", Message.of("unchecked.late_jobs").text())
    if found["left_out"] or found["open"]:
        for name in ("kept", "workloads", "breaks_first"):
            yield Unchecked(f"confidence.{name}", Message.of("unchecked.not_redispatched").text())


def _of_robustness() -> Iterator[Unchecked]:
    for name in ("sampled", "nominal", "scenarios_in_program"):
        yield Unchecked(f"robustness.{name}", Message.of("unchecked.robust_fleet_fresh").text())
    for name in ("kept", "budget", "workloads", "mean_undone", "cost"):
        yield Unchecked(
            f"robustness.fresh.{name}",
            Message.of("unchecked.within_two_thousandths").text(),
        )
    yield Unchecked("robustness.prices[].amount", Message.of("unchecked.ten_thousandth").text())
    for name in ("low", "typical", "high", "unit"):
        yield Unchecked(f"robustness.prices[].{name}", Message.of("unchecked.as_stated").text())
    yield Unchecked("robustness.levels", Message.of("unchecked.shares_of_factors").text())
    for name in ("batch", "extra_power_w", "memory_bytes"):
        yield Unchecked(f"robustness.standing_by[].pools[].{name}", Message.of("unchecked.layouts_not_run").text())
    for name in ("power_cap", "capacity"):
        yield Unchecked(f"robustness.standing_by[].{name}", Message.of("unchecked.layouts_not_run").text())


def _without_answer(document: Mapping[str, Any], proven: bool) -> Iterator[Unchecked]:
    if document["status"] == "infeasible" and not proven:
        yield Unchecked("status", Message.of("unchecked.not_proven_again").text())
    elif not proven:
        yield Unchecked("status", Message.of("unchecked.ended_without_plan").text())
    if "reasons" in document:
        yield Unchecked("reasons", Message.of("unchecked.reasons_of_no_plan").text())
    if document["diagnosis"] is not None:
        for name in ("conflict_of", "conflict", "repair", "repair_checked"):
            yield Unchecked(
                f"diagnosis.{name}",
                Message.of("unchecked.conflict_and_repair").text(),
            )
        if "reach" in document["diagnosis"]:
            yield Unchecked(
                "diagnosis.reach",
                Message.of("unchecked.most_of_demand").text(),
            )
    if document.get("robustness"):
        yield Unchecked("robustness", Message.of("unchecked.robust_fleet").text())
