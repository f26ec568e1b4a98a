"""Times of single engine steps from the closed forms, tabulated so that one look-up takes microseconds.

The time of a step is that of its decode, D(n, context), and what the prompts in it add, P(n, tokens) + attention. Not here: which requests
a step carries (`planner.replay.engine`).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Floats
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts, prefill_attention_s
from models.serving.prompt_terms import overhead_s
from models.serving.speculation import Speculation, decode_step
from models.serving.step import StepLoad, step_time
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture

FINE = 256  # requests in decode up to which each number has an entry of its own
COARSE = 48  # further levels of requests, and levels of prompt tokens, in geometric steps
RATIOS = 6  # levels of the tokens of all ranks over those of the fullest on each
CONTEXTS = 25  # levels of the mean context
PROMPTS = 129  # levels of the prompt length, for attention


@dataclass(frozen=True, slots=True)
class Worker:
    """One copy of a network on chips of its own, and the requests that it is made for."""

    arch: Architecture
    chip: ChipRates
    layouts: ServingLayouts
    constants: ServingConstants
    precisions: Precisions
    lengths: Lengths
    speculation: Speculation | None = None

    @property
    def ranks(self) -> int:
        """Return the attention ranks, each of which takes a chunk of prompts of its own in a step."""
        return int(self.layouts.dp)

    @property
    def stages(self) -> int:
        """Return the pipeline stages, each of which holds a micro-batch."""
        return int(self.layouts.pp)

    @property
    def overhead_s(self) -> float:
        """Return the time that front end and scheduler take of every first token [s]."""
        return float(overhead_s(self.arch, self.constants))

    @property
    def tokens_per_step(self) -> float:
        """Return the mean tokens of a request and step, in a long answer."""
        return 1.0 if self.speculation is None else self.speculation.tokens_per_step


class StepTimes:
    """Seconds of a step of a worker, by what it carries; linear between levels, and exact where the closed form is."""

    def __init__(self, worker: Worker, most_requests: int, longest: float):
        """Tabulate for up to `most_requests` in decode and prompts and contexts of up to `longest` tokens."""
        self.worker = worker
        most = max(most_requests, 1)
        fine = np.arange(1.0, min(most, FINE) + 1.0)
        more = np.rint(np.geomspace(FINE, most, COARSE)) if most > FINE else np.empty(0)
        self._requests: Floats = np.unique(np.concatenate([fine, more]))
        self._contexts: Floats = np.unique(np.concatenate([[0.0], np.geomspace(16.0, max(longest, 32.0), CONTEXTS)]))
        self._tabulate_decode()
        self._tabulate_prompts(float(worker.constants.chunk_tokens))
        self._tabulate_attention(longest)

    # -- tables --

    def _tabulate_decode(self) -> None:
        w = self.worker
        n, context = self._requests[None, :], self._contexts[:, None]
        _, whole = decode_step(
            w.arch, w.chip, w.layouts, w.speculation, decode_sequences=w.layouts.in_stage(n), context_tokens=context,
            precisions=w.precisions, constants=w.constants,
        )  # fmt: skip
        table = np.asarray(whole.total_s) + np.zeros((len(self._contexts), len(self._requests)))
        self._decode: list[list[float]] = table.tolist()
        self._request_levels, self._context_levels = self._requests.tolist(), self._contexts.tolist()

    def _tabulate_prompts(self, chunk: float) -> None:
        """Tabulate what tokens of prompts add to a step beside their attention, [requests, tokens of the fullest rank, ratio]; row 0 is without decode."""
        w, mean = self.worker, float(np.mean(np.asarray(self.worker.lengths.prompt)))
        counts = np.unique(np.rint(np.geomspace(1.0, self._requests[-1], COARSE)))
        tokens = np.unique(np.concatenate([np.geomspace(1.0, chunk, COARSE), [min(mean, chunk)]]))
        ratios = np.geomspace(1.0 / w.ranks, 1.0, RATIOS) if w.ranks > 1 else np.ones(1)
        passed = 1.0 if w.speculation is None else w.speculation.verified_tokens
        fullest, share = tokens[None, :, None], ratios[None, None, :]
        loads = [
            StepLoad(
                sequences, float(np.mean(np.asarray(w.lengths.running_context_tokens))), fullest * w.ranks * share,
                prompt_tokens=1.0, fullest_tokens=fullest, tokens_per_sequence=passed,
            )
            for sequences in (0.0, w.layouts.in_stage(counts)[:, None, None])
        ]  # fmt: skip
        kinds = {"precisions": w.precisions, "constants": w.constants}
        found = []
        for load in loads:
            step = step_time(w.arch, w.chip, w.layouts, load, **kinds)  # type: ignore[arg-type]
            found.append(np.asarray(step.total_s - step.breakdown["prefill_attention"]))
        bare = replace(loads[1], prefill_tokens=0.0, fullest_tokens=None)
        without = np.asarray(step_time(w.arch, w.chip, w.layouts, bare, **kinds).total_s)  # type: ignore[arg-type]
        shape = (len(counts), len(tokens), len(ratios))
        alone = np.broadcast_to(found[0], (1, *shape[1:]))
        beside = np.broadcast_to(found[1] - without, shape)
        self._prompts: list[list[list[float]]] = np.concatenate([alone, beside]).tolist()
        self._count_levels, self._token_levels, self._ratio_levels = counts.tolist(), tokens.tolist(), ratios.tolist()

    def _tabulate_attention(self, longest: float) -> None:
        """Tabulate the attention of a prompt over its tokens [s/token], which grows in a straight line under full attention."""
        w = self.worker
        lengths = np.unique(np.concatenate([[1.0], np.geomspace(2.0, max(longest, 4.0), PROMPTS)]))
        each = prefill_attention_s(
            w.arch, w.chip, w.layouts, lengths * w.ranks, lengths, w.constants, weight_precision=w.precisions.weights
        )
        self._attention: list[float] = (np.asarray(each) / lengths).tolist()
        self._length_levels: list[float] = lengths.tolist()

    # -- look-ups --

    def decode_s(self, requests: int, context: float) -> float:
        """Look up the step of a number of requests in decode of a mean context [token], without prompts; 0 for none."""
        if requests <= 0:
            return 0.0
        i, rest = _place(self._request_levels, float(requests))
        j, part = _place(self._context_levels, context)
        low, high = self._decode[j], self._decode[j + 1]
        if rest == 0.0:
            return low[i] + part * (high[i] - low[i])
        below, above = low[i] + rest * (low[i + 1] - low[i]), high[i] + rest * (high[i + 1] - high[i])
        return below + part * (above - below)

    def prompts_s(self, requests: int, fullest: float, total: float) -> float:
        """Look up what prompts add to a step beside their attention: tokens on the fullest rank, and on all [token]."""
        k, part = _place(self._token_levels, fullest)
        ratios = self._ratio_levels
        if len(ratios) == 1:
            m, share = 0, 0.0
        else:
            m, share = _place(ratios, total / (fullest * self.worker.ranks))
        if requests <= 0:
            return _between(self._prompts[0], k, part, m, share)
        i, rest = _place(self._count_levels, float(requests))
        low = _between(self._prompts[i + 1], k, part, m, share)
        return low if rest == 0.0 else low + rest * (_between(self._prompts[i + 2], k, part, m, share) - low)

    def attention_s(self, begin: float, end: float) -> float:
        """Look up the attention of the tokens of a prompt from one place to another [s]."""
        return self._attended(end) - (self._attended(begin) if begin > 0.0 else 0.0)

    def _attended(self, tokens: float) -> float:
        i, part = _place(self._length_levels, tokens)
        each = self._attention[i]
        if part:
            each += part * (self._attention[i + 1] - each)
        return each * tokens


def _place(levels: list[float], value: float) -> tuple[int, float]:
    """Return the level below a value, and how far it is to the next [1]; beyond the ends the last pair goes on in a straight line."""
    if len(levels) == 1:
        return 0, 0.0
    i = bisect_right(levels, value) - 1
    if i < 0:
        return 0, 0.0
    if i >= len(levels) - 1:
        if value == levels[-1]:
            return (len(levels) - 2, 1.0)
        i = len(levels) - 2
    low = levels[i]
    return i, (value - low) / (levels[i + 1] - low)


def _between(table: list[list[float]], k: int, part: float, m: int, share: float) -> float:
    low = table[k][m] + (share * (table[k][m + 1] - table[k][m]) if share else 0.0)
    if not part:
        return low
    above = table[k + 1][m] + (share * (table[k + 1][m + 1] - table[k + 1][m]) if share else 0.0)
    return low + part * (above - low)
