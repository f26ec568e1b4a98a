"""Parts of the time to first token over networks, layouts, lengths and loads: each at least 0, so that TTFT is at least its prefill."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.serving import examples
from models.serving.closed_loop import closed_loop
from models.serving.closed_points import closed_pools, closed_sessions
from models.serving.continuous_batching import aggregated
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import TransferLink, WorkerPool, disaggregated
from models.serving.prompt_terms import first_token_parts, overhead_s
from models.serving.sessions import Session, Task
from models.serving.waterfall import decode_waterfall
from models.serving.workload import Lengths
from models.transformer.routing import Routing
from tests.conftest import few_of
from tests.models.serving.test_serving_properties import MLA, WINDOWED

ROUTED = replace(examples.MOE, routing=Routing(popularity=0.5, redundant=64))
SAVES = "drafts, less the tokens they gain"  # the one cause that may take time away
ROUNDING = 1e-12  # share of the latency

architectures = st.sampled_from([examples.DENSE, examples.MOE, MLA, WINDOWED, ROUTED])
variations = st.sampled_from([0.0, 0.25, 1.0, 4.0])
lengths = st.builds(Lengths, st.integers(1, 60_000), st.integers(2, 4_000), variations, variations)
layouts = st.builds(
    lambda tp, pp, dp: ServingLayouts(tp, pp, dp, tp * dp),
    st.sampled_from([1, 2, 8]), st.sampled_from([1, 2]), st.sampled_from([1, 8, 16, 64]),
)  # fmt: skip
kinds = st.sampled_from([examples.BF16, replace(examples.BF16, weights="fp8", kv_cache="fp8")])
batches = st.floats(0.01, 5000.0)
clients = st.integers(1, 5000)


def assert_parts(point) -> None:
    parts = first_token_parts(point)
    ttft = float(point.ttft_s)
    if np.isfinite(ttft):
        assert min(float(part) for part in parts.values()) >= -ROUNDING * ttft, parts
        assert ttft >= float(parts["prefill_s"])


@settings(max_examples=few_of(150), deadline=None)
@given(architectures, layouts, lengths, kinds, batches)
def test_open_arrivals(arch, layout, length, precisions, batch):
    run = {"precisions": precisions, "constants": examples.SERVING}
    point = aggregated(arch, examples.CHIP, layout, batch, lengths=length, **run)
    assert_parts(point)
    fall = decode_waterfall(arch, examples.CHIP, layout, point, input_tokens=length.prompt, **run)
    if np.isfinite(fall.predicted_s):
        added = {name: float(part) for name, part in fall.causes.items() if name != SAVES}
        assert min(added.values()) >= -ROUNDING * float(fall.predicted_s), added


@settings(max_examples=few_of(150), deadline=None)
@given(architectures, layouts, lengths, kinds, clients)
def test_clients_in_a_closed_loop(arch, layout, length, precisions, count):
    run = {"precisions": precisions, "constants": examples.SERVING}
    loop = closed_loop(arch, examples.CHIP, layout, count, lengths=length, **run)
    assert min(loop.surplus_s, loop.queue_s, loop.burst_s, loop.between_s) >= -ROUNDING * loop.ttft_s
    assert loop.unloaded_ttft_s >= (loop.prompt_s + overhead_s(arch, examples.SERVING)) * (1 - ROUNDING)
    # The prompt and the step of the loop are those of open arrivals at the number in decode that one of them meets, up to the prompts that share a chunk.
    point = aggregated(arch, examples.CHIP, layout, loop.seen, lengths=length, **run)
    assert np.isclose(loop.step_s, point.step_s, rtol=1e-12)
    steps = length.later_tokens * layout.dp / loop.seen
    if steps > 100:  # prompts come alone
        assert np.isclose(loop.prompt_s, point.prompt_s, rtol=0.01)


@settings(max_examples=few_of(60), deadline=None)
@given(architectures, layouts, layouts, lengths, kinds, batches, clients)
def test_separate_pools(arch, prefill, decode, length, precisions, batch, count):
    def at(of_each):
        pools = (
            WorkerPool(examples.CHIP, layout, workers, examples.SERVING)
            for layout, workers in ((prefill, 2), (decode, 3))
        )
        return disaggregated(arch, *pools, of_each, link=TransferLink(25e9), lengths=length, precisions=precisions)

    assert_parts(at(batch).point)
    group, surplus = closed_pools(at, count, examples.SERVING)
    assert surplus >= 0
    assert_parts(group.point)


@settings(max_examples=few_of(10), deadline=None)
@given(architectures, layouts, lengths, kinds, clients, st.floats(2.0, 12.0), st.sampled_from(["resident", "dropped"]))
def test_sessions_in_a_closed_loop(arch, layout, length, precisions, count, calls, caches):
    session = Session(Task(calls, wait_s=3.0), 300.0, caches)

    def at(batch):
        run = {"lengths": length, "precisions": precisions, "constants": examples.SERVING, "cache": session}
        return aggregated(arch, examples.CHIP, layout, batch, **run)

    assert_parts(closed_sessions(at, float(count)))
