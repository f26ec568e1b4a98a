"""Media in prompts: the time in which an encoder turns images, sound or video into tokens, beside the engine.

A pool of encoders of its own is in encoder_pool.py, how many tokens media add to a prompt in `workload.Lengths`, FLOPs of an encoder in
models/transformer/encoder.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models.arrays import Result, as_result, sum_of
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.prefill import PrefillTime
from models.serving.workload import Lengths, Media
from models.transformer.encoder import encoder_flops

_PRECISION = "bf16"


def encoding_s(chip: ChipRates, media: Media, constants: ServingConstants) -> Result:
    """Predict the time of encoding one item on one chip:  FLOPs / (F16 e_c) + weights / (B e_m).

    Shapes: as the rates; result [s]. An item is encoded alone, so that weights are read for it. Reference: as `encoder_flops`;
    efficiencies as for dense products with 16-bit weights.

    >>> from models.serving import examples
    >>> bool(0.0 < encoding_s(examples.CHIP, examples.MEDIA, examples.SERVING) < 0.1)
    True
    """
    compute = encoder_flops(media.encoder) / (chip.flop16_per_s * constants.compute_efficiency(_PRECISION))
    return as_result(compute + media.encoder.weight_bytes / (chip.hbm_bytes_per_s * constants.memory_efficiency))


def with_encoding(
    prompts: PrefillTime, chip: ChipRates, layouts: ServingLayouts, lengths: Lengths, share: float, constants: ServingConstants
) -> PrefillTime:  # fmt: skip
    """Add the encoding of a prompt's media to its prefill, where the engine does it:  items T / (tp dp) of engine time.

    Items are spread over the chips of an attention rank, each of which holds the encoder whole; latency: items T / tp, and no less than
    one item takes. `share`: of the requests that come with media [1]. Shapes: layouts broadcast; result [s].
    Reference: Qiu et al., ModServe, arXiv:2502.00937, section 3 (stages of multimodal requests).

    >>> from dataclasses import replace
    >>> from models.serving import examples
    >>> plain = PrefillTime(1.0, 1.0, 1.0, {"dense_compute": 1.0})
    >>> shown = replace(examples.LENGTHS, media=(examples.MEDIA,))
    >>> bool(with_encoding(plain, examples.CHIP, examples.ONE, shown, 1.0, examples.SERVING).occupancy_s > 1.0)
    True
    """
    occupied: Result = 0.0
    later: Result = 0.0
    for media in lengths.media:
        if media.apart:
            continue
        each, items = encoding_s(chip, media, constants), np.asarray(media.items, float)
        occupied = occupied + share * items * each / (np.asarray(layouts.tp) * layouts.dp)
        later = later + share * each * np.maximum(items / layouts.tp, np.minimum(items, 1.0))
    parts = {**prompts.breakdown, "dense_compute": prompts.breakdown["dense_compute"] + occupied}
    return replace(
        prompts, occupancy_s=prompts.occupancy_s + occupied, latency_s=prompts.latency_s + later, breakdown=parts
    )


def encoder_bytes(lengths: Lengths) -> float:
    """Sum the weights of the encoders that the engine's chips hold [byte].

    Shapes: none. Reference: Qiu et al., ModServe, arXiv:2502.00937, section 3.

    >>> from models.serving import examples
    >>> encoder_bytes(examples.LENGTHS)
    0.0
    """
    return float(sum_of(media.encoder.weight_bytes for media in lengths.media if not media.apart))
