"""Agentic sessions: tasks of several calls whose context grows, with the time of tools between them. A task of one call is a request.

What the cache of a session costs while it waits, what a call finds of it, and how long a task takes. One call in an engine is in
continuous_batching.py and disaggregation.py; prefixes that different requests share are in prefix_cache.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Bools, Result
from models.formats import Precision, element_bytes
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import SharedPrefixes, kv_bytes_per_chip
from models.serving.media import encoder_bytes, with_encoding
from models.serving.prefill import DecodeBatch, PrefillTime, Prompts, prefill_time
from models.serving.prefix_cache import CachedPrefill, PrefixCache, held_bytes, load_s, prompt_cost, shared_prefixes
from models.serving.prompt_terms import prompt_scvs, time_scv
from models.serving.speculation import Speculation
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture
from models.transformer.attention import kv_bytes

RESIDENT, OFFLOADED, DROPPED = "resident", "offloaded", "dropped"
SPARE_DEVIATIONS = 2.0  # deviations of the number of waiting sessions, for which memory is set aside beyond its mean


@dataclass(frozen=True, slots=True)
class Task:
    """Calls of a task and the time between them: means, and squared coefficients of variation [1]."""

    calls: float = 1.0
    calls_scv: float = 0.0
    wait_s: float = 0.0  # work of a tool or a user, between two calls
    wait_scv: float = 1.0

    @property
    def later_share(self) -> float:
        """Share of the calls that are not the first of their task [1]."""
        return 1.0 - 1.0 / self.calls

    @property
    def wait_per_call_s(self) -> float:
        """Mean time between calls, for each call of a task [s]."""
        return self.later_share * self.wait_s

    def earlier_calls(self) -> tuple[float, float]:
        """Compute mean and mean square of the number of calls before a call, over all calls [1].

        E[N(N-1)]/(2 E N) and E[(N-1) N (2N-1)]/(6 E N) for N - 1 gamma.
        """
        more = self.calls - 1.0
        if more <= 0.0:
            return 0.0, 0.0
        c = self.calls_scv * (self.calls / more) ** 2  # calls after the first
        square, cube = (1.0 + c) * more**2, (1.0 + c) * (1.0 + 2.0 * c) * more**3
        return (square + more) / (2.0 * self.calls), (2.0 * cube + 3.0 * square + more) / (6.0 * self.calls)


@dataclass(frozen=True, slots=True)
class Session:
    """A session between an agent and the engine: its calls, what each adds to the context, and where its cache waits for the next call."""

    task: Task
    added_tokens: float  # by what comes back from a tool, beside the answer [token]
    waiting: str = RESIDENT
    host_bytes: float = 0.0  # a chip's share of the memory that offloaded caches wait in [byte]
    host_bytes_per_s: float = 0.0  # at which a chip reads from it [byte/s]
    returned: bool = True  # whether answers stay in the cache; not where another pool decodes them

    def lengths(self, first: Lengths) -> Lengths:
        """Compute the lengths of all calls from the lengths of the first [token]:  I + k (g + O) after k calls."""
        before, square = self.task.earlier_calls()
        return self._grown(first, before, square - before**2)

    def later_lengths(self, first: Lengths) -> Lengths:
        """Compute the lengths of the calls that are not the first of their task [token]."""
        before, square = (moment / self.task.later_share for moment in self.task.earlier_calls())
        return self._grown(first, before, square - before**2)

    def _grown(self, first: Lengths, before: float, variance: float) -> Lengths:
        step = self.added_tokens + first.output
        prompt = first.prompt + before * step
        spread = (
            first.scv_of_input * first.prompt**2
            + before * first.scv_of_output * first.output**2
            + max(variance, 0.0) * step**2
        )
        return Lengths(prompt, first.output, spread / prompt**2, first.scv_of_output)

    def new_tokens(self, first: Lengths) -> Result:
        """Count the tokens of a later call that no cache can hold [token]: what the tool adds, and an answer that another pool decoded."""
        return self.added_tokens + (0.0 if self.returned else first.output)

    def kept_tokens(self, first: Lengths) -> Result:
        """Count the tokens in the cache of a session that waits, on average [token]."""
        return self.later_lengths(first).prompt - self.new_tokens(first)


Reuse = PrefixCache | Session


@dataclass(frozen=True, slots=True)
class SessionPrefill:
    """Prefill over the first and the later calls of sessions; arrays of the shape of layouts x batch."""

    mean: PrefillTime  # its latency counts the loading
    occupancy_scv: Result  # squared coefficient of variation over all calls [1]
    latency_scv: Result  # the same of the latency
    prompt_scv: Result  # latency between calls of the same place in their tasks [1]
    computed_share: Result  # prompt tokens that are computed, of all
    load_s: Result  # loading the cache of a later call


def call_lengths(reuse: Reuse | None, first: Lengths) -> Lengths:
    """Compute the lengths of a call from the lengths of the first call of a task [token].

    Shapes: broadcast. Reference: mean and variance of a growing context over the calls of a task (this module).

    >>> float(call_lengths(Session(Task(3.0), 500.0), Lengths(1000, 200)).prompt)
    1700.0
    """
    return reuse.lengths(first) if isinstance(reuse, Session) else first


def apart(reuse: Reuse | None) -> Reuse | None:
    """Take the answers out of the caches of sessions, where another pool decodes them.

    Shapes [as given]: unchanged. Reference: Zhong et al., DistServe, OSDI 2024, section 4 (caches move from prefill to decode only).

    >>> apart(Session(Task(3.0), 500.0)).returned, apart(None)
    (False, None)
    """
    return replace(reuse, returned=False) if isinstance(reuse, Session) else reuse


def task_of(reuse: Reuse | None) -> Task | None:
    """Return the task that calls belong to; None for requests of their own.

    Shapes [as given]: unchanged. Reference: this module.

    >>> task_of(Session(Task(3.0), 500.0)).calls, task_of(None)
    (3.0, None)
    """
    return reuse.task if isinstance(reuse, Session) else None


def common(reuse: Reuse | None) -> SharedPrefixes | None:
    """Return the prefixes that running requests share; None for sessions, of which each has one call at a time.

    Shapes [as given]: unchanged. Reference: `prefix_cache.shared_prefixes`.

    >>> common(None) is None, common(Session(Task(3.0), 500.0)) is None
    (True, True)
    """
    return None if isinstance(reuse, Session) else shared_prefixes(reuse)


def mean_load(reuse: Reuse | None) -> float:
    """Return the mean load of the workers that share requests over that of the fullest [1]; 1 unless they are routed by prefix.

    Shapes: result [1]. Reference: `placement.fullest_worker`.

    >>> mean_load(None), mean_load(Session(Task(3.0), 500.0))
    (1.0, 1.0)
    """
    return 1.0 / reuse.imbalance if isinstance(reuse, PrefixCache) else 1.0


def call_cost(
    arch: Architecture,
    chip: ChipRates,
    layouts: ServingLayouts,
    reuse: Reuse | None,
    most_requests_per_s: Callable[[Result], Result],
    prompts: Prompts,
    decode: DecodeBatch | None,
    first: Lengths,
    *,
    precisions: Precisions,
    constants: ServingConstants,
) -> tuple[PrefillTime, CachedPrefill | SessionPrefill | None]:
    """Predict (mean prefill of a call, its outcomes), where calls belong to sessions, or are requests with or without a prefix cache.

    A first call computes its prompt of `first` lengths, media included. A later one computes what its session added since, beside the context in cache;
    or, where the cache was dropped, all of it. S = S_1/n + (1 - 1/n) S_later, second moments over the same outcomes. An offloaded cache
    is loaded first, by all chips of the replica at once, and loads share the rate (`prefix_cache.load_s`).
    `prompts` and `decode` as in `prefill.prefill_time`, with the mean length over all calls; otherwise as `prefix_cache.prompt_cost`.
    Shapes: layouts and prompts [token] broadcast; result [s].
    Reference: Kwon et al., PagedAttention, SOSP 2023, section 4 (blocks that outlive a request); Qin et al., Mooncake, FAST 2025.

    >>> from models.serving import examples
    >>> run = lambda reuse: call_cost(examples.DENSE, examples.CHIP, examples.ONE, reuse, lambda s: 1.0, Prompts(call_lengths(reuse, Lengths(1000, 200)).prompt),
    ...     None, Lengths(1000, 200), precisions=examples.BF16, constants=examples.SERVING)[0].occupancy_s
    >>> bool(run(Session(Task(5.0), 100.0)) < run(None) < run(Session(Task(5.0), 100.0, DROPPED)))
    True
    """
    if not isinstance(reuse, Session):
        found, outcomes = prompt_cost(
            arch, chip, layouts, reuse, most_requests_per_s, prompts, decode, precisions=precisions, constants=constants
        )
        return with_encoding(found, chip, layouts, first, 1.0, constants), outcomes

    def prefill(prompt_tokens: ArrayLike, scv: ArrayLike, cached_tokens: ArrayLike) -> PrefillTime:
        asked = Prompts(prompt_tokens, scv, prompts.together, prompts.arriving)
        kinds = {"precisions": precisions, "constants": constants}
        return prefill_time(arch, chip, layouts, asked, decode, cached_tokens=cached_tokens, **kinds)  # type: ignore[arg-type]

    opening = with_encoding(prefill(first.prompt, first.scv_of_input, 0.0), chip, layouts, first, 1.0, constants)
    scv = time_scv(opening, first.scv_of_input, first.prompt / constants.chunk_tokens)
    if reuse.task.calls <= 1.0:
        return opening, SessionPrefill(opening, scv, scv, scv, 1.0, 0.0)
    chance, calls = reuse.task.later_share, reuse.later_lengths(first)
    dropped = reuse.waiting == DROPPED
    new = calls.prompt if dropped else np.maximum(reuse.new_tokens(first), 1.0)
    later = prefill(calls.prompt, _computed_scv(reuse, first, calls), calls.prompt - new)
    later_scv = _later_scv(reuse, first, calls, later, new, constants)
    loading: Result = 0.0
    if reuse.waiting == OFFLOADED:
        moved = kv_bytes(arch, reuse.kept_tokens(first), element_bytes(precisions.kv_cache))
        alone = moved / (reuse.host_bytes_per_s * np.asarray(layouts.chips, float))
        occupied = (1.0 - chance) * opening.occupancy_s + chance * later.occupancy_s
        loading = load_s(alone, 0.0, chance * np.asarray(most_requests_per_s(occupied), float))
    return _over_calls(chance, (opening, later), loading, (scv, later_scv), (first.prompt, new), calls, prompts.tokens)


def loads_of(reuse: Reuse | None, found: CachedPrefill | SessionPrefill | None) -> tuple[Result, ...]:
    """Return the share of calls that read their cache from each tier [1]: of hits those that are loaded; of sessions the later calls, from the host.

    Shapes: as the prompts. Reference: `prefix_cache.cached_prefill` and `call_cost`.

    >>> loads_of(Session(Task(4.0), 500.0, OFFLOADED), None), loads_of(Session(Task(4.0), 500.0), None), loads_of(None, None)
    ((0.75,), (), ())
    """
    if isinstance(found, CachedPrefill):
        return tuple(hit * loaded for hit, loaded in zip(found.hits, found.loaded, strict=True))
    if isinstance(reuse, Session) and reuse.waiting == OFFLOADED and reuse.task.calls > 1.0:
        return (reuse.task.later_share,)
    return ()


def call_scvs(
    prompts: PrefillTime, found: CachedPrefill | SessionPrefill | None, lengths: Lengths, constants: ServingConstants
) -> tuple[Result, Result, Result]:
    """Compute the squared coefficients of variation of a call's prompt [1]: (occupancy, latency, latency between calls of one place in their tasks).

    `lengths` [token]: of all calls. Shapes: as the prompts. Reference: as `prompt_terms.time_scv`.

    >>> from models.serving import examples
    >>> prompt = PrefillTime(1.0, 1.0, 1.0, {"prefill_attention": 0.0})
    >>> [float(scv) for scv in call_scvs(prompt, None, Lengths(1000, 200, input_scv=0.5), examples.SERVING)]
    [0.5, 0.5, 0.5]
    """
    if isinstance(found, SessionPrefill):
        return found.occupancy_scv, found.latency_scv, found.prompt_scv
    by_occupancy, by_latency = prompt_scvs(prompts, found, lengths, constants)
    return by_occupancy, by_latency, by_latency


def _computed_scv(reuse: Session, first: Lengths, calls: Lengths) -> Result:
    """Compute the variance of what a later call computes, over its squared mean context [1]: an answer that comes back, or a dropped context."""
    if reuse.waiting == DROPPED:
        return calls.scv_of_input
    return 0.0 if reuse.returned else first.scv_of_output * (first.output / calls.prompt) ** 2


def _later_scv(
    reuse: Session, first: Lengths, calls: Lengths, later: PrefillTime, new: Result, constants: ServingConstants
) -> Result:
    """Compute the squared coefficient of variation of the time of a later call [1]: by its context, and by an answer that comes back."""
    if reuse.waiting == DROPPED:
        return time_scv(later, calls.scv_of_input, calls.prompt / constants.chunk_tokens)
    attention = later.breakdown["prefill_attention"] / later.occupancy_s
    answers = _computed_scv(reuse, first, calls) * (calls.prompt / new) ** 2
    return calls.scv_of_input * attention**2 + time_scv(later, answers, new / constants.chunk_tokens)


def _over_calls(
    chance: float,
    times: tuple[PrefillTime, PrefillTime],
    loading: Result,
    scvs: tuple[Result, Result],
    computed: tuple[Result, Result],
    calls: Lengths,
    prompt_tokens: ArrayLike,
) -> tuple[PrefillTime, SessionPrefill]:
    """Weigh the first and the later calls of tasks; `chance`: share of the later ones."""
    first, later = times

    def mean(of_first: Result, of_later: Result) -> Result:
        return (1.0 - chance) * of_first + chance * of_later

    occupancy = mean(first.occupancy_s, later.occupancy_s)
    latency = mean(first.latency_s, later.latency_s + loading)
    square = mean(first.occupancy_s**2 * (1.0 + scvs[0]), later.occupancy_s**2 * (1.0 + scvs[1]))
    within = mean(first.latency_s**2 * scvs[0], later.latency_s**2 * scvs[1])
    latency_square = mean(first.latency_s**2, (later.latency_s + loading) ** 2) + within
    found = first.mixed(later, chance, latency)
    with np.errstate(invalid="ignore"):  # infinite where loads outrun the memory of the host
        return found, SessionPrefill(
            mean=found,
            occupancy_scv=np.maximum(square / occupancy**2 - 1.0, 0.0),
            latency_scv=np.maximum(np.nan_to_num(latency_square / latency**2 - 1.0), 0.0),
            prompt_scv=within / latency**2,
            computed_share=mean(*computed) / np.asarray(prompt_tokens, float),
            load_s=loading,
        )


def waiting_sessions(task: Task, calls_per_s: ArrayLike) -> Result:
    """Compute the sessions that wait for a tool, on average, by Little's law:  calls/s x (1 - 1/n) x wait.

    Shapes: as calls_per_s [1/s]; result [1]. Reference: Little, Operations Research 9 (1961).

    >>> float(waiting_sessions(Task(4.0, wait_s=10.0), 2.0))
    15.0
    """
    return np.asarray(calls_per_s, float) * task.wait_per_call_s


def waiting_bytes(
    arch: Architecture,
    layouts: ServingLayouts,
    session: Session,
    calls_per_s: ArrayLike,
    first: Lengths,
    kv_precision: Precision,
) -> Result:
    """Compute the memory of a chip that the caches of waiting sessions take:  (W + 2 sqrt W) x cache,  W = `waiting_sessions` [byte].

    The number waiting is that of an infinite-server queue, Poisson where calls end at random, so that two deviations beyond its mean
    leave one time in fifty in which a cache is evicted. Shapes: layouts and calls_per_s [1/s per replica] broadcast; result [byte].
    Reference: Mirasol, Operations Research 11 (1963) (the number in service of M/G/infinity is Poisson).

    >>> from models.serving import examples
    >>> bool(waiting_bytes(examples.DENSE, examples.ONE, Session(Task(4.0, wait_s=10.0), 500.0), 2.0, Lengths(1000, 200), "bf16") > 1e9)
    True
    """
    if session.task.calls <= 1.0:
        return np.zeros(np.shape(calls_per_s))
    waiting = waiting_sessions(session.task, calls_per_s)
    held = waiting + SPARE_DEVIATIONS * np.sqrt(waiting)
    return held * kv_bytes_per_chip(arch, layouts, session.kept_tokens(first), kv_precision)


def held_beside(
    arch: Architecture,
    layouts: ServingLayouts,
    precisions: Precisions,
    speculation: Speculation | None,
    reuse: Reuse | None,
    calls_per_s: ArrayLike,
    first: Lengths,
) -> Result | None:
    """Sum the memory of a chip that neither weights nor running requests use [byte]; None without. Encoders of media count, and waiting caches of sessions where resident.

    Shapes: as layouts and calls_per_s [1/s per replica]. Reference: `prefix_cache.held_bytes`, `waiting_bytes`.

    >>> from models.serving import examples
    >>> held_beside(examples.DENSE, examples.ONE, examples.BF16, None, None, 1.0, Lengths(1000, 200)) is None
    True
    """
    held = held_bytes(arch, layouts, precisions.weights, speculation)
    more: Result = encoder_bytes(first)
    if isinstance(reuse, Session) and reuse.waiting == RESIDENT:
        more = more + waiting_bytes(arch, layouts, reuse, calls_per_s, first, precisions.kv_cache)
    if held is None and not np.any(more):
        return None
    return more + (0.0 if held is None else held)


def waiting_fits(
    arch: Architecture,
    layouts: ServingLayouts,
    reuse: Reuse | None,
    calls_per_s: ArrayLike,
    first: Lengths,
    kv_precision: Precision,
) -> Bools | bool:
    """Tell whether the memory of the host holds the offloaded caches of all waiting sessions.

    Shapes: layouts and calls_per_s [1/s per replica] broadcast. Reference: as `waiting_bytes`.

    >>> from models.serving import examples
    >>> waiting_fits(examples.DENSE, examples.ONE, None, 1.0, Lengths(1000, 200), "bf16")
    True
    """
    if not isinstance(reuse, Session) or reuse.waiting != OFFLOADED or reuse.task.calls <= 1.0:
        return True
    # One copy is kept, whatever the tensor ranks hold of it in their own memory.
    waiting = waiting_sessions(reuse.task, calls_per_s)
    held = waiting + SPARE_DEVIATIONS * np.sqrt(waiting)
    needed = held * kv_bytes(arch, reuse.kept_tokens(first), element_bytes(kv_precision))
    fits: Bools = needed <= reuse.host_bytes * np.asarray(layouts.chips, float)
    return fits
