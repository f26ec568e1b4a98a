"""Answer quotes on a spec or a plan: solve without, with each, at the prices of its thresholds, and with all together."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.lookup import Catalog
from catalog.units import YEAR_S
from planner.errors import BrokenPlanError
from planner.formulate.limits import Unbounded
from planner.messages import Message
from planner.plan import Plan
from planner.solving.confidence import with_confidence
from planner.solving.deadline import THREADS
from planner.solving.standing import Progress
from planner.solving.variants import Answer
from planner.spec.document import Edits, edited
from planner.studies.base.planned import SAME, solved
from planner.studies.quotes.answer import (
    LEAVE,
    NEEDED,
    NO_PLAN,
    OPEN,
    TAKE,
    UNPROVEN,
    Change,
    QuoteAnswer,
    QuoteAnswers,
    Saving,
    Together,
)
from planner.studies.quotes.mapping import Stated, read_quotes
from planner.studies.quotes.market import market_of
from planner.studies.quotes.quote import Quote, duration
from planner.studies.quotes.start import (
    OFFERS,
    Source,
    Start,
    catalog_of,
    checked_quotes,
    read_source,
    started,
    with_quotes,
)
from planner.studies.quotes.threshold import Question, Threshold, Trial, first_threshold, full_threshold, searched
from planner.studies.quotes.trial import Priced, counts

TOTAL_S = 300.0
"""Time for the prices of the thresholds of all quotes [s]."""


def quote(
    source: Source, quotes: Stated | Sequence[Stated], *, solver: Mapping[str, Any] | None = None, total_s: float = TOTAL_S,
    overlays: Sequence[Path] = (), hourly: Sequence[Path] = (), progress: Progress | None = None, threads: int = THREADS,
) -> QuoteAnswers:  # fmt: skip
    """Say of each quote whether to take it, how many systems, below which price, what they displace, and what that saves.

    `source`: a plan, whose objective and bound count as they are, or a spec, which is solved first. `quotes`: sentences, mappings with
    their parts, or `Quote` objects. Each solve may take the time limit of the spec, or that of the options `solver`; the prices of
    thresholds together `total_s`. Amounts are in the currency of the spec. Raises SpecError with every part of every quote that is not
    understood or does not fit the spec, OSError, and BrokenPlanError for a plan that fails its own verification.
    """
    began, say = time.perf_counter(), progress or (lambda line: None)
    stated = [quotes] if isinstance(quotes, str | Mapping | Quote) else list(quotes)
    read = read_source(source, hourly, overlays)
    document = read.document["spec"] if isinstance(read, Plan) else read
    catalog = catalog_of(document, overlays)
    asked = read_quotes(stated, catalog)
    start = started(read, solver or {}, overlays, progress, threads)
    checked_quotes(start, asked)
    say(
        Message.of("progress.without_it", status=start.plan.status, seconds=f"{time.perf_counter() - began:.1f}").text()
    )
    found = []
    for each in asked:
        found.append(_answered(start, each, catalog, total_s / len(asked)))
        say(
            Message.of(
                "progress.elapsed",
                name=each.sentence(),
                status=found[-1].status,
                seconds=f"{time.perf_counter() - began:.1f}",
            ).text()
        )
    order = sorted(range(len(found)), key=lambda i: -found[i].saving.found)
    together = _together(start, asked, order) if len(asked) > 1 else None
    seconds = time.perf_counter() - began
    return QuoteAnswers(
        start.base, start.plan.objective["unit"], tuple(found[i] for i in order), together, seconds, start.renewed
    )


def _answered(start: Start, asked: Quote, catalog: Catalog, seconds: float) -> QuoteAnswer:
    """Answer one quote alone; `seconds`: for the prices of its thresholds."""
    priced = Priced.of(start, asked)
    trial, answer = priced.solve()
    chips = catalog.get("systems", asked.system).value("chips")
    _, most = asked.systems(chips)
    first, full, trials = _thresholds(start, priced, trial, most, seconds)
    without = _question(start, priced, most).improved(trials).without
    saving = saved(without, trial)
    verdict = verdict_on(without, trial, saving)
    takes = verdict in (TAKE, UNPROVEN, NEEDED)
    plan = _plan(start, priced.edits, answer) if takes and answer is not None else None
    return QuoteAnswer(
        quote=asked,
        verdict=verdict,
        status=start.plan.status if verdict == LEAVE else _status(trial, answer),
        saving=saving,
        taken=trial.taken if takes else 0,
        most=most,
        first=first,
        full=full,
        changes=changes_between(start.plan, plan, f"{OFFERS}[{priced.position}]") if plan is not None else (),
        kept=None if plan is None else _kept(plan),
        kept_before=_kept(start.plan),
        market=market_of(asked, catalog),
        notes=tuple(_notes(start, asked, most)),
        plan=plan,
    )


def _question(start: Start, priced: Priced, most: int | None) -> Question:
    return Question(start.without, priced.slopes, most, start.is_limited)


def _thresholds(
    start: Start, priced: Priced, trial: Trial, most: int | None, seconds: float
) -> tuple[Threshold | None, Threshold | None, list[Trial]]:
    """Find the price below which some of a quote is taken, the one below which all is, and the solves that say so.

    Neither where prices are no part of the objective, or there is no plan without the quote or none with it.
    """
    if not (start.is_of_cost and math.isfinite(start.without.value) and math.isfinite(trial.value)):
        return None, None, [trial]
    ends_s = time.perf_counter() + seconds

    def solve(amount: float) -> Trial | None:
        found = priced.solve(amount)[0] if time.perf_counter() < ends_s else None
        return found if found is not None and math.isfinite(found.value) else None

    asked = _question(start, priced, most)
    trials = searched(asked, solve, trial, first_threshold)
    if priced.quote.is_all_or_nothing:
        found = first_threshold(asked, trials)
        return found, found, trials
    trials = searched(asked, solve, trial, full_threshold, trials)
    return first_threshold(asked, trials), full_threshold(asked, trials), trials


def saved(without: Trial, trial: Trial) -> Saving:
    """Compute what the plan with a quote saves: found by both searches, and the least and most that their bounds allow; never below 0, for a quote may be left."""
    value = min(trial.value, without.value)
    if not math.isfinite(without.value):
        return Saving(math.inf if math.isfinite(value) else 0.0, 0.0, math.inf)
    found = without.value - value
    low, high = max(without.bound - value, 0.0), without.value - trial.bound
    return Saving(found, min(low, found), max(high, found))


def verdict_on(without: Trial, trial: Trial, saving: Saving) -> str:
    """Say what to do with a quote."""
    if not math.isfinite(without.value):
        return NEEDED if math.isfinite(trial.value) else NO_PLAN
    if not math.isfinite(trial.value):
        return OPEN
    if not trial.taken or saving.found <= SAME * abs(without.value):
        return LEAVE
    return TAKE if saving.low > SAME * abs(without.value) else UNPROVEN


def _together(start: Start, quotes: Sequence[Quote], order: Sequence[int]) -> Together:
    """Solve with all quotes at once."""
    edits, _ = with_quotes(start, quotes)
    try:
        answer = solved(start.variants, edits, start.options)
    except Unbounded:
        answer = None
    first = len(start.offers)
    if answer is None or answer.value is None:
        return Together(
            "limit" if answer is None else answer.solution.status, Saving(0.0, 0.0, math.inf), (0,) * len(quotes), None
        )
    bound = answer.solution.bound
    trial = Trial(math.nan, start.sign * answer.value, -math.inf if bound is None else start.sign * bound)
    taken = counts(answer, [first + i for i in order])
    saving = saved(start.without, trial)
    plan = _plan(start, edits, answer)
    return Together(answer.solution.status, saving, tuple(taken) if saving.found > 0.0 else (0,) * len(taken), plan)


def _plan(start: Start, edits: Edits, answer: Answer) -> Plan:
    """Build the plan of an answer, with how sure it is. Raises BrokenPlanError where it fails its check."""
    from planner.verify.plan import verify_plan

    plan = answer.plan(edited(start.variants.document, edits))
    if faults := verify_plan(plan, overlays=start.overlays):
        raise BrokenPlanError(map(str, faults))
    return with_confidence(plan, answer.problem, answer.candidates, answer.form, answer.solution)


def changes_between(before: Plan, after: Plan, offer: str) -> tuple[Change, ...]:
    """List the systems of which two plans hold different numbers at once, largest change first, besides the systems of an `offer`."""
    one, other = held_at_once(before), held_at_once(after, offer)
    found = [Change(*kind, one.get(kind, 0), other.get(kind, 0)) for kind in dict.fromkeys((*one, *other))]
    moved = [change for change in found if change.after != change.before]
    return tuple(sorted(moved, key=lambda change: (-abs(change.after - change.before), change.site, change.system)))


def held_at_once(plan: Plan, but: str = "") -> dict[tuple[str, str, str], int]:
    """Count the most systems of each site, kind and way to obtain that a plan holds at once, without the systems of one offer."""
    windows: dict[tuple[str, str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    last = max((row["windows"][1] for row in plan.fleet if row.get("windows")), default=0)
    for row in plan.fleet:
        if row["offer"] == but:
            continue
        first, end = row.get("windows") or (0, last)
        for window in range(first, end + 1):
            windows[row["site"], row["system"], row["how"]][window] += row["count"]
    return {kind: max(held.values()) for kind, held in windows.items()}


def _status(trial: Trial, answer: Answer | None) -> str:
    if answer is not None:
        return answer.solution.status
    return "infeasible" if trial.bound == math.inf else "limit"


def _kept(plan: Plan) -> float | None:
    """Return the share of scenarios in which a plan keeps its promises, where it says so."""
    section = plan.document.get("confidence")
    return None if section is None else section["kept"]


def _notes(start: Start, asked: Quote, most: int | None) -> Iterator[Message]:
    """Say how a quote was put into the spec where its words leave that open."""
    horizon_s = start.problem.spec.horizon.years * YEAR_S
    if asked.counted == "chip" and most is not None:
        yield Message.of("quote.note_systems", chips=asked.most or 0, systems=most)
    least_s = asked.least_time_s
    if least_s is not None and least_s < horizon_s:
        yield Message.of("quote.note_renewed", term=duration(least_s), years=start.problem.spec.horizon.years)
    if least_s is not None and least_s > horizon_s:
        yield Message.of("quote.note_left_early", term=duration(least_s), years=start.problem.spec.horizon.years)
    if not start.is_of_cost:
        yield Message.of("quote.note_no_threshold", unit=start.plan.objective["unit"])
    elif start.is_limited:
        yield Message.of("quote.note_limited")
