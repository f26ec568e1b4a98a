"""Answer cases of reinforcement learning: the best split, the way to run, and how far behind the others are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from catalog.units import GIGA, HOUR_S, KILO
from models.arrays import sum_of
from models.reinforcement.iteration import COLOCATED
from models.training.layouts import legal_rules
from planner.candidates.layouts import layout_text
from planner.candidates.splits import Split, SplitSearch, splits_of
from planner.errors import Issue, SpecError
from planner.estimate.case import CaseFacts, stated_layout, words_of_rule
from planner.estimate.goodput import loss_table
from planner.estimate.routing import decode_routing, training_routing
from planner.evaluate.interruptions import RunTerms, goodput_losses_of
from planner.evaluate.layouts import TrainingSetup
from planner.evaluate.reinforcement import ROLLOUT, UPDATE, Figures, UpdatePool, figures_of, fitting, updates_of
from planner.evaluate.serving import layout_of
from planner.messages import Message, named
from planner.problem.fabrics import uneven

KIND = "reinforcement"


def ranked_splits(facts: CaseFacts) -> list[Split]:
    """Rank the splits of a case, the shortest iteration first. Raises SpecError where the case cannot be asked."""
    job, system, case = facts.learning, facts.system, facts.case
    able = [precision for precision in job.spec.precision if system.trains(precision)]
    rolling = [precision for precision in job.spec.rollout_precision if system.serves(precision)]
    missing = [
        Issue(
            f"workload.{key}",
            Message.of(
                "estimate.no_arithmetic_of_chip", chip=system.chip, names=", ".join(asked), known=", ".join(known)
            ).text(),
        )
        for key, asked, found, known in (
            ("precision", job.spec.precision, able, system.recipes),
            ("rollout_precision", job.spec.rollout_precision, rolling, tuple(system.flop_per_s)),
        )
        if not found
    ]
    stated = case.rollout_chips
    if stated is not None and stated >= case.chips:
        missing.append(Issue("rollout_chips", Message.of("estimate.rollout_leaves_chips", count=case.chips).text()))
    if missing:
        raise SpecError(missing)
    setups = [
        TrainingSetup(job, system, precision, facts.constants, facts.scaleout, uneven(facts.plant))
        for precision in able
    ]
    search = SplitSearch(job, facts.constants)
    if case.layout is not None:
        setups = _fix_layout(facts, search, setups)
    unit = system.chips if case.chips > system.scaleup_chips else 1
    return splits_of(search, setups, case.chips, unit, stated)


def _fix_layout(facts: CaseFacts, search: SplitSearch, setups: list[TrainingSetup]) -> list[TrainingSetup]:
    """Fix the update layout that the case states, on as many chips as it takes; returns the setups in whose precision it fits.

    Raises SpecError for an unknown size, and for a layout that no framework accepts or that does not fit in memory.
    """
    job, layouts = facts.learning, stated_layout(facts)
    chips = int(layouts.chips[0])
    whole = facts.case.chips - (facts.case.rollout_chips or 0)
    if chips not in (whole, facts.case.chips):
        raise SpecError(
            [Issue("layout", Message.of("estimate.update_layout_product", count=chips, given=whole).text())]
        )
    rules = legal_rules(
        job.architecture,
        layouts,
        global_batch_sequences=job.batch_sequences,
        sequence_tokens=job.spec.sequence_tokens,
        scaleup_chips=facts.system.scaleup_chips,
    )
    if broken := [words_of_rule(rule) for rule, kept in rules if not kept[0]]:
        raise SpecError(
            Issue("layout", Message.of("estimate.refused_by_frameworks", why=words).text()) for words in broken
        )
    pools = [UpdatePool(setup, updates_of(setup, layouts, job)) for setup in setups]
    able = [pool for pool in pools if fitting(pool.updates, facts.system)[0]]
    if not able:
        needed = min(float(pool.updates.memory_bytes[0]) for pool in pools)
        message = Message.of(
            "estimate.needs_memory", needed=f"{needed / GIGA:,.0f}", capacity=f"{facts.system.hbm_bytes / GIGA:,.0f}"
        ).text()
        raise SpecError([Issue("layout", message)])
    for pool in able:
        search.known(pool.setup, chips, pool)
    return [pool.setup for pool in able]


def answer_reinforcement(facts: CaseFacts) -> dict[str, Any] | str:
    """Answer a case by its best split, or state that none fits."""
    splits = ranked_splits(facts)
    if not splits:
        return nothing_fits(facts)
    best, job = splits[0], facts.learning
    found = figures(facts, best)
    systems = {role: chips / facts.system.chips for role, chips in _chips(best).items()}
    it_w = sum_of(math.ceil(count) * (facts.system.idle_w + found.extra_w[role]) for role, count in systems.items())
    known = facts.constants.reinforcement
    return {
        "kind": KIND,
        "algorithm": job.spec.algorithm,
        "system": facts.system.name,
        "chips": facts.case.chips,
        "way": best.way,
        "iteration_s": found.iteration_s,
        "interval_80": {
            "iteration_s": [found.iteration_s * bound for bound in (known.interval_low, known.interval_high)]
        },
        "iterations_per_hour": HOUR_S / found.iteration_s * found.goodput,
        "tokens_per_iteration": job.spec.iteration_tokens,
        "tokens_per_s": found.tokens_per_s,
        "goodput": found.goodput,
        "goodput_losses": _losses(facts, best),
        "mfu": found.mfu,
        "hfu": found.hfu,
        "binds": found.binds,
        "parts_s": dict(found.parts_s),
        "environment_load": None if best.engines is None else float(best.engines.rollout.environment_load[best.engine]),
        "pools": pool_rows(best, found),
        "it_power_w": it_w,
        "it_energy_j_per_token": it_w / found.tokens_per_s,
        "hbm_bytes": facts.system.hbm_bytes,
        "splits": split_rows(facts, splits, 3),
    }


def figures(facts: CaseFacts, split: Split) -> Figures:
    """Take the figures of a split of a case."""
    terms = RunTerms(facts.system.chips)
    return figures_of(facts.learning, split.way, split.update, split.rollout, split.found, terms)


def _losses(facts: CaseFacts, split: Split) -> dict[str, float]:
    """Compute what the goodput of a split falls short of 1 by, by cause."""
    chips, terms = sum_of(_chips(split).values()), RunTerms(facts.system.chips)
    return goodput_losses_of(facts.learning, chips, facts.constants.reliability, terms, split.update.chips)


def _chips(split: Split) -> dict[str, int]:
    """Count the chips of each pool; one pool that takes turns is that of the update."""
    apart = {} if split.pool is None or split.way == COLOCATED else {ROLLOUT: split.pool.chips}
    return {UPDATE: split.update.chips, **apart}


def pool_rows(split: Split, found: Figures) -> list[dict[str, Any]]:
    """Write both pools with their layouts; the chips of one that takes turns stand in both."""
    rows: list[dict[str, Any]] = []
    setup = split.update.setup
    arch = setup.job.architecture
    if split.rollout is not None:
        pool, engines, i = split.rollout
        rows.append(
            {
                "role": ROLLOUT,
                "chips": pool.chips,
                "precision": pool.precision,
                "layout": layout_of(engines.layouts, i),
                "replicas": int(engines.replicas[i]),
                "slots": int(engines.slots[i]),
                "in_decode": float(engines.rollout.in_decode[i]),
                "memory_bytes": float(engines.memory_bytes[i]),
                "idle": float(split.found.rollout_idle[i]),
                **decode_routing(arch, engines.layouts.take(np.array([i])), float(engines.rollout.in_decode[i])),
            }
        )
    updates = split.update.updates
    rows.append(
        {
            "role": UPDATE,
            "chips": split.update.chips,
            "precision": setup.precision,
            "layout": updates.layouts.row(0),
            "memory_bytes": float(updates.memory_bytes[0]),
            "idle": found.idle[UPDATE],
            **training_routing(arch, updates.layouts, setup.job.spec.sequence_tokens),
        }
    )
    return rows


def split_rows(facts: CaseFacts, splits: list[Split], most: int) -> list[dict[str, Any]]:
    """Write the best splits, each with the part that costs it most against the best."""
    rows = []
    for place, split in enumerate(splits[:most]):
        found = figures(facts, split)
        slower = found.iteration_s / splits[0].iteration_s - 1.0
        rows.append(
            {
                "way": split.way,
                "rollout_chips": 0 if split.pool is None else split.pool.chips,
                "update_chips": split.update.chips,
                "iteration_s": found.iteration_s,
                "tokens_per_s": found.tokens_per_s,
                "binds": found.binds,
                "idle": dict(found.idle),
                "pools": pool_rows(split, found),
                "why": Message.of("estimate.fastest").text()
                if place == 0
                else Message.of("estimate.slower_bound_by", share=f"{slower:.2%}", part=found.binds).text(),
            }
        )
    return rows


def best_splits(facts: CaseFacts, count: int) -> dict[str, Any]:
    """Return how many splits fit, as `fitting`, and the `count` fastest, as `splits`. Raises SpecError for a count below 1."""
    if count < 1:
        raise SpecError([Issue("--best", Message.of("estimate.layouts_to_print", given=count).text())])
    found = ranked_splits(facts)
    return {"fitting": len(found), "splits": split_rows(facts, found, count)}


def nothing_fits(facts: CaseFacts) -> str:
    """State why a case has no split."""
    job = facts.learning
    responses = job.spec.responses // job.spec.mini_batches
    return Message.of("estimate.no_split", chips=facts.case.chips, responses=responses).text()


# -- for people --------------------------------------------------------------------------------------------------------


def sections(answer: Mapping[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """List the tables of an answer as (heading, rows)."""
    low, high = answer["interval_80"]["iteration_s"]
    head = {
        "iteration": f"{answer['iteration_s']:.4g} s", "80 % of runs": f"{low:.4g} to {high:.4g} s",
        "iterations/hour": f"{answer['iterations_per_hour']:.3g}", "way": answer["way"], "binds": answer["binds"],
        "trained tokens/s": f"{answer['tokens_per_s']:,.0f}", "MFU": f"{answer['mfu']:.1%}", "goodput": f"{answer['goodput']:.1%}",
    }  # fmt: skip
    if answer["environment_load"]:
        head["environment load"] = f"{answer['environment_load']:.0%}"
    parts = [
        {"part": named("part", name), "seconds": seconds, "of the iteration": f"{seconds / answer['iteration_s']:.1%}"}
        for name, seconds in answer["parts_s"].items()
        if seconds
    ]
    power = {"power (kW)": answer["it_power_w"] / KILO, "energy (J/token)": answer["it_energy_j_per_token"]}
    return [
        ("Iteration", [head]),
        ("Pools", [_pool_row(pool, answer["hbm_bytes"]) for pool in answer["pools"]]),
        (Message.of("estimate.head_iteration").text(), parts),
        loss_table(answer["goodput_losses"]),
        (Message.of("estimate.head_power").text(), [power]),
        (Message.of("estimate.head_splits").text(), split_table(answer["splits"])),
    ]


def _pool_row(pool: Mapping[str, Any], hbm_bytes: float) -> dict[str, Any]:
    return {
        "pool": pool["role"],
        "chips": pool["chips"],
        "precision": pool["precision"],
        "layout": _sizes(pool),
        "replicas": pool.get("replicas", ""),
        "slots": pool.get("slots", ""),
        "idle": f"{pool['idle']:.1%}",
        "memory": f"{pool['memory_bytes'] / GIGA:.1f} of {hbm_bytes / GIGA:.0f} GB",
    }


def _sizes(pool: Mapping[str, Any]) -> str:
    if pool["role"] == UPDATE:
        return layout_text(pool["layout"])
    return " ".join(f"{name}{size}" for name, size in pool["layout"].items() if size != 1) or "1 chip"


def split_table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Format splits as a table."""
    return [
        {
            "way": row["way"],
            "rollout : update": f"{row['rollout_chips']} : {row['update_chips']}",
            "iteration": f"{row['iteration_s']:.4g} s",
            "layouts": "; ".join(f"{pool['role']} {_sizes(pool)}" for pool in row["pools"]),
            "idle": ", ".join(f"{pool} {share:.0%}" for pool, share in row["idle"].items()),
            "why": row["why"],
        }
        for row in rows
    ]
