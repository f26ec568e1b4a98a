"""Format a plan that is adapted later: what to sign today, what to keep open, triggers, and what adapting and knowing more are worth."""

from __future__ import annotations

from datetime import date, timedelta

from catalog.units import DAY_S
from planner.messages import commas, say
from planner.plan import Plan
from planner.plan.rows.adapt import Adaptation, Need, Open, Signed, Trigger
from planner.report.heads import Row, left, right
from planner.report.paper import Block, further
from planner.report.phases import window_dates
from planner.report.words import amount, between, how_words, share_words

QUESTION, COST = say("adapt.question"), say("adapt.question_of_cost")
OPEN, NEEDS = say("adapt.question_of_open"), say("heading.needs")
PROMISE_TOL = 0.03  # share of scenarios: less below the promise is what samples differ by
PROGRAM_GAP = 5e-3  # relative gap of the programs whose costs are compared
WORTH = ("adapting", "stochastic", "perfect", "performance", "demand", "prices", "deliveries")
NAMED = 3  # systems that the sentence names
DRAWN = 32  # columns of a range that is drawn in text
DRAWN_ON_PAGE = 24  # beside the numbers of a page of 100 columns, on one line


def story(plan: Plan) -> list[tuple[str, list[str]]]:
    """Return what to sign now, what to keep open, and what that costs, as (question, clauses)."""
    found = clauses(plan)
    parts = ((QUESTION, found[:1]), (OPEN, open_clauses(plan)), (COST, found[1:]))
    return [(question, told) for question, told in parts if told]


def open_clauses(plan: Plan) -> list[str]:
    """State how many options stay open, by when the first is decided, and that keeping them costs nothing; empty without options."""
    found: Adaptation | None = plan.document.get("adaptation")
    if found is None or not found["open"]:
        return []
    dates = [row["decided_s"] for row in found["open"] if row["decided_s"] is not None]
    count = f"{len(found['open']):,}"
    if not dates:
        return [say("adapt.open_any_time", count=count)]
    return [say("adapt.open_until", count=count, day=_day(window_dates(plan)[0], min(dates)))]


def clauses(plan: Plan) -> list[str]:
    """State what to sign, at what cost which promise is kept, and what deciding everything at once would cost; the most important first."""
    found: Adaptation | None = plan.document.get("adaptation")
    if found is None:
        return [say("adapt.none")] if plan.document["spec"].get("adapt") and plan.has_answer else []
    currency = str(plan.document["spec"].get("currency", "USD"))
    fresh, fixed = found["fresh"], found["fixed"]
    counts: dict[tuple[str, str], int] = {}
    for row in found["sign"]:
        counts[row["system"], row["site"]] = counts.get((row["system"], row["site"]), 0) + row["count"]
    signed = [
        say("adapt.count_at", count=f"{count:,}", system=system, site=site)
        for (system, site), count in list(counts.items())[:NAMED]
    ]
    more = len(counts) - len(signed)
    if more > 0:
        signed.append(say("adapt.more", count=str(more)))
    told = {
        "kept": f"{fresh['kept']:.1%}", "scenarios": f"{fresh['scenarios']:,}", "asked": f"{found['promise']:.0%}", "currency": currency,
        "cost": amount(fresh["cost"]), "range": between(amount(fresh["p10"]), amount(fresh["p90"])),
        "more": share_words(fresh["cost"] / found["plain_cost"] - 1, "+.1%") if found["plain_cost"] else "",
    }  # fmt: skip
    clauses = [
        say("adapt.sign", systems=commas(signed)) if signed else say("adapt.sign_nothing"),
        say("adapt.expected", **told),
    ]
    if fresh["kept"] < found["promise"] - PROMISE_TOL:
        clauses.append(say("adapt.below", asked=told["asked"]))
    if fixed is None:
        clauses.append(say("adapt.no_fixed"))
    elif found["values"]["adapting"] is not None:
        share = found["values"]["adapting"] / fixed["cost"] if fixed["cost"] else 0.0
        clauses.append(
            say(
                "adapt.fixed",
                cost=amount(fixed["cost"]),
                kept=f"{fixed['kept']:.0%}",
                share=share_words(share, ".1%"),
                currency=currency,
            )
        )
    return clauses


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """Return (heading, rows) of each table; none for a plan that decides everything at the start."""
    found: Adaptation | None = plan.document.get("adaptation")
    if found is None:
        return []
    start = window_dates(plan)[0]
    return [
        (say("heading.sign_today"), [_signed(start, row) for row in found["sign"]]),
        (say("heading.keep_open"), [_open(start, row) for row in found["open"]]),
        (NEEDS, [_need(start, row, most_chips(found)) for row in found.get("needs", ())]),
        (say("heading.triggers"), [_trigger(start, row) for row in found["triggers"]]),
        (say("heading.adapting"), _worth(found)),
    ]


def blocks(plan: Plan) -> list[Block]:
    """List the blocks of the page: what to sign, chips needed by date against chips signed, and rules of later orders."""
    found: Adaptation | None = plan.document.get("adaptation")
    if found is None:
        return []
    start = window_dates(plan)[0]
    needs = [tuple(_need(start, row, most_chips(found), DRAWN_ON_PAGE).values()) for row in found.get("needs", ())]
    rules = [_trigger(start, row) for row in found["triggers"]]
    columns = (*(right(name) for name in ("need_low", "need_typical", "need_high", "signed")), left("need_drawn"))
    entries = [
        (rule["by"], rule["fires_in"], say("list.colon", question=rule["if"], clauses=rule["then"])) for rule in rules
    ]
    signed = [(row["system"], how_words(row["how"]), f"{row['count']:,}", row["site"]) for row in found["sign"]]
    shown = [
        Block(say("heading.sign_today"), (left("how"), right("count"), left("where")), signed, further(len(signed)), least=3),
        Block(NEEDS, columns, needs, further(len(needs)), least=2),
        Block(say("heading.triggers"), (right("fires_in"), left("")), entries, further(len(entries)), least=2),
    ]  # fmt: skip
    return [block for block in shown if block.entries]


def most_chips(found: Adaptation) -> float:
    """Return the most chips that a row of needs states."""
    return max((max(row["high"], row["signed"]) for row in found.get("needs", ())), default=0.0)


def _need(start: date, row: Need, most: float, columns: int = DRAWN) -> Row:
    """Write the needs of a window, with the range from low to high drawn as a line, typical as a circle and signed as a bar."""
    return {
        "from": _day(start, row["from_s"]), "need_low": f"{row['low']:,.0f}", "need_typical": f"{row['typical']:,.0f}",
        "need_high": f"{row['high']:,.0f}", "signed": f"{row['signed']:,.0f}", "need_drawn": drawn(row, most, columns),
    }  # fmt: skip


def drawn(row: Need, most: float, columns: int = DRAWN) -> str:
    """Draw the range from low to high in text, with the typical need and the chips signed in it.

    >>> drawn({"from_s": 0, "low": 2, "typical": 5, "high": 8, "signed": 6}, 31)
    '··───o│──'
    """
    at = {
        name: round(row[name] / most * (columns - 1)) if most > 0 else 0
        for name in ("low", "typical", "high", "signed")
    }
    cells = ["─" if at["low"] <= i <= at["high"] else "·" for i in range(max(at.values()) + 1)]
    cells[at["typical"]] = "o"
    cells[at["signed"]] = "│" if at["signed"] != at["typical"] else "ø"
    return "".join(cells)


def _signed(start: date, row: Signed) -> Row:
    return {
        "count": f"{row['count']:,}", "system": row["system"], "how": how_words(row["how"]), "site": row["site"], "from": _day(start, row["from_s"]),
    }  # fmt: skip


def fleet_heading(plan: Plan, code: str) -> str:
    """Say over the fleet of a plan what it is: to obtain, or beside a plan that is adapted the fleet as predicted, which is not to be signed."""
    return say("heading.as_predicted" if plan.document.get("adaptation") is not None else code)


def _day(start: date, seconds: float) -> str:
    return (start + timedelta(days=round(seconds / DAY_S))).isoformat()


def _open(start: date, row: Open) -> Row:
    decided = say("adapt.at_once") if row["decided_s"] is None else _day(start, row["decided_s"])
    return {
        "system": row["system"], "how": say("adapt.give_back") if row.get("returns") else how_words(row["how"]), "site": row["site"], "decide_by": decided, "used_in": f"{row['share']:.0%}",
        "mean": f"{row['mean']:,.1f}", "nine_in_ten": f"{row['high']:,.0f}",
    }  # fmt: skip


def _trigger(start: date, row: Trigger) -> Row:
    rule = (
        say("adapt.always")
        if row["workload"] is None
        else say("adapt.needs", workload=row["workload"], above=f"{row['above']:.2f}")
    )
    return {
        "if": rule, "by": _day(start, row["decided_s"]),
        "then": say("adapt.obtain", count=f"{row['count']:,.0f}", system=row["system"], how=how_words(row["how"]), site=row["site"]),
        "fires_in": f"{row['share']:.0%}", "agrees": f"{row['agrees']:.0%}",
    }  # fmt: skip


def _worth(found: Adaptation) -> list[Row]:
    """Write costs and differences of costs as rows."""
    fresh, gap, fixed = found["fresh"], found["gap"], found["fixed"]
    rows: list[tuple[str, float | None]] = [
        (say("adapt.plain_cost"), found["plain_cost"]),
        (say("adapt.expected_cost"), fresh["cost"]),
        (say("adapt.tree_cost"), found["tree_cost"]),
        (say("adapt.fixed_cost"), None if fixed is None else fixed["cost"]),
    ]
    worth = found["values"]
    known = (
        worth["adapting"], worth["stochastic"], worth["perfect"], worth["performance"], worth["demand"], worth.get("prices"), worth.get("deliveries"),
    )  # fmt: skip
    values = [(say(f"adapt.value_{name}"), value) for name, value in zip(WORTH, known, strict=True)]
    further: list[tuple[str, float | None]] = [
        (say("adapt.gap_bound"), None if gap is None else gap["bound"]),
        (say("adapt.other_cost"), found["other_cost"]),
    ]
    told = [(name, amount(value)) for name, value in rows if value is not None]
    told += [(name, _worth_words(value, found["tree_cost"])) for name, value in values if value is not None]
    told += [(name, amount(value)) for name, value in further if value is not None]
    return [{"what": name, "amount": words} for name, words in told]


def _worth_words(value: float, cost: float) -> str:
    """Write a difference of costs, with the remark that it is none where the gap of the programs is as large."""
    if abs(value) > PROGRAM_GAP * abs(cost):
        return amount(value)
    return say("adapt.value_within_gap", amount=amount(value), gap=share_words(PROGRAM_GAP, ".1%"))
