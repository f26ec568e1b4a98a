"""Rules of earlier releases, against their definition: caches in 8 bit beside weights in FP8 and FP4, in 16 bit beside any other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.formats import WEIGHT_FORMATS, Checkpoint, cache_format
from planner.problem.facts import ResolvedSpec
from planner.resolve.resolver import resolve_document
from planner.verify.claims.earlier import with_earlier_engines

KNOWN_THEN = ("bf16", "fp16", "fp8", "fp4", "int8")


@pytest.fixture
def earlier(tiny):
    """The problem of a spec whose network has these checkpoints, as a plan without pools by memory means it."""

    def of(*checkpoints: tuple[str, Checkpoint]) -> ResolvedSpec:
        problem = resolve_document(tiny())
        (chat,) = problem.serving
        chat = replace(chat, architecture=replace(chat.architecture, checkpoints=checkpoints))
        pool = {"precision": "fp8"}
        document = {"provenance": [], "workloads": [{"points": [{"pools": [pool]}]}]}
        return with_earlier_engines(replace(problem, serving=(chat,)), document)

    return of


@pytest.mark.parametrize("weights", KNOWN_THEN)
@pytest.mark.parametrize(
    "checkpoints", [(), (("fp4", Checkpoint("mxfp4", attention=1.0)), ("int8", Checkpoint("int8")))]
)
def test_caches_have_8_bit_beside_weights_in_fp8_and_fp4(earlier, weights, checkpoints):
    (chat,) = earlier(*checkpoints).serving
    assert cache_format(chat.architecture.checkpoints, weights) == ("fp8" if weights in ("fp8", "fp4") else "bf16")


def test_what_a_checkpoint_states_stays(earlier):
    (chat,) = earlier(
        ("fp8", Checkpoint("fp8", attention=1.0, cache="bf16")), ("fp4", Checkpoint("mxfp4", ffn=0.5))
    ).serving
    known = dict(chat.architecture.checkpoints)
    assert known["fp8"] == Checkpoint("fp8", attention=1.0, cache="bf16")
    assert known["fp4"] == Checkpoint("mxfp4", ffn=0.5, cache="fp8")


def test_the_formats_known_then_are_known_now():
    assert set(KNOWN_THEN) <= set(WEIGHT_FORMATS)
