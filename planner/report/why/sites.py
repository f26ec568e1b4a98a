"""Explain the sites of a plan: workloads served, price of electricity, and binding limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from planner.messages import enumerated, listed, say, stopped
from planner.plan.rows.money import Limit
from planner.report.plan_index import PlanIndex
from planner.report.words import MOST_SHARE

NAMED_SHARE = 0.005  # share of a workload: smaller shares are left out


def sentences(index: PlanIndex) -> Iterator[str]:
    """Explain each site with a fleet, and name the sites that stay empty."""
    served = _served(index)
    for site in index.sites:
        parts = [say("site_told.serves", shares=_shares(served[site]))] if served[site] else []
        own = sum(row["own_power_w"] for row in index.schedule[site])
        if own and site in index.paid and len(index.paid) > 1:
            price = index.per_mwh(index.paid[site])
            parts.append(say("site_told.electricity", price=price, rank=_rank(index, site)))
        parts += [say(f"site_told.{name}_used_up", worth=index.worth(row)) for name, row in _used_up(index, site)]
        yield say("site_told.of", site=site, told=listed(parts) if parts else say("site_told.stands_by"))
    asked = [site["region"] for site in index.plan.document["spec"]["sites"]]
    empty = [region for region in asked if region not in index.sites]
    if empty and len(empty) == len(asked) - len(index.sites):  # otherwise some have another name in the spec
        yield stopped(say("story.empty" if len(empty) > 1 else "story.empty_one", sites=enumerated(empty)))


def _served(index: PlanIndex) -> dict[str, dict[str, float]]:
    """Compute the share of each workload's tokens that each site produces: site -> workload -> share."""
    tokens: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in index.plan.document["routes"]:
        tokens[row["workload"]][row["site"]] += row["tokens_per_s"] * index.seconds[row["slot"]]
    for job in index.plan.document["workloads"]:
        if job["kind"] != "serving":
            for point in job["points"]:
                tokens[job["name"]][point["site"]] += 1.0
    served: dict[str, dict[str, float]] = defaultdict(dict)
    for workload, by_site in tokens.items():
        total = sum(by_site.values())
        for site, amount in by_site.items():
            if amount >= NAMED_SHARE * total:
                served[site][workload] = amount / total
    return served


def _shares(shares: Mapping[str, float]) -> str:
    return enumerated(
        say("site_told.share", share=f"{share:.0%}", workload=workload) for workload, share in shares.items()
    )


def _rank(index: PlanIndex, site: str) -> str:
    """Compare a site's mean price of electricity with the cheapest."""
    cheapest = min(index.paid, key=index.paid.__getitem__)
    if site == cheapest:
        return say("electricity.cheapest")
    low = index.paid[cheapest]
    if low <= 0:
        return ""
    share = index.paid[site] / low - 1
    if share > MOST_SHARE:
        return say("electricity.dearer_times", factor=f"{1 + share:.3g}", site=cheapest)
    return say("electricity.dearer", share=f"{share:.0%}", site=cheapest)


def _used_up(index: PlanIndex, site: str) -> Iterator[tuple[str, Limit]]:
    """Yield the binding limits on a site's power."""
    for row in index.binding:
        for name, words in ((f"power in {site}", "power"), (f"connection of {site}", "connection")):
            if row["name"] == name or row["name"].startswith(f"{name} from "):  # a limit from some phase on
                yield words, row
