"""Cases under the keys of earlier releases: the topology was called `fabric`, and the fabric of the catalog `network`."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from planner.cli.main import main
from planner.errors import SpecError
from planner.estimate.case import resolve_case
from planner.spec.old_keys import OF_CASES, with_new_keys

CASE: dict[str, Any] = {
    "workload": {
        "name": "small", "kind": "training", "architecture": "Qwen3-8B", "tokens": "100B", "deadline": "30 d",
        "sequence_tokens": 4096, "batch_tokens": "1048576", "precision": ["bf16"],
    },
    "system": "DGX H100", "chips": 16, "layout": {"tp": 8, "dp": 2},
}  # fmt: skip
TODAY = {**CASE, "topology": "fat-tree:2", "fabric": "RoCE v2 400G"}
OLD = {**CASE, "fabric": "fat-tree:2", "network": "RoCE v2 400G"}


def test_old_keys_are_read_as_those_of_today_with_a_note():
    today, old = resolve_case(copy.deepcopy(TODAY)), resolve_case(copy.deepcopy(OLD))
    assert today.case == old.case and today.plant == old.plant
    told = {(note.path, note.message.arguments["new"]) for note in old.notes if note.message.code == "spec.old_key"}
    assert told == {("fabric", "topology"), ("network", "fabric")}
    assert not [note for note in today.notes if note.message.code == "spec.old_key"]


@pytest.mark.parametrize(
    ("keys", "read"),
    [
        ({"fabric": "provider"}, {"topology": "provider"}),
        ({"fabric": "rail-only:2"}, {"topology": "rail-only:2"}),
        ({"fabric": "InfiniBand NDR"}, {"fabric": "InfiniBand NDR"}),
        ({"network": "InfiniBand NDR"}, {"fabric": "InfiniBand NDR"}),
        ({"fabric": "torus", "topology": "fat-tree"}, {"fabric": "torus", "topology": "fat-tree"}),
    ],
)
def test_which_key_a_value_means(keys, read):
    assert with_new_keys(keys, OF_CASES)[0] == read


@pytest.mark.parametrize(("key", "value"), [("fabric", "fat-tre"), ("network", "no such fabric")])
def test_a_problem_stands_where_its_writer_finds_it(key, value):
    with pytest.raises(SpecError) as error:
        resolve_case({**copy.deepcopy(OLD), key: value})
    assert {problem.path for problem in error.value.problems} == {key}


def test_the_command_prints_the_note(tmp_path, capsys):
    path = tmp_path / "case.json"
    path.write_text(json.dumps(OLD))
    assert main(["estimate", str(path)]) == 0
    assert '"fabric" is read as "topology"' in capsys.readouterr().out
