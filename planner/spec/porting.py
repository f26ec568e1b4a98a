"""Block of a spec about porting architectures to families of chips."""

from __future__ import annotations

from planner.spec.base import Block
from planner.spec.quantities import Amount, Name


class Porting(Block):
    """One-off cost of porting an architecture to the chips of a family before it can run there."""

    family: Name
    """Family of chips as in the catalog, such as "ascend"."""
    architecture: Name | None = None
    """An architecture of the catalog; if omitted, each architecture that the workloads run."""
    cost: Amount
    """Paid at the start of the horizon, once for all sites and workloads."""
    note: str = ""
