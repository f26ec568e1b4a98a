"""List what the checks of a plan do not compute again, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.plan.shape import unknown_keys
from planner.version import __version__

NAMES = ("flopwatt", "tokenwatt")  # names of the program: release 0.1 had the second


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
    """Return the release that wrote a plan, as it states it; empty if it states none."""
    return next((document["versions"][name] for name in NAMES if name in document["versions"]), "")


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


def unchecked_parts(document: Mapping[str, Any], same_figures: bool, proven: bool = False) -> list[Unchecked]:
    """List the parts of a plan that the checks take as stated.

    `same_figures`: whether the plan was made with the catalog at hand. `proven`: whether a claimed infeasibility was proven again.
    """
    parts = [
        Unchecked("spec", "the question, against which all else is checked"),
        *_of_the_record(document, same_figures),
    ]
    if document["objective"]["value"] is None:
        parts += _without_answer(document, proven)
    else:
        parts += _of_the_search(document)
    parts += [Unchecked(path, "not known to this release") for path in unknown_keys(document)]
    return parts


def _of_the_record(document: Mapping[str, Any], same_figures: bool) -> Iterator[Unchecked]:
    yield Unchecked("versions", "what the plan was made with, as it states")
    if not same_figures:
        yield Unchecked("catalog_digest", "another catalog than the one at hand")
        yield Unchecked("provenance", "figures of that catalog: the plan is checked on them, and they on nothing")
        yield Unchecked("assumptions", "made with that catalog")
    elif release_of(document) != __version__:
        yield Unchecked("assumptions[].reason", f"words of release {release_of(document) or 'unknown'}")
    size = "a count from the program or of its search, which is not built again"
    yield from (Unchecked(f"solver.{name}", size) for name in ("rows", "columns", "integers", "ended_by", "repeatable"))
    for name in ("dropped", "dropped_message"):
        yield Unchecked(name, "counts of candidates, which are not searched again")


def _of_the_search(document: Mapping[str, Any]) -> Iterator[Unchecked]:
    """Yield what only another search, or another program, could confirm."""
    if not is_whole(document):
        yield Unchecked("deployments", "replicas are divisible: that whole ones fit the systems held")
    if document["bound"] is not None:
        yield Unchecked("bound", "that no plan can be better; it is compared with the value, the gap and the status")
    if "simplicity" in document:
        searched = "of a search that is not made again; the value is compared with that of the plan"
        yield from (Unchecked(f"simplicity.{name}", searched) for name in ("best", "fewest", "ladder[].value"))
    if "looser" in document:
        yield Unchecked(
            "looser[].steps[].times", "of operating points that the plan does not use, which are not evaluated again"
        )
        yield Unchecked("looser[].rate_per_chip", "of the best point of all candidates, which are not searched again")
        yield Unchecked("looser[].share", "it is the share of the work in the schedule")
    if "confidence_gain" in document:
        yield from (
            Unchecked(f"confidence_gain.{name}", "of plans that were not chosen, which are not in the document")
            for name in ("plans", "kept_before", "value_before")
        )
    if "bound_divisible" in document:
        yield Unchecked(
            "bound_divisible", "that no plan can be better; it is compared with the bound and the values of limits"
        )
    values = "from linear programs around the plan, which are not solved again; null and sign are checked"
    yield from (
        Unchecked(f"limits[].{name}", values)
        for name in ("marginal_value", "marginal_value_divisible", "marginal_unit")
    )
    yield from (Unchecked(f"limits[].{name}", "words on how a value was found") for name in ("note", "note_message"))
    if not document["runner_up"]:
        yield Unchecked("runner_up", "none is stated, as in plans of studies")
    for name in ("margin", "words", "words_message"):
        yield Unchecked(
            f"runner_up[].{name}", "from the same programs; that the system is offered and not in use is checked"
        )
    yield Unchecked("runner_up[].system", "that no other unused system comes closer")
    yield Unchecked("runner_up[].how", "that no other way to obtain it comes closer")
    if not any("memory_bytes" in pool for _, pool in pools_of(document)):
        yield Unchecked("workloads[].points[].pools[].memory_bytes", "not stated, as in plans up to release 0.2")
    if document.get("quality"):
        yield Unchecked("quality[].runner_up", "another search: only its parts are compared with each other")
    if document.get("postponed"):
        for name in ("deadline_s", "waits_for", "first"):
            yield Unchecked(
                f"postponed[].{name}",
                "from other programs: that the job could not be done sooner, beside what, and in what other order",
            )
    if "dispatch" in document and document["dispatch"] is None:
        yield Unchecked("dispatch", "that the time was up before the dispatch over all hours")
    if document.get("dispatch"):
        for name in ("slots", "cost", "carbon_kg", "unmet", "unfinished", "left_out", "seconds"):
            yield Unchecked(
                f"dispatch.{name}",
                "the dispatch over all hours is not run again; its difference from the cost is checked",
            )
    if document.get("lines"):
        yield Unchecked("lines[].busiest_slot", "of several slots with the same peak any is right")
    if any("session" in workload for workload in document["workloads"]):
        yield Unchecked("workloads[].session.slot", "of several slots with as many calls any is right")
    if "flopwatt" not in document["versions"]:
        yield Unchecked("workloads[].utilisation", "release 0.1 defined it otherwise")
    if document.get("confidence"):
        yield from _of_confidence(document["confidence"])
    if document.get("robustness"):
        yield from _of_robustness()


def _of_confidence(found: Mapping[str, Any]) -> Iterator[Unchecked]:
    yield Unchecked("confidence.open", "scenarios that would have taken long to settle")
    yield Unchecked("confidence.breaks_first.promise", "which error takes most of the capacity away")
    yield Unchecked(
        "confidence.surer", "other programs, which are not solved again; kinds of systems and shares are checked"
    )
    if found["left_out"] or found["open"]:
        for name in ("kept", "workloads", "breaks_first"):
            yield Unchecked(
                f"confidence.{name}", "not redispatched, as the scenarios leave something out; compared with each other"
            )


def _of_robustness() -> Iterator[Unchecked]:
    for name in ("sampled", "nominal", "scenarios_in_program"):
        yield Unchecked(f"robustness.{name}", "the search for a robust fleet is not run again; fresh scenarios are")
    for name in ("kept", "budget", "workloads", "mean_undone", "cost"):
        yield Unchecked(
            f"robustness.fresh.{name}",
            "compared to within 0.2 %: a solver on another machine may judge so many scenarios otherwise",
        )
    yield Unchecked("robustness.prices[].amount", "compared to within a ten-thousandth of the cost")
    for name in ("low", "typical", "high", "unit"):
        yield Unchecked(f"robustness.prices[].{name}", "as stated; the price itself is checked")
    yield Unchecked("robustness.levels", "the shares at which factors are shown")
    for name in ("batch", "extra_power_w", "memory_bytes"):
        yield Unchecked(f"robustness.standing_by[].pools[].{name}", "of layouts that the plan itself does not run")
    for name in ("power_cap", "capacity"):
        yield Unchecked(f"robustness.standing_by[].{name}", "of layouts that the plan itself does not run")


def _without_answer(document: Mapping[str, Any], proven: bool) -> Iterator[Unchecked]:
    if document["status"] == "infeasible" and not proven:
        yield Unchecked(
            "status", "that there is no plan was not proven again: chips at their peak rate could do the work"
        )
    elif not proven:
        yield Unchecked("status", "that the search ended without a plan")
    if "reasons" in document:
        yield Unchecked("reasons", "what a workload misses alone and what ended the search are not worked out again")
    if document["diagnosis"] is not None:
        for name in ("conflict_of", "conflict", "repair", "repair_checked"):
            yield Unchecked(
                f"diagnosis.{name}",
                "conflict and repair come from other programs, which are not solved again; paths are checked",
            )
        if "reach" in document["diagnosis"]:
            yield Unchecked(
                "diagnosis.reach",
                "the most of the demand that can be served comes from other programs, which are not solved again",
            )
    if document.get("robustness"):
        yield Unchecked("robustness", "the search for a robust fleet is not run again")
