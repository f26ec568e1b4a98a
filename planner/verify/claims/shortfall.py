"""Prove by a small program of its own that a spec has no plan: systems too few, or too little power, even at the peak rate of their chips.

A relaxation: chips reach their peak rate, nothing waits for memory or network, systems draw what they draw idle, every date, latency limit,
price and running cost is left out. What it cannot do no plan can; what it can do proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from models.arrays import Floats
from models.transformer.architecture import Architecture, parameter_counts
from planner.messages import Message
from planner.problem.facts import OfferFacts, ResolvedSpec, ServingFacts, SiteFacts, TrainingFacts, permitted
from planner.verify.fleet.options import meter_factor

FLOPS_PER_PARAMETER = 2.0  # FLOPs of a token passed forward
FLOPS_TO_TRAIN = 4.0  # per parameter and token at least: forward, and backward through frozen weights
INFEASIBLE = 2  # status of scipy.optimize.milp
TIME_LIMIT_S = 5.0
SAFETY = 1.0 + 1e-6  # demand is lowered by so much, against the rounding of the program

Way = tuple[SiteFacts, OfferFacts]


def shortfall(problem: ResolvedSpec) -> str | None:
    """Say what cannot be done on all systems that the spec offers; None where the relaxation proves nothing."""
    if problem.spec.objective.maximise is not None:
        return None
    ways = [(site, offer) for site in problem.sites for offer in problem.offers if _open(problem, site, offer)]
    serving: dict[str, list[ServingFacts]] = {}
    for workload in problem.serving:
        serving.setdefault(workload.asked, []).append(workload)
    work = {name: _work_by_slot(problem, members) for name, members in serving.items()}
    if work:
        busiest = int(np.argmax(sum(work.values())))
        if not _is_possible(problem, ways, {name: float(by_slot[busiest]) for name, by_slot in work.items()}, serving):
            return Message.of("verify.busiest_hour").text()
    for name, by_slot in work.items():
        if not _is_possible(problem, ways, {name: float(by_slot.max())}, serving):
            return Message.of("verify.requests_at_peak", workload=name).text()
    for job in problem.training:
        needed = {job.name: _training_flop_per_s(job)}
        if not _is_possible(problem, ways, needed, {job.name: [job]}):
            return Message.of("verify.tokens_by_deadline", workload=job.name).text()
    return None


def _open(problem: ResolvedSpec, site: SiteFacts, offer: OfferFacts) -> bool:
    if site.region not in offer.prices or (site.systems and offer.system not in site.systems):
        return False
    return offer.how == "api" or site.api is None


def _work_by_slot(problem: ResolvedSpec, members: list[ServingFacts]) -> Floats:
    """Compute the least work of a workload's requests in each slot [FLOP/s]; of those that may wait, the least of any slot."""
    total = np.asarray(members[0].requests_by_slot(problem.calendar), float).sum(axis=0)
    if members[0].spec.demand.deferral:
        total = np.full_like(total, total.min())
    found: Floats = total * min(map(_request_flops, members))
    return found


def _request_flops(workload: ServingFacts) -> float:
    """Return the least work of a request [FLOP]: prompts may come from a cache, so only its answer counts where there is one."""
    lengths = workload.spec.lengths
    tokens = lengths.output - 1.0 + (0.0 if workload.spec.cache or workload.spec.session else lengths.input)
    return FLOPS_PER_PARAMETER * _active(workload.architecture) * tokens


def _training_flop_per_s(job: TrainingFacts) -> float:
    return FLOPS_TO_TRAIN * _active(job.architecture) * job.spec.tokens / (job.spec.deadline - job.spec.start)


def _active(architecture: Architecture) -> float:
    """Count the parameters that every token passes, without the vocabulary head, which prompts pass once."""
    counts = parameter_counts(architecture)
    return float(counts.active - counts.embedding)


def _is_possible(
    problem: ResolvedSpec,
    ways: list[Way],
    needed: Mapping[str, float],
    members: Mapping[str, list[ServingFacts] | list[TrainingFacts]],
) -> bool:
    """Tell whether whole systems within supplies and power could do the work `needed` [FLOP/s], each at the peak rate of its chips."""
    names = [name for name in needed if not _can_be_bought(problem, members[name])]
    owned = [(site, offer) for site, offer in ways if offer.how != "api"]
    if not names:
        return True
    if not owned:  # nothing is on offer, so there is no program to solve
        return False
    count, works = len(owned), len(names)
    columns = count * (1 + works)  # systems of each way, then the share of each workload's work done on each way
    rows: list[tuple[Floats, float, float]] = []  # row, and its least and most value
    upper = np.full(columns, np.inf)
    for k, (site, offer) in enumerate(owned):
        system = problem.systems[offer.system]
        row = np.zeros(columns)
        row[k] = -1.0
        for w, name in enumerate(names):
            rate = max((system.flop_per_s.get(p, 0.0) for m in members[name] for p in m.spec.precision), default=0.0)
            place = count + w * count + k
            if rate and any(permitted(member, site) for member in members[name]):
                row[place] = needed[name] / (system.chips * rate)
            else:
                upper[place] = 0.0
        rows.append((row, -np.inf, 0.0))
    for w in range(works):
        row = np.zeros(columns)
        row[count + w * count : count + (w + 1) * count] = SAFETY
        rows.append((row, 1.0, np.inf))
    for site in problem.sites:
        row = np.zeros(columns)
        for k, (here, offer) in enumerate(owned):
            if here is site and offer.how == "buy":
                row[k] = problem.systems[offer.system].idle_w * meter_factor(
                    site, problem.systems[offer.system], owned=True
                )
        if row.any() and math.isfinite(site.power_limit_w):
            rows.append((row / max(site.power_limit_w, 1.0), 0.0, SAFETY * min(site.power_limit_w, 1.0)))
    for offer in problem.offers:
        row = np.array([1.0 if k < count and owned[k][1] is offer else 0.0 for k in range(columns)])
        supply = min(offer.supply, sum(offer.phase_supply) if offer.phase_supply else math.inf)
        if row.any() and math.isfinite(supply):
            rows.append((row, 0.0, supply))
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

    found = milp(
        np.zeros(columns),
        integrality=np.array([1] * count + [0] * (columns - count)),
        bounds=Bounds(0.0, upper),
        constraints=LinearConstraint(
            np.array([row for row, _, _ in rows]), [low for _, low, _ in rows], [high for _, _, high in rows]
        ),
        options={"time_limit": TIME_LIMIT_S},
    )
    return bool(found.status != INFEASIBLE)


def _can_be_bought(problem: ResolvedSpec, members: list[ServingFacts] | list[TrainingFacts]) -> bool:
    """Tell whether some API serves one of these; its supply is not looked at."""
    serving = [member for member in members if isinstance(member, ServingFacts)]
    return any(site.api is not None and site.api.serves(member) for site in problem.sites for member in serving)
