"""Counted against published parameters, for every architecture of the catalog."""

import json

import pytest

from catalog.lookup import Catalog
from planner.cli.main import main
from planner.facts.networks import active_agrees, total_agrees
from planner.resolve.stack.counts import counted_rows

ROWS = {row["name"]: row for row in counted_rows(Catalog.load())}
UNPUBLISHED = {  # no shape within reach; each says why
    "Step-3", "Pangu Ultra MoE 718B", "iFlytek Spark", "SenseTime OceanMind", "Wenxin Yiyan v5.2", "Qwen-VL lightweight (Agras T50)",
    "7B multimodal LLM (Smart Jiangwan)", "100B MoE, batch 2048 (the brief workload)",
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_every_record_has_the_published_count_or_says_why_it_is_not_usable(name):
    row = ROWS[name]
    assert (row["usable"] == "no") == (name in UNPUBLISHED), row["why"]
    assert (row["why"] == "") == (row["usable"] == "yes")


@pytest.mark.parametrize(("counted", "published", "agrees"), [
    (2771e9, 2800e9, True), (5460e9, 2800e9, False), (24.4e9, 27e9, False), (26.9e9, 27e9, True), (7.3e9, 7e9, True), (7.6e9, 7e9, False),
])  # fmt: skip
def test_a_total_agrees_within_3_per_cent_or_the_last_digit(counted, published, agrees):
    assert total_agrees(counted, published) is agrees


@pytest.mark.parametrize(("least", "most", "published", "agrees"), [
    (3.25e9, 3.87e9, 3e9, True), (2.4e9, 2.45e9, 3e9, False), (8.3e9, 9.8e9, 10e9, True), (13.7e9, 13.9e9, 17e9, False),
])  # fmt: skip
def test_active_parameters_agree_with_or_without_the_vocabulary(least, most, published, agrees):
    assert active_agrees(least, most, published) is agrees


def test_the_command_prints_a_row_for_each_record(capsys):
    assert main(["catalog", "check", "architectures", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(ROWS)
    assert set(rows[0]) == {
        "name", "usable", "why", "total_counted", "active_counted", "total_published", "active_published", "checkpoint_bytes",
    }  # fmt: skip


def test_no_error_proposes_the_figure_of_another_network():
    why = ROWS["Step-3"]["why"]
    assert "cannot be planned for" in why and "the nearest network" in why and "overrides" not in why
