"""Launch commands and YAML files of vLLM and SGLang: what they say of a workload, and flags that do not exist."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from planner.ways_in.launch import ACCEPTANCE, SGLANG, TRTLLM, VLLM, read_launch


def test_a_vllm_command_states_the_workload():
    found = read_launch(
        "CUDA_VISIBLE_DEVICES=0,1 vllm serve --enable-expert-parallel Qwen/Qwen3-32B -tp 2 --data-parallel-size=2 --gpu-memory-utilization 0.92 "
        "--kv-cache-dtype fp8_e4m3 --quantization fp8 --max-model-len 32k --enforce-eager --port 8000 \\\n"
        """--speculative-config '{"method": "mtp", "num_speculative_tokens": 2}'""",
        VLLM,
    )
    assert found.model == "Qwen/Qwen3-32B" and found.chips == 4 and found.most_context == 32768
    assert found.workload == {
        "engine": "vllm", "memory_utilisation": 0.92, "precision": ["fp8"], "kv_precision": ["fp8"], "eager": True,
        "speculation": {"draft_tokens": 2, "acceptance": ACCEPTANCE},
    }  # fmt: skip
    assert set(found.guesses) == {"speculation.acceptance"}
    assert found.left == ("--enable-expert-parallel", "--port")


def test_a_script_is_read_as_the_command_that_ends_it(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text(
        "#!/usr/bin/env bash\n# the user's own: isn't vllm serve fine?\nset -euo pipefail\nexec vllm serve org/own \\\n"
        '  --tensor-parallel-size 2 \\\n  --api-key a#b \\\n  --node-rank "$NODE_RANK" \\\n  --max-model-len 4096 \\\n  "$@"\n'
    )
    for text in (str(script), script.read_text()):
        found = read_launch(text, VLLM)
        assert (found.model, found.chips, found.most_context) == ("org/own", 2, 4096)
        assert found.left == ("--api-key", "--node-rank")


def test_weights_of_16_bit_are_a_guess_where_nothing_quantises_them():
    wide = read_launch("vllm serve org/own --dtype bfloat16", VLLM)
    assert wide.workload["precision"] == ["bf16"] and set(wide.guesses) == {"precision"}
    narrow = read_launch("vllm serve org/own --dtype bfloat16 --quantization fp8", VLLM)
    assert narrow.workload["precision"] == ["fp8"] and narrow.guesses == {}
    assert "precision" not in read_launch("vllm serve org/own --dtype auto", VLLM).workload


def test_sglang_drafts_as_many_tokens_as_it_takes_steps():
    found = read_launch(
        "python -m sglang.launch_server --model-path org/own --speculative-algorithm NEXTN --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        SGLANG,
    )
    assert found.workload["speculation"]["draft_tokens"] == 3


@pytest.mark.parametrize(
    ("ranks", "chips"),
    [("--dp 2", 16), ("--dp-size 2 --enable-dp-attention", 8), ("--attn-dp-size 2", 8), ("", 8)],
)
def test_attention_ranks_of_sglang_share_the_chips_and_replicas_do_not(ranks, chips):
    found = read_launch(
        f"python -m sglang.launch_server --model-path org/own --tp 8 {ranks} --mem-fraction-static 0.85", SGLANG
    )
    assert found.chips == chips and found.model == "org/own" and found.workload["memory_utilisation"] == 0.85


def test_yaml_files_state_the_same(tmp_path):
    path = tmp_path / "server.yaml"
    path.write_text(
        "# a comment\nmodel-path: org/own\ntp_size: 4  # four\nkv-cache-dtype: 'bf16'\nenable-dp-attention: false\n"
    )
    found = read_launch(str(path), SGLANG)
    assert (found.model, found.chips, found.workload["kv_precision"], found.left) == ("org/own", 4, ["bf16"], ())
    config = tmp_path / "vllm.yaml"
    config.write_text("model: org/other\ntensor-parallel-size: 2\n")
    assert read_launch(f"vllm serve org/own --config {config}", VLLM).chips == 2
    assert read_launch(f"vllm serve org/own --config {config}", VLLM).model == "org/own"


def test_a_command_of_tensorrt_llm_states_the_workload_and_its_file_has_the_last_word(tmp_path):
    config = tmp_path / "llm.yaml"
    config.write_text(
        "tensor_parallel_size: 4\nenable_attention_dp: true\nkv_cache_config:\n  dtype: fp8\n  free_gpu_memory_fraction: 0.85\n"
        "cuda_graph_config:\n  batch_sizes:\n  - 1\n  - 2\nspeculative_config: {decoding_type: MTP, num_nextn_predict_layers: 3}\nprint_iter_log: false\n"
    )
    command = f"mpirun -n 8 trtllm-serve serve org/own --tp_size 2 --pp_size=2 --max_seq_len 4096 --trust_remote_code --extra_llm_api_options {config}"
    found = read_launch(command, TRTLLM)
    assert (found.model, found.chips, found.most_context) == ("org/own", 8, 4096)
    assert found.workload == {
        "engine": "tensorrt_llm",
        "kv_precision": ["fp8"],
        "speculation": {"draft_tokens": 3, "acceptance": ACCEPTANCE},
    }
    assert "--kv-cache-config.free-gpu-memory-fraction" in found.left, (
        "a share of what is free is no share of the memory"
    )
    assert read_launch("trtllm-serve org/own --backend pytorch --cp_size 2 --tp_size 2", TRTLLM).chips == 4


@pytest.mark.parametrize(
    ("text", "engine", "words"),
    [
        ("vllm serve a/b --tensor-paralel-size 8 --nope 1", VLLM, ["--tensor-paralel-size: no flag of vllm", '"tensor-parallel-size"', "--nope"]),
        ("vllm serve a/b -tp zero --gpu-memory-utilization 92", VLLM, ["tensor-parallel-size: expected", "gpu-memory-utilization: expected"]),
        ("vllm serve", VLLM, ["names no model"]),
        ("vllm serve a/b c/d", VLLM, ['"c/d" belongs to no flag']),
        ("vllm serve 'a/b", VLLM, ["is not a command line"]),
        ("trtllm-serve a/b --tp_szie 8", TRTLLM, ["no flag of trtllm 1.x"]),
        ("trtllm-serve disaggregated -c disagg.yaml", TRTLLM, ["expected a command such as trtllm-serve"]),
        ("ls -l", SGLANG, ["expected a command such as python -m sglang.launch_server"]),
        ("vllm serve a/b --speculative-config '{}'", VLLM, ["expected a whole number of tokens from 1 to 32"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_flag(text, engine, words):
    with pytest.raises(SpecError) as caught:
        read_launch(text, engine)
    for expected in words:
        assert expected in str(caught.value)


def test_nested_yaml_is_refused_by_line_and_column(tmp_path):
    path = tmp_path / "server.yaml"
    path.write_text("model-path: a/b\nnested:\n  key: 1\n")
    with pytest.raises(SpecError, match=r"server\.yaml line 3, column 3: expected name: value"):
        read_launch(str(path), SGLANG)
