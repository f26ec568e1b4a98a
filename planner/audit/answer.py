"""Judge claims and tell the answer: rows for every format, and the whole derivation of one claim."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog.lookup import Catalog
from planner.audit.inputs import Inputs
from planner.audit.judges import WAYS, Finding
from planner.audit.quantities import COUNTED, digits, unit_words
from planner.audit.reading import SHIPPED, parse_claims, read_claims
from planner.audit.verdicts import Condition, Verdict
from planner.errors import Issue, SpecError, close_matches
from planner.messages import Message, listed, say
from planner.spec.claims import Claim

_CODES = {
    Verdict.HOLDS: "audit.holds",
    Verdict.HOLDS_WHEN: "audit.holds_when",
    Verdict.CANNOT_BE: "audit.cannot_be",
    Verdict.MISLABELLED: "audit.mislabelled",
    Verdict.CONFLICT: "audit.conflict",
    Verdict.ATTRIBUTION: "audit.attribution",
    Verdict.NO_ARITHMETIC: "audit.no_arithmetic",
}


THINGS = {*COUNTED, "chip", "token", "request"}  # that come in whole numbers
ROUNDING = 1e-9  # by which an edge found by bisection may miss a whole number


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with what its judge saw and found."""

    claim: Claim
    inputs: Inputs
    finding: Finding

    @property
    def command(self) -> str:
        """Return a line of a shell that prints our figure from the printed inputs; empty where there is none."""
        if not self.finding.closed_form:
            return self.further[0] if self.further else ""
        needs = "from math import sqrt; " if "sqrt(" in self.finding.closed_form else ""
        return f"python3 -c {shlex.quote(f'{needs}print({self.finding.closed_form})')}"

    @property
    def further(self) -> list[str]:
        """List the commands of this program that answered a quantity, show a record or show more."""
        found = [self.claim.command, *(each.command for each in self.inputs.quantities.values())]
        for fact in self.claim.facts:
            if isinstance(fact.known.value, str) and fact.known.value.startswith("@"):
                record = fact.known.value[1:].rpartition("/")[0]
                found.append(f"flopwatt catalog show {shlex.quote(record)}")
        return list(dict.fromkeys(each for each in found if each))

    @property
    def condition(self) -> str:
        """Say where the claim holds; empty where it holds everywhere or nowhere."""
        found = self.finding.condition
        return _condition(found) if found is not None else ""

    @property
    def verdict(self) -> str:
        """Say the verdict, with the condition or what the figure is."""
        words = say(_CODES[self.finding.verdict])
        if self.finding.condition is not None:
            return say("audit.verdict_when", condition=self.condition)
        if self.finding.is_:
            return say("audit.verdict_is", what=self.finding.is_)
        return words

    @property
    def figure(self) -> str:
        """Write our figure with its unit."""
        if self.finding.ours is None:
            return ""
        return f"{digits(self.finding.ours)} {self.finding.unit}".strip()

    @property
    def interval(self) -> str:
        """Write the range of our figure; empty where it has none."""
        low, high = self.finding.low, self.finding.high
        if low is None or high is None or digits(low) == digits(high):
            return ""
        return f"{digits(low)}..{digits(high)}"

    def short(self) -> dict[str, Any]:
        """Return the row of a table for a terminal."""
        ours = f"{self.figure} ({self.interval})" if self.interval else self.figure
        return {
            say("audit.head_id"): self.claim.id,
            say("audit.head_claimed"): self.claimed,
            say("audit.head_ours"): ours,
            say("audit.head_verdict"): self.verdict,
        }

    def row(self) -> dict[str, Any]:
        """Return the row of a table on a page."""
        short = self.short()
        return {
            say("audit.head_id"): short.pop(say("audit.head_id")),
            say("audit.head_says"): self.claim.says,
            **short,
            say("audit.head_arithmetic"): self.finding.line,
            say("audit.head_command"): self.command,
        }

    @property
    def claimed(self) -> str:
        """Write the claimed figure; of properties, those that the verdict is about."""
        if self.claim.figure is not None:
            return str(self.claim.figure)
        return "; ".join(dict.fromkeys(each.claimed for each in self.inputs.properties))

    def document(self) -> dict[str, Any]:
        """Return everything as JSON: our figure in the claimed unit, quantities in SI."""
        finding, condition = self.finding, self.finding.condition
        return {
            "id": self.claim.id,
            "source": self.claim.source.model_dump(),
            "systems": list(self.claim.systems),
            "says": self.claim.says,
            "claimed": self.claim.figure,
            "sense": self.claim.sense,
            "judge": self.claim.judge,
            "verdict": str(finding.verdict),
            "words": str(self.verdict),
            "condition": None if condition is None else _condition_row(condition),
            "is": finding.is_ or None,
            "ours": finding.ours,
            "low": finding.low,
            "high": finding.high,
            "unit": finding.unit,
            "arithmetic": finding.line,
            "closed_form": finding.closed_form,
            "command": self.command,
            "further_commands": self.further,
            "note": self.claim.note,
            "quantities": [
                {
                    "name": name, "stated": each.stated, "value": each.value, "low": each.low, "high": each.high,
                    "unit": unit_words(each.dimensions), "source": each.source, "command": each.command, "key": each.key,
                }
                for name, each in self.inputs.quantities.items()
            ],
            "properties": [
                {"what": each.what, "claimed": each.claimed, "known": each.known, "source": each.source} for each in self.inputs.properties
            ],
        }  # fmt: skip

    def flat(self) -> dict[str, Any]:
        """Return a row of CSV."""
        found = self.document()
        source, condition = found.pop("source"), found.pop("condition")
        quantities, properties = found.pop("quantities"), found.pop("properties")
        return {
            **{
                key: "" if value is None else value
                for key, value in found.items()
                if key not in ("systems", "further_commands")
            },
            "title": source["title"],
            "publisher": source["publisher"],
            "systems": "; ".join(found["systems"]),
            "further_commands": "; ".join(found["further_commands"]),
            "condition_of": "" if condition is None else condition["of"],
            "condition_least": "" if condition is None or condition["least"] is None else condition["least"],
            "condition_most": "" if condition is None or condition["most"] is None else condition["most"],
            "quantities": "; ".join(f"{each['name']} = {each['stated']}" for each in quantities),
            "properties": "; ".join(f"{each['what']}: {each['claimed']} | {each['known']}" for each in properties),
        }

    def derivation(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (heading, rows) of the whole derivation."""
        claim = self.claim
        head = [
            ("audit.head_says", claim.says),
            ("audit.head_source", f"{claim.source.title} ({claim.source.publisher})"),
            (
                "audit.head_claimed",
                ""
                if claim.figure is None
                else say("amount.in_unit", amount=_sense(claim.sense), unit=str(claim.figure)),
            ),
            ("audit.head_judge", say(f"audit.judge_{claim.judge}")),
            ("audit.head_arithmetic", self.finding.line),
            ("audit.head_ours", self.figure),
            ("audit.head_interval", self.interval),
            ("audit.head_verdict", self.verdict),
            ("audit.head_condition_range", _edge(self.finding.condition)),
            ("audit.head_command", self.command),
            *(("audit.head_further", each) for each in self.further if each != self.command),
            ("audit.head_note", claim.note),
        ]
        rows = [{say("audit.head_what"): say(code), say("audit.head_value"): text} for code, text in head if text]
        found = [(say("audit.section_claim", id=claim.id), rows)]
        if self.inputs.quantities:
            found.append(
                (
                    say("audit.section_quantities"),
                    [_quantity_row(name, each) for name, each in self.inputs.quantities.items()],
                )
            )
        if self.inputs.properties:
            found.append(
                (say("audit.section_properties"), [
                    {say("audit.head_what"): each.what, say("audit.head_claimed"): each.claimed, say("audit.head_known"): each.known, say("audit.head_from"): each.source}
                    for each in self.inputs.properties
                ])
            )  # fmt: skip
        return found


def _quantity_row(name: str, each: Any) -> dict[str, Any]:
    unit = unit_words(each.dimensions)
    span = "" if each.is_exact else f"{digits(each.low)}..{digits(each.high)}"
    return {
        say("audit.head_name"): name,
        say("audit.head_stated"): each.stated,
        say("audit.head_si"): f"{digits(each.value)} {unit}".strip(),
        say("audit.head_interval"): span,
        say("audit.head_from"): each.source,
        say("audit.head_command"): each.command,
    }


def _sense(sense: str) -> str:
    return say(f"audit.sense_{sense.replace(' ', '_')}")


def _condition(found: Condition) -> str:
    """Say where a claim holds."""
    name, free = found.free.words, found.free
    least, most = (
        None if each is None else f"{digits(whole(each, free.unit))} {free.unit}".strip()
        for each, whole in (
            (None if found.least is None else found.least / free.factor, _next_whole),
            (None if found.most is None else found.most / free.factor, _last_whole),
        )
    )
    if least is not None and most is not None:
        return say("audit.when_between", name=name, least=least, most=most)
    if least is not None:
        return say("audit.when_least", name=name, least=least)
    return say("audit.when_most", name=name, most=str(most))


def _next_whole(value: float, unit: str) -> float:
    """Round the least value of a thing that is counted up to a whole number; other values stay.

    >>> _next_whole(8.036, "nodes"), _next_whole(3.0000000001, "chips"), _next_whole(0.97, "GB")
    (9, 3, 0.97)
    """
    return math.ceil(value * (1 - ROUNDING)) if unit.removesuffix("s") in THINGS else value


def _last_whole(value: float, unit: str) -> float:
    """Round the largest value of a thing that is counted down to a whole number; other values stay.

    >>> _last_whole(26.61, "tokens")
    26
    """
    return math.floor(value * (1 + ROUNDING)) if unit.removesuffix("s") in THINGS else value


def _edge(found: Condition | None) -> str:
    if found is None or digits(found.low) == digits(found.high):
        return ""
    factor = found.free.factor
    return f"{digits(found.low / factor)}..{digits(found.high / factor)} {found.free.unit}".strip()


def _condition_row(found: Condition) -> dict[str, Any]:
    factor = found.free.factor
    return {
        "of": found.free.name,
        "least": None if found.least is None else found.least / factor,
        "most": None if found.most is None else found.most / factor,
        "low": found.low / factor,
        "high": found.high / factor,
        "unit": found.free.unit,
        "from": found.free.start / factor,
        "to": found.free.end / factor,
    }


@dataclass(frozen=True, slots=True)
class Audit:
    """Claims with their verdicts, in the order of the file."""

    judged: tuple[Judged, ...]

    @property
    def document(self) -> list[dict[str, Any]]:
        """Return every claim with everything as JSON."""
        return [each.document() for each in self.judged]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of CSV."""
        return [each.flat() for each in self.judged]

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """Count the claims by verdict."""
        return {verdict: sum(each.finding.verdict is verdict for each in self.judged) for verdict in Verdict}

    @property
    def words(self) -> str:
        """Say how many claims have which verdict."""
        counts = listed(
            say("audit.count_of", count=count, verdict=say(_CODES[verdict]))
            for verdict, count in self.counts.items()
            if count
        )
        return say("audit.counted", claims=len(self.judged), counts=counts)

    def sections(self, short: bool = False) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (source, rows) in the order of the file; `short`: rows that fit on a terminal."""
        found: dict[str, list[dict[str, Any]]] = {}
        for each in self.judged:
            title = f"{each.claim.source.title} ({each.claim.source.publisher})"
            found.setdefault(title, []).append(each.short() if short else each.row())
        return list(found.items())

    def one(self, id: str) -> Judged:
        """Find a claim by its id. Raises SpecError with the ids that are close."""
        for each in self.judged:
            if each.claim.id == id:
                return each
        close = close_matches(id, [each.claim.id for each in self.judged])
        raise SpecError([Issue("--claim", Message.of("audit.no_such_claim", id=id, close=close).text())])


def audit(file: str | Path | None = None, *, only: Sequence[str] = (), overlays: Sequence[Path] = ()) -> Audit:
    """Judge the claims of a file, or those that come with the program; `only`: systems whose claims are judged. Raises SpecError, OSError."""
    path = SHIPPED if file is None else Path(file)
    return judge(parse_claims(read_claims(path), Catalog.load(overlays), path.parent), only)


def judge(claims: Sequence[tuple[Claim, Inputs]], only: Sequence[str] = ()) -> Audit:
    """Judge claims whose inputs are resolved. Raises SpecError where none is of the systems of `only`."""
    wanted = {name.lower() for name in only}
    chosen = [
        (claim, inputs) for claim, inputs in claims if not wanted or wanted & {each.lower() for each in claim.systems}
    ]
    if not chosen:
        known = sorted({each for claim, _ in claims for each in claim.systems})
        raise SpecError(
            [Issue("--only", Message.of("audit.none_of", given=", ".join(only), known=", ".join(known)).text())]
        )
    return Audit(tuple(Judged(claim, inputs, WAYS[claim.judge].judge(inputs)) for claim, inputs in chosen))
