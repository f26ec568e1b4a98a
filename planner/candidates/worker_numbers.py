"""Search whole numbers of prefill and decode workers: pairs of layouts and batches by what they take at least, the best first.

A group of n_p prefill and n_d decode workers that serves r requests/s takes, at a load of L requests/s, ceil(L n/r) workers of each role,
and at least n of it. Whatever the numbers, a prefill worker serves no more prompts than in full passes, and a decode worker no more
requests than beside `MOST_WORKERS` others, so that a pair of layouts with a batch takes at least a max(1, ceil(L s)) systems of either role,
with a the systems and s the least time per request of a worker. Pairs whose bound is no better than a group already found are left out:
none of their groups takes fewer systems.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.serving.disaggregation import DisaggregatedPoint

MOST_WORKERS = 64  # workers of either role in a group; a plan uses any number of groups
DECODE_WORKERS = np.array([*range(1, 13), 14, 16, 20, 24, 32, 48, MOST_WORKERS])
"""Decode workers of a group that are tried, each beside any whole number of prefill workers: further numbers would only be finer by less than a twelfth of one."""
FIRST_NUMBERS = 8  # numbers tried before the others, most of which are then left out
TIE_TOL = 1e-9  # relative: groups that differ less count as equal
COUNT_TOL = 1e-9  # share of a worker, before a number is rounded up
WITHOUT_LIMIT = 1 << 62
PROBES = 4  # numbers of prefill workers tried at once
FIRST_PAIRS = 16  # pairs tried first for each question; their number doubles


@dataclass(frozen=True, slots=True)
class Sides:
    """What workers of either role take at least, beside any others: prefill layouts [p], decode shapes (a layout at a batch) [s].

    Of several round trips [a], those pairs are able that keep the limits beside workers without number.
    """

    prefill: Ints  # [p] index into the grid
    prompt_s: Floats  # [p] least time of a worker per request
    first: Floats  # [p] systems of a worker
    decode: Ints  # [s] index into the grid
    batch: Ints  # [s] index into the batches of the layout
    answer_s: Floats  # [s] least time of a worker per request, beside `MOST_WORKERS` - 1 others
    alone_s: Floats  # [s] time of a worker per request, alone
    second: Floats  # [s] systems of a worker
    able: Bools  # [a, p, s]


@dataclass(frozen=True, slots=True)
class Question:
    """One group is sought: that which takes the least at some prices of both kinds of system, at a load, under the limits of a round trip.

    A load of infinity asks for the least per request, among groups of at most `most_rate`.
    """

    round_trip: int
    prices: tuple[float, float]
    load: float
    most_rate: float = np.inf

    def cost(
        self,
        first: Floats,
        second: Floats,
        prompts: Floats,
        answers: Floats,
        workers: tuple[Ints | Floats, Ints | Floats],
    ) -> Floats:
        """Compute what groups cost: systems of a worker, workers per request and second, and least numbers of both roles."""
        prefill = self.prices[0] * first * self._workers(prompts, workers[0])
        cost: Floats = prefill + self.prices[1] * second * self._workers(answers, workers[1])
        return cost

    def _workers(self, each: Floats, least: Ints | Floats) -> Floats:
        """Count the workers of a role at the load, or those per request and second."""
        if np.isinf(self.load):
            return each
        held: Floats = np.maximum(least, np.ceil(self.load * each - COUNT_TOL))
        return held


@dataclass(slots=True)
class Found:
    """Groups that keep the limits of a round trip at least, in the order in which they were found; arrays [group]."""

    prefill: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # index into the sides
    shape: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # index into the sides
    workers: tuple[Ints, Ints] = field(default_factory=lambda: (np.zeros(0, np.int64), np.zeros(0, np.int64)))
    rate: Floats = field(default_factory=lambda: np.zeros(0))  # requests/s
    kept: Bools | None = None  # [a, group] which keep the limits
    place: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))  # evaluation, and position in it
    evaluations: list[DisaggregatedPoint] = field(default_factory=list)

    def add(self, rows: Sequence[Ints], found: DisaggregatedPoint, rate: Floats, kept: Bools) -> None:
        """Add the evaluated groups that keep the limits of any round trip; rows: prefill, shape, numbers of both."""
        some = np.flatnonzero(kept.any(axis=0))
        prefill, shape, n_p, n_d = (row[some] for row in rows)
        self.prefill, self.shape = np.append(self.prefill, prefill), np.append(self.shape, shape)
        self.workers = np.append(self.workers[0], n_p), np.append(self.workers[1], n_d)
        self.rate = np.append(self.rate, rate[some])
        self.kept = kept[:, some] if self.kept is None else np.concatenate([self.kept, kept[:, some]], axis=1)
        here = np.column_stack([np.full(some.size, len(self.evaluations)), some])
        self.place = np.concatenate([self.place, here])
        self.evaluations.append(found)


Evaluate = Callable[[Ints, Ints, Ints, Ints], tuple[DisaggregatedPoint, Floats, Bools]]
"""Evaluate groups (prefill, shape, prefill workers, decode workers): their state, rates, and [a, group] which keep the limits."""


class NumbersSearch:
    """Search over the numbers of workers for some questions at once."""

    def __init__(self, sides: Sides, questions: Sequence[Question], evaluate: Evaluate):
        self.sides, self._evaluate = sides, evaluate
        self.questions: list[Question] = list(questions)
        self.found = Found()
        self.best = np.full(len(questions), np.inf)
        self.too_large = (
            sides.prompt_s[:, None] >= MOST_WORKERS * sides.alone_s
        )  # [p, s] even one decode worker needs more
        self._least = self._bounds(questions)
        self._open_from = 0  # questions before are answered
        self._tried = np.zeros(sides.able.shape[1:], dtype=bool)  # for the questions that are not answered yet
        self._ever_tried = np.zeros_like(self._tried)

    def run(self) -> Found:
        """Try pairs until no other has a bound below the best group found, for all questions."""
        pairs = FIRST_PAIRS
        while (first := self._next(pairs)) is not None:
            self._tried[first] = self._ever_tried[first] = True
            self._expand(*first)
            pairs *= 2
        return self.found

    def ask(self, questions: Sequence[Question]) -> None:
        """Add questions, to be searched by `run` once the earlier ones are answered; groups found so far are their first answers."""
        self._open_from, self._tried = len(self.questions), np.zeros_like(self._tried)
        self.questions += questions
        found = [self.costs(question).min(initial=np.inf) for question in questions]
        self.best = np.append(self.best, np.array(found))
        self._least += self._bounds(questions)

    @property
    def pairs(self) -> tuple[int, int]:
        """Count the pairs of a prefill layout and a decode shape that keep the limits beside workers without number: (of a group, too large for one)."""
        able = self.sides.able.any(axis=0)
        return int((able & ~self.too_large).sum()), int((able & self.too_large).sum())

    def untried(self) -> int:
        """Count the numbers of decode workers, from 1 to the most, beside which no number of prefill workers was tried and no bound shows that none helps.

        A pair that was left out has a bound no better than a group found, whatever the numbers: only pairs that were tried are counted here.
        """
        prefill, shape = np.nonzero(self._ever_tried)
        others = np.setdiff1d(np.arange(1, MOST_WORKERS + 1), DECODE_WORKERS)
        p, s, n_d, least = self._rows(prefill, shape, others)
        few = np.repeat(least[None], self.sides.able.shape[0], axis=0)
        gains = self._can_gain(p, s, n_d, few, np.full(few.shape, WITHOUT_LIMIT))
        return int(gains.any(axis=0).sum())

    def open_pairs(self, question: Question, groups: Sequence[int]) -> Bools:
        """Tell [p, s] which pairs have a bound below the best of some groups found, by a question that need not be among those searched."""
        sides, one = self.sides, np.ones(())
        best = self.costs(question)[list(groups)].min(initial=np.inf)
        least = question.cost(sides.first[:, None], sides.second, sides.prompt_s[:, None], sides.answer_s, (one, one))
        able = sides.able[question.round_trip] & ~self.too_large
        found: Bools = able & (least < best * (1 - TIE_TOL))
        return found

    def _bounds(self, questions: Sequence[Question]) -> list[Floats]:
        """Compute by question [p, s] what the groups of a pair cost at least; infinite where none is able or as small as asked."""
        sides, one = self.sides, np.ones(())
        known: dict[tuple[tuple[float, float], float], Floats] = {}
        least = []
        for question in questions:
            key = question.prices, question.load
            if key not in known:
                known[key] = question.cost(
                    sides.first[:, None], sides.second, sides.prompt_s[:, None], sides.answer_s, (one, one)
                )
            small = 1.0 / sides.alone_s <= question.most_rate * (1 + TIE_TOL)
            able = sides.able[question.round_trip] & small & ~self.too_large
            least.append(np.where(able, known[key], np.inf))
        return least

    def _next(self, pairs: int) -> tuple[Ints, Ints] | None:
        """Select the open pairs of the least bounds for each question; None where none is open."""
        chosen = np.zeros(self._tried.size, dtype=bool)
        for least, best in zip(self._least[self._open_from :], self.best[self._open_from :], strict=True):
            places = np.flatnonzero((least < best * (1 - TIE_TOL)) & ~self._tried)
            if places.size > pairs:
                places = places[np.argpartition(least.ravel()[places], pairs)[:pairs]]
            chosen[places] = True
        if not chosen.any():
            return None
        prefill, shape = np.unravel_index(np.flatnonzero(chosen), self._tried.shape)
        return prefill, shape

    def _expand(self, prefill: Ints, shape: Ints) -> None:
        """Find the least prefill workers of each pair beside each number of decode workers, where such a group can be better than the best found."""
        for numbers in (DECODE_WORKERS[:FIRST_NUMBERS], DECODE_WORKERS[FIRST_NUMBERS:]):
            self._number(prefill, shape, numbers)

    def _number(self, prefill: Ints, shape: Ints, numbers: Ints) -> None:
        """Find the least prefill workers of each pair beside some numbers of decode workers."""
        p, s, n_d, least = self._rows(prefill, shape, numbers)
        low = np.repeat((least - 1)[None], self.sides.able.shape[0], axis=0)  # [a, row] too few
        high = np.full(low.shape, WITHOUT_LIMIT)  # enough
        while (gains := self._can_gain(p, s, n_d, low + 1, high, self._open_from)).any():
            row, n_p = _between(low[gains], high[gains], np.nonzero(gains)[1])
            self._try((p[row], s[row], n_p, n_d[row]), row, low, high)

    def _rows(self, prefill: Ints, shape: Ints, numbers: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """List each pair with each number of decode workers, and the fewest prefill workers that keep up; without those that need more than the most."""
        sides = self.sides
        pair, n_d = (part.ravel() for part in np.meshgrid(np.arange(prefill.size), numbers, indexing="ij"))
        p, s = prefill[pair], shape[pair]
        least = np.floor(n_d / sides.alone_s[s] * sides.prompt_s[p] * (1 - COUNT_TOL)).astype(np.int64) + 1
        kept = least <= MOST_WORKERS
        return p[kept], s[kept], n_d[kept], least[kept]

    def _can_gain(self, p: Ints, s: Ints, n_d: Ints, n_p: Ints, high: Ints, first: int = 0) -> Bools:
        """Tell [a, row] which rows would beat the best found if this few prefill workers were enough, and are not known to need more."""
        sides, gains = self.sides, np.zeros(n_p.shape, dtype=bool)
        for i in range(first, len(self.questions)):
            question, best, trip = self.questions[i], self.best[i], self.questions[i].round_trip
            mine = np.flatnonzero(
                (n_p[trip] < high[trip]) & (self._least[i][p, s] < best * (1 - TIE_TOL)) & ~gains[trip]
            )
            few, many, answer_s = n_p[trip, mine], n_d[mine], sides.answer_s[s[mine]]
            per_request = few * answer_s / many
            least = question.cost(sides.first[p[mine]], sides.second[s[mine]], per_request, answer_s, (few, many))
            gains[trip, mine] = least < best * (1 - TIE_TOL)
        return gains

    def _try(self, groups: tuple[Ints, Ints, Ints, Ints], row: Ints, low: Ints, high: Ints) -> None:
        """Evaluate groups of some rows, and learn which numbers of prefill workers are too few there and which enough."""
        found, rate, kept = self._evaluate(*groups)
        for few, enough, mine in zip(low, high, kept, strict=True):
            np.maximum.at(few, row[~mine], groups[2][~mine])
            np.minimum.at(enough, row[mine], groups[2][mine])
        high[low >= MOST_WORKERS] = 0  # nothing beyond is tried
        first = len(self.found.rate)
        self.found.add(groups, found, rate, kept)
        for i, question in enumerate(self.questions[self._open_from :], start=self._open_from):
            self.best[i] = min(self.best[i], self.costs(question, slice(first, None)).min(initial=np.inf))

    def costs(self, question: Question, groups: slice | Ints = slice(None)) -> Floats:
        """Compute what the groups found cost by a question; infinite for those that miss the limits or are larger than asked."""
        found, sides = self.found, self.sides
        assert found.kept is not None
        rate, (n_p, n_d) = found.rate[groups], (workers[groups] for workers in found.workers)
        first, second = sides.first[found.prefill[groups]], sides.second[found.shape[groups]]
        cost = question.cost(first, second, n_p / rate, n_d / rate, (n_p, n_d))
        able = found.kept[question.round_trip, groups] & (rate <= question.most_rate * (1 + TIE_TOL))
        return np.where(able, cost, np.inf)

    def carried(self, question: Question, groups: Ints) -> tuple[float, float]:
        """Compute the most load that the workers of some groups, as many as carry that of a question, carry too; and the least load that takes another worker."""
        found = self.found
        rate, numbers = found.rate[groups], [workers[groups] for workers in found.workers]
        each = [least / rate for least in numbers]
        held = [
            np.maximum(least, np.ceil(question.load * one - COUNT_TOL))
            for least, one in zip(numbers, each, strict=True)
        ]
        carried = [
            float(np.minimum(*((workers + more) / one for workers, one in zip(held, each, strict=True))).max())
            for more in (0.0, 2 * COUNT_TOL)
        ]
        return carried[0], carried[1]


def _between(low: Ints, high: Ints, row: Ints) -> tuple[Ints, Ints]:
    """List numbers above `low` and below `high` to try for each row, evenly by their ratio: (row, number) each once."""
    least = low + 1
    most = np.minimum(high - 1, MOST_WORKERS)
    number = np.rint(np.geomspace(least, np.maximum(most, least), PROBES, axis=1)).astype(np.int64)
    key = np.unique(np.repeat(row, PROBES) * (MOST_WORKERS + 1) + number.ravel())
    found: tuple[Ints, Ints] = np.divmod(key, MOST_WORKERS + 1)
    return found
