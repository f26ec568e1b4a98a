"""The work of one visitor: the scenario at hand, those kept, and their plans. No Streamlit here.

A work kept under an id belongs to one base: its spec where it was uploaded, scenarios saved under names, plans. The address of a page names
base, edits and id, so that it opens one scenario, and never what its owner did with other bases. Links for others have ids of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from planner.dashboard import sources
from planner.dashboard.state import store
from planner.dashboard.state.digest import digest
from planner.dashboard.state.scenario import BASE, KEPT, SET, UPLOAD, Scenario, not_kept
from planner.dashboard.state.workspace import Workspace
from planner.dashboard.workers.solving import Job
from planner.dashboard.workers.wire import coded, said
from planner.errors import Issue, SpecError
from planner.plan import Plan
from planner.plan.upgrade import upgraded

if TYPE_CHECKING:
    from planner.dashboard import answers

KEPT_PLANS = 8
MOST_SAVED = 60
"""Scenarios saved of one base."""
MOST_EDITS = 40
"""Lists of edits too long for an address that are kept of one base."""
ID = "id"  # key of the address
Query = Mapping[str, Sequence[str]]


@dataclass(slots=True)
class Shown:
    """A plan on the page, with its files, findings and what changed."""

    plan: Plan
    name: str
    """By which its files are called."""
    findings: tuple[str, ...] = ()
    stored: bool = False
    origin: str = ""
    """Of the base whose plan it is."""
    made_s: float = 0.0
    """When it was made [s since 1970]; 0 where that is not known."""
    drawn: dict[Any, dict[str, Any] | None] = field(default_factory=dict, compare=False)
    """Charts that were written, in the language of Vega-Lite."""
    sites: dict[str, Shown] = field(default_factory=dict, compare=False)
    """The same plan at single sites."""
    _files: tuple[answers.Download, ...] = field(default=(), compare=False)

    @property
    def files(self) -> tuple[answers.Download, ...]:
        """Return the plan as files; written when the page first offers them, after its main figures."""
        if not self._files:
            from planner.dashboard import answers  # loads the report, which the main figures need none of

            self._files = answers.downloads(self.plan, self.name)
        return self._files

    def at_site(self, site: str) -> Shown:
        """Return the plan at one site."""
        from planner.dashboard import one_site  # loads Altair, which the main figures need none of

        if site not in self.sites:
            part = one_site.at_site(self.plan, site)
            self.sites[site] = Shown(part, self.name, self.findings, self.stored, self.origin, self.made_s)
        return self.sites[site]


@dataclass(slots=True)
class Work:
    """What one visitor works on."""

    scenario: Scenario
    visitor: str = field(default_factory=store.new_id)
    """By which the processes of the server know the visitor; never shown."""
    by_base: dict[str, Scenario] = field(default_factory=dict)
    """The last scenario of every base, so that a switch of examples loses no edit."""
    saved: list[Scenario] = field(default_factory=list)
    """Named scenarios, to compare."""
    plans: dict[str, Shown] = field(default_factory=dict)
    job: Job | None = None
    asked: Scenario | None = None
    """The scenario of the job."""
    problems: tuple[Issue, ...] = ()
    """Of the last change that was refused."""
    trace: str = ""
    kept: bool = True
    """Whether the work could be written."""
    workspace: Workspace = field(default_factory=Workspace)
    """What the visitor's browser has kept."""
    _ids: dict[str, str] = field(default_factory=dict)
    """The id under which the work with a base is kept, by origin of the base."""
    _links: set[str] = field(default_factory=set)
    """Ids of links for others, which nobody writes."""
    _held: set[tuple[str, str]] = field(default_factory=set)
    """What is known to be kept: (id, key of a scenario that an address cannot hold)."""
    _shared: dict[tuple[str, bool], str] = field(default_factory=dict)
    """Links that were made, by scenario and whether its plan was known."""

    def __post_init__(self) -> None:
        self.by_base.setdefault(self.scenario.origin, self.scenario)

    @property
    def id(self) -> str:
        """Return the id under which the work with the base at hand is kept, or will be once there is something to keep."""
        return self._ids.setdefault(self.scenario.origin, store.new_id())

    @property
    def browser(self) -> str:
        """Return the secret of the visitor's browser."""
        return self.workspace.secret

    @property
    def uploads(self) -> dict[str, tuple[str, str]]:
        """Return the uploads of this browser at earlier visits: (id, name of the spec) by origin."""
        return self.workspace.uploads

    def choose(self, base: str) -> None:
        """Turn to a base as it was left, at an earlier visit too."""
        if base in self.by_base:
            self.turn_to(self.by_base[base])
        elif name := self.workspace.works.get(base, self.uploads.get(base, ("",))[0]):
            self.follow({BASE: [UPLOAD if base in self.uploads else base], ID: [name]})
            if not self.scenario.problems:
                self.turn_to(self._resumed(self.scenario))
        else:
            self.turn_to(self._resumed(Scenario(base)))

    def _resumed(self, scenario: Scenario) -> Scenario:
        """Return a base with the edits that the workspace noted of it, where they fit it still."""
        draft = replace(scenario.root, edits=self.workspace.drafts.get(scenario.origin, ()))
        try:
            draft.document()
        except SpecError:
            return scenario
        return draft

    def turn_to(self, scenario: Scenario) -> None:
        """Make a scenario the one at hand; what an address cannot hold of it is kept."""
        self.scenario, self.problems, self.trace = scenario, (), ""
        self.by_base[scenario.origin] = scenario
        if _needs(scenario) and (self.id, _needs(scenario)) not in self._held:
            self._write(scenario)
        self.workspace.note(scenario)

    def shown(self) -> Shown | None:
        """Return the plan of the scenario at hand, if it is known. Raises SpecError for a scenario that is none."""
        return self.shown_of(self.scenario)

    def shown_of(self, scenario: Scenario) -> Shown | None:
        """Return the plan of a scenario, if it is known. Raises SpecError for a scenario that is none."""
        document = scenario.document()
        key = digest(document)
        if key not in self.plans and not scenario.edits and scenario.base in sources.examples():
            stored = _stored(scenario.base)
            if stored and sources.canonical(stored.plan.document["spec"]) == sources.canonical(document):
                return stored
        return self.plans.get(key)

    def keep(
        self, document: dict[str, Any], plan: Plan, findings: tuple[str, ...], scenario: Scenario | None = None
    ) -> None:
        """Keep the plan of a scenario, of that at hand if none is given, and drop the oldest beyond `KEPT_PLANS`."""
        scenario = scenario or self.scenario
        key = digest(document)
        self.plans.pop(key, None)
        shown = Shown(plan, scenario.base, findings, origin=scenario.origin, made_s=time.time())
        self.plans[key] = shown
        while len(self.plans) > KEPT_PLANS:
            self.plans.pop(next(iter(self.plans)))
        row = _plan_row(key, shown)
        self._write(scenario, lambda there: there | {"plans": _with(there["plans"], row, "key", KEPT_PLANS)})

    def start(self, scenario: Scenario) -> None:
        """Begin to solve a scenario; it becomes the one at hand. Problems of the server are kept as `problems`."""
        self.turn_to(scenario)
        self._begin(scenario.document())

    def verify(self, document: dict[str, Any], plan: Plan) -> None:
        """Begin to verify a plan that was uploaded; it is shown once that has ended."""
        self._begin(document, plan)

    def _begin(self, document: dict[str, Any], plan: Plan | None = None) -> None:
        try:
            self.job, self.asked = Job(document, plan), self.scenario
        except SpecError as error:  # the server is busy, or allows less time
            self.problems = tuple(error.problems)

    # -- scenarios with names -----------------------------------------------------------------------------------------

    def save_as(self, name: str) -> None:
        """Save the scenario at hand under a name, in place of one that its base has of that name."""
        mine = replace(self.scenario, name=name)
        self.saved = [*(each for each in self.saved if not _is_named(each, mine)), mine]
        row = _saved_row(mine)
        self._write(mine, lambda there: there | {"saved": _with(there["saved"], row, "name", MOST_SAVED)})

    def remove(self, scenario: Scenario) -> None:
        """Remove a scenario that was saved."""
        self.saved = [each for each in self.saved if not _is_named(each, scenario)]
        self._write(
            scenario,
            lambda there: there | {"saved": [row for row in there["saved"] if row["name"] != scenario.name]},
        )

    # -- kept between visits ------------------------------------------------------------------------------------------

    def follow(self, query: Query) -> None:
        """Turn to what an address names, with the work kept under its id; an address that names nothing changes nothing.

        Writes nothing and raises no error: an address that leads nowhere becomes a scenario without a spec, which says why.
        """
        name, base = _first(query, ID), _first(query, BASE)
        if not (name or base):
            return
        found = store.load(name)
        if found is not None and ("root" not in found or base not in ("", found["root"]["base"])):
            name, found = "", None  # the name belongs to another base, or to no work
        try:
            scenario = _named(found, base, query)
        except SpecError as error:
            self.scenario, self.problems, self.trace = Scenario.of_nothing(error.problems), (), ""
            return
        if store.is_id(name):
            self._ids[scenario.origin] = name
        if found is not None:
            self._take(found, name, scenario.root)
        self.scenario, self.problems, self.trace = scenario, (), ""
        self.by_base[scenario.origin] = scenario

    def remember(self, browser: str) -> None:
        """Take the secret of the visitor's browser, and find its workspace."""
        self.workspace = Workspace.of(browser)

    def share(self) -> dict[str, list[str]]:
        """Return the parameters of an address for others: it opens the scenario at hand with its plan, as they are now, and nothing else."""
        scenario, shown = replace(self.scenario, name=""), self.shown()
        address = scenario.address()
        if not _needs(scenario) and (shown is None or shown.stored):
            return address
        known = (scenario.key, shown is not None)
        name = self._shared.get(known) or store.new_id()
        if known not in self._shared:
            plans = [_plan_row(digest(scenario.document()), shown)] if shown is not None else []
            self.kept = store.save(name, {**_document(scenario), "plans": plans, "link": True})
            if self.kept:
                self._shared[known] = name
        return {**address, ID: [name]}

    def _write(self, scenario: Scenario, change: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> None:
        """Write a change of the work kept with the base of a scenario, and the scenario where an address cannot hold it.

        What others wrote under the id meanwhile, such as another page of the same bookmark, stays.
        """
        name = self._ids.get(scenario.origin, "")
        there = store.load(name)
        if name in self._links or (there is not None and Scenario.from_json(there["root"]).origin != scenario.origin):
            name = ""  # the name belongs to somebody else or to another base: from now on there is a copy
        name = self._ids[scenario.origin] = name or store.new_id()

        def changed(there: dict[str, Any] | None) -> dict[str, Any]:
            document = change(self._all(scenario) if there is None else there)
            own = _document(scenario)["edits"]
            edits = {name: edit for name, edit in document["edits"].items() if name not in own} | own
            return document | {"edits": dict(list(edits.items())[-MOST_EDITS:])}

        self.kept = store.update(name, changed)
        if self.kept:
            self._held.add((name, _needs(scenario)))
            self.workspace.list_work(scenario, name)
            self.workspace.note(self.scenario)

    def _all(self, scenario: Scenario) -> dict[str, Any]:
        """Return what this work has with the base of a scenario."""
        origin = scenario.origin
        return {
            **_document(scenario),
            "saved": [_saved_row(each) for each in self.saved if each.origin == origin],
            "plans": [_plan_row(key, shown) for key, shown in self.plans.items() if shown.origin == origin],
        }

    def _take(self, found: dict[str, Any], name: str, root: Scenario) -> None:
        """Take over the work kept under an id."""
        if found.get("link"):
            self._links.add(name)
        self._held |= {(name, key) for key in ("", *found["edits"], _needs(root))}
        for row in found["saved"]:
            scenario = replace(root, edits=_edits(row["edits"]), name=row["name"])
            self.saved = [*(each for each in self.saved if not _is_named(each, scenario)), scenario]
        for row in map(said, found["plans"]):
            if row["key"] not in self.plans:
                plan = Plan.of(upgraded(row["plan"]))
                self.plans[row["key"]] = Shown(
                    plan,
                    str(plan.document["name"]),
                    tuple(row["findings"]),
                    origin=root.origin,
                    made_s=row.get("made_s", 0.0),
                )


def opened(query: Query) -> Work:
    """Begin the work that an address names; nothing is written."""
    work = Work(Scenario(sources.MAIN))
    work.follow(query)
    return work


def forked(work: Work, plan: Plan, base: str, edits: Sequence[tuple[str, Any]]) -> None:
    """Take a plan of others into a work: its spec becomes the scenario at hand, as edits of an example where it is one, and its plan is kept."""
    document, scenario = plan.document["spec"], Scenario.of_upload(plan.document["spec"])
    if base in sources.examples():
        example = Scenario(base, tuple(edits))
        with suppress(SpecError):  # the example may be another one in this release
            scenario = example if sources.canonical(example.document()) == sources.canonical(document) else scenario
    work.turn_to(scenario)
    work.keep(scenario.document(), plan, ())


@cache
def _stored(name: str) -> Shown | None:
    """Return the stored plan of an example; all visitors share it."""
    plan = sources.plan_of_example(name)
    return None if plan is None else Shown(plan, name, stored=True)


def _first(query: Query, key: str) -> str:
    return next(iter(query.get(key, ())), "")


def _named(found: dict[str, Any] | None, base: str, query: Query) -> Scenario:
    """Return the scenario that an address names, with the work kept under its id. Raises SpecError for one that leads nowhere."""
    if found is None and base in ("", UPLOAD):
        raise SpecError([not_kept()])
    root = Scenario.from_json(found["root"]) if found is not None else Scenario(base)
    if not (key := _first(query, KEPT)):
        return root.with_texts(query.get(SET, ()))
    if found is None or key not in found["edits"]:
        raise SpecError([not_kept()])
    return replace(root, edits=_edits(found["edits"][key]))


def _needs(scenario: Scenario) -> str:
    """Return the key of what has to be kept of a scenario because an address cannot hold it; empty for none."""
    if KEPT in scenario.address():
        return scenario.key
    return scenario.root.key if scenario.base == UPLOAD else ""


def _document(scenario: Scenario) -> dict[str, Any]:
    """Return the work kept with a base before anything was saved or solved."""
    edits = {scenario.key: list(map(list, scenario.edits))} if KEPT in scenario.address() else {}
    return {"root": scenario.root.to_json(), "edits": edits, "saved": [], "plans": []}


def _saved_row(scenario: Scenario) -> dict[str, Any]:
    return {"name": scenario.name, "edits": list(map(list, scenario.edits))}


def _plan_row(key: str, shown: Shown) -> dict[str, Any]:
    return coded({"key": key, "plan": shown.plan.document, "findings": shown.findings, "made_s": shown.made_s})


def _edits(rows: Sequence[Sequence[Any]]) -> tuple[tuple[str, Any], ...]:
    return tuple((path, value) for path, value in rows)


def _with(rows: Sequence[dict[str, Any]], row: dict[str, Any], by: str, most: int) -> list[dict[str, Any]]:
    """Add a row in place of one of its name, and drop the oldest beyond `most`."""
    return [*(each for each in rows if each[by] != row[by]), row][-most:]


def _is_named(scenario: Scenario, other: Scenario) -> bool:
    """Tell whether two saved scenarios of one base have one name."""
    return (scenario.origin, scenario.name) == (other.origin, other.name)
