"""Evaluate the point of a job of reinforcement learning again: both pools, their iteration, and the best splits stated beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from models.reinforcement.synchronise import Line
from models.training.layouts import Layouts
from planner.evaluate.interruptions import RunTerms, checkpoints_of, spares_of
from planner.evaluate.layouts import TrainingSetup
from planner.evaluate.losses import losses_of
from planner.evaluate.rank_placement import placement_of
from planner.evaluate.reinforcement import Figures, GivenSplit, evaluate_split, interval_of
from planner.messages import Message
from planner.problem.fabrics import uneven
from planner.problem.facts import ResolvedSpec, TrainingFacts
from planner.problem.reinforcement import ReinforcementFacts
from planner.verify.fleet.joint_network import stand_together
from planner.verify.fleet.options import CheckedOption
from planner.verify.points.evaluated import Recomputed
from planner.verify.points.exchange import joined_by_a_line, over_the_line, weight_line
from planner.verify.points.intervals import training_bounds

ROLES = (["update"], ["update", "rollout"])
HOUR_S = 3600.0
COMPOSED_TOL = 1e-9


def reinforcement_point(
    problem: ResolvedSpec, job: ReinforcementFacts, options: Sequence[CheckedOption], row: Mapping[str, Any]
) -> Recomputed:
    """Evaluate the layouts of a job's pools, with spare systems. Raises ValueError for a row of another kind, or one that contradicts itself."""
    pools, stated = row["pools"], row["iteration"]
    if [pool["role"] for pool in pools] not in ROLES:
        raise ValueError(Message.of("verify.reinforcement_pools").text())
    if stated["way"] not in job.spec.ways and job.spec.algorithm != "dpo":
        raise ValueError(Message.of("verify.way_not_allowed", way=stated["way"]).text())
    if (len(pools) == 1) is not (stated["way"] == "colocated"):
        raise ValueError(Message.of("verify.pools_of_way", count=str(len(pools)), way=stated["way"]).text())
    if (pools[0]["batch"], pools[0]["workers"]) != (0, 1):
        raise ValueError(Message.of("verify.update_pool").text())
    line = weight_line(problem, job, row)
    if len(pools) == 2 and (
        not (stand_together(*options) if line is None else joined_by_a_line(options))
        or min(option.scaleout_bytes_per_s for option in options) <= 0
    ):
        raise ValueError(Message.of("verify.pools_without_network").text())
    systems, spares = _systems(problem, job, options, pools)
    if len(pools) == 2:
        rollout = stated["rollout"] or {}
        for name, held in (
            ("precision", "precision"),
            ("layout", "layout"),
            ("replicas", "workers"),
            ("slots", "batch"),
        ):
            if rollout.get(name) != pools[1][held]:
                raise ValueError(
                    Message.of(
                        "verify.rollout_against_pool",
                        name=name,
                        given=repr(rollout.get(name)),
                        found=repr(pools[1][held]),
                    ).text()
                )
    setup = _setup(problem, job, options[0], pools[0]["precision"])
    figures, again = _evaluated(
        setup, job, options, stated["way"], pools[0]["layout"], stated["rollout"], systems, line
    )
    if line is not None:
        over_the_line(job, line, row, figures.parts_s["synchronisation"])
    if abs(_composed(job, stated["way"], figures) - figures.iteration_s) > COMPOSED_TOL * figures.iteration_s:
        raise ValueError(Message.of("verify.parts_of_iteration", time=f"{figures.iteration_s:g}").text())
    interval = interval_of(setup, row["tier"])
    time_s = {"iteration": figures.iteration_s, "run": job.spec.tokens / figures.tokens_per_s}
    parts = {name: seconds / figures.iteration_s for name, seconds in figures.parts_s.items()}
    chips = [count * option.system.chips for count, option in zip(systems, options, strict=True)]
    terms = RunTerms.of(options[0].system, options[0].offer, options[0].site)
    roles = [pool["role"] for pool in pools]
    return Recomputed(
        systems=[count + spare for count, spare in zip(systems, spares, strict=True)],
        extra_it_w=[count * figures.extra_w[role] for count, role in zip(systems, roles, strict=True)],
        capacity=figures.tokens_per_s,
        breakdown=parts,
        mfu=figures.mfu,
        hfu=figures.hfu,
        memory_bytes=[figures.memory_bytes[role] for role in roles],
        goodput=figures.goodput,
        losses=losses_of(job, sum(chips), problem.constants.reliability, terms, chips[0], parts),
        checkpoints=checkpoints_of(job, sum(chips), problem.constants.reliability, terms, chips[0]),
        time_s=time_s,
        interval=training_bounds(interval, time_s, figures.tokens_per_s),
        tier=interval.tier,
        placement=placement_of(
            job, options[0].system, options[0].plant, pools[0]["layout"], pools[0]["precision"], problem.constants
        ),
        iteration={**again, "splits": _splits(problem, job, options, row, systems, line)},
    )


def slots_per_s(job: TrainingFacts | None) -> float:
    """Compute what the environment slots of a workload cost while it is at work [currency/s]; 0 for one without."""
    if not isinstance(job, ReinforcementFacts) or job.spec.tools is None:
        return 0.0
    return (job.spec.tools.environments or 0) * job.slot_price_per_s


def _setup(problem: ResolvedSpec, job: ReinforcementFacts, option: CheckedOption, precision: str) -> TrainingSetup:
    return TrainingSetup(job, option.system, precision, problem.constants, option.scaleout, uneven(option.plant))


def _systems(
    problem: ResolvedSpec, job: ReinforcementFacts, options: Sequence[CheckedOption], pools: Sequence[Mapping[str, Any]]
) -> tuple[list[int], list[float]]:
    """Count the (systems at work, spares) of each pool: the update's by its layout, the rollout's without spares."""
    counts, spares = [], []
    for pool, option in zip(pools, options, strict=True):
        if pool["role"] == "update":
            chips = int(Layouts.of(**pool["layout"]).chips[0])
            count, part = divmod(chips, option.system.chips)
            if part:
                raise ValueError(
                    Message.of("verify.update_chips", chips=str(chips), size=str(option.system.chips)).text()
                )
        else:
            count = round(pool["systems_per_replica"] - pool.get("spares", 0.0))
        held = spares_of(job, count * option.system.chips, option.system, option.owned, problem.constants.reliability)
        if pool.get("spares", 0.0) != held:
            raise ValueError(
                Message.of("verify.spares", found=f"{held:g}", given=f"{pool.get('spares', 0.0):g}").text()
            )
        if count > 1 and option.scaleout_bytes_per_s <= 0:
            raise ValueError(
                Message.of("verify.systems_need_network", count=str(count), system=option.system.name).text()
            )
        counts.append(count)
        spares.append(held)
    return counts, spares


def _evaluated(
    setup: TrainingSetup,
    job: ReinforcementFacts,
    options: Sequence[CheckedOption],
    way: str,
    layout: Mapping[str, int],
    rollout: Mapping[str, Any] | None,
    systems: Sequence[int],
    line: Line | None,
) -> tuple[Figures, dict[str, Any]]:
    """Evaluate one split; `systems`: of update and, where it is apart, of rollout."""
    first, last = options[0], options[-1]
    apart = len(systems) > 1 and systems[1] > 0
    engines = None
    if rollout is not None:
        if rollout["precision"] not in job.spec.rollout_precision:
            raise ValueError(Message.of("verify.rollout_precision", precision=rollout["precision"]).text())
        engines = rollout["precision"], rollout["layout"]
    given = GivenSplit(
        way, layout, engines, (last.system, last.scaleout) if apart else None,
        systems[1] * last.system.chips if apart else systems[0] * first.system.chips, line,
    )  # fmt: skip
    return evaluate_split(setup, job, given, RunTerms.of(first.system, first.offer, first.site))


def _composed(job: ReinforcementFacts, way: str, figures: Figures) -> float:
    """Put an iteration together from its parts, in plain arithmetic [s]; streaming, whose overlap depends on single mini-batches, is bounded."""
    parts = figures.parts_s
    rolling = parts["generation"] + parts["tail"] + parts["synchronisation"]
    training, controller = parts["scoring"] + parts["update"], parts["host"]
    in_turns = rolling + training + controller
    if way == "streaming":
        least = max(rolling, training + controller)
        return min(max(figures.iteration_s, least), in_turns)
    if way == "asynchronous":
        ahead = min(job.spec.staleness, 1.0)
        return max(in_turns - ahead * (min(rolling, training) + controller), controller)
    return in_turns + parts["resharding"]


def _splits(
    problem: ResolvedSpec,
    job: ReinforcementFacts,
    options: Sequence[CheckedOption],
    row: Mapping[str, Any],
    systems: Sequence[int],
    line: Line | None,
) -> list[dict[str, Any]]:
    """Evaluate the best splits from their layouts. Raises ValueError where the first is not the point, or another is faster."""
    found: list[dict[str, Any]] = []
    for split in row["iteration"]["splits"]:
        counts = [split["update_systems"], split["rollout_systems"]]
        if int(Layouts.of(**split["layout"]).chips[0]) != counts[0] * options[0].system.chips:
            raise ValueError(Message.of("verify.chips_of_split").text())
        setup = _setup(problem, job, options[0], split["precision"])
        figures, _ = _evaluated(setup, job, options, split["way"], split["layout"], split["rollout"], counts, line)
        found.append(
            {
                **split,
                "iteration_s": figures.iteration_s,
                "tokens_per_s": figures.tokens_per_s,
                "binds": figures.binds,
                "idle": dict(figures.idle),
            }
        )
    first = found[0] if found else {}
    counted = [*systems, 0][:2]
    if [first.get("update_systems"), first.get("rollout_systems")] != counted or first.get("way") != row["iteration"][
        "way"
    ]:
        raise ValueError(Message.of("verify.first_split").text())
    if any(split["tokens_per_s"] > first["tokens_per_s"] * (1 + COMPOSED_TOL) for split in found[1:]):
        raise ValueError(Message.of("verify.split_is_faster").text())
    return found
