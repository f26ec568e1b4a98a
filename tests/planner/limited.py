"""Limits that end a search at a place that no clock decides."""

from planner.estimate.limits import SearchLimits


class AfterSome(SearchLimits):
    """Limits that are reached after some looks at them."""

    looks = 2

    def ended_by(self) -> str:
        self.looks -= 1
        return "time" if self.looks < 0 else ""


def after(looks: int, seconds: float = 7.0) -> AfterSome:
    """Return limits that are reached after so many looks, and call themselves a time."""
    limits = AfterSome(time_limit_s=seconds)
    limits.looks = looks
    return limits
