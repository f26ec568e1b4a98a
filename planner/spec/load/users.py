"""Block of a spec about users as demand: how many there are, how many of them at once, and how often each of these asks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, model_validator

from catalog.units import HOUR_S
from models.arrays import sum_of
from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import WHOLE, Real, Seconds, SecondsFromStart

HOURS_PER_DAY = 24
Share = Annotated[Real, Field(gt=0, le=1)]


class Users(Block):
    """Users of a service: the demand of its busiest hour is the number of users at once, times the requests of each per hour."""

    count: Annotated[Real, Field(gt=0, le=1e11)]
    """Users of the service, of all origins together."""
    share_at_once: Share = 1.0
    """Share of the users who use the service at once, in the busiest hour of their day; all if omitted."""
    requests_per_hour: Annotated[Real, Field(gt=0, le=1e6)] | None = None
    """Requests of one user per hour of use, whatever the service answers in; give this or `think_time`."""
    think_time: SecondsFromStart | None = None
    """Mean time from the end of an answer to the user's next request, a closed loop; needs `response_time`."""
    response_time: Seconds | None = None
    """Mean time from a request to the end of its answer, as measured or as an estimate states it. Each user sends
    1/(`think_time` + `response_time`)."""
    peak_hour: Annotated[int, Field(ge=0, le=23), WHOLE] | None = None
    """Local hour of the day in which most users are at work; needs `least_share_at_once`. `profile` states other shapes; flat without either."""
    least_share_at_once: Share | None = None
    """Share of the users at once in the quietest hour, twelve hours from `peak_hour`; a cosine joins the two."""

    @model_validator(mode="after")
    def _known_rate_and_shape(self) -> Users:
        if self.think_time is None and self.response_time is not None:
            raise ValueError(Message.of("users.response_time_needs_think_time").text())
        if (self.requests_per_hour is None) == (self.think_time is None):
            raise ValueError(Message.of("users.give_requests_or_think_time").text())
        if self.think_time is not None and self.response_time is None:
            raise ValueError(Message.of("users.think_time_needs_response_time").text())
        if (self.peak_hour is None) != (self.least_share_at_once is None):
            raise ValueError(Message.of("users.peak_hour_needs_least_share").text())
        if self.least_share_at_once is not None and self.least_share_at_once > self.share_at_once:
            least, most = f"{self.least_share_at_once:g}", f"{self.share_at_once:g}"
            raise ValueError(Message.of("users.least_share_above_share", least=least, most=most).text())
        return self

    @property
    def requests_per_user_s(self) -> float:
        """Compute the rate at which a user at work sends requests [1/s]: as stated, or  1/(Z + R)  of a closed loop, by Little's law.

        Z: think time, R: response time. Source: the response time law of interactive systems (Denning and Buzen, 1978).
        """
        if self.requests_per_hour is not None:
            return self.requests_per_hour / HOUR_S
        return 1.0 / ((self.think_time or 0.0) + (self.response_time or 0.0))

    @property
    def peak_requests_per_s(self) -> float:
        """Compute the demand of the busiest hour [request/s]:  users x share at once x rate of each."""
        return self.count * self.share_at_once * self.requests_per_user_s

    def weights(self) -> list[float]:
        """Compute the weights of the 24 local hours, 1 in the busiest:  (1 + q + (1 - q) cos(2 pi (h - p)/24))/2, flat without a `peak_hour`.

        p: busiest hour, q: least share at once over the largest.
        """
        if self.peak_hour is None or self.least_share_at_once is None:
            return [1.0] * HOURS_PER_DAY
        least, turn = self.least_share_at_once / self.share_at_once, 2.0 * math.pi / HOURS_PER_DAY
        hours = range(HOURS_PER_DAY)
        return [0.5 * (1.0 + least + (1.0 - least) * math.cos(turn * (hour - self.peak_hour))) for hour in hours]

    def mean_requests_per_s(self, profile: Sequence[float] | None) -> float:
        """Compute the mean demand over a day [request/s]: that of the busiest hour, times mean over largest weight of the hours."""
        weights = profile or self.weights()
        return self.peak_requests_per_s * sum_of(weights) / len(weights) / max(weights)
