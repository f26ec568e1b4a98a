"""Tell why a plan is as it is in three sentences: why here, why this, why then.

A sentence is a list of clauses, the most important first, so that a page may take as many as it has room for. Each clause states
figures of the plan document. Not here: the layout of the page (`planner.report.page`), and the full chapters (`planner.report.explanations`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from catalog.units import MWH_J, show
from planner.plan import Plan
from planner.report import hours, jobs
from planner.report.fleet import ways_to_have
from planner.report.marginal_values import valued_limits, worth_words
from planner.report.plan_index import PlanIndex, Row
from planner.report.words import amount, how_words, listed

NAMED = 3  # sites, systems or phases that a clause names; the rest is counted
UNEVEN = 1.005  # times the mean: a busiest hour with less is like all others
NAMED_SHARE = 0.005  # of the tokens: a smaller share is not worth a clause


def story(plan: Plan) -> list[tuple[str, list[str]]]:
    """List (question, clauses of its answer); empty without an answer."""
    if not plan.has_answer:
        return []
    index = PlanIndex(plan)
    told = (("Why here", _here(index)), ("Why this", _this(index)), ("Why then", _then(index)))
    return [(question, clauses) for question, found in told if (clauses := list(found))]


def shares(amounts: dict[str, float], total: float, thing: str) -> str:
    """List the share of a total that each part has, the largest first; beyond `NAMED` parts the rest is one.

    >>> shares({"a": 1.0, "b": 2.0}, 4.0, "site")
    'b (50%) and a (25%)'
    """
    ranked = sorted(((name, part) for name, part in amounts.items() if part > 0), key=lambda item: -item[1])
    named, rest = (ranked, []) if len(ranked) <= NAMED + 1 else (ranked[:NAMED], ranked[NAMED:])
    parts = [f"{name} ({part / total:.0%})" for name, part in named]
    return listed(
        parts + ([f"{len(rest)} more {thing}s ({sum(part for _, part in rest) / total:.0%})"] if rest else [])
    )


def cost_of_kinds(plan: Plan) -> dict[tuple[str, str], float]:
    """Add up the cost lines of each (system, way to obtain it) of the fleet, and those of tokens from an API; others belong to no kind."""
    kinds = {(row["system"], row["how"]) for row in plan["fleet"]}
    apis = {row["site"]: (row["system"], row["how"]) for row in plan["fleet"] if row["how"] == "api"}
    costs: dict[tuple[str, str], float] = defaultdict(float)
    for row in plan["cost_lines"]:
        if (row["system"], row["how"]) in kinds:
            costs[row["system"], row["how"]] += row["amount"]
        elif row["component"] == "api" and row["site"] in apis:
            costs[apis[row["site"]]] += row["amount"]
    return costs


def had(how: str) -> str:
    """Write a way to obtain a system before its name.

    >>> had("buy"), had("on_demand")
    ('bought', 'on demand')
    """
    return {"buy": "bought", "api": "tokens of"}.get(how, how_words(how))


# -- where -------------------------------------------------------------------------------------------------------------


def _here(index: PlanIndex) -> Iterator[str]:
    """Name the sites by their part of the cost, what makes them cheap, and what bounds them."""
    asked = index.plan["spec"]["sites"]
    costs: dict[str, float] = defaultdict(float)
    for row in index.plan["cost_lines"]:
        costs[row["site"]] += row["amount"]
    held = {site: costs[site] for site in index.sites}
    if len(asked) == 1 and len(held) == 1:
        yield f"{next(iter(held))} is the only site asked about"
    elif len(held) == 1:
        yield f"{next(iter(held))} holds everything, of {len(asked)} sites asked about"
    elif sum(held.values()) > 0:
        yield f"cost goes to {shares(held, index.plan['totals']['cost'], 'site')}"
    full = {site: row["limit"] for site in index.sites for row in index.binding if row["name"] in _power_limits(site)}
    cheapest = _electricity(index)
    if cheapest:
        low, words = cheapest
        yield words + (f", and its {show(full.pop(low), 'W')} are used up" if low in full else "")
    yield from (f"the {show(limit, 'W')} of {site} are used up" for site, limit in full.items())
    yield from _at_home(index)
    empty = [site["region"] for site in asked if site["region"] not in index.sites]
    if empty and len(empty) == len(asked) - len(index.sites):  # otherwise some have another name in the spec
        yield f"{listed(empty)} {'stay' if len(empty) > 1 else 'stays'} empty"


def _power_limits(site: str) -> tuple[str, str]:
    """Return the names that the limits on a site's power have in a plan."""
    return f"power in {site}", f"connection of {site}"


def _electricity(index: PlanIndex) -> tuple[str, str] | None:
    """Name the site with the cheapest electricity of those with systems of their own, in words too; None for a single site."""
    paid = {
        site: price for site, price in index.paid.items() if any(row["own_power_w"] for row in index.schedule[site])
    }
    if len(paid) < 2:
        return None
    low = min(paid, key=paid.__getitem__)
    return low, (
        f"electricity is cheapest in {low} ({paid[low] * MWH_J:,.1f} against up to {index.per_mwh(max(paid.values()))})"
    )


def _at_home(index: PlanIndex) -> Iterator[str]:
    """State the share of the served tokens that stay in the region that asks for them."""
    home = total = 0.0
    for row in index.plan["routes"]:
        tokens = row["tokens_per_s"] * index.seconds[row["slot"]]
        total += tokens
        home += tokens if row["origin"] == row["site"] else 0.0
    if total > 0 and home >= NAMED_SHARE * total:
        yield f"{home / total:.0%} of the served tokens stay in the region that asks for them"


# -- what --------------------------------------------------------------------------------------------------------------


def _this(index: PlanIndex) -> Iterator[str]:
    """Name the systems by their part of the cost, the scarcest of them, the closest left out, and the tightest latency."""
    ways = {kind: words if "owned" in words else had(kind[1]) for kind, words in ways_to_have(index.plan).items()}
    costs = {f"{ways[kind]} {kind[0]}": cost for kind, cost in cost_of_kinds(index.plan).items()}
    if len(costs) == 1:
        yield f"{next(iter(costs))} alone does all the work"
    elif sum(costs.values()) > 0:
        yield f"cost goes into {shares(costs, index.plan['totals']['cost'], 'kind')}"
    scarce = [limit for limit in valued_limits(index.plan) if limit.row["unit"] in ("system", "token/s")]
    supplies = [limit for limit in scarce if limit.row["name"].startswith("supply of ")]
    if supplies:
        best = supplies[0]
        yield f"{best.words[0].lower()}{best.words[1:]} would be worth {worth_words(index.plan, best.gain)}"
    yield from _closest(index.plan)
    yield from _tightest(index.plan)


def _closest(plan: Plan) -> Iterator[str]:
    """Name the unused system that is nearest to being used."""
    rows = [row for row in plan["runner_up"] if row["system"] is not None and row["margin"] is not None]
    if rows:
        row = min(rows, key=lambda row: row["margin"])
        unit = row["margin_unit"].replace("/", " per ")
        yield f"nearest to use is {had(row['how'])} {row['system']} in {row['site']}, {amount(row['margin'])} {unit} away"


def _tightest(plan: Plan) -> Iterator[str]:
    """Name the latency that is nearest to its limit."""
    found = [(tightest(workload), workload["name"]) for workload in plan["workloads"]]
    rows = [(row, name) for row, name in found if row is not None]
    if rows:
        row, name = min(rows, key=lambda item: item[0]["slack_s"] / item[0]["limit_s"])
        yield f"{row['metric']} {row['percentile']} of {name} is nearest to its limit, {show(row['predicted_s'], 's')} of {show(row['limit_s'], 's')}"


def tightest(workload: Row) -> Row | None:
    """Return the latency row of a workload with the least slack as a share of its limit; None without a predicted one."""
    rows = [row for row in workload["slo"] if row["predicted_s"] is not None and row["slack_s"] is not None]
    return min(rows, key=lambda row: row["slack_s"] / row["limit_s"], default=None)


# -- when --------------------------------------------------------------------------------------------------------------


def _then(index: PlanIndex) -> Iterator[str]:
    """State what is held when, the busiest hour, when jobs run, and what the timing of the load saves."""
    phases = index.document.get("phases", ())
    if phases:
        grown = [f"{row['chips']:,} in {row['name']} from {row['start']}" for row in phases]
        yield f"chips held: {', '.join(grown[:NAMED])}" + (
            f" and {phases[-1]['chips']:,} at the end" if len(grown) > NAMED else ""
        )
    elif all(row["phase"] is None and not row.get("windows") for row in index.plan["fleet"]):
        years = index.plan["spec"].get("horizon", {}).get("years", 1)
        yield f"everything is held throughout the {'year' if years == 1 else f'{years} years'}"
    yield from _peak(index)
    told = [sentence.rstrip(".") for sentence in jobs.sentences(index)]
    yield from told[:1]
    if len(told) > 1:
        yield f"--full tells of {len(told) - 1} more job{'s' if len(told) > 2 else ''}"
    yield from (sentence.rstrip(".") for sentence in hours.sentences(index))


def _peak(index: PlanIndex) -> Iterator[str]:
    """Compare the busiest hour of the served tokens with the mean."""
    rates: dict[int, float] = defaultdict(float)
    for row in index.plan["routes"]:
        rates[row["slot"]] += row["tokens_per_s"]
    seconds = sum(index.seconds.values())
    mean = sum(rate * index.seconds[slot] for slot, rate in rates.items()) / seconds if seconds else 0.0
    if mean > 0 and max(rates.values()) >= UNEVEN * mean:
        busiest = max(rates, key=rates.__getitem__)
        hour = next(row["hour_utc"] for row in index.plan["schedule"] if row["slot"] == busiest)
        yield f"the busiest hour ({hour:02d} UTC) serves {rates[busiest] / mean:.2f} times the mean"
