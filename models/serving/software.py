"""What an engine or a compiler changes in the constants of serving, beside the factors that are fitted to measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.serving.constants import ServingConstants

COMPUTE = ("compute_efficiency_16bit", "compute_efficiency_8bit", "compute_efficiency_4bit", "attention_efficiency")
MEMORY = ("memory_efficiency", "kv_efficiency")
HOST = ("host_step_s", "host_request_s")
LAUNCH = ("layer_launch_s", "moe_layer_launch_s", "prefill_layer_launch_s", "prefill_moe_layer_launch_s")


@dataclass(frozen=True, slots=True)
class Software:
    """Factors of an engine or a compiler on the constants [1], and times that take the place of fitted ones [s]."""

    host: float = 1.0
    launch: float = 1.0
    first_token: float = 1.0
    compute: float = 1.0
    memory: float = 1.0
    families: tuple[tuple[str, float, float], ...] = ()  # (family, compute, memory) on one family of chips
    times_s: tuple[tuple[str, float], ...] = ()  # by name of the constant

    def on(self, family: str) -> tuple[float, float]:
        """Return the factors (compute, memory) on a family of chips."""
        own = [(compute, memory) for name, compute, memory in self.families if name == family]
        compute, memory = own[0] if own else (1.0, 1.0)
        return self.compute * compute, self.memory * memory


def with_software(constants: ServingConstants, layers: Sequence[Software], family: str) -> ServingConstants:
    """Apply engines and compilers to the constants of a chip family, one after the other.

    Efficiencies: min(e x factor, 1), so that nothing is faster than the roofline; host and launch times x factor; stated times
    replace fitted ones first. Shapes: scalars. Units: factors [1], times [s].
    Reference: Williams, Waterman and Patterson, CACM 52 (2009) (the roofline bounds any kernel).

    >>> from models.serving import examples
    >>> tuned = with_software(examples.SERVING, [Software(launch=0.25, memory=1.8)], "hopper")
    >>> tuned.memory_efficiency, round(tuned.layer_launch_s / examples.SERVING.layer_launch_s, 6)
    (1.0, 0.25)
    """
    for layer in layers:
        times: dict[str, Any] = dict(layer.times_s)
        constants = replace(constants, **times)
        compute, memory = layer.on(family)
        changed: dict[str, Any] = {}
        for names, factor, most in (
            (COMPUTE, compute, 1.0),
            (MEMORY, memory, 1.0),
            (HOST, layer.host, np.inf),
            (LAUNCH, layer.launch, np.inf),
            (("first_token_s",), layer.first_token, np.inf),
        ):
            changed |= {name: min(float(getattr(constants, name)) * factor, most) for name in names if factor != 1.0}
        constants = replace(constants, **changed)
    return constants
