"""Tabulated times of steps: those of the closed forms."""

import numpy as np
import pytest

from models.serving import examples
from models.serving.decode import ServingLayouts, prefill_attention_s
from models.serving.speculation import Speculation, decode_step
from models.serving.step import StepLoad, step_time
from models.serving.workload import Precisions
from planner.replay.steps import StepTimes
from tests.planner.replay.servers import worker

KINDS = {"precisions": Precisions("bf16", "bf16")}


def test_a_step_of_decode_is_that_of_the_closed_form_at_any_context():
    w = worker()
    times = StepTimes(w, 64, 5000)
    for n, context in ((1, 10.0), (7, 777.0), (64, 4321.0)):
        wanted = step_time(w.arch, w.chip, w.layouts, StepLoad(n, context), constants=w.constants, **KINDS).total_s
        assert times.decode_s(n, context) == pytest.approx(float(wanted), rel=1e-12)
    assert times.decode_s(0, 100.0) == 0.0


def test_a_mixed_step_is_that_of_the_closed_form_where_prompts_have_the_mean_length():
    w = worker()
    times = StepTimes(w, 64, 5000)
    for n in (0, 1, 64):
        load = StepLoad(n, 325.0 - 0.5, 300.0, prompt_tokens=300.0)
        wanted = step_time(w.arch, w.chip, w.layouts, load, constants=w.constants, **KINDS).total_s
        found = times.decode_s(n, 324.5) + times.prompts_s(n, 300.0, 300.0) + times.attention_s(0.0, 300.0)
        assert found == pytest.approx(float(wanted), rel=1e-12)


def test_between_levels_a_step_is_off_by_less_than_half_a_percent():
    w = worker(layouts=ServingLayouts(1, 1, 2, 2), arch=examples.MOE)
    times = StepTimes(w, 1000, 5000)
    for n, fullest, total in ((3, 100.0, 150.0), (37, 333.0, 400.0), (801, 512.0, 1024.0), (0, 77.0, 77.0)):
        load = StepLoad(n and w.layouts.in_stage(n), 324.5, total, prompt_tokens=1.0, fullest_tokens=fullest)
        step = step_time(w.arch, w.chip, w.layouts, load, constants=w.constants, **KINDS)
        found = times.decode_s(n, 324.5) + times.prompts_s(n, fullest, total)
        assert found == pytest.approx(float(step.total_s - step.breakdown["prefill_attention"]), rel=5e-3)


def test_the_attention_of_chunks_adds_up_to_that_of_the_prompt_which_goes_with_the_square_of_its_length():
    w = worker()
    times = StepTimes(w, 1, 5000)
    whole = float(prefill_attention_s(w.arch, w.chip, w.layouts, 1900.0, 1900.0, w.constants))
    parts = [times.attention_s(a, b) for a, b in ((0, 512), (512, 1024), (1024, 1900))]
    assert sum(parts) == pytest.approx(whole, rel=1e-12)
    # a chunk of c tokens after s others attends to c (s + c/2) pairs
    pairs = np.array([512 * 256, 512 * 768, 876 * 1462])
    assert parts / pairs == pytest.approx(np.full(3, parts[0] / pairs[0]), rel=1e-9)


def test_a_step_with_drafts_is_that_of_the_closed_form():
    w = worker(speculation=Speculation(3, 0.7))
    _, wanted = decode_step(
        w.arch,
        w.chip,
        w.layouts,
        w.speculation,
        decode_sequences=9,
        context_tokens=900.0,
        constants=w.constants,
        **KINDS,
    )
    assert StepTimes(w, 16, 2000).decode_s(9, 900.0) == pytest.approx(float(wanted.total_s), rel=1e-9)
