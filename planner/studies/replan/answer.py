"""Plan again from a day on, with what was observed by then, beside the same day with everything as planned.

Both plans hold what was bought and is committed; their difference is what the observations change, in money from the day on and in systems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from planner.errors import Issue, SpecError
from planner.facts import Fact
from planner.messages import Message, say
from planner.pipeline import solve_document
from planner.plan import Plan
from planner.plan.rows.adapt import Adaptation
from planner.plan.rows.fleet import Owned
from planner.report.words import amount, how_words, share_words
from planner.solving.standing import Progress
from planner.solving.variants import resolved
from planner.spec.document import edited
from planner.studies.against.actual import assumptions_of, catalog_used
from planner.studies.against.assumption import RATE, Assumption
from planner.studies.against.figures_file import Figures
from planner.studies.against.worth import with_actual
from planner.studies.compare import TABLES, Comparison, compare
from planner.studies.replan.held import Holding, Place, as_delivered, planned_holdings
from planner.studies.replan.rebased import Observed, Rebased, rebased
from planner.studies.replan.triggers import OBTAIN, held_against, table
from planner.studies.replan.triggers import words as words_on_rules

RECENT_D = 28
"""Days before the day of the new plan whose rows of rates, lengths, latencies and power count; deliveries, progress and prices count by their latest row."""
SHOWN = ("parts", "fleet", "deployments", "limits")
"""Tables of the difference between both plans that people read."""
KEEP, SELL, GIVE_BACK = "keep", "sell", "give_back"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Replanned:
    """The plan from `day` on (`after`), beside the one from that day on with everything as planned (`as_planned`); `overlay`: of calibrated constants."""

    plan: Plan
    day: date
    assumptions: tuple[Assumption, ...]
    holdings: tuple[Holding, ...]
    as_planned: Plan
    after: Plan
    overlay: Path | None
    notes: tuple[Message, ...] = ()
    read: tuple[Fact, ...] = ()
    comparison: Comparison | None = field(default=None, repr=False)

    @property
    def difference(self) -> float | None:
        """Return the objective from the day on less what it would be with everything as planned; None where either plan has no answer."""
        if not (self.after.has_answer and self.as_planned.has_answer):
            return None
        return self.after.value - self.as_planned.value

    @property
    def doubt(self) -> float:
        """Return the sum of the gaps of both plans, in the unit of the objective: a smaller difference may come from the search."""
        return sum(
            abs(plan.value) * float(plan.document["gap"] or 0.0)
            for plan in (self.as_planned, self.after)
            if plan.has_answer
        )

    @property
    def rows(self) -> list[Row]:
        """Return what to do from the day on as one flat table: keep, sell, give back, obtain."""
        return actions(self.after)

    @property
    def rules(self) -> list[Row]:
        """Return the rules of a plan with `adapt`, each with the observed need and whether it has fired."""
        return held_against(self.plan, self.day, self.assumptions)

    @property
    def document(self) -> Row:
        """Return everything as JSON."""

        def head(plan: Plan) -> Row:
            return {
                "status": plan.status,
                "value": plan.document["objective"]["value"],
                "bound": plan.document["bound"],
            }

        return {
            "plan": self.plan.document["name"], "date": self.day.isoformat(), "unit": self.plan.objective["unit"],
            "observed": [_assumption(each) for each in self.assumptions],
            "held": [_held(each) for each in self.holdings],
            "triggers": self.rules,
            "as_planned": head(self.as_planned), "after": head(self.after), "difference": self.difference, "doubt": self.doubt,
            "actions": self.rows,
            "comparison": None if self.comparison is None else self.comparison.document,
            "notes": [each.row() for each in self.notes] + [fact.row() for fact in self.read],
        }  # fmt: skip

    @property
    def words(self) -> list[str]:
        """Say how many systems are held, what the observations change, and what was not taken over."""
        day, unit = self.day.isoformat(), self.plan.objective["unit"]
        counts = {
            how: sum(each.count for each in self.holdings if each.offer.how == how) for how in ("buy", "reserved")
        }
        late = sum(each.late for each in self.holdings)
        words = [say("replan.held", day=day, bought=counts["buy"], reserved=counts["reserved"])]
        if late:
            words.append(say("replan.late", count=late))
        words += words_on_rules(self.rules, self.rows)
        difference = self.difference
        if difference is None:
            bad = self.after if not self.after.has_answer else self.as_planned
            code = "replan.no_plan" if bad is self.after else "replan.none_as_planned"
            words.append(say(code, status=say(f"status.{bad.status}")))
        else:
            code = "replan.more" if difference > 0 else "replan.less"
            share = share_words(abs(difference / self.as_planned.value)) if self.as_planned.value else ""
            words.append(say(code, day=day, value=f"{amount(self.after.value)} {unit}", money=f"{amount(abs(difference))} {unit}", share=share))  # fmt: skip
            adapted: list[Adaptation | None] = [
                plan.document.get("adaptation") for plan in (self.as_planned, self.after)
            ]
            costs = [amount(each["fresh"]["cost"]) for each in adapted if each is not None]
            if len(costs) == len(adapted):
                words.append(say("replan.expected", planned=f"{costs[0]} {unit}", observed=f"{costs[1]} {unit}"))
            if abs(difference) <= self.doubt:
                words.append(say("replan.doubt", money=f"{amount(self.doubt)} {unit}"))
        return [*words, *(note.text() for note in self.notes)]

    @property
    def sections(self) -> list[tuple[str, list[Row]]]:
        """Return (heading, rows), formatted for people."""
        observed = [
            {say("replan.column_figure"): each.name, say("replan.column_planned"): each.shown(each.planned), say("replan.column_observed"): each.shown(each.actual),
             say("replan.column_factor"): f"{each.factor:.3g}"}
            for each in self.assumptions
        ]  # fmt: skip
        done = [
            {say("replan.column_do"): say(f"replan.do_{row['do']}"), say("replan.column_count"): row["count"], say("replan.column_system"): row["system"],
             say("replan.column_how"): how_words(row["how"]), say("replan.column_site"): row["site"], say("replan.column_until"): row["until"] or ""}
            for row in self.rows
        ]  # fmt: skip
        rules = [(say("replan.head_rules"), rows)] if (rows := table(self.rules)) else []
        found = [
            (say("replan.head_observed"), observed),
            *rules,
            (say("replan.head_do", day=self.day.isoformat()), done),
        ]
        if self.comparison is not None:
            adapts = self.after.document.get("adaptation") is not None
            if adapts and (rows := held_from_now((self.as_planned, self.after))):
                found.append((say("replan.head_held", day=self.day.isoformat()), rows))
            code = "replan.head_predicted" if adapts else "replan.head_change"
            found += [(say(code, table=TABLES[table]), rows) for table, rows in self.comparison.printed(SHOWN) if rows]
        return found


def _assumption(each: Assumption) -> Row:
    return {"kind": each.kind, "of": each.of, "name": each.name, "unit": each.unit, "planned": each.planned, "observed": each.actual, "factor": each.factor}  # fmt: skip


def _held(each: Holding) -> Row:
    return {
        "site": each.site, "system": each.offer.system, "how": each.offer.how, "count": each.count, "late": each.late,
        "delivered": each.came.isoformat(), "price": each.price,
    }  # fmt: skip


def actions(plan: Plan) -> list[Row]:
    """List what a plan does with systems: keep, sell or give back what it starts with, and obtain others (of those by the hour, the most at once).

    Rows of one action on one kind at one site until one day are one row. Of a plan with `adapt` counts its first stage, not the plan as predicted: contracts
    run, for later dates decide which go back.
    """
    adapted: Adaptation | None = plan.document.get("adaptation")
    counts: Counter[tuple[str, str, str, str, str | None]] = Counter()

    def add(do: str, row: Mapping[str, Any], how: str, count: int, until: str | None = None, site: str = "") -> None:
        if count:
            counts[do, row["system"], how, site or row["site"], until] += count

    for do, row, count, site in _owned(plan, adapted):
        add(do, row, "buy", count, site=site)
    for rent in plan.document.get("rented") or ():
        if adapted is not None:
            add(KEEP, rent, "reserved", rent["count"], rent["until"])
            continue
        add(KEEP, rent, "reserved", rent["kept"], rent["until"])
        for more in rent["extended"]:
            add(KEEP, rent, "reserved", more["count"], more["day"])
        for back in rent["given_back"]:
            add(GIVE_BACK, rent, "reserved", back["count"], back["day"])
    for signed in () if adapted is None else adapted["sign"]:
        if signed["offer"].startswith("offers"):
            add(OBTAIN, signed, signed["how"], signed["count"])
    new: dict[tuple[str, str, str, str], int] = {}
    for held in () if adapted is not None else plan.fleet:
        if held["offer"].startswith("offers") and held["how"] != "api":
            key = (held["system"], held["how"], held["site"], held["offer"])
            by_window = held["how"] in ("on_demand", "spot")
            new[key] = max(new.get(key, 0), held["count"]) if by_window else new.get(key, 0) + held["count"]
    for (system, how, site, _), count in new.items():
        add(OBTAIN, {"system": system, "site": site}, how, count)
    return [
        {"do": do, "count": count, "system": system, "how": how, "site": site, "until": until}
        for (do, system, how, site, until), count in counts.items()
    ]


def _owned(plan: Plan, adapted: Adaptation | None) -> Iterator[tuple[str, Owned, int, str]]:
    """Yield (action, entry, systems, site) for the systems that are owned."""
    stays = None if adapted is None else adapted.get("kept")
    for row in plan.document.get("owned") or ():
        if stays is None:
            yield KEEP, row, row["kept"] + row["idle"], row["site"]
            for region, count in row["moved"].items():
                yield KEEP, row, count, region
            yield SELL, row, row["sold"], row["site"]
        else:
            mine = [each for each in stays if each["offer"] == row["path"]]
            for each in mine:
                yield KEEP, row, each["count"], each["site"]
            yield SELL, row, row["count"] - sum(each["count"] for each in mine), row["site"]


def held_from_now(plans: Sequence[Plan]) -> list[Row]:
    """Write for people the systems that each of two plans with `adapt` holds once it has signed, where the counts differ."""
    counts = [Counter[tuple[str, str, str]]() for _ in plans]
    for plan, found in zip(plans, counts, strict=True):
        for row in actions(plan):
            if row["do"] in (KEEP, OBTAIN):
                found[row["site"], row["system"], row["how"]] += row["count"]
    first, second = counts
    return [
        {say("replan.column_site"): site, say("replan.column_system"): system, say("replan.column_how"): how_words(how),
         say("replan.column_planned"): first[site, system, how], say("replan.column_observed"): second[site, system, how]}
        for site, system, how in dict.fromkeys([*first, *second])
        if first[site, system, how] != second[site, system, how]
    ]  # fmt: skip


def replan(
    plan: Plan, files: Sequence[str | Path], folder: Path, *, day: date | None = None, assignments: Sequence[str] = (), overlays: Sequence[Path] = (),
    cells: Mapping[str, str] = {}, limits: Mapping[str, str] = {}, progress: Progress | None = None,
) -> Replanned:  # fmt: skip
    """Plan again from `day` on (the latest date in the files if omitted) with what `files` state; calibrated constants go into `folder`.

    `assignments`: each PATH=VALUE, on the spec from the day on; `limits`: `time_limit` and `memory` of each plan. Raises SpecError for a plan without an answer,
    a day outside its horizon and the problems of all files at once, OSError for a missing file.
    """
    if not plan.has_answer:
        raise SpecError([Issue("plan", Message.of("actual.plan_without_answer", status=plan.status).text())])
    spec = edited(plan.document["spec"], tuple((f"solver.{name}", value) for name, value in limits.items()))
    problem = resolved(plan.document["spec"], overlays)
    rows: list[Figures] = []

    def chosen(found: list[Figures]) -> list[Figures]:
        rows.extend(found)
        return _counting(found, _day_of(found, day)) if day is not None or _dates(found) else found

    read = assumptions_of(plan, problem, catalog_used(problem, overlays), files, folder, cells, chosen)
    on = _day_of(rows, day)
    known = _known(rows, on, read.assumptions, assignments)
    planned = planned_holdings(plan, problem, on)
    say_line = progress or (lambda line: None)
    before = rebased(spec, plan, problem, planned, Observed(on, assignments=assignments))
    stated = [each for each in read.assumptions if each.after is None and not each.is_same]
    now = rebased(with_actual(spec, stated), plan, problem, as_delivered(planned, known.delivered, problem, on), known)
    say_line(Message.of("replan.solving_planned", day=on.isoformat()).text())
    as_planned = solve_document(before.document, overlays=overlays, progress=progress)
    say_line(Message.of("replan.solving_observed", day=on.isoformat()).text())
    own = [folder] if read.calibrated else []
    after = as_planned if _is_same(before, now, own) else solve_document(now.document, overlays=[*overlays, *own], progress=progress)  # fmt: skip
    comparison = (
        compare(as_planned, after) if after is not as_planned and after.has_answer and as_planned.has_answer else None
    )
    return Replanned(
        plan, on, tuple(read.assumptions), now.holdings, as_planned, after, own[0] if own else None, now.notes, tuple(read.notes), comparison
    )  # fmt: skip


def _is_same(before: Rebased, now: Rebased, own: Sequence[Path]) -> bool:
    return not own and before.document == now.document


def _dates(rows: Sequence[Figures]) -> list[date]:
    """List the dates of the rows that state one; rows whose date is malformed are told of by their reader."""
    return [date.fromisoformat(row.text("date")[:10]) for row in rows if row.text("date")]


def _day_of(rows: Sequence[Figures], day: date | None) -> date:
    """Return the day that is asked for, else the latest date of the rows. Raises SpecError where there is neither."""
    dates = _dates(rows)
    if day is None and not dates:
        raise SpecError([Issue("--date", Message.of("replan.no_date").text())])
    return day if day is not None else max(dates)


def _counting(rows: Sequence[Figures], day: date) -> list[Figures]:
    """Leave out rows after `day`, and of older rows than recent ones all but the prices; rows without a date count."""
    found = []
    for row in rows:
        when = date.fromisoformat(row.text("date")[:10]) if row.text("date") else day
        if when <= day - timedelta(days=RECENT_D) and "price" in row.numbers:
            found.append(replace(row, numbers={"price": row.numbers["price"]}))
        elif day - timedelta(days=RECENT_D) < when <= day:
            found.append(row)
    return found


def _known(
    rows: Sequence[Figures], day: date, assumptions: Sequence[Assumption], assignments: Sequence[str]
) -> Observed:
    """Collect where things stand on `day`: deliveries and progress by their latest row, and what the assumptions state anew."""
    delivered: dict[Place, int] = {}
    expected: dict[Place, date] = {}
    done: dict[str, float] = {}
    for row in sorted(rows, key=lambda row: row.text("date")):
        if row.text("date") and date.fromisoformat(row.text("date")[:10]) > day:
            continue
        if "delivered" in row.numbers:
            place = (row.text("site"), row.text("system"), row.text("how"))
            delivered[place] = int(row.numbers["delivered"])
            if row.text("expected"):
                expected[place] = date.fromisoformat(row.text("expected")[:10])
        if "done" in row.numbers:
            done[row.text("job")] = row.numbers["done"]
    rates = [each.of for each in assumptions if each.kind == RATE]
    prices = {(row.text("system"), row.text("how")) for row in _counting(rows, day) if "price" in row.numbers}
    return Observed(day, rates, prices, done, delivered, expected, assignments)


def day_of(text: str) -> date:
    """Read a day such as 2027-07-01. Raises SpecError."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise SpecError([Issue("--date", Message.of("replan.date_expected", given=text).text())]) from None
