"""Compare two accuracy reports check by check; accuracy.py --against FILE fails where a median got worse by more than a point."""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.tables import as_markdown

MOST_LOST = 1.0  # point by which a median may rise
MEDIAN = re.compile(r"^\| (?P<check>[^|]*leave-[^|]*median[^|]*) \| [^|]* \| (?P<result>-?[\d.]+) %", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Change:
    """A median error of a tier in both reports [%]."""

    check: str
    before: float
    after: float

    @property
    def lost(self) -> bool:
        """Whether it rose by more than is allowed."""
        return self.after - self.before > MOST_LOST


def medians(report: str) -> dict[str, float]:
    """Read the medians of rows left out from the tables of goals [%], by chapter and check."""
    found = {}
    for part in re.split(r"^(?=## )", report, flags=re.MULTILINE)[1:]:
        chapter = re.match(r"## (\w+)", part)[1].lower()
        found |= {f"{chapter}: {match['check'].strip()}": float(match["result"]) for match in MEDIAN.finditer(part)}
    return found


def changes(old: str, new: str) -> list[Change]:
    """Pair the medians that both reports state, the greatest loss first. Raises ValueError where they have none in common."""
    before, after = medians(old), medians(new)
    found = [Change(check, before[check], after[check]) for check in before.keys() & after.keys()]
    if not found:
        raise ValueError("no median of rows left out stands in both reports; compare with a report of accuracy.py")
    return sorted(found, key=lambda each: (each.before - each.after, each.check))


def change_table(found: list[Change]) -> str:
    """Tabulate what changed by a tenth of a point or more."""
    rows = [
        {"check": each.check, "before": f"{each.before:.1f} %", "now": f"{each.after:.1f} %", "change": f"{each.after - each.before:+.1f}",
         "": "worse" if each.lost else ""}
        for each in found if abs(each.after - each.before) >= 0.05
    ]  # fmt: skip
    return as_markdown(rows) if rows else "No median changed."
