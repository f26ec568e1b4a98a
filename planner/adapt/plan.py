"""Make the plan of a spec with an `adapt` block: the plan as predicted, with the section `adaptation` of what to sign and what to keep open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from catalog.units import DAY_S, YEAR_S
from planner.adapt.dates import Dates
from planner.adapt.deliveries import borders
from planner.adapt.model import AdaptModel, OptionKey, build_model, key_of
from planner.adapt.search import LEVEL, SAMPLE_LEAVES, Adapted, Question, money, searched
from planner.adapt.stated import commitments, demand_paths, groups, layouts
from planner.adapt.triggers import opened, row_of, tree_of, triggers
from planner.candidates.fleet_options import FleetOption, build_fleet_options
from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.adapt import Adaptation, DecisionDate, Delivery, Kept, Need, Signed, StatisticalGap, Values
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import seconds_from
from planner.problem.scenarios import price_ranges
from planner.resolve.price_steps import raised
from planner.scenarios.redispatch import DELIVERIES, left_out
from planner.solving.deadline import Deadline, options_of
from planner.solving.variants import resolved
from planner.spec.model import parse_spec
from planner.spec.requirements.adapt import Adapt
from planner.spec.robust import Robust
from planner.spec.workloads import Serving
from solvers.interface import Options
from solvers.stochastic.data import Aim
from solvers.stochastic.promise import SHARE_TOL
from solvers.stochastic.tree import TreeSolution

Document = dict[str, Any]
COUNT_TOL = 0.5
NEED_LEVELS = (0.1, 0.5, 0.9)  # shares of scenarios that need at most so many chips
PLAIN_SHARE = 0.5  # most of the time that the plan as predicted takes
MODELLED = (
    "preemption",
    DELIVERIES,
)  # jobs run on divisible systems at no cost of pauses, which the page of the block says; systems may come late


def adaptive_plan(
    document: Document,
    plain: Callable[[Document], Plan],
    *,
    overlays: Sequence[Path],
    progress: Callable[[str], None] | None,
    threads: int,
) -> Plan:
    """Plan as predicted by `plain`, and add what to decide when. Raises SpecError for what the block does not hold yet."""
    parsed = parse_spec(document)
    asked, deadline = parsed.adapt, Deadline.after(parsed.solver.time_limit)
    assert asked is not None
    without = {key: value for key, value in document.items() if key != "adapt"}
    cut, dates = at_dates(without, asked)
    problem = resolved(cut, overlays)
    if unmodelled := [name for name in left_out(problem) if name not in MODELLED]:
        names = ", ".join(Message.of(f"left_out.{name.replace(' ', '_')}").text() for name in unmodelled)
        raise SpecError([Issue("adapt", Message.of("adapt.not_modelled", names=names).text())])
    found = plain(_with_limit(without, PLAIN_SHARE * deadline.left_s))
    spec = {**_with_limit(found.document["spec"], None, document), "adapt": document["adapt"]}
    stated: Document = {**found.document, "spec": spec}
    if not found.has_answer:
        return Plan.of(stated)
    adapted = _searched(
        problem,
        dates,
        asked,
        found,
        progress or (lambda line: None),
        options_of(problem.spec, threads),
        deadline,
        overlays,
    )
    return Plan.of({**stated, "adaptation": None if adapted is None else _section(adapted, asked, found)})


def _with_limit(document: Document, seconds: float | None, origin: Document | None = None) -> Document:
    """Return a spec with another time limit, or with the block `solver` of its origin."""
    if seconds is not None:
        return {**document, "solver": {**document.get("solver", {}), "time_limit": f"{seconds:.6g} s"}}
    others = {key: value for key, value in document.items() if key != "solver"}
    return {**others, "solver": origin["solver"]} if origin and "solver" in origin else others


def at_dates(document: Document, asked: Adapt) -> tuple[Document, Dates]:
    """Cut the calendar of a spec at the dates of decision: a phase begins at each. Raises SpecError for a date out of order or of the horizon."""
    spec = parse_spec(document)
    later = asked.decided(spec.horizon.years)
    if spec.phases and asked.dates is None:
        moments = [seconds_from(spec.horizon.start, phase.start) for phase in spec.phases[1:]]
        knows = [(True, True, True)] * len(moments)
    else:
        moments = [seconds_from(spec.horizon.start, date.at) for date in later]
        knows = [
            ("performance" in each.knows, "demand" in each.knows, "prices" in each.knows or not asked.prices)
            for each in later
        ]
    _check(spec, moments)
    found = dict(document)
    times = [offer.delivery for offer in spec.offers or () if offer.delivery is not None]
    late = {at for at in borders(times) if at < spec.horizon.years * YEAR_S}
    found["phases"] = _cut_at(document.get("phases") or (), spec, {0.0, *moments, *late})
    unfolds = any(isinstance(w, Serving) and w.demand.forecast is not None for w in spec.workloads)
    performance, demand, prices = ((False, *(each[i] for each in knows)) for i in range(3))
    return found, Dates(
        (0.0, *moments), performance, demand, asked.delivery, asked.notice, unfolds or bool(late), prices
    )


def _cut_at(stated: Sequence[Document], spec: Any, moments: set[float]) -> list[Document]:
    """Return the phases of a spec, and further ones that begin at moments at which none of them begins."""
    found = {
        seconds_from(spec.horizon.start, phase.start): dict(each)
        for each, phase in zip(stated, spec.phases or (), strict=True)
    }
    names = {phase["name"] for phase in found.values()}
    for at in sorted(moments - found.keys()):
        name = f"date {len(names)}"
        while name in names:
            name += " again"
        names.add(name)
        found[at] = {"name": name, "start": f"{at / DAY_S:.10g} d"}
    return [found[at] for at in sorted(found)]


def _check(spec: Any, moments: Sequence[float]) -> None:
    """Check the dates. Raises SpecError."""
    issues = []
    ends = spec.horizon.years * YEAR_S
    for i, (before, at) in enumerate(zip((0.0, *moments), moments)):
        if at <= before or at >= ends:
            issues.append(Issue(f"adapt.dates[{i}].at", Message.of("adapt.date_out_of_order").text()))
    starts = {seconds_from(spec.horizon.start, phase.start) for phase in spec.phases or ()}
    if starts and not set(moments) <= starts:
        issues.append(Issue("adapt.dates", Message.of("adapt.dates_beside_phases").text()))
    if issues:
        raise SpecError(issues)


def _searched(
    problem: ResolvedSpec, dates: Dates, asked: Adapt, plan: Plan, say: Callable[[str], None], options: Options, deadline: Deadline,
    overlays: Sequence[Path],
) -> Adapted | None:  # fmt: skip
    """Build the program around a plan as predicted, and search it."""
    uncertain = Robust(demand=asked.demand, times=asked.times, prices=asked.prices)
    sampled = replace(problem, spec=problem.spec.model_copy(update={"robust": uncertain}))
    held = _held(problem, plan)
    lack, undone = _prices(problem, plan, asked.unserved)
    steps = raised(sampled, overlays, without_robust=True)
    model = build_model(problem, sampled, dates, lack, undone, list(held), steps)
    aim = Aim(tail=asked.tail if asked.risk == "cvar" else None)
    question = Question(asked.promise, aim, asked.scenarios, asked.seed)
    return searched(model, _planned(model, held), question, deadline, options, say)


def _held(problem: ResolvedSpec, plan: Plan) -> dict[OptionKey, float]:
    """Return the most systems that a plan holds of each fleet option that is not paid by use."""
    known = {way_of(option): key_of(option) for option in build_fleet_options(problem)[0]}
    found: dict[OptionKey, float] = {}
    for row in plan.document["fleet"]:
        key = known.get((row["site"], row["system"], row["how"], row["topology"], row["network_size"], row["offer"]))
        if key is not None:
            found[key] = max(found.get(key, 0.0), float(row["count"]))
    return found


def way_of(option: FleetOption) -> tuple[Any, ...]:
    """Identify a fleet option as a row of a plan's fleet does."""
    return option.site.region, option.system.name, option.offer.how, option.fabric, option.size, option.offer.path


def _planned(model: AdaptModel, held: Mapping[OptionKey, float]) -> np.ndarray:
    """Return the units of each holding, [U], of which the plan as predicted holds the systems from the start; nan for systems that come later."""
    first = np.array([model.form.holdings[u][1].first == 0 for u in model.holdings], dtype=bool)
    counts = [held.get(key_of(model.options[k]), 0.0) for k in model.data.option]
    return np.where(model.data.parent >= 0, 0.0, np.where(first, counts, np.nan))


def _prices(problem: ResolvedSpec, plan: Plan, times: float) -> tuple[dict[str, float], dict[str, float]]:
    """Price a request and a job that are left undone, in multiples of the plan's cost of one. Raises SpecError for work that costs the plan nothing."""
    calendar, paid = problem.calendar, {row["name"]: row["cost"] for row in plan.document["workloads"]}
    worth = calendar.discount * calendar.seconds
    names = [*(w.name for w in problem.serving), *(job.name for job in problem.training)]
    if free := [name for name in names if not paid[name] > 0]:
        raise SpecError([Issue("adapt.unserved", Message.of("adapt.costs_nothing", names=", ".join(free)).text())])
    lack = {}
    for w in problem.serving:
        requests = sum(float(rate @ worth) for rate in w.requests_by_slot(calendar))
        lack[w.name] = times * paid[w.name] / requests
    return lack, {job.name: times * paid[job.name] for job in problem.training}


# -- the section ------------------------------------------------------------------------------------------------------


def _section(found: Adapted, asked: Adapt, plan: Plan) -> Adaptation:
    """Write the section; costs have what the program does not hold added, so that they compare with the plan as predicted."""
    weight, dates = found.tree.leaves.weight, found.model.dates
    other = plan.totals["cost"] - found.predicted
    costs = money(found.first, found.factor)
    fresh = found.fresh
    fixed, tree = _fixed(found, asked.promise), tree_of(found, other)
    return {
        "promise": asked.promise, "risk": asked.risk,
        "dates": _dates(dates, asked),
        "prices": price_ranges(found.model.sampled), "deliveries": _deliveries(found),
        "sign": _signed(found), "kept": _kept(found), "open": opened(found), "triggers": triggers(tree), "tree": tree,
        "commitments": commitments(found), "layouts": layouts(found),
        "groups": groups(found.model, found.tree), "paths": demand_paths(found.tree),
        "leaves": found.tree.leaves.count, "slots": found.model.data.slots,
        "tree_cost": float(weight @ costs) + other, "tree_kept": float(weight @ found.first.kept), "unserved_factor": found.factor,
        "fresh": {
            "scenarios": len(fresh.kept), "seed": asked.seed + 1, "kept": float(fresh.kept.mean()), "cost": float(fresh.cost.mean()) + other,
            "cost_error": float(fresh.cost.std(ddof=1) / np.sqrt(len(fresh.cost))),
            "p10": float(np.quantile(fresh.cost, 0.1)) + other, "p90": float(np.quantile(fresh.cost, 0.9)) + other,
        },
        "fixed": {"cost": float(weight @ money(fixed, found.fixed_factor)) + other, "kept": float(weight @ fixed.kept)} if fixed is not None else None,
        "needs": _needs(found), "values": _values(found, fixed), "gap": _gap(found, other), "other_cost": other, "plain_cost": plan.totals["cost"],
    }  # fmt: skip


def _fixed(found: Adapted, promise: float) -> TreeSolution | None:
    """Return the plan that decides everything at the start; None where none that keeps the promise in the tree was found."""
    fixed = found.others["fixed"]
    kept = fixed.found and float(found.tree.leaves.weight @ fixed.kept) >= promise - SHARE_TOL
    return fixed if kept else None


def _values(found: Adapted, fixed: TreeSolution | None) -> Values:
    """Write what adapting and knowing more are worth: differences of programs over the same tree.

    Of adapting at the stated price of unserved demand; of all others at the price that keeps the promise, with divisible counts.
    """
    weight, first = found.tree.leaves.weight, found.first
    least = first.divisible

    def less(other: TreeSolution) -> float | None:
        return None if other.value is None or least is None else least - other.value

    plain = found.others["plain"]
    gain = (
        None
        if fixed is None
        else float(weight @ money(fixed, found.fixed_factor) - weight @ money(first, found.factor))
    )
    values: Values = {
        "adapting": gain,
        "stochastic": None if plain.value is None or first.value is None else plain.value - first.value,
        "perfect": less(found.others["perfect"]),
        "performance": less(found.others["performance"]),
        "demand": less(found.others["demand"]),
    }
    if "prices" in found.others:
        values["prices"] = less(found.others["prices"])
    if "deliveries" in found.others:
        values["deliveries"] = less(found.others["deliveries"])
    return values


def _gap(found: Adapted, other: float) -> StatisticalGap | None:
    """Write the interval of the distance to the best first stage, at the level of confidence of `search.LEVEL`."""
    gaps = found.gaps
    if len(gaps) < 2:
        return None
    mean = max(float(gaps.mean()), 0.0)
    bound = float(gaps.mean() + student.ppf(LEVEL, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps)))
    return {
        "samples": len(gaps), "scenarios": SAMPLE_LEAVES, "mean": mean, "bound": max(bound, mean), "level": LEVEL,
        "share": max(bound, mean) / max(abs(float(found.fresh.priced.mean()) + other), 1e-300),
    }  # fmt: skip


def _signed(found: Adapted) -> list[Signed]:
    """List the systems ordered at the start, the dearest first; not those that are there already."""
    model, rows = found.model, []
    for u in np.flatnonzero((model.data.stage == 0) & (model.data.parent < 0)):
        count, offer = found.first.held[u, 0], model.options[model.data.option[u]].offer
        if count > COUNT_TOL and offer.owned is None and offer.rented is None:
            term = model.form.holdings[model.holdings[u]][1]
            begins = float(model.problem.calendar.edges_s[term.first])
            row: Signed = {**row_of(model.options[model.data.option[u]]), "count": round(count), "from_s": begins}
            rows.append((-count * float(model.unit_cost()[u]), row))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _dates(dates: Dates, asked: Adapt) -> list[DecisionDate]:
    """Write the dates of decision, with prices where they are uncertain."""
    rows: list[DecisionDate] = [
        {"at_s": at, "performance": p, "demand": d}
        for at, p, d in zip(dates.at_s, dates.performance, dates.demand, strict=True)
    ]
    for row, known in zip(rows, dates.prices, strict=True) if asked.prices else ():
        row["prices"] = known
    return rows


def _deliveries(found: Adapted) -> list[Delivery]:
    """List the offers whose systems may come late, with the times of delivery that scenarios draw."""
    late = {offer.order: offer.lead_s for offer in found.model.problem.offers if offer.is_late}
    return [
        {"offer": path, "low_s": lead[0], "typical_s": lead[1], "high_s": lead[2]}
        for path, lead in late.items()
        if lead is not None
    ]


def _kept(found: Adapted) -> list[Kept]:
    """List the owned systems that stay at the start; the rest of each entry is sold."""
    model, rows = found.model, []
    for k, option in enumerate(model.options):
        there = (model.data.option == k) & (model.data.stage == 0) & model.data.covers[:, 0]
        count = round(float(found.first.held[there, 0].sum()))
        if option.offer.owned is not None and count:
            row: Kept = {**row_of(option), "count": count}
            rows.append(row)
    return rows


def _needs(found: Adapted) -> list[Need]:
    """Write the chips that fresh scenarios need in each window of the calendar, against the chips signed."""
    data, edges = found.model.data, found.model.problem.calendar.edges_s
    signed = np.where(data.stage == 0, found.first.held[:, 0] * data.size[data.option], 0.0)
    sign = np.where(data.parent < 0, 1.0, -1.0)[:, None]
    committed = signed @ np.where(data.covers, sign, 0.0)
    low, typical, high = np.quantile(found.fresh.needed, NEED_LEVELS, axis=0)
    return [
        {"from_s": float(edges[v]), "low": float(low[v]), "typical": float(typical[v]), "high": float(high[v]), "signed": float(committed[v])}
        for v in range(len(committed))
    ]  # fmt: skip
