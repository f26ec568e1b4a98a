"""Encoders of media in a pool of their own, before the prefill of a serving point. Encoders beside the engine are in media.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result
from models.queueing.arrivals import AtServers
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.continuous_batching import ServingPoint
from models.serving.media import encoding_s
from models.serving.workload import Lengths

BUSIEST = 0.7  # share of the time that the encoders of a pool are at work
_ACTIVATION_BYTES = 2.0


def encoder_workers(
    requests_per_s: ArrayLike, chip: ChipRates, lengths: Lengths, constants: ServingConstants
) -> Result:
    """Count the chips of a pool of encoders for a rate of requests:  ceil(rate items T / 0.7), one at least [1].

    Shapes: rate [1/s]; result [1]. Reference: as `apart_point`.

    >>> from dataclasses import replace
    >>> from models.serving import examples
    >>> shown = replace(examples.LENGTHS, media=(replace(examples.MEDIA, apart=True),))
    >>> float(encoder_workers(1.0, examples.CHIP, shown, examples.SERVING))
    1.0
    """
    busy, _ = _service(chip, lengths, constants)
    return as_result(np.maximum(np.ceil(np.asarray(requests_per_s, float) * busy / BUSIEST - 1e-9), 1.0))


def _service(chip: ChipRates, lengths: Lengths, constants: ServingConstants) -> tuple[Result, Result]:
    """Compute (time of an encoder for a request [s], its squared coefficient of variation) of the media in a pool apart."""
    mean: Result = 0.0
    variance: Result = 0.0
    for media in lengths.media:
        if media.apart:
            each = encoding_s(chip, media, constants)
            mean = mean + media.items * each
            variance = variance + media.items_scv * (media.items * each) ** 2
    return mean, variance / np.maximum(mean, 1e-300) ** 2


def apart_point(
    point: ServingPoint, chip: ChipRates, hidden: float, lengths: Lengths, link_bytes_per_s: ArrayLike, constants: ServingConstants,
    *, arrival_scv: ArrayLike = 1.0,
) -> tuple[ServingPoint, Result]:  # fmt: skip
    """Put encoders in a pool of their own before the prefill of a point: (the point with their time in its TTFT, their chips).

    M/G/c with c = `encoder_workers` chips, each of which encodes the media of a request one after the other; what they make travels as
    activations of 16 bit. Its service and its wait stand beside prefill's, each with its own spread (`percentiles.first_token_cumulants`). Media may not differ in where they are encoded. Shapes: as the point; hidden [1], link [byte/s], `arrival_scv` of the gaps between requests [1],
    result [s] and [1].
    Reference: Qiu et al., ModServe, arXiv:2502.00937, section 4 (decoupled stages); Allen-Cunneen approximation as `queues.wait_mean_s`.

    >>> from dataclasses import replace
    >>> from models.serving import examples
    >>> shown = replace(examples.LENGTHS, media=(replace(examples.MEDIA, apart=True),))
    >>> found, workers = apart_point(examples.POINT, examples.CHIP, 4096, shown, 25e9, examples.SERVING)
    >>> bool(found.ttft_s > examples.POINT.ttft_s), float(workers)
    (True, 1.0)
    """
    workers = encoder_workers(point.requests_per_s, chip, lengths, constants)
    service, scv = _service(chip, lengths, constants)
    encoders = AtServers(point.requests_per_s, service, scv, workers, as_result(np.asarray(arrival_scv, float)))
    wait, chance, wait_scv = encoders.wait_at()
    moved = _ACTIVATION_BYTES * hidden * lengths.media_tokens / np.asarray(link_bytes_per_s, float)
    return replace(
        point,
        encoding_s=service + moved,
        encoding_scv=scv * (service / (service + moved)) ** 2,
        encoder_wait_s=wait,
        encoder_wait_probability=chance,
        encoder_wait_scv=wait_scv,
        encoders=encoders,
    ), workers
