"""The work of one visitor: the scenario at hand, those kept, and their plans. No Streamlit here."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from planner.dashboard import answers, sources
from planner.dashboard.state import store
from planner.dashboard.state.digest import digest
from planner.dashboard.state.scenario import UPLOAD, Scenario
from planner.dashboard.workers.solving import Job
from planner.errors import Problem, SpecError
from planner.plan import Plan

KEPT_PLANS = 8
MOST_SAVED = 12


@dataclass(slots=True)
class Shown:
    """A plan on the page, with its files, findings and what changed."""

    plan: Plan
    files: tuple[answers.Download, ...]
    findings: tuple[str, ...] = ()
    stored: bool = False
    drawn: dict[Any, dict[str, Any] | None] = field(default_factory=dict, compare=False)
    """Charts that were written, in the language of Vega-Lite."""
    sites: dict[str, Shown] = field(default_factory=dict, compare=False)
    """The same plan at single sites."""

    def at_site(self, site: str) -> Shown:
        """Return the plan at one site."""
        from planner.dashboard import one_site  # loads Altair, which the main figures need none of

        if site not in self.sites:
            self.sites[site] = Shown(one_site.at_site(self.plan, site), self.files, self.findings, self.stored)
        return self.sites[site]


@dataclass(slots=True)
class Work:
    """What one visitor works on; `id` names the file in which it is kept."""

    scenario: Scenario
    id: str = field(default_factory=store.new_id)
    by_base: dict[str, Scenario] = field(default_factory=dict)
    """The last scenario of every base, so that a switch of examples loses no edit."""
    saved: list[Scenario] = field(default_factory=list)
    """Named scenarios, to compare."""
    plans: dict[str, Shown] = field(default_factory=dict)
    job: Job | None = None
    problems: tuple[Problem, ...] = ()
    """Of the last change that was refused."""
    trace: str = ""
    kept: bool = True
    """Whether the work could be written."""

    def __post_init__(self) -> None:
        self.by_base.setdefault(self.scenario.origin, self.scenario)

    def choose(self, base: str) -> None:
        """Turn to a base as it was left."""
        self.turn_to(self.by_base.get(base) or Scenario(base))

    def turn_to(self, scenario: Scenario) -> None:
        """Make a scenario the one at hand."""
        self.scenario, self.problems, self.trace = scenario, (), ""
        self.by_base[scenario.origin] = scenario
        self.save()

    def shown(self) -> Shown | None:
        """Return the plan of the scenario at hand, if it is known. Raises SpecError for a scenario that is none."""
        return self.shown_of(self.scenario)

    def shown_of(self, scenario: Scenario) -> Shown | None:
        """Return the plan of a scenario, if it is known. Raises SpecError for a scenario that is none."""
        document = scenario.document()
        key = digest(document)
        if key not in self.plans and scenario.base == sources.MAIN and not scenario.edits:
            stored = _stored()
            if sources.canonical(stored.plan["spec"]) == sources.canonical(document):
                return stored
        return self.plans.get(key)

    def keep(self, document: dict[str, Any], plan: Plan, findings: tuple[str, ...]) -> None:
        """Keep the plan of a spec, and drop the oldest beyond `KEPT_PLANS`."""
        key = digest(document)
        self.plans.pop(key, None)
        files = answers.downloads(plan, self.scenario.base)
        self.plans[key] = Shown(plan, files, findings)
        while len(self.plans) > KEPT_PLANS:
            self.plans.pop(next(iter(self.plans)))
        self.save()

    def start(self, scenario: Scenario) -> None:
        """Begin to solve a scenario; it becomes the one at hand. Problems of the server are kept as `problems`."""
        self.turn_to(scenario)
        try:
            self.job = Job(scenario.document())
        except SpecError as error:  # the server is busy, or allows less time
            self.problems = tuple(error.problems)

    def verify(self, document: dict[str, Any], plan: Plan) -> None:
        """Begin to verify a plan that was uploaded; it is shown once that has ended."""
        try:
            self.job = Job(document, plan)
        except SpecError as error:
            self.problems = tuple(error.problems)

    # -- kept between visits ------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write the work under its id."""
        self.kept = store.save(
            self.id,
            {
                "scenario": self.scenario.to_json(),
                "by_base": [scenario.to_json() for scenario in self.by_base.values()],
                "saved": [scenario.to_json() for scenario in self.saved],
                "plans": [
                    {"key": key, "plan": shown.plan.document, "findings": shown.findings}
                    for key, shown in self.plans.items()
                ],
            },
        )


@cache
def _stored() -> Shown:
    """Return the stored plan of the main example; all visitors share it."""
    plan = sources.stored_plan()
    return Shown(plan, answers.downloads(plan, sources.MAIN), stored=True)


def opened(query: dict[str, list[str]]) -> Work:
    """Begin the work that an address names: of its id, with its base and edits at hand. The id of the work is new in any case.

    Raises no error: what the address states wrongly becomes `problems`.
    """
    found = store.load(next(iter(query.get("id", [])), ""))
    work = _read(found) if found else Work(Scenario(sources.MAIN))
    base, texts = next(iter(query.get("base", [])), ""), query.get("set", [])
    try:
        if base == UPLOAD and not found:
            Scenario(UPLOAD).base_document()
        elif base and base != UPLOAD and {"base": [base], "set": texts} != {"set": [], **work.scenario.address()}:
            work.scenario = Scenario.from_address(base, texts)
    except SpecError as error:
        work.problems = tuple(error.problems)
    work.by_base[work.scenario.origin] = work.scenario
    if found:
        work.save()  # the copy, so that the address with its id opens it again
    return work


def _read(document: dict[str, Any]) -> Work:
    work = Work(Scenario.from_json(document["scenario"]))
    for each in document["by_base"]:
        scenario = Scenario.from_json(each)
        work.by_base[scenario.origin] = scenario
    work.saved = [Scenario.from_json(each) for each in document["saved"]]
    for each in document["plans"]:
        plan = Plan(each["plan"])
        files = answers.downloads(plan, str(plan["name"]))
        work.plans[each["key"]] = Shown(plan, files, tuple(each["findings"]))
    return work
