"""Tell why a plan is as it is: why here, why this, why then; and what its runs lose.

A sentence is a list of clauses, the most important first, so that a page may take as many as it has room for. Each clause states
figures of the plan document. Not here: the layout of the page (`planner.report.page`), and the full chapters (`planner.report.why.explanations`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import inf

from catalog.units import MWH_J, show
from planner.messages import Said, commas, enumerated, named, said, say
from planner.plan import Plan
from planner.plan.rows.money import Limit
from planner.plan.rows.workloads import LatencyRow, Workload
from planner.report import hours, jobs
from planner.report.fleet import ways_to_have
from planner.report.marginal_values import valued_limits, worth_words
from planner.report.plan_index import PlanIndex
from planner.report.why import losses
from planner.report.words import amount, how_words, with_unit

NAMED = 3  # sites, systems or phases that a clause names; the rest is counted
UNEVEN = 1.005  # times the mean: a busiest hour with less is like all others
NAMED_SHARE = 0.005  # share of the tokens: a smaller share is not worth a clause


def story(plan: Plan, whole: bool = False) -> list[tuple[str, list[str]]]:
    """List (question, clauses of its answer); empty without an answer. `whole` tells of every job, where no option `--full` does."""
    if not plan.has_answer:
        return []
    index = PlanIndex(plan)
    told = (
        (say("story.here"), _here(index)),
        (say("story.this"), _this(index)),
        (say("story.then"), _then(index, whole)),
        (losses.question(), losses.clauses(plan)),
    )
    return [(question, clauses) for question, found in told if (clauses := list(found))]


def shares(amounts: dict[str, float], total: float, thing: str) -> str:
    """List the share of a total that each part has, the largest first; beyond `NAMED` parts the rest is one.

    >>> shares({"a": 1.0, "b": 2.0}, 4.0, "site")
    'b (50%) and a (25%)'
    """
    ranked = sorted(((name, part) for name, part in amounts.items() if part > 0), key=lambda item: -item[1])
    named, rest = (ranked, []) if len(ranked) <= NAMED + 1 else (ranked[:NAMED], ranked[NAMED:])
    parts = [say("story.share", name=name, share=f"{part / total:.0%}") for name, part in named]
    more = f"{sum(part for _, part in rest) / total:.0%}" if rest else ""
    return enumerated(parts + ([say(f"story.more.{thing}", count=len(rest), share=more)] if rest else []))


def cost_of_kinds(plan: Plan) -> dict[tuple[str, str], float]:
    """Add up the cost lines of each (system, way to obtain it) of the fleet, and of tokens from an API; others belong to no kind."""
    kinds = {(row["system"], row["how"]) for row in plan.document["fleet"]}
    apis = {row["site"]: (row["system"], row["how"]) for row in plan.document["fleet"] if row["how"] == "api"}
    costs: dict[tuple[str, str], float] = defaultdict(float)
    for row in plan.document["cost_lines"]:
        if (row["system"], row["how"]) in kinds:
            costs[row["system"], row["how"]] += row["amount"]
        elif row["component"] == "api" and row["site"] in apis:
            costs[apis[row["site"]]] += row["amount"]
    return costs


def costs_of_sites(plan: Plan) -> dict[str, float]:
    """Add up the cost lines of each site; 0 for others."""
    costs: dict[str, float] = defaultdict(float)
    for row in plan.document["cost_lines"]:
        costs[row["site"]] += row["amount"]
    return costs


def had(how: str) -> str:
    """Write a way to obtain a system before its name.

    >>> had("buy"), had("on_demand")
    ('bought', 'on-demand')
    """
    return named("had", how)


# -- where -------------------------------------------------------------------------------------------------------------


def _here(index: PlanIndex) -> Iterator[str]:
    """Name the sites by their part of the cost, what makes them cheap, and what bounds them."""
    asked = index.plan.document["spec"]["sites"]
    costs = costs_of_sites(index.plan)
    held = {site: costs[site] for site in index.sites}
    if len(asked) == 1 and len(held) == 1:
        yield say("story.only_site", site=next(iter(held)))
    elif len(held) == 1:
        yield say("story.one_site", site=next(iter(held)), asked=len(asked))
    elif sum(held.values()) > 0:
        total = index.plan.totals["cost"]
        nowhere = 1.0 - sum(held.values()) / total
        rest = say("story.no_site", share=f"{nowhere:.0%}") if nowhere >= NAMED_SHARE else ""
        yield say("story.cost_sites", parts=shares(held, total, "site"), nowhere=rest)
    full = {site: row["limit"] for site in index.sites for row in index.binding if row["name"] in _power_limits(site)}
    cheapest = _cheapest(index)
    if cheapest is not None:
        low, most = cheapest
        used_up = say("story.and_used_up", power=show(full.pop(low), "W")) if low in full else ""
        price = f"{index.paid[low] * MWH_J:,.1f}"
        yield say("story.electricity", site=low, price=price, most=index.per_mwh(most), used_up=used_up)
    yield from (say("story.used_up", power=show(limit, "W"), site=site) for site, limit in full.items())
    yield from _at_home(index)
    empty = [site["region"] for site in asked if site["region"] not in index.sites]
    if empty and len(empty) == len(asked) - len(index.sites):  # otherwise some have another name in the spec
        yield say("story.empty" if len(empty) > 1 else "story.empty_one", sites=enumerated(empty))


def _power_limits(site: str) -> tuple[str, str]:
    """Return the names that the limits on a site's power have in a plan."""
    return f"power in {site}", f"connection of {site}"


def _cheapest(index: PlanIndex) -> tuple[str, float] | None:
    """Return, among sites with owned systems, the one with the cheapest electricity and the highest price [1/J]; None for a single site."""
    paid = {
        site: price for site, price in index.paid.items() if any(row["own_power_w"] for row in index.schedule[site])
    }
    if len(paid) < 2:
        return None
    return min(paid, key=paid.__getitem__), max(paid.values())


def _at_home(index: PlanIndex) -> Iterator[str]:
    """State the share of the served tokens that stay in the region that asks for them."""
    home = total = 0.0
    for row in index.plan.document["routes"]:
        tokens = row["tokens_per_s"] * index.seconds[row["slot"]]
        total += tokens
        home += tokens if row["origin"] == row["site"] else 0.0
    if total > 0 and home >= NAMED_SHARE * total:
        yield say("story.at_home", share=f"{home / total:.0%}")


# -- what --------------------------------------------------------------------------------------------------------------


def _this(index: PlanIndex) -> Iterator[str]:
    """Name the systems by their part of the cost, the scarcest of them, the closest left out, and the tightest latency."""
    ways = {
        kind: words if words != how_words(kind[1]) else had(kind[1]) for kind, words in ways_to_have(index.plan).items()
    }
    costs = {
        say("had.system", how=ways[kind], system=kind[0]): cost for kind, cost in cost_of_kinds(index.plan).items()
    }
    if len(costs) == 1:
        yield say("story.one_kind", kind=next(iter(costs)))
    elif sum(costs.values()) > 0:
        yield say("story.cost_kinds", parts=shares(costs, index.plan.totals["cost"], "kind"))
    scarce = [limit for limit in valued_limits(index.plan) if limit.row["unit"] in ("system", "token/s")]
    supplies = [limit for limit in scarce if limit.row["name"].startswith("supply of ")]
    if supplies:
        best = supplies[0]
        yield say("story.worth", thing=_one_more(best.row), worth=worth_words(index.plan, best.gain))
    yield from _closest(index.plan)
    yield from _tightest(index.plan)


def _one_more(row: Limit) -> str:
    """Name one practical unit more of a supply, in the middle of a sentence."""
    name = said(row, "name")
    if row["unit"] != "system":
        return say("worth.million", unit=row["unit"], limit=name)
    if isinstance(name, Said) and name.message.code == "limit.supply":
        named_how = how_words(str(name.message.arguments["how"]))
        return say("worth.one_more", system=name.message.arguments["system"], how=named_how)
    return say("worth.one_more_of", name=name.removeprefix("supply of "))


def _closest(plan: Plan) -> Iterator[str]:
    """Name the unused system that is nearest to being used."""
    rows = [
        (row["margin"], row)
        for row in plan.document["runner_up"]
        if row["system"] is not None and row["margin"] is not None
    ]
    if rows:
        margin, row = min(rows, key=lambda pair: pair[0])
        thing = {"how": had(row["how"] or ""), "system": row["system"] or "", "site": row["site"]}
        if amount(margin) == "0":
            yield say("story.as_well", **thing)
            return
        unit, _, per = (row["margin_unit"] or "").partition("/")
        away = say("story.per", amount=amount(margin), unit=unit, per=per) if per else with_unit(margin, unit)
        yield say("story.closest", away=away, **thing)


def _tightest(plan: Plan) -> Iterator[str]:
    """Name the latency that is nearest to its limit."""
    found = [(tightest(workload), workload["name"]) for workload in plan.document["workloads"]]
    rows = [(row, name) for row, name in found if row is not None]
    if rows:
        row, name = min(rows, key=lambda item: _slack(item[0]))
        times = {"predicted": show(row["predicted_s"] or 0.0, "s"), "limit": show(row["limit_s"], "s")}
        yield say("story.tightest", metric=f"{row['metric']} {row['percentile']}", workload=name, **times)


def tightest(workload: Workload) -> LatencyRow | None:
    """Return the latency row of a workload with the least slack as a share of its limit; None without a predicted one."""
    rows = [row for row in workload["slo"] if row["predicted_s"] is not None and row["slack_s"] is not None]
    return min(rows, key=_slack, default=None)


def _slack(row: LatencyRow) -> float:
    """Compute the slack of a latency as a share of its limit; none is known without a predicted one."""
    return inf if row["slack_s"] is None else row["slack_s"] / row["limit_s"]


# -- when --------------------------------------------------------------------------------------------------------------


def _then(index: PlanIndex, whole: bool) -> Iterator[str]:
    """State which systems are held when, the busiest hour, when jobs run, and what the timing of the load saves."""
    phases = index.document.get("phases", ())
    if phases:
        grown = [
            say("story.phase", chips=f"{row['chips']:,}", phase=row["name"], start=row["start"])
            for row in phases[:NAMED]
        ]
        end = say("story.end", chips=f"{phases[-1]['chips']:,}") if len(phases) > NAMED else ""
        yield say("story.phases", phases=commas(grown), end=end)
    elif all(row["window"] is None and not row.get("windows") for row in index.plan.document["fleet"]):
        years = index.plan.document["spec"].get("horizon", {}).get("years", 1)
        yield say("story.throughout_year") if years == 1 else say("story.throughout", years=years)
    yield from _peak(index)
    told = list(jobs.clauses(index))
    yield from told if whole else told[:1]
    if len(told) > 1 and not whole:
        yield say("story.more_jobs" if len(told) > 2 else "story.more_job", count=len(told) - 1)
    yield from hours.clauses(index)


def _peak(index: PlanIndex) -> Iterator[str]:
    """Compare the busiest hour of the served tokens with the mean."""
    rates: dict[int, float] = defaultdict(float)
    for row in index.plan.document["routes"]:
        rates[row["slot"]] += row["tokens_per_s"]
    seconds = sum(index.seconds.values())
    mean = sum(rate * index.seconds[slot] for slot, rate in rates.items()) / seconds if seconds else 0.0
    if mean > 0 and max(rates.values()) >= UNEVEN * mean:
        busiest = max(rates, key=rates.__getitem__)
        hour = next(row["hour_utc"] for row in index.plan.document["schedule"] if row["slot"] == busiest)
        yield say("story.peak", hour=f"{hour:02d}", times=f"{rates[busiest] / mean:.2f}")
