"""Check quality floors: the share of each architecture, from the plan's own routes, and the quality reached by the scores of its spec."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from planner.messages import Message
from planner.problem.facts import QualityFacts, ResolvedSpec
from planner.problem.quality import EACH, HOUR, NONE
from planner.verify.findings import RELATIVE_TOL, Report

T = TypeVar("T")


def as_chosen(problem: ResolvedSpec, document: Mapping[str, Any]) -> ResolvedSpec:
    """Reduce the problem to the architectures that the plan uses; one alone takes the name of its workload.

    Written without `planner.problem.quality.settled`, by which the plan was reduced. Raises KeyError or ValueError for
    architectures that the spec does not offer.
    """
    if not problem.quality or document["objective"]["value"] is None:
        return problem
    chosen = {
        row["workload"]: {each["architecture"] for each in row["architectures"] if each["name"] is not None}
        for row in document["quality"]
    }
    quality, dropped, new_name = [], set(), {}
    for facts in problem.quality:
        used = chosen[facts.workload]
        if not used or not used <= set(facts.members):
            offered, found = ", ".join(facts.members), ", ".join(map(str, used)) or "none"
            raise ValueError(
                Message.of(
                    "verify.architectures_of", workload=facts.workload, offered=str(offered), found=str(found)
                ).text()
            )
        dropped |= {name for architecture, name in facts.members.items() if architecture not in used}
        if len(used) == 1:
            new_name[facts.members[next(iter(used))]] = facts.workload
        members = {
            architecture: new_name.get(name, name)
            for architecture, name in facts.members.items()
            if architecture in used
        }
        quality.append(replace(facts, members=members))
    return _reduced(replace(problem, quality=tuple(quality)), dropped, new_name)


def _reduced(problem: ResolvedSpec, dropped: Collection[str], new_name: Mapping[str, str]) -> ResolvedSpec:
    """Drop some serving workloads of a problem and rename others, wherever they are named."""

    def by_workload(found: Mapping[str, T]) -> dict[str, T]:
        return {new_name.get(name, name): value for name, value in found.items() if name not in dropped}

    def by_key(found: Mapping[Any, T]) -> dict[Any, T]:
        kept = ((key, value) for key, value in found.items() if key[0] not in dropped)
        return {(new_name.get(key[0], key[0]), *key[1:]): value for key, value in kept}

    serving = []
    for workload in problem.serving:
        if workload.name in dropped:
            continue
        name = new_name.get(workload.name, workload.name)
        if name != workload.name:
            spec = workload.spec.model_copy(update={"name": name})
            workload = replace(workload, spec=spec, part_of="")
        serving.append(workload)
    porting = []
    for facts in problem.porting:
        users = tuple(new_name.get(name, name) for name in facts.workloads if name not in dropped)
        if users:
            porting.append(replace(facts, workloads=users))
    lines = problem.lines
    if lines is not None:
        lines = replace(
            lines,
            requests=by_key(lines.requests),
            streams=by_key(lines.streams),
            hops=by_workload(lines.hops),
            rates=by_key(lines.rates),
        )
    return replace(
        problem,
        serving=tuple(serving),
        paths=by_key(problem.paths),
        trees=by_workload(problem.trees),
        porting=tuple(porting),
        lines=lines,
    )


class QualityCheck:
    """Check the section `quality`; `problem`: with the architectures that the plan uses."""

    def __init__(self, problem: ResolvedSpec, document: Mapping[str, Any], report: Report):
        self.problem, self.document, self.report = problem, document, report

    def run(self) -> None:
        """Check that each workload with a floor has a row, and that the rows hold."""
        seconds = self.problem.calendar.seconds
        requests: dict[str, float] = defaultdict(float)
        by_hour: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        length = {workload.name: workload.spec.lengths.output for workload in self.problem.serving}
        for row in self.document["routes"]:
            rate = row["tokens_per_s"] / length[row["workload"]]
            requests[row["workload"]] += rate * float(seconds[row["slot"]])
            by_hour[row["workload"]][row["slot"]] += rate
        rows = self.document["quality"]
        stated = {row["workload"]: row for row in rows}
        if set(stated) != {facts.workload for facts in self.problem.quality} or len(stated) != len(rows):
            self.report.say("quality", "verify.row_for_each_floor")
            return
        self._check_names()
        for facts in self.problem.quality:
            self._check_workload(facts, requests, by_hour, stated[facts.workload])

    def _check_names(self) -> None:
        """Check the architecture and the spec's workload that each workload of the plan states."""
        expected = {
            name: {"of": facts.workload, "architecture": architecture}
            for facts in self.problem.quality
            for architecture, name in facts.members.items()
        }
        for w, row in enumerate(self.document["workloads"]):
            stated = {key: row[key] for key in ("of", "architecture") if key in row}
            self.report.equal(f"workloads[{w}]", stated, expected.get(row["name"], {}))

    def _check_workload(
        self,
        facts: QualityFacts,
        requests: Mapping[str, float],
        by_hour: Mapping[str, Mapping[int, float]],
        row: Mapping[str, Any],
    ) -> None:
        """Compare the quality that a workload reaches with its row and its floor."""
        path, total = f"quality {facts.workload}", sum(requests[name] for name in facts.members.values())
        share = {
            architecture: requests[name] / total if total else 1.0 / len(facts.members)
            for architecture, name in facts.members.items()
        }
        reached = sum(facts.scores[architecture] * part for architecture, part in share.items())
        each = min(facts.scores[architecture] for architecture in facts.members)
        lowest_hour = min(self._by_hour(facts, by_hour), default=each)
        computed = {
            "workload": facts.workload,
            "floor": facts.least,
            "source": facts.source,
            "mix": facts.mix,
            "reached": reached,
            "lowest_hour": lowest_hour,
            "architectures": [
                {
                    "architecture": architecture,
                    "quality": score,
                    "share": share.get(architecture, 0.0),
                    "name": facts.members.get(architecture),
                }
                for architecture, score in facts.scores.items()
            ],
        }
        self.report.equal(path, {key: row[key] for key in computed}, computed)
        if facts.mix == NONE and len(facts.members) > 1:
            self.report.say(path, "verify.one_architecture", count=str(len(facts.members)))
        lowest = each if facts.mix in (NONE, EACH) else lowest_hour if facts.mix == HOUR else reached
        if lowest < facts.least - RELATIVE_TOL * abs(facts.least):
            self.report.say(path, "verify.below_floor", given=f"{lowest:.9g}", least=f"{facts.least:.9g}")
        if row["runner_up"] is not None:
            self._check_runner_up(f"{path}.runner_up", facts, row["runner_up"])

    def _by_hour(self, facts: QualityFacts, by_hour: Mapping[str, Mapping[int, float]]) -> list[float]:
        """Compute the mean quality of the requests of each slot that has any."""
        pairs = [(facts.scores[architecture], by_hour[name]) for architecture, name in facts.members.items()]
        return [
            sum(score * rate.get(t, 0.0) for score, rate in pairs) / asked
            for t in range(self.problem.calendar.slots)
            if (asked := sum(rate.get(t, 0.0) for _, rate in pairs))
        ]

    def _check_runner_up(self, path: str, facts: QualityFacts, row: Mapping[str, Any]) -> None:
        """Check that the runner-up is another choice and no better than the plan's bound. Its cost is not computed again."""
        objective, bound = self.document["objective"], self.document["bound"]
        others = set(facts.scores) - {row["without"]}
        if row["without"] not in facts.members or not set(row["architectures"]) <= others:
            self.report.say(path, "verify.runner_up_architectures")
        if row["value"] is None:
            return
        self.report.equal(f"{path}.difference", row["difference"], row["value"] - objective["value"])
        better = row["value"] - bound if objective["sense"] == "max" else bound - row["value"]
        if better > RELATIVE_TOL * abs(bound):
            self.report.say(path, "verify.better_than_bound", given=repr(row["value"]))
