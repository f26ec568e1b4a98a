"""Open arrivals at a server and then at a number of places, or at equal servers: their waits, and their waits at a multiple of the rate."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from models.arrays import Result, as_result, picked
from models.queueing.queues import clumped_wait_probability, delayed_scv, erlang_c, place_wait, wait_mean_s


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What the waits of open arrivals depend on; every array has a shape that broadcasts to that of the waits."""

    load: Result  # at the server that they queue for first [1]
    occupancy: Result  # mean number of those in places, or on their way there
    variance: Result  # the same number's
    places: Result
    rate: Result  # [1/s]
    full_rate: Result  # with all places full [1/s]
    scv: Result  # squared coefficient of variation of the gaps between arrivals
    stay_scv: Result  # squared coefficient of variation of the stays in a place

    def pick(self, index: tuple[int, ...]) -> Arrivals:
        """Pick the arrivals at an index of the shape of the waits."""
        return Arrivals(*(picked(getattr(self, field.name), index) for field in fields(self)))

    def place_wait(self, times: float = 1.0) -> tuple[Result, Result]:
        """Predict (chance to wait for a place [1], mean of those who wait [s]) at a multiple of the rate:  `queues.place_wait`.

        As many times more of them are inside, by Little's law at the stays of today; so is the variance, as of a Poisson number.
        """
        return place_wait(
            times * np.asarray(self.occupancy), times * np.asarray(self.variance), self.places, times * np.asarray(self.rate), self.full_rate,
            self.scv, self.stay_scv,
        )  # fmt: skip

    def place_wait_at(self, times: float, wait_s: Result) -> tuple[Result, Result]:
        """Scale the mean wait of all for a place from this rate to a multiple: (wait, chance to wait).

        Shapes: broadcast. Units: [s] and [1]. Reference: the ratio of `place_wait` at both rates.

        >>> held = Arrivals(0.5, 90.0, 90.0, 100.0, 90.0, 100.0, 1.0, 1.0)
        >>> [float(held.place_wait_at(times, 3.0)[0]) for times in (1.0, 1.2)]
        [3.0, inf]
        """
        few, each = self.place_wait()
        more, longer = self.place_wait(times)
        known = (few > 0.0) & np.isfinite(each)  # else the times of these arrivals themselves count
        with np.errstate(invalid="ignore"):  # nobody waits, however long it takes
            before, after = np.where(known, few * each, 1.0), np.where(more > 0.0, more * longer, 0.0)
        found = after / before * np.where(known, wait_s, 1.0)
        return as_result(found), as_result(more)

    def server_wait_at(self, times: float, wait: tuple[Result, Result, Result]) -> tuple[Result, Result, Result]:
        """Scale a wait for the server, (mean of all [s], chance [1], squared coefficient of variation of those who wait [1]), likewise.

        Mean x r (1 - u)/(1 - r u) for r times the rate and load u, infinite from r u = 1 on; chance x r; 1 - scv x (1 - r u)/(1 - u).
        Shapes: broadcast. Exact for M/G/1. Reference: Pollaczek (1930), Khinchine (1932); `queues.delayed_scv`.

        >>> [round(float(x), 6) for x in Arrivals(0.5, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0).server_wait_at(1.5, (1.0, 0.5, 0.5))]
        [3.0, 0.75, 0.75]
        """
        mean, chance, scv = (np.asarray(part, float) for part in wait)
        load = np.minimum(self.load, 1.0)
        left, stable = 1.0 - times * load, times * np.asarray(load) < 1.0
        share = np.where(stable, left, 0.0) / np.maximum(1.0 - load, 1e-300)
        longer = times / np.where(stable, np.maximum(share, 1e-300), 1.0)
        return (
            as_result(np.where(stable, mean * longer, np.inf)),
            as_result(np.minimum(times * chance, 1.0)),
            as_result(np.maximum(1.0 - (1.0 - scv) * share, 0.0)),
        )


@dataclass(frozen=True, slots=True)
class AtServers:
    """Open arrivals at a number of equal servers; every array has a shape that broadcasts to that of the waits."""

    rate: Result  # [1/s]
    service_s: Result
    service_scv: Result  # squared coefficient of variation of the service
    servers: Result
    scv: Result  # squared coefficient of variation of the gaps between arrivals

    def pick(self, index: tuple[int, ...]) -> AtServers:
        """Pick the arrivals at an index of the shape of the waits."""
        return AtServers(*(picked(getattr(self, field.name), index) for field in fields(self)))

    def wait_at(self, times: float = 1.0) -> tuple[Result, Result, Result]:
        """Predict the wait for a server at a multiple of the rate: (mean of all, chance, squared coefficient of variation of those who wait).

        G/G/c, infinite where that is as much as the servers serve. Shapes: broadcast. Units: times [1], result [s], [1] and [1].
        Reference: as `queues.wait_mean_s`, `queues.clumped_wait_probability` and `queues.delayed_scv`.

        >>> busy = AtServers(0.5, 1.0, 1.0, 1.0, 1.0)
        >>> [round(float(busy.wait_at(times)[0]), 9) for times in (1.0, 1.5, 2.0)]
        [1.0, 3.0, inf]
        """
        rate = times * np.asarray(self.rate, float)
        queued = erlang_c(self.servers, rate * self.service_s)
        busy = np.minimum(rate * self.service_s / self.servers, 1.0)
        mean = wait_mean_s(rate, self.service_s, self.service_scv, self.servers, queued, self.scv)
        return mean, clumped_wait_probability(queued, self.scv), delayed_scv(busy, self.service_scv)
