"""Workload of a serving model: the lengths of requests with their spread, and the precisions of weights and KV cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Result
from models.roofline import Precision


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mean prompt and output lengths [token] of a workload, and the squared coefficient of variation of each [1]."""

    input_tokens: ArrayLike
    output_tokens: ArrayLike
    input_scv: ArrayLike = 0.0
    output_scv: ArrayLike = 0.0

    @property
    def prompt(self) -> Floats:
        """Mean tokens of a prompt [token]."""
        return np.asarray(self.input_tokens, float)

    @property
    def output(self) -> Floats:
        """Mean output tokens of a request [token]."""
        return np.asarray(self.output_tokens, float)

    @property
    def later_tokens(self) -> Floats:
        """Mean output tokens after the first, which prefill yields [token]."""
        return np.asarray(self.output_tokens, float) - 1.0

    @property
    def scv_of_input(self) -> Floats:
        """Squared coefficient of variation of the prompt length [1]."""
        return np.asarray(self.input_scv, float)

    @property
    def scv_of_output(self) -> Floats:
        """Squared coefficient of variation of the output length [1]."""
        return np.asarray(self.output_scv, float)

    @property
    def running_context_tokens(self) -> Result:
        """Mean context of the requests in decode [token]:  I + (O - 1)/2 (1 + scv), since long outputs are met more often among them."""
        return self.prompt + 0.5 * self.later_tokens * (1.0 + self.scv_of_output)


@dataclass(frozen=True, slots=True)
class Precisions:
    """Number formats of the weights and of the KV cache."""

    weights: Precision
    kv_cache: Precision
