"""Block of a spec about classes of requests, such as tenants', that wait in one queue by priority."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from models.arrays import sum_of
from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import WHOLE, Name, Real
from planner.spec.slo import TTFT, LatencyLimit, Percentiles


class RequestClass(Block):
    """Requests of one tenant or urgency: requests of a lower number go before all others that wait; none is interrupted."""

    name: Name
    share: Annotated[Real, Field(ge=1e-6, le=1)]
    """Its share of the requests; the shares of all classes add up to 1."""
    priority: Annotated[int, Field(ge=1, le=1000), WHOLE] = 1
    """1 goes first; classes of one number wait in order of arrival."""
    ttft: Percentiles | None = None
    """Limits on the time to first token of its requests, beside those of the workload, which hold for all requests together."""

    def limits(self) -> list[LatencyLimit]:
        """List every limit given, as the user at the origin sees it."""
        return [] if self.ttft is None else [LatencyLimit(TTFT, name, value) for name, value in self.ttft.limits()]


def wrong_classes(classes: list[RequestClass]) -> str:
    """Describe the fault of the classes of a workload; empty if nothing is."""
    total = sum_of(each.share for each in classes)
    if abs(total - 1) > 1e-6:
        return Message.of("spec.shares_sum", total=f"{total:g}").text()
    names = [each.name for each in classes]
    return Message.of("spec.class_twice").text() if len(set(names)) < len(names) else ""
