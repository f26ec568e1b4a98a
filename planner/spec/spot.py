"""What a spec says of systems and jobs that can be interrupted, and of bringing an architecture to a family of chips.

What the first do to a job: `planner.candidates.training`, `planner.interpret.preemption`; what the last means for a plan: `planner.resolve.porting`.
"""

from __future__ import annotations

from planner.spec.base import Block
from planner.spec.quantities import Amount, Fraction, Name, Seconds, SecondsFromStart


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
            raise ValueError('"interruption_interval" is missing; state how long a system is kept on average, such as "12 h"')
        terms = sorted(self.model_fields_set & set(SpotTerms.model_fields))
        if how != "spot" and terms:
            raise ValueError(f'"{terms[0]}" belongs to "how": "spot"; remove it')


class Preemption(Block):
    """What it costs a job that its systems are wanted for something else and it goes on later: serving comes before it at all times."""

    restart: SecondsFromStart | None = None
    """Time that is lost whenever its width comes back; that of saving the run and of recovering from any failure where it is left out."""


class Porting(Block):
    """What it costs, once, to bring an architecture to the chips of a family before anything of it runs there."""

    family: Name
    """Family of chips as in the catalog, such as "ascend"."""
    architecture: Name | None = None
    """An architecture of the catalog; each that the workloads run where it is left out."""
    cost: Amount
    """Paid at the start of the horizon, once for all sites and workloads."""
    note: str = ""
