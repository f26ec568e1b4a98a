"""The command `export`, and `init` on what it writes."""

from __future__ import annotations

import json

import pytest

from planner.exit_codes import INVALID, OK, USAGE


@pytest.fixture
def stored(small_plan, tmp_path):
    path = tmp_path / "plan.json"
    small_plan.save(path)
    return path


def test_files_of_the_formats_are_written_and_counted(flopwatt, stored, tmp_path):
    found = flopwatt("export", stored, tmp_path / "out", "--to", "vllm, bill")
    assert found.code == OK and found.out.startswith("2 files written to ")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["bill", "vllm"]


def test_init_reads_an_exported_command(flopwatt, stored, tmp_path):
    assert flopwatt("export", stored, tmp_path / "out", "--to", "vllm").code == OK
    (path,) = (tmp_path / "out/vllm").iterdir()
    for command in (path, path.read_text()):
        found = flopwatt("init", "--vllm", command, "--rate", "130")
        workload = json.loads(found.out)["workloads"][0]
        assert workload["architecture"] == "Meta-Llama-3.1-8B" and workload["engine"] == "vllm"
        assert workload["precision"] == ["fp8"] and workload["kv_precision"] == ["fp8"]


def test_what_stands_there_is_named(flopwatt, stored, tmp_path):
    (tmp_path / "out/bill").mkdir(parents=True)
    (tmp_path / "out/bill/bill.csv").write_text("mine\n")
    refused = flopwatt("export", stored, tmp_path / "out", "--to", "bill")
    assert refused.code == INVALID and "bill/bill.csv" in refused.err
    assert flopwatt("export", stored, tmp_path / "out", "--to", "bill", "--overwrite", "--quiet").out == ""


def test_wrong_arguments_are_named(flopwatt, stored, tmp_path):
    unknown = flopwatt("export", stored, tmp_path / "out", "--to", "helm")
    assert unknown.code == INVALID and "kserve" in unknown.err
    assert flopwatt("export", stored, tmp_path / "out").code == USAGE
    assert flopwatt("export", tmp_path / "none.json", tmp_path / "out", "--to", "vllm").code == USAGE
    assert not (tmp_path / "out").exists()


def test_names_that_mean_several_formats_are_explained(flopwatt, stored, tmp_path):
    found = flopwatt("export", stored, tmp_path / "out", "--to", "Kubernetes,excel")
    assert found.code == INVALID
    assert '"Kubernetes" is no format of its own; name one or more of lws, llm-d, kserve, keda' in found.err
    assert '"excel" is no format of its own; name one or more of bill' in found.err
