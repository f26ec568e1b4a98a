"""What a workload asks of any chip: work and intensity of its phases, bandwidth, collectives, precisions and parallel widths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from catalog.figures import Figure
from catalog.lookup import Catalog
from catalog.units import GIGA
from models.arrays import sum_of
from models.formats import RECIPE_FORMATS, WEIGHT_FORMATS, element_bytes, operand_bits
from models.network.algorithms import ALGORITHMS, chosen_algorithm, latency_share, slowest_s
from models.serving.decode import ACTIVATION_BYTES, ServingLayouts, exchange_bytes
from models.serving.kv_cache import kv_bytes_per_chip, weight_bytes_per_chip
from models.serving.sessions import RESIDENT, call_lengths
from models.training.constants import Recipe
from models.transformer.architecture import Architecture, parameter_counts
from models.transformer.attention import kv_bytes
from models.transformer.checkpoint import checkpoint_bytes, wide_shares
from models.transformer.work import Work, decode_work, encoding_work, prefill_work, training_work
from planner.evaluate.layouts import recipe_of
from planner.evaluate.serving import lengths_of, precisions
from planner.evaluate.serving_state import media_of, session_of
from planner.messages import Message
from planner.problem.facts import ServingFacts, TrainingFacts
from planner.problem.reinforcement import ReinforcementFacts
from planner.spec.load.media import Media
from planner.spec.reinforcement import SCORING
from planner.spec.slo import TPOT, TTFT
from planner.spec.workloads import Training

BATCHES = (1, 8, 32, 128)  # requests in decode at which bandwidth and intensity are stated
RANKS = 8  # ranks of a group of tensor parallelism on a network
PORT_BYTES_PER_S = 50 * GIGA  # port of a network without a rate on record: 400 Gbit/s
TOLERATED = 0.1  # share of a step that its collectives may take
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
LEAST_SHARD = 256  # columns of a matrix per rank below which products lose their rate to their size
BLOCK = 32  # elements that share a scale in block formats (OCP MX)


def serving_needs(workload: ServingFacts) -> dict[str, Any]:
    """Characterise a serving workload: of sessions its mean call, the prefill of a later one beside the cache, and the encoders of media."""
    arch, opening = workload.architecture, lengths_of(workload)
    session = None if workload.spec.session is None else session_of(workload.spec.session, RESIDENT, None)
    lengths = call_lengths(session, opening)
    first = precisions(arch, workload.spec.precision[0])
    context = float(lengths.running_context_tokens)
    prompt = float(opening.prompt)
    limits = {metric: _tightest(workload, metric) for metric in (TTFT, TPOT)}
    ttft = limits[TTFT]
    prefill = prefill_work(arch, prompt, first)
    phases = [_phase("prefill of one prompt" if session is None else "prefill of the first call", prefill, prompt)]
    if session is not None and session.task.calls > 1:
        whole, new = float(session.later_lengths(opening).prompt), float(session.new_tokens(opening))
        if new:
            phases.append(
                _phase("prefill of a later call, the rest in cache", prefill_work(arch, whole, first, whole - new), new)
            )
    decoding = {batch: decode_work(arch, batch, context, first) for batch in BATCHES}
    phases += [_phase(f"decode, batch {batch}", work, batch) for batch, work in decoding.items()]
    phases += [_encoding_phase(media, "one request") for media in workload.spec.media or ()]
    return {
        **_shape(arch),
        "precision": first.weights,
        "context_tokens": context,
        "kv_bytes_per_request": float(kv_bytes(arch, float(lengths.prompt) + float(lengths.output), element_bytes(str(first.kv_cache)))),
        "phases": phases,
        "bandwidth": [_bandwidth(batch, work, limits[TPOT]) for batch, work in decoding.items()],
        "prefill_flop_per_s": None if ttft is None else _sum(prefill, "flop") / ttft,
        "collectives": _serving_collectives(arch, workload.spec.precision[0], prompt, limits),
        "precisions": [_precision(arch, name) for name in WEIGHT_FORMATS],
        "ranks": serving_ranks(arch, workload.spec.precision[0], float(lengths.prompt + lengths.output)),
    }  # fmt: skip


def training_needs(job: TrainingFacts) -> dict[str, Any]:
    """Characterise a training job; of all its chips together."""
    arch, spec = job.architecture, job.spec
    tokens, sequence = float(job.batch_sequences) * spec.sequence_tokens, float(spec.sequence_tokens)
    work = training_work(arch, tokens, sequence)
    flop = _sum(work, "flop")
    seconds = (spec.deadline - spec.start) * tokens / spec.tokens
    rows = _training_collectives(arch, job.batch_sequences, sequence, seconds * TOLERATED)
    return {
        **_shape(arch),
        "precision": spec.precision[0],
        "phases": [
            _phase("one optimizer step", work, tokens),
            *(
                _encoding_phase(media, "a step's sequences", job.batch_sequences)
                for media in (spec.media if isinstance(spec, Training) else None) or ()
            ),
        ],
        "sustained_flop_per_s": flop / seconds,
        "steps": spec.tokens / tokens,
        "step_s": seconds,
        "state_bytes": _state_bytes(arch, recipe_of(job)),
        "collectives": rows,
        "precisions": [_precision(arch, name) for name in RECIPE_FORMATS],
    }


def reinforcement_needs(job: ReinforcementFacts) -> dict[str, Any]:
    """Characterise a job of reinforcement: generation as in serving, scoring and the update as in training; of all its chips together.

    Scoring is a forward pass of a third of training's work for policy and reference each; critic and reward are not in it.
    """
    arch, spec = job.architecture, job.spec
    sequence = float(spec.sequence_tokens)
    tokens = job.batch_sequences * sequence
    update, phases = training_work(arch, tokens, sequence), []
    flop = _sum(update, "flop") * spec.mini_batches * spec.epochs
    passes = SCORING[spec.algorithm] + spec.reference
    flop += _sum(update, "flop") / 3.0 * spec.mini_batches * passes
    rolling = precisions(arch, spec.rollout_precision[0])
    found: dict[str, Any] = {}
    rows = []
    if spec.algorithm != "dpo":
        prompt, response = float(spec.lengths.prompt), spec.sample_tokens - spec.lengths.prompt
        context = prompt + 0.5 * response
        prefill, one = prefill_work(arch, prompt, rolling), decode_work(arch, 1, context, rolling)
        flop += spec.prompts * _sum(prefill, "flop") + spec.responses * spec.lengths.response * _sum(one, "flop")
        phases = [_phase("rollout: prefill of one prompt", prefill, prompt)]
        phases += [
            _phase(f"rollout: decode, batch {batch}", decode_work(arch, batch, context, rolling), batch)
            for batch in BATCHES
        ]
        rows = _serving_collectives(arch, spec.rollout_precision[0], prompt, {TTFT: None, TPOT: None})
        found = {
            "context_tokens": context,
            "kv_bytes_per_request": float(kv_bytes(arch, prompt + response, element_bytes(str(rolling.kv_cache)))),
            "ranks": serving_ranks(arch, spec.rollout_precision[0], prompt + response),
        }
    seconds = (spec.deadline - spec.start) / spec.all_iterations if spec.all_iterations else None
    return {
        **_shape(arch),
        "precision": spec.precision[0],
        "rollout_precision": rolling.weights,
        "phases": [*phases, _phase("update: one mini-batch", update, tokens)],
        "iterations": spec.iterations,
        "iteration_s": seconds,
        "iteration_flop": flop,
        "sustained_flop_per_s": None if seconds is None else flop / seconds,
        "state_bytes": _state_bytes(arch, recipe_of(job)),
        **found,
        "collectives": rows + _training_collectives(arch, job.batch_sequences, sequence, None),
        "precisions": [_precision(arch, name) for name in WEIGHT_FORMATS],
    }


def _encoding_phase(block: Media, of: str, times: float = 1.0) -> dict[str, Any]:
    """State the work of the encoder of media; its phase counts the tokens that the network reads. A trained encoder's backward pass is not in it."""
    media = media_of(block, apart=False)
    return _phase(
        f"encoding the {block.kind} of {of}", encoding_work(media.encoder, times * media.items), times * media.tokens
    )


def _shape(arch: Architecture) -> dict[str, Any]:
    counts = parameter_counts(arch)
    return {
        "parameters": counts.total,
        "active_parameters": counts.active,
        "kv_heads": 0 if arch.mla else arch.kv_heads,
        "latent": arch.mla,
    }


def _tightest(workload: ServingFacts, metric: str) -> float | None:
    """Return the least limit on a latency [s]; None without one."""
    return min((limit.seconds for limit in workload.spec.limits() if limit.metric == metric), default=None)


def _sum(work: Mapping[str, Work], what: str) -> float:
    return float(sum_of(np.asarray(getattr(part, what)) for part in work.values()))


def _phase(name: str, work: Mapping[str, Work], tokens: float) -> dict[str, Any]:
    """State FLOPs, bytes and intensity of a phase and of each operator in it."""
    flop, moved = _sum(work, "flop"), _sum(work, "moved_bytes")
    operators = [
        {
            "operator": operator,
            "flop": float(part.flop),
            "bytes": float(part.moved_bytes),
            "flop_per_byte": float(part.intensity),
            "share_of_flop": float(part.flop) / flop,
            "share_of_bytes": float(part.moved_bytes) / moved,
        }
        for operator, part in work.items()
    ]
    return {
        "phase": name,
        "tokens": tokens,
        "flop": flop,
        "bytes": moved,
        "flop_per_byte": flop / moved,
        "operators": operators,
    }


def _bandwidth(batch: int, work: Mapping[str, Work], tpot_s: float | None) -> dict[str, Any]:
    """State the bandwidth at which a step of all chips of a replica would just take the limit on TPOT."""
    moved = _sum(work, "moved_bytes")
    return {
        "batch": batch,
        "bytes_per_step": moved,
        "bytes_per_token": moved / batch,
        "peak_bytes_per_s": None if tpot_s is None else moved / tpot_s,
        "peak_flop_per_s": None if tpot_s is None else _sum(work, "flop") / tpot_s,
    }


def _serving_collectives(
    arch: Architecture, precision: str, prompt: float, limits: Mapping[str, float | None]
) -> list[dict[str, Any]]:
    """State size, number and tolerated time of the collectives of a step, by phase."""
    rows = []
    for phase, tokens, limit in (("decode, batch 32", 32.0, limits[TPOT]), ("prefill", prompt, limits[TTFT])):
        allowed = None if limit is None else TOLERATED * limit
        vector = ACTIVATION_BYTES * tokens * arch.hidden
        rows.append(_collective(f"tensor: all-reduce, {phase}", 2.0 * arch.layers, vector, allowed))
        if arch.experts:
            each = float(exchange_bytes(operand_bits(precision))) * tokens * arch.expert_input * arch.topk
            rows.append(_collective(f"experts: dispatch or combine, {phase}", 2.0 * arch.moe_layers, each, allowed))
    return rows


def _state_bytes(arch: Architecture, recipe: Recipe) -> float:
    """Compute weights, gradients and optimizer state of a network as its recipe keeps them [byte]."""
    return parameter_counts(arch).total * (recipe.weight_bytes + recipe.gradient_bytes + recipe.optimizer_bytes)


def _training_collectives(
    arch: Architecture, sequences: float, sequence: float, allowed_s: float | None
) -> list[dict[str, Any]]:
    """State size, number and tolerated time of the collectives of an optimizer step."""
    counts = parameter_counts(arch)
    vector = ACTIVATION_BYTES * sequence * arch.hidden
    rows = [
        _collective("tensor: reduce and gather of a layer, one sequence", 4.0 * arch.layers * sequences, vector, allowed_s),
        _collective("data: gradients, once per step", 1.0, ACTIVATION_BYTES * counts.total, allowed_s),
    ]  # fmt: skip
    if arch.experts:
        each = ACTIVATION_BYTES * sequence * arch.expert_input * arch.topk
        rows.append(_collective("experts: dispatch or combine of a layer, one sequence", 6.0 * arch.moe_layers * sequences, each, allowed_s))  # fmt: skip
    return rows


def _collective(name: str, count: float, size: float, allowed_s: float | None) -> dict[str, Any]:
    """State how long one of `count` collectives may take if all of them may take `allowed_s`."""
    tolerated = None if allowed_s is None else allowed_s / count
    return {
        "collective": name,
        "per_step": count,
        "bytes": size,
        "tolerated_s": tolerated,
        "bytes_per_s": None if tolerated is None else size / tolerated,
    }


def on_networks(catalog: Catalog, collectives: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Predict the all-reduces of tensor parallelism on eight ranks of every network whose latency is on record or claimed.

    The latency of a message is the start-up of the network where it is on record, else that of one switch; the rate is that of a port, or of 400 Gbit/s
    where only a latency is claimed.
    """
    rows = []
    for record in catalog.records("fabrics"):
        known = {**record.claimed, **record.figures}
        latency = known.get("alpha_s") or known.get("hop_latency_s")
        if latency is None or not latency.number:
            continue
        port = known.get("port_bytes_per_s")
        if port is None and not record.announced_only:
            continue
        rate = PORT_BYTES_PER_S if port is None else port.number
        for row in collectives:
            if not row["collective"].startswith("tensor: all-reduce"):
                continue
            place, seconds = chosen_algorithm(row["bytes"], RANKS, rate, latency.number)
            rows.append({
                "network": record.name,
                "collective": row["collective"],
                "claimed": "alpha_s" not in record.figures and "hop_latency_s" not in record.figures,
                "latency_s": latency.number,
                "bytes_per_s": rate,
                "algorithm": ALGORITHMS[int(place)],
                "seconds": float(seconds),
                "waiting": float(latency_share(row["bytes"], RANKS, rate, latency.number)),
                "tolerated": None if row["tolerated_s"] is None else bool(seconds <= row["tolerated_s"]),
                "jitter_for_claim_s": _jitter_s(known, row["bytes"], rate, latency.number),
            })  # fmt: skip
    return rows


def _jitter_s(known: Mapping[str, Figure], size: float, rate: float, latency_s: float) -> float | None:
    """Compute the mean jitter of a message with which the claimed share of an all-reduce is waiting; None without a claim.

    All ranks wait for the slowest of them at each step, with exponential jitter; 0 where latency alone reaches the claim.
    """
    claim = known.get("stalled_fraction")
    if claim is None:
        return None
    place, seconds = chosen_algorithm(size, RANKS, rate, latency_s)
    steps = 2.0 * (RANKS - 1.0) if ALGORITHMS[int(place)] == "ring" else 2.0 * np.log2(RANKS)
    waiting = float(latency_share(size, RANKS, rate, latency_s))
    missing = (claim.number - waiting) * float(seconds) / (1.0 - claim.number)
    return float(max(missing, 0.0) / (steps * slowest_s(1.0, RANKS)))


def _precision(arch: Architecture, name: str) -> dict[str, Any]:
    """State what a precision of the weights saves, and what stays in its way. Whether answers stay as good has to be measured."""
    counts, size = parameter_counts(arch), checkpoint_bytes(arch, name)
    wide = wide_shares(arch, name)
    if element_bytes(name) < 1.0:  # tables are never below 8 bit
        wide["tables"] = (counts.embedding + counts.head) / counts.total
    widths = {"hidden": arch.hidden, "feed-forward": arch.ffn, "experts": arch.expert_ffn}
    uneven = [part for part, width in widths.items() if width % BLOCK]
    return {
        "precision": name,
        "weight_bytes": float(size),
        "over_bf16": float(size / checkpoint_bytes(arch, "bf16")),
        "kv_precision": precisions(arch, name).kv_cache,
        "kept_wider": sum_of(wide.values()),
        "ready": not uneven,
        "in_the_way": Message.of("characterise.widths_uneven", names=", ".join(uneven), size=str(BLOCK)).text()
        if uneven
        else "",
    }


def serving_ranks(arch: Architecture, precision: str, context: float) -> list[dict[str, Any]]:
    """List memory per rank over tensor-parallel widths, and over expert-parallel ones of a network with experts; which of them make sense, and why."""
    found = [("tp", width, ServingLayouts(width, 1, 1, 1)) for width in WIDTHS]
    if arch.experts:
        found += [("ep", width, ServingLayouts(1, 1, width, width)) for width in WIDTHS if 1 < width <= arch.experts]
    rows = []
    for kind, width, layout in found:
        weights = float(weight_bytes_per_chip(arch, layout, precision))
        cache = float(kv_bytes_per_chip(arch, layout, context, precisions(arch, precision).kv_cache)) * int(layout.dp)
        why = _width_words(arch, kind, width)
        rows.append(
            {
                "parallel": kind,
                "width": width,
                "weight_bytes": weights,
                "kv_bytes_per_request": cache,
                "sensible": not why,
                "why_not": why,
            }
        )
    return rows


def _width_words(arch: Architecture, kind: str, width: int) -> str:
    """Say why a width makes no sense; empty where it does."""
    if kind == "ep":
        return (
            ""
            if arch.experts % width == 0
            else Message.of("characterise.experts_not_dividing", count=str(arch.experts)).text()
        )
    if arch.heads % width:
        return Message.of("characterise.heads_not_dividing", count=str(arch.heads)).text()
    inner: Sequence[int] = [n for n in (arch.ffn if not arch.experts else 0, arch.expert_ffn) if n]
    if inner and min(inner) / width < LEAST_SHARD:
        return Message.of("characterise.products_too_small", count=f"{min(inner) / width:g}").text()
    if arch.mla and width > 1:
        return Message.of("characterise.latent_copies").text()
    if width > arch.kv_heads and not arch.mla:
        return Message.of("characterise.cache_copies", count=str(arch.kv_heads)).text()
    return ""
