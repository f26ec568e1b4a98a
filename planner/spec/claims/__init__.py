"""Claims to be judged: a figure that somebody announces, and the quantities by which arithmetic judges it."""

from planner.spec.claims.claim import JUDGES, Claim, Claims, Fact, Free, Given, Reading, Source

__all__ = ["JUDGES", "Claim", "Claims", "Fact", "Free", "Given", "Reading", "Source"]
