"""From the linear part of a large problem to a plan in whole numbers, and the bound that goes with it.

A search over the yes-or-no choices: sites, who is hosted where, designs, where jobs run. A part of the problem, some choices
fixed, is bounded by the same master and slots as the linear part; cuts hold everywhere, so that each part starts with all that
was learnt. Its bound is the certificate's (certificate.py) over all columns that the part allows. Where all choices are made,
counts are made whole; a plan counts only if no slot misses anything.

Land and Doig, Econometrica 28 (1960).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from solvers.certificate import Prices
from solvers.data import Floats, Ints
from solvers.decomposition import ENOUGH, FRESH, Decomposition, Level, longer
from solvers.hourwise import NOTHING, carried
from solvers.master import Point
from solvers.outcome import SolverError

PARTS = 400  # that are looked at, at most
PART_ROUNDS, LINEAR_ROUNDS, WHOLE_ROUNDS, DISPATCH_ROUNDS = 5, 25, 16, 8
DEAR = 100.0  # how much dearer missing is while counts are made whole
ASTRAY = 1.02  # a dive for a first plan ends where the bound is so much above the least
NEARLY = 0.1  # so little is missing that the jobs may make room
SLIGHT = 1e-9  # share of a pattern that is none
HOPELESS = 0.05  # share that what is missing has in the value of choices that no counts can save
LIKELY = 0.25  # share from which on a site is open in the more promising half
OPEN_FROM = (0.01, 0.3)  # shares from which on rounding keeps a site open, tried in turn
ROUNDED_AT = (1, 2, 5, 10, 20, 40, 80, 160, 320)  # parts where it is tried
SHARE = 0.2  # of the asked gap, that one step may leave
WHOLE = 1e-5  # how far from whole a choice may be
LEAST_BOX, LARGEST_BOX = 0.01, 4.0  # how far counts may go from the best point in a round, as a share of what there is and of one
FIRST_BOX, ROOM, MANY = 0.15, 0.1, 200  # how far counts may go from the linear answer, relatively, where there are so many integers
IN_OUT = 0.6  # of the way from the best point known to the master's, where the slots are asked


@dataclass(slots=True)
class WholePlan:
    """Everything decided once, whole, with the jobs' patterns, and what it costs."""

    level: Level
    point: Point
    value: float


@dataclass(slots=True)
class Part:
    """Bounds of the structure's columns, a bound of what it costs, and where its parent's linear answer was."""

    least: Floats
    most: Floats
    proven: float
    depth: int = 0
    prices: Prices | None = None


class WholeSearch:
    """`proven` holds for the full problem."""

    def __init__(self, dec: Decomposition, level: Level, gap: float, seed: int, left: Callable[[], float], best: WholePlan | None = None):
        """`best`: a plan that is known."""
        self.dec, self.level, self.gap, self.seed, self.left = dec, level, gap, seed, left
        self.proven, self.best, self.looked = level.proven, best, 0
        self.kinds = np.empty(dec.whole.size, dtype=object)
        for block, place in dec.whole.columns.items():
            self.kinds[place[place >= 0]] = block
        self.groups = [np.asarray(columns, dtype=np.int64) for columns in self._groups()]

    def run(self) -> WholePlan | None:
        """The best plan found, None where there is none."""
        structure = self.dec.whole
        first = Part(np.zeros(structure.size), structure.most.copy(), self.level.proven)
        waiting: list[tuple[float, int, Part]] = []
        closed, count, dive = np.inf, 0, first  # the least bound of parts that are done with
        while (dive is not None or waiting) and count < PARTS:
            part = dive if dive is not None else heapq.heappop(waiting)[2]
            dive = None
            if part.proven >= self._cutoff():
                closed = min(closed, part.proven)
            else:
                outcome = self._look(part)
                count += 1
                if outcome is None:
                    closed = min(closed, part.proven)
                else:
                    near, far = outcome
                    heapq.heappush(waiting, (far.proven, count, far))
                    if self.best is None and near.proven <= ASTRAY * min(far.proven, waiting[0][0]):
                        dive = near
                    else:
                        heapq.heappush(waiting, (near.proven, -count, near))
            open_parts = [part.proven for _, _, part in waiting] + ([] if dive is None else [dive.proven])
            value = np.inf if self.best is None else self.best.value
            self.proven = max(self.proven, min([closed, value, *open_parts]))
            if count % 10 == 1:
                self.dec.say(f"part {count}: value {value:.6g}, proven {self.proven:.6g}, {len(open_parts)} open, {len(self.level.master.lots)} lots")
            if self.left() <= 0 or (self.best is not None and value - self.proven <= self.gap * abs(value)):
                break
        return self.best

    def _cutoff(self) -> float:
        return np.inf if self.best is None else self.best.value * (1 - 0.9 * self.gap)

    # -- a part of the problem -------------------------------------------------------------------------------------

    def _look(self, part: Part) -> tuple[Part, Part] | None:
        """The two halves of a part, the more promising one first; None where nothing is left to look at."""
        dec, choice = self.dec, None
        for number in range(PART_ROUNDS if part.depth else 1 + PART_ROUNDS // 2):
            found = self._master(part)
            if found is None:
                return None if self._widened(part) is False else self._look(part)
            model, point, prices = found
            if self.level.master.left_undone(point).max(initial=0.0) > WHOLE and self._widened(part):
                continue
            prices = dec.spread(self.level, prices)
            if part.prices is not None:
                prices = prices.mixed(part.prices, FRESH)
            certificate = dec.certify(self.level, prices, part.least, part.most)
            if certificate.value > part.proven or part.prices is None:
                part.prices = prices
            part.proven = max(part.proven, certificate.value)
            if part.proven >= self._cutoff():
                return None
            wanted = dec.wanted(certificate, self.level)
            if len(wanted) and number < PART_ROUNDS - 1:
                self.level = dec.grown(self.level, wanted)
                continue
            before = model
            allowed = self._allowed(part)
            dec.price(self.level, certificate.estimate.alpha, prices.sigma, certificate, allowed)
            point = Point(point.structure, longer(point.patterns, len(self.level.master.patterns)))
            centre = Point(self.level.best.structure, longer(self.level.best.patterns, len(self.level.master.patterns)))
            self.level.best = centre
            mixed = Point(*(IN_OUT * a + (1 - IN_OUT) * b for a, b in zip((point.structure, point.patterns), (centre.structure, centre.patterns), strict=True)))
            asked = self._asked(mixed if number % 2 == 0 else point)[0]
            self.level.master.purge()
            if asked - before <= SHARE * self.gap * abs(asked):
                break
        self.looked += 1
        if self.looked in ROUNDED_AT:
            self._finish(self._placed(self._rounded(point)))
        whole = carried(self.level.master.structure, dec.whole, point.structure)
        choice = self._fractional(part, whole)
        if choice is None:
            self._finish(point)
            return None
        columns, yes_first = choice
        return self._halves(part, columns, yes_first)

    def _master(self, part: Part):
        """The master's answer within a part; None where its columns have none."""
        structure, whole = self.level.master.structure, self.dec.whole
        size = len(self.level.master.patterns)
        lower, upper = carried(whole, structure, part.least), carried(whole, structure, part.most)
        return self.level.master.solve((np.concatenate([lower, np.zeros(size)]), np.concatenate([upper, np.full(size, np.inf)])))

    def _allowed(self, part: Part) -> Ints:
        """Points of jobs that the part allows, of those the level knows."""
        points = self.level.view.training
        return points[part.most[self.dec.whole.columns["y"][points]] > 0] if len(points) else points

    def _widened(self, part: Part) -> bool:
        """Adds a point of each job whose known ones the part forbids; False where that changes nothing."""
        dec = self.dec
        training = dec.view.training
        if not len(training):
            return False
        allowed = training[part.most[dec.whole.columns["y"][training]] > 0]
        cost = self.level.bound.estimate.job_cost[np.isin(training, allowed)]
        job, known = dec.data.point_job, set(self.level.master.places)
        more = []
        for j in np.unique(job[training]):
            mine = np.flatnonzero(job[allowed] == j)
            points = allowed[mine[np.argsort(cost[mine], kind="stable")]][:4]
            more += [p for p in points.tolist() if p not in known]
        if not more and not len(self._without_pattern(allowed)):
            return False
        if more:
            lots = np.setdiff1d(dec.view.use_lot[np.isin(dec.view.use_point, more)], self.level.master.lots)
            self.level = dec.grown(self.level, lots, np.array(more, dtype=np.int64))
        dec.price_at(self.level, self.level.prices, self._without_pattern(allowed))
        return True

    def _without_pattern(self, allowed: Ints) -> Ints:
        """Allowed points that the master knows but has no pattern for."""
        known = {p for p, _ in self.level.master.patterns}
        return np.array([p for p in allowed.tolist() if p in self.level.master.places and p not in known], dtype=np.int64)

    def _groups(self) -> Iterator[Ints]:
        """Columns that are decided together, the weightiest kinds first: sites, hosts and designs; a job's site; its lots; its points."""
        columns, data, dec = self.dec.whole.columns, self.dec.data, self.dec
        for block in ("open", "host", "z"):
            place = columns[block]
            yield from ([column] for column in place[place >= 0].ravel().tolist())
        y, points = columns["y"], dec.view.training
        first_lot = np.full(len(data.point_job), -1)
        first_lot[dec.view.use_point[::-1]] = dec.view.use_lot[::-1]
        for key in (dec.view.site, first_lot, np.arange(len(data.point_job))):
            pairs = np.column_stack([data.point_job[points], key[points]]) if len(points) else np.zeros((0, 2), dtype=np.int64)
            _, group = np.unique(pairs, axis=0, return_inverse=True) if len(points) else (None, np.zeros(0, dtype=np.int64))
            for number in range(int(group.max(initial=-1)) + 1):
                yield y[points[group.reshape(-1) == number]]
        run = columns["run"]
        yield from ([column] for column in run[run >= 0].ravel().tolist())

    def _fractional(self, part: Part, whole: Floats) -> tuple[Ints, bool] | None:
        """The choice that is least decided, of the weightiest kind that has any."""
        best, undecided, kind = None, 0.05, None
        for columns in self.groups:
            share = float(whole[columns].sum())
            off = min(share, 1.0 - share)
            if self._kind(columns) == "y" and off > 0.05:
                off = share  # the likeliest place of a job first
            if off > undecided and (kind is None or self._kind(columns) == kind):
                best, undecided, kind = (columns, share >= LIKELY or self._kind(columns) == "y"), off, self._kind(columns)
            elif kind is not None and self._kind(columns) != kind:
                break
        if best is None:
            for columns in self.groups:
                share = float(whole[columns].sum())
                if min(share, 1.0 - share) > WHOLE and part.most[columns].sum() > 0:
                    return columns, share >= LIKELY
        return best

    def _kind(self, columns: Ints) -> str:
        return self.kinds[columns[0]]

    def _halves(self, part: Part, columns: Ints, yes_first: bool) -> tuple[Part, Part]:
        yes, no = (Part(part.least.copy(), part.most.copy(), part.proven, part.depth + 1, part.prices) for _ in range(2))
        no.most[columns] = 0.0
        if len(columns) == 1 and self._kind(columns) != "y":
            yes.least[columns] = 1.0
        else:  # of a job: nowhere else
            y, points = self.dec.whole.columns["y"], self.dec.view.training
            job = self.dec.data.point_job[points[np.isin(y[points], columns)][0]]
            others = np.setdiff1d(y[points[self.dec.data.point_job[points] == job]], columns)
            yes.most[others] = 0.0
        return (yes, no) if yes_first else (no, yes)

    # -- plans -----------------------------------------------------------------------------------------------------

    def _rounded(self, point: Point) -> Point:
        """A point with its choices made: what is open by a fair share stays open, a job goes where most of it runs."""
        level, structure = self.level, self.level.master.structure
        data, columns, made = self.dec.data, structure.columns, point.structure.copy()
        for block in ("open", "host"):
            place = columns[block][columns[block] >= 0]
            made[place] = made[place] >= OPEN_FROM[0 if self.best is None else self.looked % 2]
        for block, first in (("z", None), ("y", data.point_job), ("run", None)):
            place = columns[block]
            made[place[place >= 0]] = 0.0
            if block == "z":
                for row in place[(place >= 0).any(axis=1)]:
                    made[row[np.argmax(np.where(row >= 0, point.structure[row], -1.0))]] = 1.0
            if block == "y":
                there = np.flatnonzero(place >= 0)
                for j in np.unique(first[there]):
                    mine = there[first[there] == j]
                    best = mine[np.argmax(point.structure[place[mine]])]
                    made[place[best]] = 1.0
                    run = columns["run"][best]
                    made[run[run >= 0]] = 1.0
                    if (site := columns["open"][self.dec.view.site[best]]) >= 0:
                        made[site] = 1.0
        host, opened = columns["host"], columns["open"]
        there = (host >= 0) & (opened >= 0)
        made[host[there]] = np.minimum(made[host[there]], made[np.broadcast_to(opened, host.shape)[there]])
        y = columns["y"]
        shares, seen = np.zeros(len(level.master.patterns)), set()
        for i, (p, _) in enumerate(level.master.patterns):
            if made[y[p]] > 0.5 and p not in seen and point.patterns[i] > NOTHING:
                seen.add(p)
                shares[i] = 1.0
        return Point(made, shares)

    def _placed(self, point: Point) -> Point:
        """Sites and hosts as in a point, the other choices as the master makes them as a whole; the point itself where it makes none."""
        structure = self.level.master.structure
        lower, upper = np.zeros(structure.size), structure.most.copy()
        free = structure.integer & (structure.most <= 1)
        for block in ("open", "host"):
            place = structure.columns[block][structure.columns[block] >= 0]
            lower[place] = upper[place] = point.structure[place]
            free[place] = False
        if not free.any():
            return point
        found = self.level.master.solve_whole(lower, upper, free, self.gap, self.seed, max(self.left(), 1.0))
        return point if found is None or self.level.master.left_undone(found[2]).max(initial=0.0) > WHOLE else found[2]

    def _finish(self, point: Point) -> None:
        """Keeps the choices of a point, lets everything else settle, makes counts whole."""
        structure = self.level.master.structure
        binary = structure.integer & (structure.most <= 1)
        point = Point(np.where(binary, np.round(point.structure), point.structure), longer(point.patterns, len(self.level.master.patterns)))
        if self.level.master.left_undone(point).any():
            return
        y = structure.columns["y"]
        points = np.array([p for p in self.level.master.places if point.structure[y[p]] > 0.5], dtype=np.int64)
        self.level.programs.raise_missing(DEAR)  # while a plan is looked for, missing anything is dear
        value, point = self._descend(point, binary, points, LINEAR_ROUNDS, SHARE * self.gap)
        missing = self._asked(point)[1]
        self.dec.say(f"choices made: {value:.6g} with counts linear, missing {missing:.3g}")
        if value < self._cutoff() and self.level.programs.missing()[1] <= HOPELESS * abs(value):
            self._whole(point, points)
        self.level.programs.raise_missing(1 / DEAR)

    def _descend(self, start: Point, fixed: np.ndarray, points: Ints, rounds: int, tolerance: float) -> tuple[float, Point]:
        """(value, point) with some of the structure fixed as in the start."""
        level, master = self.level, self.level.master
        start = Point(start.structure, longer(start.patterns, len(master.patterns)))
        best, value, box = start, self._asked(start)[0], FIRST_BOX
        for _ in range(rounds):
            best = Point(best.structure, longer(best.patterns, len(master.patterns)))
            found = master.solve(self._bounds(best, fixed, box))
            if found is None:
                if box >= LARGEST_BOX:
                    break
                box = LARGEST_BOX
                continue
            model, point, prices = found
            if value - model <= tolerance * abs(value):
                if box >= LARGEST_BOX:
                    break
                box = LARGEST_BOX
                continue
            self.dec.price_at(level, prices, points)
            point = Point(np.where(fixed, start.structure, point.structure), longer(point.patterns, len(master.patterns)))
            asked = self._asked(point)[0]
            gain = (value - asked) / max(value - model, NOTHING)
            box = min(1.5 * box, LARGEST_BOX) if gain > 0.5 else max(0.6 * box, LEAST_BOX) if gain < 0 else box
            if asked < value:
                value, best = asked, point
            if self.left() <= 0:
                break
        return value, Point(best.structure, longer(best.patterns, len(master.patterns)))

    def _bounds(self, centre: Point, fixed: np.ndarray, box: float) -> tuple[Floats, Floats]:
        structure = self.level.master.structure
        size = structure.size + len(self.level.master.patterns)
        lower, upper = np.zeros(size), np.full(size, np.inf)
        upper[: structure.size] = structure.most
        if box < LARGEST_BOX:
            place = np.concatenate([centre.structure, centre.patterns])
            reach = np.full(size, 2 * box)
            n = structure.columns["n"]
            n = n[n >= 0]
            reach[n] = box * (centre.structure[n] + 1.0)
            lower, upper = np.maximum(place - reach, lower), np.minimum(place + reach, upper)
        lower[: structure.size][fixed] = upper[: structure.size][fixed] = centre.structure[fixed]
        return lower, upper

    def _asked(self, point: Point) -> tuple[float, float]:
        """(value, how much is missing) of a point; its answer stays as cuts."""
        level = self.level
        kept = level.best, level.value
        value = self.dec.ask(level, point)
        level.best, level.value = kept
        return value, level.programs.missing()[0]

    def _whole(self, point: Point, points: Ints) -> None:
        """The best whole counts with the choices of a point, kept if nothing is missing and nothing was cheaper."""
        master = self.level.master
        structure = master.structure
        binary = structure.integer & (structure.most <= 1)
        n, seen = point.structure, set()
        for number in range(WHOLE_ROUNDS):
            lower, upper = np.zeros(structure.size), structure.most.copy()
            if number < WHOLE_ROUNDS // 2 and structure.integer.sum() > MANY:
                reach = np.where(n > NOTHING, np.maximum(ROOM * n, 2.0), 0.0)
                lower, upper = np.maximum(np.floor(n - reach), 0.0), np.minimum(np.ceil(n + reach), upper)
            lower[binary] = upper[binary] = np.round(point.structure[binary])
            shares = longer(point.patterns, len(master.patterns))  # jobs run as they did with counts linear
            found = master.solve_whole(lower, upper, structure.integer, 0.3 * self.gap, self.seed, max(self.left(), 1.0), shares)
            if found is None or found[1] >= self._cutoff():
                return
            _, least, candidate = found
            candidate = Point(np.where(structure.integer, np.round(candidate.structure), candidate.structure), shares)
            value, missing = self._asked(candidate)
            if ENOUGH < missing <= NEARLY:
                _, candidate = self._descend(candidate, structure.integer, points, DISPATCH_ROUNDS, SHARE * self.gap)
                value, missing = self._asked(candidate)
            self.dec.say(f"counts whole: {value:.6g}, missing {missing:.3g}")
            if missing <= ENOUGH and (self.best is None or value < self.best.value):
                self.best = WholePlan(self.level, candidate, value)
            if missing <= ENOUGH and value - least <= 0.5 * self.gap * abs(value):
                break
            key = candidate.structure[structure.integer].tobytes()
            if key in seen:
                break
            seen.add(key)
        if self.best is not None and self.best.level is self.level:
            value, better = self._descend(self.best.point, structure.integer, points, DISPATCH_ROUNDS, SHARE * self.gap)
            if value < self.best.value and self._asked(better)[1] <= ENOUGH:
                self.best = WholePlan(self.level, better, value)


def settle(plan: WholePlan) -> tuple[float, Floats, Floats] | None:
    """(value, flows [A, T], replicas [points, T]) with nothing missing; None where a slot has no such answer."""
    level, master = plan.level, plan.level.master
    plan.point = Point(plan.point.structure, shares_of(level, plan.point))
    for tolerance in (1e-9, 1e-7):
        level.programs.forbid_missing(tolerance)
        try:
            answer = level.programs.answer(*master.given(plan.point))
        except SolverError:
            continue
        flows, replicas, _ = level.programs.flows()
        return master.linear_cost(plan.point) + float(answer.value.sum()), flows, replicas
    return None


def shares_of(level: Level, point: Point) -> Floats:
    """The shares of the patterns, those of every place that has any adding up to 1."""
    shares = longer(point.patterns, len(level.master.patterns))
    shares = np.where(shares > SLIGHT, shares, 0.0)
    points = np.array([p for p, _ in level.master.patterns], dtype=np.int64)
    whole = np.bincount(points, weights=shares, minlength=len(level.view.data.point_job))
    return shares / np.maximum(whole[points], NOTHING) * (whole[points] > 0)
