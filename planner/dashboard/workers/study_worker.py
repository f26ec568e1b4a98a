"""Run a study of the spec on standard input, and answer in lines of JSON as findings come; a process started by `studying.Study`.

Input: {"kind": a key of `RUN`, "spec": ..., "options": {...}}, with {"plan": ...} for what a plan is asked about.
Lines: {"plan": ..., "key": ...} once for each plan that was found, {"found": the study so far}, and {"ended": true} or
{"problems": [[path, message], ...]} at the end.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.dashboard.file_names import file_name
from planner.dashboard.workers.worker import Send, serve
from planner.errors import Issue, SpecError

if TYPE_CHECKING:
    from planner.plan import Plan
    from planner.studies.alternatives import Alternatives
    from planner.studies.frontier import Frontier

TOTAL_SHARE = 0.9  # share of the longest time of a study, after which those that can stop themselves do
BEST = "best"  # key of the plan that alternatives are compared with
OVERLAY = "overlay"  # folder of what the fit writes
CONSTANTS = "constants/"  # begin of the paths of fitted constants
Asked = Mapping[str, Any]


def main() -> None:
    """Run the study within the memory of `bounds`, as long as the server lives."""
    from planner.dashboard.workers.bounds import MOST_BYTES

    serve(_answer, MOST_BYTES)


def _answer(send: Send) -> None:
    asked = json.load(sys.stdin)
    RUN[asked["kind"]](asked, _Findings(send))
    send(ended=True)


class _Findings:
    """Send what was found so far; each plan once."""

    def __init__(self, send: Send):
        self.send = send
        self._sent: set[str] = set()

    def plan(self, key: str, plan: Plan | None) -> None:
        """Send a plan under a key, unless it was sent before."""
        if plan is not None and key not in self._sent:
            self._sent.add(key)
            self.send(plan=plan.document, key=key)

    def take(self, study: Any) -> None:
        """Send a study without its plans."""
        self.send(found=study.document)


def _most_s() -> float:
    from planner.dashboard.workers.bounds import MOST_STUDY_S

    return TOTAL_SHARE * MOST_STUDY_S


def _frontier(asked: Asked, findings: _Findings) -> None:
    from planner.studies.break_even import break_even
    from planner.studies.frontier import AGAINST, frontier

    options = asked["options"]
    against, points = options["against"], options["points"]
    span = tuple(options["span"]) if options.get("span") else None
    if against not in AGAINST:
        findings.take(break_even(asked["spec"], against, span=span, points=points))
        return

    def take(found: Frontier) -> None:
        for point in found.points:
            findings.plan(repr(point.measure), point.plan)
        findings.take(found)

    take(frontier(asked["spec"], against, points, span=span, so_far=take))


def _sensitivity(asked: Asked, findings: _Findings) -> None:
    from planner.studies.sensitivity import sensitivity

    findings.take(sensitivity(asked["spec"], total_s=_most_s(), so_far=findings.take))


def _alternatives(asked: Asked, findings: _Findings) -> None:
    from planner.studies.alternatives import alternatives

    def take(study: Alternatives) -> None:
        findings.plan(BEST, study.best)
        for found in study.found:
            findings.plan(f"{found.kind}/{found.name}", found.plan)
        findings.take(study)

    take(alternatives(asked["spec"], within=asked["options"]["within"], total_s=_most_s(), so_far=take))


def _ladder(asked: Asked, findings: _Findings) -> None:
    from planner.studies.ladder import ladder

    options = asked["options"]
    findings.take(
        ladder(
            asked["spec"],
            options["levers"],
            workload=options.get("workload"),
            target=options.get("target"),
            so_far=findings.take,
        )
    )


def _sharing(asked: Asked, findings: _Findings) -> None:
    from planner.studies.sharing import sharing

    findings.take(sharing(asked["spec"], so_far=findings.take))


def _measure(asked: Asked, findings: _Findings) -> None:
    from planner.plan import Plan
    from planner.studies.measure import measure

    findings.take(measure(Plan(asked["plan"]), budget=asked["options"].get("budget")))


def _calibrate(asked: Asked, findings: _Findings) -> None:
    """Fit to measurements that were uploaded, by the catalog with the spec's own records but without a calibration of before."""
    from planner.calibration.fit import calibrate
    from planner.resolve.names import catalog_of
    from planner.spec.model import parse_spec

    overrides = {
        path: entry for path, entry in (asked["spec"].get("overrides") or {}).items() if not path.startswith(CONSTANTS)
    }
    catalog = catalog_of(parse_spec({**asked["spec"], "overrides": overrides}), (), {})
    with tempfile.TemporaryDirectory() as folder:
        paths: list[Path] = []
        for name, text in asked["options"]["files"]:
            paths.append(Path(folder, file_name(name, {OVERLAY, *(path.name for path in paths)})))
            paths[-1].write_text(text, encoding="utf-8")
        try:
            done = calibrate(paths, Path(folder, OVERLAY), catalog, asked["options"]["cells"])
        except SpecError as error:
            raise SpecError(
                [
                    Issue(each.path.replace(f"{folder}/", ""), each.message.replace(f"{folder}/", ""))
                    for each in error.problems
                ]
            ) from None
        overlays = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in done.written}
        notes = [{**fact.row(), "path": fact.path.replace(f"{folder}/", "")} for fact in done.notes]
    runs = [{"id": run.id, "understood": [message.row() for message in run.words]} for run in done.runs]
    compared = [row for run in done.runs for row in run.rows()]
    told = {"runs": runs, "compared": compared, "used_by": list(done.used_by), "notes": notes}
    findings.send(found={**told, "changes": list(done.figures), "overlays": overlays})


RUN: dict[str, Callable[[Asked, _Findings], None]] = {
    "frontier": _frontier,
    "sensitivity": _sensitivity,
    "alternatives": _alternatives,
    "ladder": _ladder,
    "sharing": _sharing,
    "measure": _measure,
    "calibrate": _calibrate,
}


if __name__ == "__main__":
    main()
