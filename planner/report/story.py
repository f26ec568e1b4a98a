"""Tell why a plan is as it is: why here, why this, why then; and what its runs lose.

A sentence is a list of clauses, the most important first, so that a page may take as many as it has room for. Each clause states
figures of the plan document, in the language of the reader. Not here: the layout of the page (`planner.report.page`), and the full chapters (`planner.report.why.explanations`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import inf

from catalog.units import MWH_J, show
from planner.messages import Message, Said, said
from planner.plan import Plan
from planner.plan.rows.money import Limit
from planner.plan.rows.workloads import LatencyRow, Workload
from planner.report import hours, jobs, losses
from planner.report.fleet import ways_to_have
from planner.report.locale import Words
from planner.report.marginal_values import valued_limits, worth_words
from planner.report.plan_index import PlanIndex
from planner.report.words import amount, how_words, joined

NAMED = 3  # sites, systems or phases that a clause names; the rest is counted
UNEVEN = 1.005  # times the mean: a busiest hour with less is like all others
NAMED_SHARE = 0.005  # share of the tokens: a smaller share is not worth a clause


def story(plan: Plan, t: Words | None = None, whole: bool = False) -> list[tuple[str, list[str]]]:
    """List (question, clauses of its answer); empty without an answer. `whole` tells of every job, where no option `--full` does."""
    if not plan.has_answer:
        return []
    index, t = PlanIndex(plan), t or Words()
    told = (
        (t("story.here"), _here(index, t)),
        (t("story.this"), _this(index, t)),
        (t("story.then"), _then(index, t, whole)),
        (losses.question(t.language), losses.clauses(plan, t.language)),
    )
    return [(question, clauses) for question, found in told if (clauses := list(found))]


def shares(amounts: dict[str, float], total: float, thing: str, t: Words) -> str:
    """List the share of a total that each part has, the largest first; beyond `NAMED` parts the rest is one.

    >>> shares({"a": 1.0, "b": 2.0}, 4.0, "site", Words())
    'b (50%) and a (25%)'
    """
    ranked = sorted(((name, part) for name, part in amounts.items() if part > 0), key=lambda item: -item[1])
    named, rest = (ranked, []) if len(ranked) <= NAMED + 1 else (ranked[:NAMED], ranked[NAMED:])
    parts = [f"{name} ({part / total:.0%})" for name, part in named]
    more = f"{sum(part for _, part in rest) / total:.0%}" if rest else ""
    return joined(parts + ([t(f"story.more.{thing}", count=len(rest), share=more)] if rest else []), t)


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


def had(how: str, t: Words | None = None) -> str:
    """Write a way to obtain a system before its name.

    >>> had("buy"), had("on_demand")
    ('bought', 'on-demand')
    """
    t = t or Words()
    return t.get(f"story.had.{how}", how_words(how))


# -- where -------------------------------------------------------------------------------------------------------------


def _here(index: PlanIndex, t: Words) -> Iterator[str]:
    """Name the sites by their part of the cost, what makes them cheap, and what bounds them."""
    asked = index.plan.document["spec"]["sites"]
    costs: dict[str, float] = defaultdict(float)
    for row in index.plan.document["cost_lines"]:
        costs[row["site"]] += row["amount"]
    held = {site: costs[site] for site in index.sites}
    if len(asked) == 1 and len(held) == 1:
        yield t("story.only_site", site=next(iter(held)))
    elif len(held) == 1:
        yield t("story.one_site", site=next(iter(held)), asked=len(asked))
    elif sum(held.values()) > 0:
        total = index.plan.totals["cost"]
        nowhere = 1.0 - sum(held.values()) / total
        parts = shares(held, total, "site", t)
        yield t("story.cost_sites", parts=parts) + (
            t("story.no_site", share=f"{nowhere:.0%}") if nowhere >= NAMED_SHARE else ""
        )
    full = {site: row["limit"] for site in index.sites for row in index.binding if row["name"] in _power_limits(site)}
    cheapest = _electricity(index, t)
    if cheapest:
        low, words = cheapest
        yield words + (t("story.and_used_up", power=show(full.pop(low), "W")) if low in full else "")
    yield from (t("story.used_up", power=show(limit, "W"), site=site) for site, limit in full.items())
    yield from _at_home(index, t)
    empty = [site["region"] for site in asked if site["region"] not in index.sites]
    if empty and len(empty) == len(asked) - len(index.sites):  # otherwise some have another name in the spec
        yield t("story.empty" if len(empty) > 1 else "story.empty_one", sites=joined(empty, t))


def _power_limits(site: str) -> tuple[str, str]:
    """Return the names that the limits on a site's power have in a plan."""
    return f"power in {site}", f"connection of {site}"


def _electricity(index: PlanIndex, t: Words) -> tuple[str, str] | None:
    """Name the site with the cheapest electricity of those with systems of their own, in words too; None for a single site."""
    paid = {
        site: price for site, price in index.paid.items() if any(row["own_power_w"] for row in index.schedule[site])
    }
    if len(paid) < 2:
        return None
    low = min(paid, key=paid.__getitem__)
    most = index.per_mwh(max(paid.values()))
    return low, t("story.electricity", site=low, price=f"{paid[low] * MWH_J:,.1f}", most=most)


def _at_home(index: PlanIndex, t: Words) -> Iterator[str]:
    """State the share of the served tokens that stay in the region that asks for them."""
    home = total = 0.0
    for row in index.plan.document["routes"]:
        tokens = row["tokens_per_s"] * index.seconds[row["slot"]]
        total += tokens
        home += tokens if row["origin"] == row["site"] else 0.0
    if total > 0 and home >= NAMED_SHARE * total:
        yield t("story.at_home", share=f"{home / total:.0%}")


# -- what --------------------------------------------------------------------------------------------------------------


def _this(index: PlanIndex, t: Words) -> Iterator[str]:
    """Name the systems by their part of the cost, the scarcest of them, the closest left out, and the tightest latency."""
    ways = {
        kind: t.phrase(words) if words != how_words(kind[1]) else had(kind[1], t)
        for kind, words in ways_to_have(index.plan).items()
    }
    costs = {f"{ways[kind]} {kind[0]}": cost for kind, cost in cost_of_kinds(index.plan).items()}
    if len(costs) == 1:
        yield t("story.one_kind", kind=next(iter(costs)))
    elif sum(costs.values()) > 0:
        yield t("story.cost_kinds", parts=shares(costs, index.plan.totals["cost"], "kind", t))
    scarce = [limit for limit in valued_limits(index.plan) if limit.row["unit"] in ("system", "token/s")]
    supplies = [limit for limit in scarce if limit.row["name"].startswith("supply of ")]
    if supplies:
        best = supplies[0]
        yield t("story.worth", thing=t.phrase(_one_more(best.row)), worth=t.phrase(worth_words(index.plan, best.gain)))
    yield from _closest(index.plan, t)
    yield from _tightest(index.plan, t)


def _one_more(row: Limit) -> str:
    """Name one practical unit more of a supply, in the middle of a sentence."""
    name = said(row, "name")
    if row["unit"] != "system":
        return Message.of("worth.million", unit=row["unit"], limit=name).text()
    if isinstance(name, Said) and name.message.code == "limit.supply":
        named_how = how_words(str(name.message.arguments["how"]))
        return Message.of("worth.one_more", system=name.message.arguments["system"], how=named_how).text()
    return f"one more {name.removeprefix('supply of ')}"


def _closest(plan: Plan, t: Words) -> Iterator[str]:
    """Name the unused system that is nearest to being used."""
    rows = [
        (row["margin"], row)
        for row in plan.document["runner_up"]
        if row["system"] is not None and row["margin"] is not None
    ]
    if rows:
        margin, row = min(rows, key=lambda pair: pair[0])
        thing = {"how": had(row["how"] or "", t), "system": row["system"], "site": row["site"]}
        if amount(margin) == "0":
            yield t("story.as_well", **thing)
            return
        per = t("story.per")
        away = f"{amount(margin)} {(row['margin_unit'] or '').replace('/', per)}"
        yield t("story.closest", away=away, **thing)


def _tightest(plan: Plan, t: Words) -> Iterator[str]:
    """Name the latency that is nearest to its limit."""
    found = [(tightest(workload), workload["name"]) for workload in plan.document["workloads"]]
    rows = [(row, name) for row, name in found if row is not None]
    if rows:
        row, name = min(rows, key=lambda item: _slack(item[0]))
        times = {"predicted": show(row["predicted_s"] or 0.0, "s"), "limit": show(row["limit_s"], "s")}
        yield t("story.tightest", metric=f"{row['metric']} {row['percentile']}", workload=name, **times)


def tightest(workload: Workload) -> LatencyRow | None:
    """Return the latency row of a workload with the least slack as a share of its limit; None without a predicted one."""
    rows = [row for row in workload["slo"] if row["predicted_s"] is not None and row["slack_s"] is not None]
    return min(rows, key=_slack, default=None)


def _slack(row: LatencyRow) -> float:
    """Compute the slack of a latency as a share of its limit; none is known without a predicted one."""
    return inf if row["slack_s"] is None else row["slack_s"] / row["limit_s"]


# -- when --------------------------------------------------------------------------------------------------------------


def _then(index: PlanIndex, t: Words, whole: bool) -> Iterator[str]:
    """State which systems are held when, the busiest hour, when jobs run, and what the timing of the load saves."""
    phases = index.document.get("phases", ())
    if phases:
        grown = [
            t("story.phase", chips=f"{row['chips']:,}", phase=row["name"], start=row["start"]) for row in phases[:NAMED]
        ]
        end = t("story.end", chips=f"{phases[-1]['chips']:,}") if len(phases) > NAMED else ""
        yield t("story.phases", phases=t("list.comma").join(grown), end=end)
    elif all(row["window"] is None and not row.get("windows") for row in index.plan.document["fleet"]):
        years = index.plan.document["spec"].get("horizon", {}).get("years", 1)
        yield t("story.throughout_year") if years == 1 else t("story.throughout", years=years)
    yield from _peak(index, t)
    stops = t("list.stop")
    told = [sentence.rstrip(stops) for sentence in jobs.sentences(index, t)]
    yield from told if whole else told[:1]
    if len(told) > 1 and not whole:
        yield t("story.more_jobs" if len(told) > 2 else "story.more_job", count=len(told) - 1)
    yield from (sentence.rstrip(stops) for sentence in hours.sentences(index, t))


def _peak(index: PlanIndex, t: Words) -> Iterator[str]:
    """Compare the busiest hour of the served tokens with the mean."""
    rates: dict[int, float] = defaultdict(float)
    for row in index.plan.document["routes"]:
        rates[row["slot"]] += row["tokens_per_s"]
    seconds = sum(index.seconds.values())
    mean = sum(rate * index.seconds[slot] for slot, rate in rates.items()) / seconds if seconds else 0.0
    if mean > 0 and max(rates.values()) >= UNEVEN * mean:
        busiest = max(rates, key=rates.__getitem__)
        hour = next(row["hour_utc"] for row in index.plan.document["schedule"] if row["slot"] == busiest)
        yield t("story.peak", hour=f"{hour:02d}", times=f"{rates[busiest] / mean:.2f}")
