"""Workload of a serving model: the lengths of requests with their spread, and the precisions of weights and KV cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Result
from models.roofline import Precision
from models.transformer.encoder import Encoder


@dataclass(frozen=True, slots=True)
class Media:
    """Images, sounds or videos in a prompt: how many [1], and the encoder of one."""

    encoder: Encoder
    items: float  # of a request, on average
    items_scv: float = 0.0
    apart: bool = False  # whether they are encoded in a pool of their own

    @property
    def tokens(self) -> float:
        """Tokens that they add to a prompt, on average [token]."""
        return self.items * self.encoder.output_tokens


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mean prompt and output lengths [token] of a workload, and the squared coefficient of variation of each [1].

    `input_tokens` and its variation are those of the text; what `media` add counts in `prompt` and `scv_of_input`.
    """

    input_tokens: ArrayLike
    output_tokens: ArrayLike
    input_scv: ArrayLike = 0.0
    output_scv: ArrayLike = 0.0
    media: tuple[Media, ...] = ()

    @property
    def media_tokens(self) -> float:
        """Mean tokens that media add to a prompt [token]."""
        return sum(media.tokens for media in self.media)

    @property
    def prompt(self) -> Floats:
        """Mean tokens of a prompt [token]."""
        return np.asarray(self.input_tokens, float) + self.media_tokens

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
        text = np.asarray(self.input_scv, float)
        if not self.media:
            return text
        spread = sum(media.items_scv * media.tokens**2 for media in self.media)
        both: Floats = (text * np.asarray(self.input_tokens, float) ** 2 + spread) / self.prompt**2
        return both

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
