"""Evaluate how long a replica takes until it serves on systems that ran something else."""

from __future__ import annotations

import math

from models.storage import load_s
from planner.problem.constants import Loading
from planner.problem.facts import ServingFacts, SiteFacts


def replica_load_s(workload: ServingFacts, site: SiteFacts, loading: Loading) -> float:
    """Compute the time from the start of an engine until its weights lie in the chips:  start + W / B  [s].

    W: weights of the architecture [byte]; B: bandwidth of the site's storage, or the usual one where the spec states none [byte/s].
    """
    stated = site.storage_bytes_per_s
    bandwidth = stated if math.isfinite(stated) else loading.storage_bytes_per_s
    return loading.engine_start_s + float(load_s(workload.weights_bytes, [1.0], [bandwidth]))
