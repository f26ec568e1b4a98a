"""The re-check of quality floors: who answers, from the plan's own routes, and how good that is by the scores of its spec."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from planner.problem.facts import Problem, QualityFacts
from planner.problem.quality import EACH, HOUR, NONE, settled
from planner.verify.findings import TOLERANCE, Report


def as_chosen(problem: Problem, document: Mapping[str, Any]) -> Problem:
    """The problem with the architectures that the plan says it uses. Raises KeyError or ValueError for others than those of its spec."""
    if not problem.quality or document["objective"]["value"] is None:
        return problem
    chosen: dict[str, set[str]] = {
        row["workload"]: {each["architecture"] for each in row["architectures"] if each["name"] is not None}
        for row in document["quality"]
    }
    for facts in problem.quality:
        if not chosen[facts.workload] or not chosen[facts.workload] <= set(facts.members):
            raise ValueError(
                f"quality: {facts.workload} runs on one or several of {', '.join(facts.members)}, not on {', '.join(map(str, chosen[facts.workload])) or 'none'}"
            )
    return settled(problem, chosen)


class QualityCheck:
    """`problem`: with the architectures that the plan uses; findings go to `report`."""

    def __init__(self, problem: Problem, document: Mapping[str, Any], report: Report):
        self.problem, self.document, self.report = problem, document, report

    def run(self) -> None:
        seconds, requests = self.problem.calendar.seconds, defaultdict(float)
        by_hour: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        length = {workload.name: workload.spec.lengths.output for workload in self.problem.serving}
        for row in self.document["routes"]:
            requests[row["workload"]] += row["tokens_per_s"] / length[row["workload"]] * float(seconds[row["slot"]])
            by_hour[row["workload"]][row["slot"]] += row["tokens_per_s"] / length[row["workload"]]
        stated = {row["workload"]: row for row in self.document["quality"]}
        if set(stated) != {facts.workload for facts in self.problem.quality} or len(stated) != len(
            self.document["quality"]
        ):
            self.report.say("quality", "must have one row for each workload with a quality floor")
            return
        floored = {
            name: {"of": facts.workload, "architecture": architecture}
            for facts in self.problem.quality
            for architecture, name in facts.members.items()
        }
        for w, row in enumerate(self.document["workloads"]):
            self.report.equal(
                f"workloads[{w}]",
                {key: row[key] for key in ("of", "architecture") if key in row},
                floored.get(row["name"], {}),
            )
        for facts in self.problem.quality:
            self._workload(facts, requests, by_hour, stated[facts.workload])

    def _workload(
        self,
        facts: QualityFacts,
        requests: Mapping[str, float],
        by_hour: Mapping[str, Mapping[int, float]],
        row: Mapping[str, Any],
    ) -> None:
        path, total = f"quality {facts.workload}", sum(requests[name] for name in facts.members.values())
        share = {
            architecture: requests[name] / total if total else 1.0 / len(facts.members)
            for architecture, name in facts.members.items()
        }
        reached = sum(facts.scores[architecture] * part for architecture, part in share.items())
        rates = {architecture: by_hour[name] for architecture, name in facts.members.items()}
        hours = [
            sum(facts.scores[a] * rate.get(t, 0.0) for a, rate in rates.items()) / asked
            for t in range(self.problem.calendar.slots)
            if (asked := sum(rate.get(t, 0.0) for rate in rates.values()))
        ]
        lowest_hour = min(hours, default=min(facts.scores[architecture] for architecture in facts.members))
        computed = {
            "workload": facts.workload, "floor": facts.least, "source": facts.source, "mix": facts.mix, "reached": reached, "lowest_hour": lowest_hour,
            "architectures": [
                {"architecture": architecture, "quality": score, "share": share.get(architecture, 0.0), "name": facts.members.get(architecture)}
                for architecture, score in facts.scores.items()
            ],
        }  # fmt: skip
        self.report.equal(path, {key: row[key] for key in computed}, computed)
        if facts.mix == NONE and len(facts.members) > 1:
            self.report.say(path, f"{len(facts.members)} architectures answer, the spec allows one")
        each = min(facts.scores[architecture] for architecture in facts.members)
        lowest = each if facts.mix in (NONE, EACH) else lowest_hour if facts.mix == HOUR else reached
        if lowest < facts.least - TOLERANCE * abs(facts.least):
            self.report.say(path, f"a quality of {lowest:.9g} is below the floor of {facts.least:.9g}")
        if row["runner_up"] is not None:
            self._runner_up(f"{path}.runner_up", facts, row["runner_up"])

    def _runner_up(self, path: str, facts: QualityFacts, row: Mapping[str, Any]) -> None:
        """Its cost is a claim of the plan's; that it could be and is no better than what the plan proves is checked."""
        objective, bound = self.document["objective"], self.document["bound"]
        if row["without"] not in facts.members or not set(row["architectures"]) <= set(facts.scores) - {row["without"]}:
            self.report.say(path, "must go without an architecture that answers, on others of the spec")
        if row["value"] is None:
            return
        self.report.equal(f"{path}.difference", row["difference"], row["value"] - objective["value"])
        better = row["value"] - bound if objective["sense"] == "max" else bound - row["value"]
        if better > TOLERANCE * abs(bound):
            self.report.say(path, f"says {row['value']!r}, better than the bound of the plan")
