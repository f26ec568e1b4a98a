"""Check the record of a plan: its name, the figures and assumptions that it was made with, and how it says that it was solved.

With the catalog at hand the figures come from the resolved spec. Rows are written here a second time, without
`planner.interpret.framing`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from catalog.units import is_money
from planner.facts.later_steps import BY_CODE
from planner.messages import BESIDE, Message, with_codes
from planner.problem.facts import ResolvedSpec
from planner.verify.checked_plan import CheckedPlan
from planner.verify.claims.unchecked import pools_of, release_of
from planner.verify.findings import Report
from planner.version import RELEASE

ENDED_BY = ("gap", "time", "memory", "nodes", "search")
REASON_CODE = f"reason{BESIDE}"
_Notes = dict[tuple[str, str], list[dict[str, Any]]]  # by place and code
SHARE_TOL = 1e-9  # difference in the share of an assumption: sums of many lines


def check_record(report: Report, problem: ResolvedSpec, document: Mapping[str, Any], same_figures: bool) -> None:
    """Compare what a plan states about itself with the spec and, where it is the same, with the catalog."""
    report.equal("name", document["name"], problem.spec.name)
    report.equal("objective.unit", document["objective"]["unit"], _unit(problem))
    report.equal("objective.sense", document["objective"]["sense"], "max" if problem.spec.objective.maximise else "min")
    if not release_of(document):
        report.say("versions", "verify.release_missing")
    if same_figures and document["objective"]["value"] is not None:
        _check_provenance(report, problem, document["provenance"])
    if same_figures and release_of(document) == RELEASE:
        check_notes(report, problem, document)
    _check_solver(report, problem, document)
    stated = {path: "memory_bytes" in pool for path, pool in pools_of(document)}
    for path in stated if any(stated.values()) else ():
        if not stated[path]:
            report.say(f"{path}.memory_bytes", "verify.stated_by_other_pools")
    if document["diagnosis"] is not None and document["objective"]["value"] is not None:
        report.say("diagnosis", "verify.only_if_infeasible")
    if "reasons" in document and document["objective"]["value"] is not None:
        report.say("reasons", "verify.only_without_plan")
    known = {name for workload in (*problem.serving, *problem.training) for name in (workload.name, workload.asked)}
    for name in document["dropped"]:
        if name not in known and not name.startswith("("):  # counts in brackets are of systems and networks
            report.say(f"dropped.{name}", "verify.not_a_workload")
    if "coverage" in document:
        _check_coverage(report, document)


def _check_coverage(report: Report, document: Mapping[str, Any]) -> None:
    """Add up the candidates left out without proof: by rule from the counts of all workloads, and in all."""
    found = document["coverage"]
    counts = Counter[str]()
    for reasons in document["dropped"].values():
        counts.update(reasons)
    for i, row in enumerate(found["reasons"]):
        report.equal(f"coverage.reasons[{i}].count", row["count"], counts[row["reason"]])
    report.equal("coverage.left_out", found["left_out"], sum(row["count"] for row in found["reasons"]))


def _unit(problem: ResolvedSpec) -> str:
    asked = problem.spec.objective
    if asked.maximise is not None:
        return "x demand"
    return "kg" if asked.minimise == "carbon" else problem.spec.currency


def _check_provenance(report: Report, problem: ResolvedSpec, stated: Sequence[Mapping[str, Any]]) -> None:
    """Compare every figure, and its source, with the catalog."""
    computed: dict[str, dict[str, Any]] = {}
    for citation in problem.citations:
        figure = citation.figure
        computed[citation.path] = {
            "path": citation.path,
            "value": list(figure.value) if isinstance(figure.value, tuple) else figure.value,
            "unit": figure.unit,
            "source": list(figure.source),
            "date": figure.date,
            "confidence": figure.confidence,
            "kind": figure.kind,
        }
        for side, bound in (("low", figure.low), ("high", figure.high)):
            if bound is not None and is_money(figure.unit):
                computed[citation.path][side] = bound
    _check_rows(report, "provenance", stated, computed)


def check_notes(report: Report, problem: ResolvedSpec, document: Mapping[str, Any]) -> None:
    """Compare the notes on the spec, by place, code, arguments and source, with the notes of the spec resolved again; notes of one place and code in order.

    Texts are compared where the plan is of this release, whose words are known.
    A note on a step that was left out belongs to a plan without the section of that step.
    """
    computed: _Notes = {}
    stated: _Notes = {}
    worded = release_of(document) == RELEASE
    for fact in problem.notes:
        if not fact.refuses:
            told = {"arguments": fact.message.coded()["arguments"], "source": fact.source}
            told |= {"text": fact.message.text()} if worded else {}
            computed.setdefault((fact.path, fact.message.code), []).append(told)
    for row in document.get("notes", ()):
        told = {"arguments": row["arguments"], "source": row["source"]}
        told |= {"text": row["text"]} if worded else {}
        stated.setdefault((row["path"], row["code"]), []).append(told)
    if any(row in rows[:i] for rows in stated.values() for i, row in enumerate(rows)):
        report.say("notes", "verify.row_twice")
    for path, code in [key for key in stated if key[1] in BY_CODE]:
        place, section = BY_CODE[code]
        told = {"arguments": {}, "source": ""} | ({"text": Message.of(code).text()} if worded else {})
        if stated.pop((path, code)) != [told] or path != place or section in document:
            report.say(f"notes {path}", "verify.note_against_plan", note=code)
    for path, code in sorted(stated.keys() | computed.keys()):
        found, known = stated.get((path, code), []), computed.get((path, code), [])
        if len(found) != len(known):
            missing = len(found) < len(known)
            report.say(f"notes {path}", "verify.note_missing" if missing else "verify.note_not_true", note=code)
        for given, right in zip(found, known):
            report.equal(f"notes {path} {code}", given, right)


def check_assumptions(plan: CheckedPlan) -> None:
    """Compare every assumption with the resolved spec, and its share of the objective with the plan's own lines."""
    if not plan.same_figures:
        return
    asked = plan.problem.spec.objective
    lines = plan.sums.carbon if asked.minimise == "carbon" else plan.sums.lines
    total, computed = sum(lines.values()), {}
    for assumption in plan.problem.assumptions:
        scoped = [line for line in lines if any(_covers(pattern, line) for pattern in assumption.scope)]
        row = {
            "path": assumption.path,
            "value": assumption.value,
            "unit": assumption.unit,
            "reason": assumption.reason,
            "share": sum(lines[line] for line in scoped) / total if assumption.scope and total else None,
        }
        computed[assumption.path] = with_codes(row, "reason")
    stated = [_coded_alike(row, computed.get(row["path"], {}), plan.document) for row in plan.document["assumptions"]]
    _check_rows(plan, "assumptions", stated, computed)


def _coded_alike(row: Mapping[str, Any], computed: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a plan to compare: of another release without its reason, of releases up to 0.2 with the text of the reason alone."""
    other = release_of(document) != RELEASE
    taken = ("reason", REASON_CODE) if other else (REASON_CODE,) if REASON_CODE not in row else ()
    kept = {key: value for key, value in row.items() if key not in taken}
    return {**kept, **{key: computed[key] for key in taken if key in computed}}


def _covers(pattern: tuple[str, str, str], line: tuple[str, str, str, str]) -> bool:
    component, site, system = pattern
    return component in ("*", line[0]) and site in ("*", line[1]) and system in ("*", line[2])


def _check_rows(
    report: Report, table: str, stated: Sequence[Mapping[str, Any]], computed: Mapping[str, Mapping[str, Any]]
) -> None:
    """Compare rows by their paths."""
    by_path = {row["path"]: row for row in stated}
    for path in sorted(by_path.keys() - computed.keys()):
        report.say(f"{table} {path}", "verify.unused_figure")
    for path in sorted(computed.keys() - by_path.keys()):
        report.say(f"{table} {path}", "verify.missing")
    if len(by_path) < len(stated):
        report.say(table, "verify.path_twice")
    for path in sorted(by_path.keys() & computed.keys()):
        compared = Report()
        compared.equal("", by_path[path], computed[path], SHARE_TOL)
        for found in compared.found:
            report.say(f"{table} {path}", "verify.part_of_row", part=found.path.removeprefix("."), found=found.message)


def _check_solver(report: Report, problem: ResolvedSpec, document: Mapping[str, Any]) -> None:
    """Compare how a plan says that it was solved with what the spec asks for, and with its status."""
    said, asked = document["solver"], problem.spec.solver
    if document["objective"]["value"] is not None or said:
        stated = {"backend": asked.backend, "asked_gap": asked.gap, "seed": asked.seed}
        report.equal("solver", {name: said.get(name) for name in stated}, stated)
    for name in ("rows", "columns", "integers"):
        if said and not (type(said.get(name)) is int and said[name] >= 0):
            report.say(f"solver.{name}", "verify.count_expected", given=repr(said.get(name)))
    ended, repeatable = said.get("ended_by"), said.get("repeatable")
    if ended is None and repeatable is None:  # releases up to 0.2 stated neither
        return
    if ended not in ENDED_BY or (ended == "gap") != (document["status"] != "limit"):
        report.say(
            "solver.ended_by", "verify.ending_against_status", given=repr(ended), status=repr(document["status"])
        )
    if ended == "nodes" and asked.node_limit is None:
        report.say("solver.ended_by", "verify.no_limit_on_nodes")
    cut = ended in ("time", "memory") or "bound_divisible" in document
    if type(repeatable) is not bool or (repeatable and cut):  # a step may have ended by time in a search that did not
        report.say("solver.repeatable", "verify.repeatable_against_ending", given=repr(repeatable))
