"""Replay the policy of an adaptive plan: in the leaves of its tree, and in fresh worlds, each followed by what was seen before each date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.arrays import Bools, Floats, Ints
from planner.plan.rows.adapt import Adaptation
from planner.spec.requirements.adapt import Adapt
from planner.verify.adapt.cut import Schedule
from planner.verify.adapt.dispatch import Dispatch, Outcomes
from planner.verify.adapt.fleet import PolicyReader, demanded
from planner.verify.adapt.rows import Pricer
from planner.verify.adapt.worlds import Worlds, draw_worlds
from planner.verify.findings import Report

WORLDS, LEAST_WORLDS, SEED = 2000, 200, 62  # fresh worlds, fewer where a program is large, and the seed of their draws
WORK = 400_000  # columns of all programs together
ERRORS = 5.0  # standard errors of sampling between figures that agree
LEAST_STATED = 100  # scenarios of a plan from which their figures have such errors
LEAF_TOL = 0.01  # share of the mean cost: the gap of the programs of a plan, and hours that stand for others
KEPT_TOL = 0.05  # weight of leaves in which leaving work undone may cost as much as doing it
NO_RATE = 0.05  # share of the best rate that a way which does not work counts as, in distances
LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class Replayed:
    """Outcome of the leaves of the tree, and of fresh worlds; costs as the plan states them."""

    leaves: Outcomes
    fresh: Outcomes
    weight: Floats


def replayed(
    pricer: Pricer, document: Mapping[str, Any], found: Adaptation, schedule: Schedule, asked: Adapt, worlds: Worlds | None = None
) -> Replayed:  # fmt: skip
    """Replay the policy; `worlds`: fresh ones, drawn here if not given. Raises ValueError for rows that do not fit together."""
    reader = PolicyReader(document, found, pricer, asked.unserved)
    fleet, window = reader.fleet()
    dispatch, tree = Dispatch(fleet), leaves_of(found)
    counts = np.array([row["counts"] * (1 if len(row["counts"]) > 1 else tree.count) for row in found["commitments"]])
    counts = counts.reshape(len(found["commitments"]), tree.count).T
    factor, other = found["unserved_factor"], found["other_cost"]
    known = reader.rates(tree.errors, tree.count)
    growth = demanded(tree.growth, reader.classes, window, tree.count)
    leaves = dispatch.run(growth, known, counts, factor)
    if worlds is None:
        count = int(np.clip(WORK // max(dispatch.columns, 1), LEAST_WORLDS, WORLDS))
        worlds = draw_worlds(pricer.problem, asked, count, SEED)
    rates = reader.rates(worlds.errors, worlds.count)
    follow = followed(found, schedule, pricer.edges, (known, rates), worlds)
    at = np.array([schedule.at_s.index(row["decided_s"]) for row in found["commitments"]], dtype=np.int64)
    given = counts[follow[at], np.arange(len(at))[:, None]].T
    given = np.where(at < max(schedule.free_from, 1), given, np.nan)
    fresh = dispatch.run(demanded(worlds.growth, reader.classes, window, worlds.count), rates, given, factor)
    dearer = [Outcomes(each.cost + other, each.kept, each.held) for each in (leaves, fresh)]
    return Replayed(dearer[0], dearer[1], np.array(found["tree"]["weight"]))


def leaves_of(found: Adaptation) -> Worlds:
    """Read the leaves: every group of performance with every path of demand, the paths in turn."""
    groups, paths = found["groups"], found["paths"]
    growth = {name: np.array([path["factors"][name] for path in paths] * len(groups)) for name in paths[0]["factors"]}
    errors: dict[str, dict[str, Floats]] = {}
    for chip, each in groups[0]["errors"].items():
        errors[chip] = {
            name: np.repeat([group["errors"][chip][name] for group in groups], len(paths)).astype(float)
            for name in each
        }
    return Worlds(growth, errors, len(groups) * len(paths))


def followed(
    found: Adaptation, schedule: Schedule, edges_s: list[float], rates: tuple[Floats, Floats], worlds: Worlds
) -> Ints:
    """Return the leaf that each world follows at each date, [date, world]: nearest in the performance and the demand known then."""
    leaf_rates, world_rates = rates
    paths = len(found["paths"])
    most = np.maximum(np.maximum(leaf_rates.max(axis=0), world_rates.max(axis=0)), LEAST)
    group_seen, world_seen = (np.log(np.maximum(each / most, NO_RATE)) for each in (leaf_rates[::paths], world_rates))
    group = np.array([((group_seen - one) ** 2).sum(axis=1).argmin() for one in world_seen], dtype=np.int64)
    seen = schedule.seen(edges_s)
    path_at = _branches(found, sorted({n for n in seen if n}), worlds)
    rows = []
    for performance, n in zip(schedule.performance, seen, strict=True):
        here = group if performance else np.zeros(worlds.count, dtype=np.int64)
        rows.append(here * paths + path_at[n])
    return np.array(rows)


def _branches(found: Adaptation, stages: list[int], worlds: Worlds) -> dict[int, Ints]:
    """Return by windows seen the path whose branch each world is on: at each stage the nearest one in the further windows, among the paths of the branch so far."""
    names = list(found["paths"][0]["factors"])
    known = np.array([[path["factors"][name] for name in names] for path in found["paths"]]).reshape(
        len(found["paths"]), len(names), -1
    )
    drawn = np.array([worlds.growth[name] for name in names]).reshape(len(names), worlds.count, -1).transpose(1, 0, 2)
    open_paths: Bools = np.ones((worlds.count, len(known)), dtype=bool)
    at, before = {0: np.zeros(worlds.count, dtype=np.int64)}, 0
    for until in stages:
        news, news_drawn = _news(known, before, until), _news(drawn, before, until)
        distance = ((news_drawn[:, None] - news[None]) ** 2).sum(axis=(2, 3))
        at[until] = np.where(open_paths, distance, np.inf).argmin(axis=1)
        same = np.array([[np.allclose(a[:, :until], b[:, :until]) for b in known] for a in known])
        open_paths, before = same[at[until]], until
    return at


def _news(growth: Floats, before: int, until: int) -> Floats:
    """Return demand of further windows over that of the window before them."""
    part = growth[:, :, before:until]
    return part / np.maximum(growth[:, :, before - 1 : before], LEAST) if before else part


def compare(report: Report, found: Adaptation, again: Replayed) -> None:
    """Say where the stated figures lie outside what the replay finds."""
    tree, fresh, leaves = found["tree"], found["fresh"], again.leaves
    mean = abs(found["tree_cost"])
    apart = leaves.cost - np.array(tree["cost"])
    if found["risk"] != "cvar":  # with which only the dearest leaves are dispatched at least cost
        apart = np.abs(apart)
    worst = int(apart.argmax())
    if apart[worst] > LEAF_TOL * mean:
        given, computed = f"{tree['cost'][worst]:.6g}", f"{leaves.cost[worst]:.6g}"
        report.say(f"adaptation.tree.cost[{worst}]", "verify.replayed_leaf", given=given, found=computed)
    other = again.weight @ (np.array(tree["kept"], dtype=bool) != leaves.kept)
    if other > KEPT_TOL and found["risk"] != "cvar":
        report.say("adaptation.tree.kept", "verify.replayed_kept", share=f"{float(other):.1%}")
    if fresh["scenarios"] < LEAST_STATED:
        return
    count, stated = len(fresh_cost := again.fresh.cost), fresh["scenarios"]
    both = 1.0 / count + 1.0 / stated
    spread = float(fresh_cost.std(ddof=1)) * np.sqrt(both)
    if abs(float(fresh_cost.mean()) - fresh["cost"]) > ERRORS * spread + LEAF_TOL * mean:
        report.say(
            "adaptation.fresh.cost", "verify.replayed_cost", given=f"{fresh['cost']:.6g}", found=f"{float(fresh_cost.mean()):.6g}",
            error=f"{spread:.3g}", count=str(count),
        )  # fmt: skip
    shares = {"kept": (fresh["kept"], float(again.fresh.kept.mean()))}
    for name, level in (("p10", 0.1), ("p90", 0.9)):
        shares[name] = level, float((fresh_cost <= fresh[name]).mean())  # type: ignore[literal-required]
    for name, (expected, share) in shares.items():
        pooled = (expected * stated + share * count + 1.0) / (stated + count + 2.0)
        error = float(np.sqrt(pooled * (1.0 - pooled) * both))
        if abs(share - expected) > ERRORS * error:
            code = "verify.replayed_share" if name == "kept" else "verify.replayed_level"
            report.say(
                f"adaptation.fresh.{name}", code, given=f"{expected:.1%}", found=f"{share:.1%}", count=str(count)
            )
