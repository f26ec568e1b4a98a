"""What a spec says of systems and jobs that can be interrupted, and of bringing an architecture to a family of chips.

What the first do to a job: `planner.candidates.training`, `planner.interpret.preemption`; what the last means for a plan: `planner.resolve.porting`.
"""

from __future__ import annotations

from planner.spec.base import Block
from planner.spec.quantities import Fraction, Seconds, SecondsFromStart


class SpotTerms(Block):
    """The terms of an offer on the spot market; all of them belong to "how": "spot"."""

    interruption_interval: Seconds | None = None
    """Mean time until one system is taken away."""
    restart: SecondsFromStart = 0.0
    """Until another stands in its place, beside the time in which a job recovers from any failure."""
    headroom: Fraction | None = None
    """Part by which serving holds more systems than it needs, for those that are taken away; without it nothing is served there."""

    def check_terms(self, how: str) -> None:
        """Raises ValueError where a term is missing, or stands with another way to obtain."""
        if how == "spot" and self.interruption_interval is None:
            raise ValueError(
                '"interruption_interval" is missing; state how long a system is kept on average, such as "12 h"'
            )
        terms = sorted(self.model_fields_set & set(SpotTerms.model_fields))
        if how != "spot" and terms:
            raise ValueError(f'"{terms[0]}" belongs to "how": "spot"; remove it')
