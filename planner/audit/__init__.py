"""Judge claims by arithmetic: figures that somebody announces, beside what follows from units, rooflines, prices, plans and the catalog."""

from planner.audit.answer import Audit, Judged, audit
from planner.audit.judges import Finding
from planner.audit.verdicts import Verdict

__all__ = ["Audit", "Finding", "Judged", "Verdict", "audit"]
