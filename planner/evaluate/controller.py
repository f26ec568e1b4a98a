"""Time of the controller of reinforcement learning: software that hands out prompts, collects responses and forms batches."""

from __future__ import annotations

import math

from models.reinforcement.constants import ReinforcementConstants
from planner.problem.reinforcement import ReinforcementFacts

HOST_CHIPS = 8  # chips of a host, as servers usually have


def controller_s(job: ReinforcementFacts, chips: int, factors: ReinforcementConstants) -> float:
    """Compute the time of the controller in an iteration:  n c / w.

    Every host of eight chips has a worker of the controller, which handles its share of the responses, unless the job states how many there are.
    Units: responses n, workers w [1], time of a worker for a response c [s], as the job states it or as fitted, result [s].
    Reference: Sheng et al., HybridFlow, arXiv:2409.19256, section 4 (a controller of many workers); published iterations, see the catalog.
    """
    asked = job.spec.controller
    workers = math.ceil(chips / HOST_CHIPS) if asked is None or asked.workers is None else asked.workers
    each = factors.worker_response_s if asked is None or asked.response is None else asked.response
    return each * job.spec.responses / workers
