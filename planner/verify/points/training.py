"""Evaluate the point of a training job again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from models.formats import kind_of
from models.training.layouts import Layouts
from planner.evaluate import interruptions, training
from planner.evaluate.layouts import TrainingSetup, memory_needed
from planner.evaluate.losses import losses_of
from planner.evaluate.rank_placement import placement_of
from planner.messages import Message
from planner.problem.fabrics import uneven
from planner.problem.facts import ResolvedSpec, TrainingFacts
from planner.problem.intervals import network
from planner.verify.fleet.options import CheckedOption
from planner.verify.points.evaluated import Recomputed
from planner.verify.points.intervals import outside_rows, training_bounds, training_run


def training_point(
    problem: ResolvedSpec, job: TrainingFacts, options: Sequence[CheckedOption], row: Mapping[str, Any]
) -> Recomputed:
    """Evaluate a job's layout at full width, with its spare systems. Raises ValueError for a row of another kind."""
    option, pool = options[0], row["pools"][0]
    if len(row["pools"]) != 1 or pool["role"] != "train" or pool["workers"] != 1 or pool["batch"] != 0:
        raise ValueError(Message.of("verify.training_pool").text())
    setup = TrainingSetup(
        job, option.system, pool["precision"], problem.constants, option.scaleout, uneven(option.plant)
    )
    terms = interruptions.RunTerms.of(option.system, option.offer, option.site)
    width = training.evaluate_layout(setup, pool["layout"], terms, row["tier"])
    working = math.ceil(width.chips / option.system.chips)
    if working > 1 and option.scaleout_bytes_per_s <= 0:
        raise ValueError(
            Message.of("verify.systems_need_network", count=str(working), system=option.system.name).text()
        )
    memory_bytes = width.memory_bytes
    if "schedule" not in pool["layout"]:
        memory_bytes = max(memory_bytes, _memory_at_a_quarter(setup, pool["layout"]))
    spares = interruptions.spares_of(job, width.chips, option.system, option.owned, problem.constants.reliability)
    if "spares" in pool and pool["spares"] != spares:
        raise ValueError(Message.of("verify.spares", found=f"{spares:g}", given=f"{pool['spares']:g}").text())
    return Recomputed(
        systems=[working + spares],
        extra_it_w=[working * training.extra_power_w(option.system, problem)],
        capacity=width.tokens_per_s,
        breakdown=width.breakdown,
        mfu=width.mfu,
        memory_bytes=[memory_bytes],
        fits=width.fits and memory_bytes <= option.system.hbm_bytes,
        goodput=width.goodput,
        losses=losses_of(job, width.chips, problem.constants.reliability, terms),
        checkpoints=interruptions.checkpoints_of(job, width.chips, problem.constants.reliability, terms),
        time_s=width.time_s,
        interval=training_bounds(width.interval, width.time_s, width.tokens_per_s),
        tier=width.interval.tier,
        outside=outside_rows(
            problem.constants.measured_training,
            [(option.system.chip, kind_of((), pool["precision"]))],
            network(job.architecture.experts),
            training_run(job, pool["layout"], pool["precision"]),
            "training",
        ),
        placement=placement_of(job, option.system, option.plant, width.layout, pool["precision"], problem.constants),
        hfu=width.hfu if "hfu" in row else None,
    )


def _memory_at_a_quarter(setup: TrainingSetup, layout: Mapping[str, int]) -> float:
    """Compute the memory with a quarter of the replicas, to which jobs could shrink in plans whose layouts state no schedule [byte]."""
    shrunk = Layouts.of(**{**layout, "dp": max(layout["dp"] // 4, 1)})
    return float(memory_needed(setup, shrunk)[0])
