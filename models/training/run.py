"""Arguments of a training run, and the quantities that follow from them, which all effects share. The effects are in the modules beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints, Result
from models.network.collectives import group_bytes_per_s, members_per_domain
from models.roofline import ChipRates, ridge_flop_per_byte
from models.training.constants import FrameworkProfile, Recipe, TrainingConstants
from models.training.layouts import Layouts
from models.transformer.architecture import Architecture
from models.transformer.routing import EVEN

ACTIVATION_BYTES = 2.0  # tensors between ranks travel at 16 bit


def dispatched_tokens(layouts: Layouts, sequence_tokens: int) -> Floats:
    """Count the tokens of a micro-batch that a rank dispatches to experts:  b s / cp, and of those 1/tp with expert parallelism.

    Shapes: layouts along one axis. Units: sequence s and result [token]. Reference: Korthikanti et al., arXiv:2205.05198, section 4.2.2
    (a tensor rank holds 1/tp of the tokens between blocks).

    >>> dispatched_tokens(Layouts.of(dp=8, tp=2, ep=[1, 8]), 4096).tolist()
    [4096.0, 2048.0]
    """
    tokens = layouts.micro_batch * np.asarray(sequence_tokens, float) / layouts.cp
    found: Floats = np.where(layouts.ep > 1, tokens / layouts.tp, tokens)
    return found


@dataclass(frozen=True, slots=True)
class Run:
    """What all effects of a run share: the arguments of `step.training_step` and what follows from them."""

    arch: Architecture
    chip: ChipRates
    layouts: Layouts
    sequence_tokens: int
    precision: str
    constants: TrainingConstants
    family: str
    recipe: Recipe
    profile: FrameworkProfile
    tokens: Floats  # tokens of a micro-batch on one rank [token]
    tp: Floats  # degree of tensor parallelism [1]
    sequence_split: Floats  # by how much a rank's residual stream is divided: tp with sequence parallelism [1]
    kept: Result  # share of the choices of experts within their capacity [1]
    expert_tokens: Floats  # tokens that a rank dispatches, those beyond the capacity of their experts left out [token]
    attended_tokens: Floats  # tokens of the example, or of the whole sequence, within which attention looks [token]
    gemm_flop_per_s: float  # sustained, before size and alignment
    memory_bytes_per_s: float
    half_size: Result
    scaleout: Mapping[str, Floats] | None = (
        None  # by dimension, as `group_links.dimension_links`; without it the chip's rate for all
    )

    @classmethod
    def of(
        cls, arch: Architecture, chip: ChipRates, layouts: Layouts, sequence_tokens: int, precision: str,
        constants: TrainingConstants, family: str, recipe: Recipe, scaleout: Mapping[str, Floats] | None = None,
    ) -> Run:  # fmt: skip
        """Derive the shared quantities; see the fields.

        Shapes: layouts along one axis. Units: sequence [token]. Reference: `step.training_step`.

        >>> from models.serving.examples import CHIP, DENSE
        >>> from models.training.examples import TRAINING
        >>> Run.of(DENSE, CHIP, Layouts.of(tp=8, cp=2, micro_batch=4), 4096, "bf16", TRAINING, "hopper", Recipe()).tokens.tolist()
        [8192.0]
        """
        tp = layouts.tp.astype(float)
        tokens = layouts.micro_batch * np.asarray(sequence_tokens, float) / layouts.cp
        dispatched = dispatched_tokens(layouts, sequence_tokens)
        kept = (arch.routing or EVEN).kept(arch.experts, arch.topk, dispatched * layouts.ep)
        profile = constants.framework_profile(recipe.framework)
        sustained = (
            recipe.power_ratio**constants.power_exponent * constants.generation_factors(family)[0] * profile.gemm
        )
        intensity = ridge_flop_per_byte(chip.flop_per_s, chip.hbm_bytes_per_s)
        return cls(
            arch, chip, layouts, sequence_tokens, precision, constants, family, recipe,
            profile=profile,
            tokens=tokens,
            tp=tp,
            sequence_split=np.where(layouts.sequence_parallel > 0, tp, 1.0),
            kept=kept,
            expert_tokens=dispatched * kept,
            attended_tokens=recipe.attended_tokens(sequence_tokens),
            gemm_flop_per_s=chip.flop_per_s * constants.gemm_efficiency(precision) * sustained,
            memory_bytes_per_s=chip.hbm_bytes_per_s * constants.memory_efficiency,
            half_size=constants.saturation_size * intensity / constants.reference_intensity,
            scaleout=scaleout,
        )  # fmt: skip

    def scaleout_bytes_per_s(self, dimension: str) -> Floats | float:
        """Look up what the network between systems gives each chip for a parallel dimension [byte/s]."""
        return self.chip.scaleout_bytes_per_s if self.scaleout is None else self.scaleout[dimension]

    def start_s(self, group: Floats, stride: Floats | Ints | float) -> Floats:
        """Compute the start-up of a collective over `group` ranks, `stride` apart, whose domains combine in a tree [s]."""
        domains = np.asarray(group, float) / members_per_domain(group, stride, self.chip.scaleup_chips)
        return self.constants.collective_start_s + self.chip.scaleout_latency_s * np.ceil(
            np.log2(np.maximum(domains, 1.0))
        )

    def link_bytes_per_s(
        self, dimension: str, group: Floats, stride: Floats | Ints | float, nic_exponent: float = 1.0
    ) -> Floats:
        """Compute the bandwidth that a collective of a dimension over `group` ranks, `stride` apart, reaches [byte/s]."""
        inside = members_per_domain(group, stride, self.chip.scaleup_chips)
        intra = self.chip.scaleup_bytes_per_s * self.constants.intra_efficiency
        inter = self.scaleout_bytes_per_s(dimension) * self.constants.inter_efficiency
        return np.asarray(group_bytes_per_s(group, inside, intra, inter, nic_exponent), float)
