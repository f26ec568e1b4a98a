"""`flopwatt init`: a spec from each source is valid, its guesses are marked and listed by the plan."""

from __future__ import annotations

import json
from dataclasses import asdict
from statistics import median

import pytest

import planner
from catalog.lookup import Catalog
from planner.cli.main import main
from planner.cli.questions import asked
from planner.errors import SpecError
from planner.exit_codes import INVALID
from planner.pipeline import checked
from planner.verify.plan import verify_plan

TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-{13 + i // 24:02d} {i % 24:02d}:{10 * j:02d}:00,{400 + 100 * j},{80 + j}\n"
    for i in range(8 * 24)
    for j in range(1 + (i % 24 >= 8))
)
CONFIG = {
    "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 8192, "vocab_size": 32000, "max_position_embeddings": 8192, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


BENCHMARK = {
    "date": "20261120-101500", "backend": "openai-chat", "model_id": "Qwen/Qwen3-32B", "num_prompts": 400, "request_rate": "inf", "max_concurrency": 20,
    "completed": 400, "total_input_tokens": 320000, "total_output_tokens": 120000, "output_throughput": 849.9, "mean_ttft_ms": 121.5,
    "mean_tpot_ms": 24.1, "chip": "H100", "n_chips": 2,
}  # fmt: skip


@pytest.fixture
def files(tmp_path):
    (tmp_path / "trace.csv").write_text(TRACE)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "bench.json").write_text(
        "\n".join(json.dumps({**BENCHMARK, "request_throughput": rate}) for rate in (1.5, 2.83, 2.0))
    )
    (tmp_path / "vms.csv").write_text(
        "InstanceType,AcceleratorName,AcceleratorCount,Region,Price,SpotPrice\np5.48xlarge,H100,8,us-east-1,55.04,20.5\n"
    )
    (tmp_path / "fleet.csv").write_text("gpu,gpus,count,region\nH100,8,2,us-east-1\n")
    cache = tmp_path / "hub" / "models--org--own" / "snapshots" / "ab"
    cache.mkdir(parents=True)
    (cache / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def init(capsys, *options):
    assert main(["init", *map(str, options)]) == 0
    printed = capsys.readouterr()
    return json.loads(printed.out), printed.err


SOURCES = {
    "catalog's model": ["--model", "hf:Qwen/Qwen3-32B"],
    "cached model": ["--model", "hf:org/own"],
    "config": ["--config", "config.json"],
    "vllm": ["--vllm", "vllm serve org/own -tp 2 --max-model-len 1024"],
    "sglang": ["--sglang", "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 2 --speculative-num-draft-tokens 3"],
    "trtllm": ["--trtllm", "trtllm-serve Qwen/Qwen3-8B --tp_size 2"],
    "trace": ["--trace", "trace.csv"],
    "benchmark": ["--log", "bench.json"],
    "fleet": ["--fleet", "fleet.csv"],
    "prices": ["--fleet", "vms.csv"],
    "users": ["--users", "50000"],
    "all": ["--config", "config.json", "--trace", "trace.csv", "--fleet", "fleet.csv", "--users", "1000", "--region", "us-virginia"],
}  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_each_source_gives_a_valid_spec_whose_guesses_are_echoed(files, capsys, monkeypatch, source):
    monkeypatch.chdir(files)
    monkeypatch.setenv("HF_HUB_CACHE", str(files / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    document, echoed = init(capsys, *SOURCES[source])
    assert checked(document)[0]["workloads"] == 1
    assert document["assumptions"]
    for path, reason in document["assumptions"].items():
        assert f"{path}: guess: {reason}" in echoed


def test_the_plan_lists_the_guesses_with_their_values(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    document, _ = init(capsys, "--config", "config.json", "--fleet", "fleet.csv")
    plan = planner.solve(document)
    assert plan.has_answer and verify_plan(plan) == []
    rows = {row["path"]: row for row in plan.document["assumptions"]}
    assert set(document["assumptions"]) <= set(rows)
    assert rows["workloads[0].slo.ttft.p95"]["value"] == 2.0
    assert rows["workloads[0].slo.ttft.p95"]["reason"].startswith("guess: ")


def test_a_trace_states_rate_shape_and_lengths(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    workload = init(capsys, "--trace", "trace.csv", "--region", "us-virginia")[0]["workloads"][0]
    assert workload["demand"]["requests_per_s"] == pytest.approx((8 + 2 * 16) / 86400, rel=1e-2)
    profile = workload["demand"]["profile"]  # from 8 UTC, which is 3 in Virginia, twice as many
    assert [hour for hour in range(24) if profile[hour] < 1.0] == [0, 1, 2, 19, 20, 21, 22, 23]
    assert len(workload["demand"]["week"]) == 7 and workload["lengths"]["input"] == 440


def test_users_are_stated_as_users_and_their_habits_as_guesses(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    document, _ = init(capsys, "--users", "50000")
    demand = document["workloads"][0]["demand"]
    assert set(demand) == {"users"} and demand["users"]["count"] == 50000
    guessed = {f"workloads[0].demand.users.{key}" for key in set(demand["users"]) - {"count"}}
    assert guessed and guessed <= set(document["assumptions"])
    assert {"requests_per_hour", "peak_hour", "least_share_at_once"} <= set(demand["users"])
    document, _ = init(capsys, "--users", "50000", "--trace", "trace.csv")
    demand = document["workloads"][0]["demand"]
    assert len(demand["profile"]) == 24 and set(demand["users"]) == {"count", "share_at_once", "requests_per_hour"}


def test_a_benchmark_states_model_engine_lengths_rate_and_chip(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    document, echoed = init(capsys, "--log", "bench.json")
    (workload,) = document["workloads"]
    assert workload["architecture"] == "Qwen3-32B" and workload["engine"] == "vllm"
    assert workload["lengths"] == {"input": 800, "output": 300} and workload["demand"] == {"requests_per_s": 2.83}
    assert document["sites"][0]["systems"] == ["DGX H100"]
    guessed = {"workloads[0].demand.requests_per_s", "workloads[0].lengths.input", "sites[0].systems"}
    assert guessed <= set(document["assumptions"]) and "3 results read" in echoed
    (files / "bare.json").write_text(json.dumps({**BENCHMARK, "chip": None, "model_id": "Qwen/Qwen3-8B"}))
    document, _ = init(capsys, "--log", "bare.json", "--trace", "trace.csv")
    assert document["workloads"][0]["lengths"]["input"] == 440, "a trace says more of lengths than a benchmark"
    assert len(document["sites"][0]["systems"]) == 2
    (files / "no.json").write_text("{}")
    assert main(["init", "--log", "no.json"]) == 3 and "expected a benchmark result" in capsys.readouterr().err


def test_cells_fill_what_a_benchmark_does_not_write(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    (files / "bare.json").write_text(json.dumps({**BENCHMARK, "chip": None}))
    document, _ = init(capsys, "--log", "bare.json", "--set", "chip=H200")
    assert document["sites"][0]["systems"] == ["DGX H200"]
    document, _ = init(capsys, "--log", "bench.json", "--set", "chip=H200")
    assert document["sites"][0]["systems"] == ["DGX H100"], "what a result writes stays"
    assert main(["init", "--model", "hf:org/own", "--set", "chip=H200"]) == 3
    assert "--set: fills what the results of a benchmark lack; name its file with --log" in capsys.readouterr().err


def test_users_are_where_the_fleet_is_and_a_config_has_the_name_of_its_file(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    (files / "own-7b.config.json").write_text(json.dumps(CONFIG))
    (files / "nodes.csv").write_text("gpu,nodes,region\nH100,2,eu-central-1\n")
    document, _ = init(capsys, "--config", "own-7b.config.json", "--fleet", "nodes.csv")
    assert document["workloads"][0]["origins"][0]["region"] == document["sites"][0]["region"] == "de-frankfurt"
    assert document["workloads"][0]["architecture"] == "own-7b"


def test_a_guess_of_nothing_is_told(files, capsys):
    document, _ = init(capsys, "--users", "100")
    document["assumptions"]["sites[7].power"] = "none"
    notes = [fact.message.code for fact in checked(document)[1]]
    assert "ways_in.guess_of_nothing" in notes


def test_lengths_stay_within_the_context_of_the_engine(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    document, _ = init(capsys, "--vllm", "vllm serve Qwen/Qwen3-8B --max-model-len 512")
    lengths = document["workloads"][0]["lengths"]
    assert lengths["input"] + lengths["output"] <= 512


def test_nothing_to_read_and_every_wrong_source_are_errors(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    assert main(["init"]) == 3
    assert "--trace" in capsys.readouterr().err
    (files / "bad.csv").write_text("a,b\n")
    assert (
        main(
            [
                "init",
                "--trace",
                "bad.csv",
                "--fleet",
                "bad.csv",
                "--vllm",
                "vllm serve a/b --tp-szie 3",
                "--region",
                "mars",
            ]
        )
        == 3
    )
    told = capsys.readouterr().err
    assert all(words in told for words in ("is no trace", "is no fleet", "no flag of vllm", 'unknown region "mars"'))


def test_a_demo_needs_no_file(capsys):
    assert main(["plan", "--demo", "--quiet", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "optimal"
    with pytest.raises(SystemExit):
        main(["plan"])


def test_figures_stated_in_words_are_no_guesses(capsys):
    document, _ = init(
        capsys, "--rate", 20, "--lengths", "1500, 250", "--systems", "DGX H100, DGX H200", "--region", "uk-london"
    )
    workload = document["workloads"][0]
    assert (workload["demand"], workload["lengths"]) == ({"requests_per_s": 20.0}, {"input": 1500, "output": 250})
    assert document["sites"] == [{"region": "uk-london", "systems": ["DGX H100", "DGX H200"]}]
    assert not [
        path for path in document["assumptions"] if "lengths" in path or "systems" in path or "requests_per_s" in path
    ]


def test_malformed_figures_are_refused_at_once(capsys):
    assert main(["init", "--rate", "-1", "--lengths", "long", "--systems", "DGX H1000, DGX H100"]) == INVALID
    told = capsys.readouterr().err
    assert "--rate: " in told and "--lengths: expected the mean prompt" in told and "--systems: " in told


def answered(*answers):
    left = iter(answers)
    return lambda _: next(left)


def test_five_questions_become_a_spec(capsys):
    given = asked(Catalog.load(), answered("hf:Qwen/Qwen3-32B", "500 users", "2000 400", "eu-west-2", "DGX H200"))
    document = planner.init(**{name: value for name, value in asdict(given).items() if value is not None})
    workload = document["workloads"][0]
    assert (workload["architecture"], workload["demand"]["users"]["count"]) == ("Qwen3-32B", 500)
    assert (workload["lengths"], document["sites"]) == (
        {"input": 2000, "output": 400}, [{"region": "uk-london", "systems": ["DGX H200"]}],
    )  # fmt: skip
    assert capsys.readouterr().err.count("[") == 5, "each question names what Enter stands for"


def test_a_malformed_answer_is_asked_again_three_times_at_most(capsys):
    assert asked(Catalog.load(), answered("", "many", "12/s", "", "", "")).rate == 12.0
    assert "expected requests per second" in capsys.readouterr().err
    with pytest.raises(SpecError, match="expected requests per second"):
        asked(Catalog.load(), answered("", "many", "many", "many"))


def test_enter_throughout_leaves_every_guess():
    document = planner.init(rate=asked(Catalog.load(), answered(*[""] * 5)).rate)
    assert {"workloads[0].lengths.input", "sites[0].systems"} <= set(document["assumptions"])


def test_a_benchmark_in_16_bit_is_not_planned_in_8(files, capsys, monkeypatch):
    monkeypatch.chdir(files)

    def drafted(*options, **cells):
        (files / "run.json").write_text(json.dumps({**BENCHMARK, **cells}))
        document, _ = init(capsys, "--log", "run.json", *options)
        found = [name for name in document["assumptions"] if "precision" in name]
        return document["workloads"][0]["precision"], document["workloads"][0]["kv_precision"], found

    guessed = ["workloads[0].precision", "workloads[0].kv_precision"]
    assert drafted() == (["bf16"], ["bf16"], guessed), "as Qwen3-32B is published"
    assert drafted(weight_dtype="bf16", kv_dtype="fp8_e4m3") == (["bf16"], ["fp8"], [])
    assert drafted("--set", "weight_dtype=awq") == (["int4"], ["bf16"], guessed[1:])
    assert drafted(weight_dtype="auto", kv_dtype="auto") == (["bf16"], ["bf16"], guessed)
    assert drafted(model_id="deepseek-ai/DeepSeek-V3") == (["fp8"], ["bf16"], guessed), "published in 8 bit"


def test_a_launch_without_a_flag_serves_the_checkpoint_as_it_is(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    (files / "q").mkdir()
    (files / "q/config.json").write_text(json.dumps({**CONFIG, "quantization_config": {"quant_method": "fp8"}}))
    for model, expected in (("Qwen/Qwen3-8B", "bf16"), ("deepseek-ai/DeepSeek-V3", "fp8"), ("q", "fp8")):
        document, _ = init(capsys, "--vllm", f"vllm serve {model} -tp 8")
        assert document["workloads"][0]["precision"] == [expected]
        assert "workloads[0].precision" in document["assumptions"]
    document, _ = init(capsys, "--vllm", "vllm serve Qwen/Qwen3-8B --quantization fp8", "--log", "bench.json")
    assert document["workloads"][0]["precision"] == ["fp8"], "the flag says more than the checkpoint"
    assert "workloads[0].precision" not in document["assumptions"]


def test_instances_of_clouds_are_rented_with_guesses_at_their_contract(files, capsys, monkeypatch):
    """Of AWS p5.48xlarge the catalog has 55.04 USD/h in Virginia; of GCP a3-highgpu-4g none, so that the median per H100 counts, times 4."""
    monkeypatch.chdir(files)
    labels = {"topology.kubernetes.io/region": "us-east-1", "node.kubernetes.io/instance-type": "p5.48xlarge"}
    node = {"metadata": {"labels": labels}, "status": {"capacity": {"nvidia.com/gpu": "8"}}}
    (files / "nodes.json").write_text(json.dumps({"kind": "List", "items": [node, node]}))
    document, echoed = init(capsys, "--fleet", "nodes.json", "--rate", 5)
    assert "owned" not in document and document["sites"][0]["systems"] == ["AWS p5.48xlarge"]
    (row,) = document["rented"]
    assert (row["system"], row["region"], row["count"], row["price"]) == (
        "AWS p5.48xlarge", "us-virginia", 2, "55.04 USD/h",
    )  # fmt: skip
    guessed = {f"rented[0].{key}" for key in ("price", "until", "notice", "exit_fee")}
    assert guessed <= set(document["assumptions"]) and "rented[0].until: guess: end of the contract" in echoed
    (files / "own.csv").write_text(
        "instance_type,count,region,price\na3-highgpu-4g,3,us-east4,\np5.48xlarge,1,us-east-1,31.2\nDGX H100,1,us-east-1,\n"
    )
    document, _ = init(capsys, "--fleet", "own.csv")
    first, second = document["rented"]
    catalog = Catalog.load()
    of_chip = {
        each.name: each.value("chips")
        for each in catalog.records("systems")
        if each.words("chip") == "H100 SXM5 80GB" and each.get("chips")
    }
    each = [
        offer.value("price") * 3600 / of_chip[offer.words("system")]
        for offer in catalog.records("offers")
        if offer.words("how") == "on_demand" and offer.words("system") in of_chip
    ]
    assert float(first["price"].removesuffix(" USD/h")) == pytest.approx(4 * median(each), rel=1e-3)
    assert second["price"] == "31.2 USD/h" and "rented[1].price" not in document["assumptions"]
    assert [row["system"] for row in document["owned"]] == ["DGX H100"]


def test_a_config_of_the_cache_has_the_name_of_its_model(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    document, _ = init(capsys, "--config", "hub/models--org--own/snapshots/ab/config.json")
    assert document["workloads"][0]["architecture"] == "own"


def test_a_config_of_unknown_code_is_told(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    for kind, told in (("llama", False), ("acme_dense", True)):
        (files / f"{kind}.config.json").write_text(json.dumps({**CONFIG, "model_type": kind, "hidden_act": "silu"}))
        document, _ = init(capsys, "--config", f"{kind}.config.json")
        notes = {fact.message.code: fact.message.arguments for fact in checked(document)[1]}
        assert ("own.unknown_code" in notes) is told
    assert notes["own.unknown_code"]["kind"] == "acme_dense"


def test_faults_of_a_config_name_its_file(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    (files / "own.config.json").write_text(json.dumps({**CONFIG, "hidden_size": "big"}))
    assert main(["init", "--config", "own.config.json"]) == INVALID
    assert "own.config.json.hidden_size: expected a whole number" in capsys.readouterr().err


def test_faults_of_a_benchmark_name_line_and_column(files, capsys, monkeypatch):
    """Of one value over several lines as of a value per line; the fault stands in the last line each time."""
    monkeypatch.chdir(files)
    for text, place in (
        ('{"mean_ttft_ms": 3,\n "x": }', "line 2 column 7"),
        ('{"a": 1}\n\n{"b": }', "line 3 column 7"),
    ):
        (files / "run.json").write_text(text)
        assert main(["init", "--log", "run.json"]) == INVALID
        assert place in capsys.readouterr().err


def test_a_tuned_or_narrowed_copy_out_of_reach_is_planned_as_its_network(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    monkeypatch.setenv("HF_HUB_CACHE", str(files / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    document, _ = init(capsys, "--vllm", "vllm serve RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic")
    (workload,) = document["workloads"]
    assert (workload["architecture"], workload["precision"]) == ("Meta-Llama-3.1-8B", ["fp8"])
    assert "stands for RedHatAI" in document["assumptions"]["workloads[0].architecture"]
    assert main(["init", "--model", "hf:org/Unheard-7B-Instruct"]) == INVALID
    assert "is not in the cache" in capsys.readouterr().err


def test_formats_that_no_source_states_are_a_guess(files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    quantised = {**CONFIG, "quantization_config": {"quant_method": "awq", "bits": 4}}
    (files / "narrow.config.json").write_text(json.dumps(quantised))
    for options, expected in (
        (["--model", "hf:Qwen/Qwen3-32B"], ["fp8", "bf16"]),
        (["--model", "hf:deepseek-ai/DeepSeek-V3"], ["fp8"]),
        (["--config", "narrow.config.json"], ["int4"]),
    ):
        document, echoed = init(capsys, *options)
        assert document["workloads"][0]["precision"] == expected
        assert "workloads[0].precision: guess: " in echoed
