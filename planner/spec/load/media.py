"""Blocks of a spec about media in prompts: images, sound and video, and the encoders that turn them into tokens."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from planner.spec.base import Block
from planner.spec.quantities import WHOLE, Real

Encoding = Literal["beside", "apart"]  # beside the engine, or in a pool of its own
WAYS_TO_ENCODE: tuple[Encoding, ...] = get_args(Encoding)


class Encoder(Block):
    """A transformer over the patches of an image or the frames of a sound, projector included; it computes in 16 bit."""

    parameters: Annotated[Real, Field(ge=1e5, le=1e12)]
    """Number of its parameters, such as 4e8."""
    layers: Annotated[int, Field(ge=1, le=1000), WHOLE]
    """Number of its layers."""
    hidden: Annotated[int, Field(ge=16, le=100_000), WHOLE]
    """Width of its layers."""
    input_tokens: Annotated[int, Field(ge=1, le=10_000_000), WHOLE]
    """Patches or frames of one item."""
    output_tokens: Annotated[int, Field(ge=1, le=1_000_000), WHOLE]
    """Tokens that the language model reads for one item."""
    window: Annotated[int, Field(ge=1, le=10_000_000), WHOLE] | None = None
    """Patches that each patch attends to; all of them if omitted."""


class Media(Block):
    """Images, sounds or videos in the prompts of a workload, or in the sequences of a job."""

    kind: Literal["image", "audio", "video"]
    items: Annotated[Real, Field(gt=0, le=10_000)]
    """Mean items of a request, or of a sequence."""
    items_cv: Annotated[Real, Field(ge=0, le=3)] = 0.0
    """Standard deviation of their number over its mean."""
    encoder: Encoder
    """What turns one item into tokens."""
    trained: bool = False
    """Of a job: whether the encoder is trained with the rest; it is frozen if omitted."""

    @property
    def tokens(self) -> float:
        """Compute the mean tokens that they add to a prompt [token]."""
        return self.items * self.encoder.output_tokens
