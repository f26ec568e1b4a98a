"""Every format of a plan: heads, scripts that bash reads, objects that the layouts of their kinds allow, flags that the engines have."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml

from planner.errors import SpecError
from planner.plan import Plan, load_plan
from planner.ways_in import launch
from planner.ways_out import NAMES, formats
from planner.ways_out.deployed import deployed
from planner.ways_out.files import File
from planner.ways_out.formats import ALL, FORMATS, Format, export

SCHEMA = json.loads(Path(__file__).with_name("kubernetes.schema.json").read_text(encoding="utf-8"))
FLAGS = Path(launch.__file__).parent / "data"
GOLDEN = Path(__file__).resolve().parents[2] / "golden"
CHECK = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture(params=["mixed", "small"], scope="module")
def plan(request) -> Plan:
    return request.getfixturevalue(f"{request.param}_plan")


@pytest.fixture(scope="module")
def files(plan):
    return export(plan, [ALL]).files


def test_the_command_line_knows_the_formats():
    assert tuple(FORMATS) == NAMES


def test_every_format_writes_and_no_two_files_share_a_path(plan, files):
    assert {file.path.partition("/")[0] for file in files} == {*FORMATS}
    assert len({file.path for file in files}) == len(files)
    assert export(plan, ["bill", "vllm"]).files == tuple(
        sorted((file for file in files if file.path.startswith(("bill/", "vllm/"))), key=lambda file: file.path.partition("/")[0])
    )  # fmt: skip


def test_every_head_names_the_tool_the_plan_its_bound_and_what_is_predicted(plan, files):
    plan_id = deployed(plan).plan_id
    for file in files:
        name = file.path.partition("/")[0]
        assert plan_id in file.text, file.path
        if name == "bill":
            continue
        comments = [line for line in file.text.splitlines() if line.startswith("# ")]
        tool = FORMATS[name].tool
        assert any(tool in line for line in comments), file.path
        assert any("no plan is better than" in line for line in comments), file.path
        predicted = [line for line in comments if line.startswith("# predicted ")]
        assert any("throughput" in line and "80 % of runs" in line for line in predicted), file.path
        wanted = ("step", "run") if name in ("megatron", "torchtitan", "slurm") else ("ttft.p95", "tpot.p95")
        for what in wanted:
            assert any(what in line for line in predicted), (file.path, what)


def test_the_id_is_of_the_document_whatever_the_order_of_its_keys(small_plan):
    turned = Plan.of(dict(reversed(small_plan.document.items())))
    other = Plan.of({**small_plan.document, "name": "another"})
    assert deployed(turned).plan_id == deployed(small_plan).plan_id != deployed(other).plan_id


def test_bash_reads_every_script(files, tmp_path):
    scripts = [file for file in files if file.path.endswith((".sh", ".sbatch"))]
    assert {file.path.partition("/")[0] for file in scripts} == {
        "vllm", "sglang", "bench", "megatron", "torchtitan", "slurm",
    }  # fmt: skip
    for file in scripts:
        found = subprocess.run(["bash", "-n"], input=file.text, text=True, capture_output=True)
        assert (found.returncode, found.stderr) == (0, ""), file.path


def test_every_object_has_the_layout_of_its_kind(files):
    kinds = set()
    for file in files:
        if file.path.endswith(".yaml"):
            for document in yaml.safe_load_all(file.text):
                CHECK.validate(document)
                kinds.add(document["kind"])
    assert kinds >= {"LeaderWorkerSet", "LLMInferenceService", "ScaledObject", "Kustomization"}


def apart(plan) -> list:
    """The pools of each point at work, all of which are separate in this plan."""
    found = [
        point["pools"]
        for workload in plan["workloads"]
        for point in workload["points"]
        if workload["kind"] == "serving"
    ]
    assert found and all(len(pools) == 2 for pools in found)
    return found


def test_prefill_and_decode_apart_are_a_disaggregated_set(mixed_plan):
    texts = [file.text for file in export(mixed_plan, ["llm-d"]).files if file.path.endswith("modelserver.yaml")]
    kinds = [{document["kind"] for document in yaml.safe_load_all(text)} for text in texts]
    assert all("DisaggregatedSet" in each for each in kinds) and len(kinds) == len(apart(mixed_plan))


@pytest.mark.parametrize(
    "spoiled",
    [
        {"spec": {"replicas": "2"}},
        {"spec": {"replica": 2}},
        {"metadata": {"name": "Upper"}},
        {"apiVersion": "leaderworkerset.x-k8s.io/v2"},
    ],
)
def test_the_schema_refuses_what_is_wrong(small_plan, spoiled):
    text = next(file.text for file in export(small_plan, ["lws"]).files)
    document = yaml.safe_load(text)
    for key, value in spoiled.items():
        document[key] = {**document[key], **value} if isinstance(value, dict) else value
    with pytest.raises(jsonschema.ValidationError):
        CHECK.validate(document)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_every_flag_is_one_of_the_engine(files, engine):
    known = set((FLAGS / f"{engine}_flags.txt").read_text().split()) | {"--port"}
    scripts = [file.text for file in files if file.path.startswith(f"{engine}/")]
    found = {word for text in scripts for word in re.findall(r"^  (--[\w-]+)", text, re.MULTILINE)}
    assert found <= known and len(found) > 5


def test_flags_in_manifests_are_ones_of_the_engine(files):
    known = set((FLAGS / "vllm_flags.txt").read_text().split()) | {"--port"}
    for file in files:
        if file.path.startswith(("lws/", "llm-d/", "kserve/")):
            documents = json.dumps(list(yaml.safe_load_all(file.text)))
            found = set(re.findall(r'"(--[\w-]+)', documents)) - {"--kv-connector", "--secure-proxy"}  # the proxy's own
            assert found <= known, file.path


def test_the_bill_lists_the_fleet_and_its_networks(plan, files):
    rows = list(csv.DictReader(io.StringIO(next(file.text for file in files if file.path == "bill/bill.csv"))))
    systems = [(row["site"], row["item"], int(row["count"]), row["how"]) for row in rows if row["kind"] == "system"]
    assert systems == [(row["site"], row["system"], row["count"], row["how"]) for row in plan.fleet]
    networks = [row for row in rows if row["kind"] == "network"]
    assert sum(float(row["amount"]) for row in networks) == pytest.approx(sum(row["price"] for row in plan.fabrics))
    optics = [int(row["count"]) for row in rows if row["unit"] == "transceiver"]
    assert sum(optics) == sum(row["optics"] for row in plan.fabrics)
    costs = [float(row["amount"]) for row in rows if row["kind"] == "cost"]
    assert sum(costs) == pytest.approx(plan.totals["cost"])
    assert all(float(row["bound"]) == pytest.approx(plan["bound"]) for row in rows)


def test_an_unknown_format_is_named_with_the_close_one(small_plan):
    with pytest.raises(SpecError, match=r'kserv.*"?kserve'):
        export(small_plan, ["kserv"])


def test_a_plan_without_an_answer_is_refused(small_plan):
    document = {**small_plan.document, "status": "infeasible", "objective": {**small_plan.objective, "value": None}}
    with pytest.raises(SpecError, match="infeasible"):
        export(Plan.of(document), ["vllm"])


def test_a_name_cannot_leave_its_comment(small_plan):
    found = export(Plan.of({**small_plan.document, "name": "a\nrm -rf /\u2028b"}), [ALL]).files
    assert not any(line.startswith("rm") for file in found for line in file.text.splitlines())


def test_divisible_replicas_are_rounded_up_and_the_head_says_so(small_plan):
    document = {key: value for key, value in small_plan.document.items() if key != "deployments"} | {
        "replicas": "divisible"
    }
    document["schedule"] = [{k: v for k, v in slot.items() if k != "resident"} for slot in document["schedule"]]
    found = deployed(Plan.of(document)).served
    peak = small_plan.workloads[0]["points"][0]["peak_replicas"]
    assert peak <= found[0].row["replicas"] < peak + 1
    text = next(file.text for file in export(Plan.of(document), ["vllm"]).files)
    assert "divisible" in text and "rounded up" in text


def test_what_has_nothing_to_deploy_is_listed(small_plan):
    document = json.loads(json.dumps(small_plan.document))
    document["workloads"][0]["points"][0]["pools"][0]["how"] = "api"
    document["workloads"][1]["kind"] = "reinforcement"
    left = export(Plan.of(document), ["vllm"]).left
    assert [issue.path for issue in left] == [
        f"workloads.chat.{document['workloads'][0]['points'][0]['id']}",
        f"workloads.tune.{document['workloads'][1]['points'][0]['id']}",
    ]


def test_a_further_format_is_one_row(mixed_plan, monkeypatch):
    def hosts(found):
        lines = [
            f"{served.name} {pool.role} {pool.workers * pool.hosts}" for served in found.served for pool in served.pools
        ]
        yield File("hosts.txt", "\n".join(lines) + "\n")

    monkeypatch.setattr(formats, "FORMATS", {**FORMATS, "hosts": Format("a list", hosts)})
    (found,) = export(mixed_plan, ["hosts"]).files
    assert found.path == "hosts/hosts.txt" and len(found.text.splitlines()) == sum(map(len, apart(mixed_plan)))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*plan_of_*.json")), ids=lambda path: path.stem)
def test_plans_of_earlier_releases_are_written(path):
    plan = load_plan(path)
    files = export(plan, [ALL]).files
    assert {file.path.partition("/")[0] for file in files} >= {"vllm", "lws", "keda", "bench", "bill"}
    jobs = any(workload["kind"] == "training" for workload in plan.workloads)
    assert any(file.path.startswith("slurm/") for file in files) == jobs


@pytest.mark.parametrize("page", ["ways-out.md", "command-line.md"])
def test_pages_name_every_format(page):
    text = (GOLDEN.parents[1] / "docs" / page).read_text(encoding="utf-8")
    assert [name for name in NAMES if f"`{name}`" not in text] == []
