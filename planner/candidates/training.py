"""Choose operating points of training: evaluate all layouts of each width in arrays, keep a few widths per system.

A job runs at its full width or pauses, so its memory is that of the full width.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from models.training.flops import training_flops_per_token
from models.training.layouts import DEFAULT_SPACE, Layouts, joined
from models.training.pipeline import SCHEDULES
from planner.candidates.fleet_options import FleetOption
from planner.candidates.layouts import (
    LayoutSearch,
    Leaders,
    fastest_of_leaders,
    joined_leaders,
    legal_sizes,
    with_leaders,
)
from planner.candidates.points import OperatingPoint, Use
from planner.evaluate.interruptions import RunTerms, checkpoints_of, spares_of
from planner.evaluate.layouts import TrainingSetup, recipe_of
from planner.evaluate.losses import losses_of
from planner.evaluate.training import Width, extra_power_w, width_of
from planner.messages import Message
from planner.problem.derating import counted_share
from planner.problem.fabrics import uneven
from planner.problem.facts import ResolvedSpec, ScaleOut, SystemFacts, TrainingFacts

POINTS_PER_PART = 1.5  # share of `points_per_system` that makes one part of each doubling of the width
MAX_SYSTEMS = 1 << 16  # no single run is wider
NO_PEAK_COUNT = 1 << 30  # systems; beyond any ceiling
MOST_TOGETHER = (
    8_000  # layouts of several widths that are evaluated at once: arrays that stay in the cache of a processor
)


def searched_words() -> str:
    """Describe the set of layouts that a plan chooses from, of which alone it can be infeasible."""
    space = DEFAULT_SPACE
    schedules = ", ".join(SCHEDULES[code].name for code in space.schedules)
    return (
        f"of the layouts with tp in a scale-up domain, pp to {space.largest_pp}, cp to {space.largest_cp}, micro-batches to "
        f"{max(space.micro_batches)} and the schedules {schedules}, on at most {MAX_SYSTEMS:,} systems"
    )


class LayoutSearches:
    """The fastest layouts by number of systems, cached: equal jobs share results, systems of equal size share layout spaces.

    A network after a faster one for the same systems times the sizes that were fastest there, and all others only where these do not settle it.
    """

    def __init__(self, problem: ResolvedSpec):
        self._constants = problem.constants
        self._spaces: dict[tuple[Any, ...], Layouts] = {}  # legal sizes
        self._found: dict[tuple[Any, ...], LayoutSearch] = {}
        self._leaders: dict[
            tuple[Any, ...], dict[int, tuple[ScaleOut, Leaders]]
        ] = {}  # by run on any network, and width

    def setup(self, job: TrainingFacts, option: FleetOption, precision: str) -> TrainingSetup:
        """Bundle a job with the system and network of a fleet option."""
        return TrainingSetup(job, option.system, precision, self._constants, option.scaleout, uneven(option.plant))

    def fastest(self, setup: TrainingSetup, counts: Sequence[int]) -> list[LayoutSearch | None]:
        """Find the fastest layout on each of some numbers of systems; None where no layout on that number is legal."""
        job, system = setup.job, setup.system
        shared = (job.architecture, job.batch_sequences, job.spec.sequence_tokens, system.scaleup_chips)
        run = (*shared, setup.recipe, system.plain_name, setup.precision, setup.scaleout, setup.plant)
        chips = [systems * system.chips for systems in counts]
        for width in chips:
            if (width, *shared) not in self._spaces:
                self._spaces[width, *shared] = legal_sizes(job, width, system)
        missing = [w for w in chips if (w, *run) not in self._found and len(self._spaces[w, *shared])]
        known = self._leaders.setdefault((*shared, setup.recipe, system.plain_name, setup.precision), {})
        led = [w for w in missing if w in known and _is_slower(setup, known[w][0])]
        for together in _in_batches(led, [len(known[w][1].plain) for w in led]):
            leaders = joined_leaders([known[w][1] for w in together])
            tried = fastest_of_leaders(setup, joined([self._spaces[w, *shared] for w in together]), leaders)
            self._found.update(((w, *run), each) for w, each in zip(together, tried, strict=True) if each is not None)
        missing = [w for w in missing if (w, *run) not in self._found]
        for together in _in_batches(missing, [len(self._spaces[w, *shared]) for w in missing]):
            found, leaders = with_leaders(setup, joined([self._spaces[w, *shared] for w in together]))
            self._found.update(((w, *run), each) for w, each in zip(together, found, strict=True))
            if setup.plant is None:
                known.update((w, (setup.scaleout, leaders.on(w))) for w in together if w not in known)
        return [self._found.get((width, *run)) for width in chips]


def _is_slower(setup: TrainingSetup, other: ScaleOut) -> bool:
    """Tell whether no group exchanges faster on the network of a setup than on another one, which serves all groups alike."""
    rate = setup.scaleout.bytes_per_s if setup.plant is None else setup.system.nic_bytes_per_s
    return rate <= other.bytes_per_s and setup.scaleout.latency_s >= other.latency_s


def _in_batches(widths: Sequence[int], layouts: Sequence[int]) -> Iterator[list[int]]:
    """Divide widths into runs of at most `MOST_TOGETHER` layouts, at least one width each."""
    batch: list[int] = []
    held = 0
    for width, count in zip(widths, layouts, strict=True):
        if batch and held + count > MOST_TOGETHER:
            yield batch
            batch, held = [], 0
        batch.append(width)
        held += count
    if batch:
        yield batch


def candidate_widths(
    job: TrainingFacts,
    option: FleetOption,
    ceiling: float,
    problem: ResolvedSpec,
    dropped: Counter[str],
    searches: LayoutSearches,
) -> tuple[list[Width], int, float]:
    """Find the narrowest width of a job on a fleet option that meets the deadline, and a few wider ones, which can pause in expensive hours.

    `ceiling`: systems that can be had. Returns the widths, the number of layouts evaluated, and the most trained tokens/s at any width: that
    of the peak of all systems where not even these suffice.
    """
    system, evaluated = option.system, 0
    networked = option.scaleout_bytes_per_s > 0
    most = min(ceiling, MAX_SYSTEMS) if networked else 1 if system.scaleup_chips >= system.chips else 0
    needed = job.spec.tokens / (job.spec.deadline - job.spec.start) / counted_share(problem.derating, job, (system,))
    delivered_s = max(job.spec.start, option.offer.ready_s(option.site))
    left_s = job.spec.deadline - delivered_s
    needed_after_delivery = needed * (job.spec.deadline - job.spec.start) / left_s if left_s > 0 else math.inf
    most_kept = problem.spec.solver.points_per_system
    found: list[tuple[int, Width]] = []
    kept: list[Width] = []
    for counts in _doublings(_fewest_systems(job, system, needed), most):
        for count, (best, tried) in zip(counts, _best(job, option, counts, problem, dropped, searches), strict=True):
            evaluated += tried
            found += [] if best is None else [(count, best)]
        kept = select_widths(found, needed_after_delivery, most_kept)
        if len(kept) == most_kept:  # a part lies within a doubling: wider ones are never reached
            break
    if (
        not kept
    ):  # delivered too late: keep points all the same, so that the program reports the deadline as the conflict
        kept = select_widths(found, needed, most_kept)
    if kept:
        dropped[Message.of("dropped.width_not_offered").text()] += sum(
            width.tokens_per_s >= needed for _, width in found
        ) - len(kept)
    else:
        dropped[Message.of("dropped.past_deadline").text()] += 1
    fastest = max((width.tokens_per_s for _, width in found), default=0.0)
    if not evaluated:
        fastest = most * _peak_tokens_per_s(job, system)
    return kept, evaluated, fastest


def select_widths(found: Sequence[tuple[int, Width]], needed: float, most: int) -> list[Width]:
    """Select the narrowest width of the needed throughput, and from each further part of a doubling the width of most per system.

    `found`: (systems, width), from the start of a doubling on. `needed` [token/s]. A doubling goes from a power of two to the next. With
    3 points it has two parts, from 6 points on each width is a part of its own. The best width of a part does not depend on the work,
    so less work or more time removes none but the widest, where narrower ones fill the `most` points. Only the narrowest width gives way
    to a narrower one, which a plan with work for part of its time may miss. A width that does no more than a narrower one is dropped.
    """
    parts = max(int(most / POINTS_PER_PART), 1)
    best: dict[int, tuple[int, Width]] = {}
    for systems, width in found:
        part = int(parts * math.log2(systems))
        if part not in best or width.tokens_per_s / systems > best[part][1].tokens_per_s / best[part][0]:
            best[part] = systems, width
    kept = [width for _, width in found if width.tokens_per_s >= needed][:1]
    for _, width in best.values():
        if kept and len(kept) < most and width.chips > kept[-1].chips and width.tokens_per_s > kept[-1].tokens_per_s:
            kept.append(width)
    return kept


def _fewest_systems(job: TrainingFacts, system: SystemFacts, needed: float) -> int:
    """Bound the number of systems from below: the work at the full peak of the best precision."""
    peak = _peak_tokens_per_s(job, system)
    if not peak:
        return NO_PEAK_COUNT
    count = 1
    while count < needed / peak:
        count = _next_count(count)
    return count


def _peak_tokens_per_s(job: TrainingFacts, system: SystemFacts) -> float:
    """Bound the trained tokens/s of one system from above: all of its peak at the best precision."""
    peak = max((system.rates(p).flop_per_s for p in job.spec.precision if system.trains(p)), default=0.0)
    flops = float(training_flops_per_token(job.architecture, job.spec.sequence_tokens, recipe_of(job)))
    return peak * system.chips / flops


def _next_count(count: int) -> int:
    """Return the next number of systems with small prime factors, in steps of an eighth to a quarter."""
    if count < 8:
        return count + 1
    unit = 1 << (count.bit_length() - 3)
    return (count // unit + 1) * unit


def _doublings(fewest: int, most: float) -> Iterator[list[int]]:
    """Yield the numbers of systems from the doubling of the fewest up to the most, a doubling at a time."""
    count = 1 << (fewest.bit_length() - 1)
    while count <= most:
        counts = [count]
        while (following := _next_count(counts[-1])) < 2 * count:
            counts.append(following)
        yield [each for each in counts if each <= most]
        count *= 2


def _best(
    job: TrainingFacts,
    option: FleetOption,
    counts: Sequence[int],
    problem: ResolvedSpec,
    dropped: Counter[str],
    searches: LayoutSearches,
) -> list[tuple[Width | None, int]]:
    """Find the fastest layout on each number of systems over the requested precisions; returns also the number of layouts tried."""
    system = option.system
    terms = RunTerms.of(system, option.offer, option.site)
    best: list[Width | None] = [None] * len(counts)
    tried = [0] * len(counts)
    for precision in job.spec.precision:
        if not system.trains(precision):
            dropped[Message.of("dropped.no_precision").text()] += len(counts)
            continue
        setup = searches.setup(job, option, precision)
        for i, found in enumerate(searches.fastest(setup, counts)):
            if found is None:
                dropped[Message.of("dropped.no_legal_layout").text()] += 1
                continue
            tried[i] += found.tried
            dropped[Message.of("dropped.fabric_without_group").text()] += found.legal - found.carried
            dropped[Message.of("dropped.dominated_layout").text()] += found.carried - found.tried
            dropped[Message.of("dropped.over_memory").text()] += found.tried - found.fitting
            if not found.fitting:
                continue
            dropped[Message.of("dropped.slower_layout").text()] += found.fitting - 1
            width, before = width_of(setup, found.layouts, found.step, found.memory_bytes, 0, terms), best[i]
            if before is None or width.tokens_per_s > before.tokens_per_s:
                best[i] = width
    return list(zip(best, tried, strict=True))


def training_point(job: TrainingFacts, option: FleetOption, width: Width, problem: ResolvedSpec) -> OperatingPoint:
    """Build the operating point of a width on a fleet option, spares included."""
    working = math.ceil(width.chips / option.system.chips)
    reliability, terms = problem.constants.reliability, RunTerms.of(option.system, option.offer, option.site)
    spares = spares_of(job, width.chips, option.system, option.owned, reliability)
    use = Use(
        role="train",
        option=option,
        systems=working + spares,
        spares=spares,
        extra_it_w=working * extra_power_w(option.system, problem),
        precision=width.precision,
        layout=width.layout,
        memory_bytes=width.memory_bytes,
    )
    return OperatingPoint(
        workload=job,
        uses=(use,),
        capacity=width.tokens_per_s,
        breakdown=width.breakdown,
        mfu=width.mfu,
        hfu=width.hfu,
        goodput=width.goodput,
        losses=losses_of(job, width.chips, reliability, terms),
        checkpoints=checkpoints_of(job, width.chips, reliability, terms),
        time_s=width.time_s,
        interval=width.interval,
    )
