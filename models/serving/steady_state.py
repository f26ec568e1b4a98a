"""One pool at a steady rate: the terms of TPOT, of TTFT and of the waits, once the rate is known.

The rate itself is found in continuous_batching.py; the queues are in models/queueing/queues.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from models.arrays import Result
from models.queueing.arrivals import Arrivals
from models.queueing.queues import clumped_wait_probability, delayed_scv, left_behind_s, wait_mean_s
from models.serving.constants import ServingConstants
from models.serving.prefill import PrefillTime
from models.serving.prompt_terms import overhead_s, unloaded_ttft_s, whole_steps
from models.serving.workload import Lengths
from models.transformer.architecture import Architecture


@dataclass(frozen=True)
class SteadyState:
    """One pool at a steady rate; the terms of TPOT and of TTFT follow from it. Times in s, numbers of requests in 1."""

    batch: Result
    steps: Result  # decode steps per request
    per_step: Result  # output tokens of a step
    step_s: Result  # decode step without prefill
    slope_s: Result  # more of it per request more
    prompts: PrefillTime
    occupancy_scv: Result  # a prompt
    requests_per_s: Result
    variance: Result  # number in decode
    arrival_scv: Result
    lengths: Lengths

    @cached_property
    def utilisation(self) -> Result:
        """Share of the engine's time that prompts take [1]."""
        return self.requests_per_s * self.prompts.occupancy_s

    @cached_property
    def decode_share(self) -> Result:
        """Share of the engine's time that is left for decode [1]."""
        return 1.0 - self.utilisation

    @cached_property
    def paced_s(self) -> Result:
        """A decode step under load, with the prompts of others in it [s]."""
        return self.step_s / self.decode_share

    @cached_property
    def variety(self) -> Result:
        """Squared coefficients of variation of arrivals and of occupancy together [1]."""
        return self.arrival_scv + self.occupancy_scv

    def tpot(self) -> dict[str, Any]:
        """Compute the terms of TPOT, which varies with the number in decode, and with the prompts that happen to come in.

        The decode of X = (O - 1) T is a delay cycle of variance  rate S^2 (ca^2 + cs^2) X' / (1 - u)^2,  X' = X/(1 - u) with prompts in it;
        of prompts that attention ranks serve side by side S and u are what adds up.
        """
        service, rate, by_occupancy = self.prompts.occupancy_s * self.prompts.packed, self.requests_per_s, self.occupancy_scv  # fmt: skip
        added, left = self.utilisation * self.prompts.packed, 1.0 - self.utilisation * self.prompts.packed
        decode_share, paced, deviation = self.decode_share, self.paced_s, np.sqrt(self.variance)
        burst = rate * service**2 * self.variety * paced / left**2
        cubes = rate * service**3 * (1.0 + by_occupancy) * (1.0 + 2.0 * by_occupancy) * paced / left**3
        third = cubes + 3.0 * burst**2 / paced
        behind = left_behind_s(added, service, by_occupancy, self.arrival_scv, self.prompts.steps)
        return {
            "steps": self.steps,
            "step_s": self.step_s,
            "tpot_s": self.batch / (rate * self.lengths.later_tokens),
            "tpot_deviation_s": self.slope_s * deviation / (decode_share * self.per_step),
            "tpot_step_deviation_s": self.slope_s * deviation / self.per_step,
            "tpot_skew": 2.0 * deviation / self.batch,
            "tpot_burst_s": np.sqrt(burst) / self.per_step,
            "tpot_burst_skew": third / np.maximum(burst, 1e-100) ** 1.5,
            "tpot_behind_s": behind / self.per_step,
            "tpot_prompt_s": (paced - self.step_s) / self.per_step,
            "tpot_chunk_s": np.maximum(self.prompts.chunk_s, paced - self.step_s) / self.per_step,
            "relaxation": np.clip(1.0 - self.batch * self.slope_s / self.step_s, 0.0, 1.0),
        }

    def prefill_wait(self) -> tuple[Result, Result]:
        """Compute (load of the server that arrivals queue for [1], mean wait for prefill [s]): G/G/1 with service S + (I/C) T(b).

        The number in decode swings slowly by s, and the load of that server with it, r = rate (I/C) T'(b) s/(1 - load): wait x (1 + r^2).
        Prompts that share a step all end with it, so the wait is no less than that of gated service, u = rate S:
        S is that in the first stage of a pipeline, which the next prompt enters while others pass the rest.
        u T/(2 (1 - u)) + (1/2 + u) rate S^2 (ca^2 + cs^2)/(1 - u^2).
        """
        turn, rate = self.prompts.turn, self.requests_per_s
        packed = turn * self.prompts.packed
        service, utilisation = self.prompts.occupancy_s * packed, self.utilisation * packed
        server = service + self.prompts.steps * self.step_s
        load = np.minimum(rate * server, 1.0)
        deviation = np.sqrt(self.variance)
        swung = np.minimum(rate * self.prompts.steps * self.slope_s * deviation / np.maximum(1.0 - load, 1e-9), 1.0)
        queue = (1.0 + swung**2) * wait_mean_s(rate, server, self.occupancy_scv, 1, load, self.arrival_scv)
        gathered = 0.5 * turn * (self.paced_s - self.step_s) + (
            0.5 + utilisation
        ) * rate * service**2 * self.variety / (1.0 - utilisation**2)
        return load, np.maximum(queue, gathered)

    def ttft(
        self, arch: Architecture, constants: ServingConstants, computed_share: Result, places: Result
    ) -> dict[str, Any]:
        """Compute the terms of TTFT: the prompt by itself, the wait for prefill, the wait for a place in decode."""
        load, wait = self.prefill_wait()
        prompts, step_s, paced = self.prompts, self.step_s, self.paced_s
        # An arrival sits out steps as they are under load, with the prompts of others in them; its own prompt takes whole steps, and begins
        # when the first stage is free.
        computed = self.lengths.prompt * computed_share
        taken = computed / constants.interleave_tokens
        unloaded = unloaded_ttft_s(arch, prompts.latency_s, step_s, computed, constants)
        unloaded = (
            unloaded
            + (whole_steps(taken, self.lengths.scv_of_input) - taken - 1.0 + 0.5 * prompts.turn) * step_s
            + constants.steps_waited * (paced - step_s)
        )
        inside = self.batch + self.requests_per_s * (prompts.latency_s + np.where(load < 1.0, wait, 0.0) + 0.5 * paced)
        at_least_one = np.maximum(places, 1.0)
        full = np.maximum(at_least_one - (inside - self.batch), 0.5)
        full_step_s = np.maximum(step_s + self.slope_s * (full - self.batch), 0.0)
        full_rate = full / (self.steps * full_step_s + full * prompts.occupancy_s)
        arrivals = Arrivals(
            load, inside, np.maximum(self.variance, inside) + inside * self.lengths.scv_of_held, at_least_one, self.requests_per_s, full_rate,
            self.arrival_scv, self.lengths.scv_of_output,
        )  # fmt: skip
        no_slot, slot_wait = arrivals.place_wait()
        return {
            "prefill_s": prompts.occupancy_s,
            "prefill_utilisation": self.utilisation,
            "unloaded_ttft_s": unloaded,
            "overhead_s": overhead_s(arch, constants),
            "prompt_s": prompts.latency_s,
            "prefill_wait_s": wait,
            "prefill_wait_probability": clumped_wait_probability(load, self.arrival_scv),
            "prefill_load": load,
            "prefill_wait_scv": delayed_scv(load, self.occupancy_scv),
            "boundary_s": paced,
            "slot_wait_s": no_slot * slot_wait,
            "slot_wait_probability": no_slot,
            "arrivals": arrivals,
        }
