"""A plan and a bound for a program too large to be searched: the linear part over all slots, choices made on merged ones, counts over all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvers.certificate import Bound, Prices
from solvers.choices import Choices, Chosen
from solvers.counts import Counts
from solvers.data import Floats, Ints
from solvers.decomposition import WHOLE, Decomposition
from solvers.hourwise import carried
from solvers.interior import Inside, inside, taken_over
from solvers.linked import Point
from solvers.outcome import Options
from solvers.start import blocks, linear
from solvers.whole import WholePlan

SHARE = 0.3  # of the asked gap, that the linear part may leave
LEAST_SHARE = 1e-5  # of the value, that it need not be nearer
HELD, MORE = 0.02, 20  # systems from which on a kind is held, and kinds that are counted beside those held, at least
FEW, WORSE = (1.0, 2.0, 4.0, 8.0), 5e-4  # systems below which a kind is left out, and what each time may cost, of the value
CHOOSING = 0.5  # of the time left, for choices


@dataclass(slots=True)
class Sketch:
    """`proven` holds for the full problem, at these prices."""

    proven: float = -np.inf
    plan: WholePlan | None = None
    prices: Prices | None = None


def sketch(dec: Decomposition, options: Options, left: Callable[[], float]) -> Sketch:
    """In the numbers of the decomposition, whose slots and structure are used."""
    tolerance = max(SHARE * options.gap, LEAST_SHARE)
    start = linear(dec, tolerance)
    if start is None:
        return Sketch()
    found = Sketch(start.bound.value, None, start.prices)
    cheap = _cheap(dec, options.gap * abs(start.found.value))
    for free in (cheap, np.zeros_like(cheap)) if cheap.any() else (cheap,):  # a limit may not let hosting be rounded up
        until = left() * (1 - CHOOSING)
        search = Choices(dec, start, lambda until=until: left() - until)
        chosen = search.run(free)
        linear_counts = None if chosen is None else _over_all_slots(dec, search.group, chosen, tolerance, left)
        if linear_counts is None:
            continue
        found.plan = _counted(dec, chosen, linear_counts, free, options, left)
        if found.plan is not None:
            break
    dec.say(f"plan: value {np.inf if found.plan is None else found.plan.value:.6g}, proven {found.proven:.6g}")
    return found


def _cheap(dec: Decomposition, much: float) -> np.ndarray:
    """Which columns are of hosting (a workload at a site, and the ways that its weights take), where all that could be hosted costs next to
    nothing: these are rounded up."""
    hosting = np.zeros(dec.whole.size, dtype=bool)
    for block in ("host", "edge"):
        place = dec.whole.columns[block]
        hosting[place[place >= 0]] = True
    return hosting & (dec.whole.cost[hosting].sum() <= SHARE * much)


def _over_all_slots(dec: Decomposition, group: Ints, chosen: Chosen, tolerance: float, left: Callable[[], float]) -> Inside | None:
    """The choices with linear counts."""
    lots, places = _left(dec, chosen)
    program = blocks(dec, dec.view, lots, places, chosen.least, chosen.most)
    found = inside(program, tolerance, left, taken_over(chosen.found.blocks, chosen.found.warm, program, group))
    if found is None:
        dec.say("over all slots: no room for the choices")
        return None
    dec.say(f"over all slots: {found.value:.6g} with linear counts")
    same, used, n = np.arange(dec.view.slots), dec.view.use_lot[np.isin(dec.view.use_point, places)], dec.whole.columns["n"]
    for few in FEW:  # what is as good is spread over many kinds, of which each is made whole
        held = np.zeros(len(dec.data.lot_site))
        np.maximum.at(held, dec.data.holding_lot, np.append(carried(found.blocks.structure, dec.whole, found.point().structure), 0.0)[n])
        fewer = np.union1d(np.intersect1d(lots, np.flatnonzero(held >= few)), used)
        program = blocks(dec, dec.view, fewer, places, chosen.least, chosen.most)
        again = inside(program, tolerance, left, taken_over(found.blocks, found.warm, program, same), found.value * (1 + WORSE))
        if again is None or again.value > found.value * (1 + WORSE):
            break
        found = again
        dec.say(f"over all slots: {found.value:.6g} with {len(fewer)} lots")
    return found


def _left(dec: Decomposition, chosen: Chosen) -> tuple[Ints, Ints]:
    """The lots at open sites, and the places chosen."""
    opened = np.append(chosen.most, 1.0)[dec.whole.columns["open"]] > 0
    return np.flatnonzero(opened[dec.data.lot_site]), np.flatnonzero(np.append(chosen.least, 0.0)[dec.whole.columns["y"]] > 0)


def _counted(dec: Decomposition, chosen: Chosen, found: Inside, free: np.ndarray, options: Options, left: Callable[[], float]) -> WholePlan | None:
    """A plan with these choices, near their linear counts."""
    whole, least, most = dec.whole, chosen.least.copy(), chosen.most.copy()
    lots, places = _left(dec, chosen)
    prices = dec.spread(found)
    certificate = dec.certify(prices)
    values = carried(found.blocks.structure, whole, found.point().structure)
    values[free] = np.ceil(values[free] - WHOLE)
    least[free] = most[free] = values[free]
    counted = _near(dec, values, certificate, lots, places)
    level = dec.level(counted, places)
    part = level.master.structure
    point = Point(carried(whole, part, values), found.point().running)
    dec.say(f"{len(counted)} lots counted")
    bounds = (np.maximum(carried(whole, part, least), 0.0), np.minimum(carried(whole, part, most), part.most))
    counts = Counts(dec, level, *bounds, options.gap, options.seed, left)
    return counts.run(point, prices, certificate)


def _near(dec: Decomposition, values: Floats, certificate: Bound, lots: Ints, places: Ints) -> Ints:
    """The lots that are held, those that jobs use, and of the others as many again, which lack least to be worth it."""
    n, lot = dec.whole.columns["n"], dec.data.holding_lot
    held = np.zeros(len(dec.data.lot_site), dtype=bool)
    held[lot[np.append(values, 0.0)[n] > HELD]] = True
    held[dec.view.use_lot[np.isin(dec.view.use_point, places)]] = True
    lacks = np.full(len(held), np.inf)
    np.minimum.at(lacks, lot, np.append(certificate.entering, np.inf)[n] / np.maximum(dec.lot_cost[lot], WHOLE))
    others = lots[~held[lots]]
    more = others[np.argsort(lacks[others], kind="stable")][: max(int(held.sum()), MORE)]
    return np.union1d(np.flatnonzero(held), more)
