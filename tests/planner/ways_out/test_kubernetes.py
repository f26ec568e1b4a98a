"""Manifests hold the workers of the plan, no more and no fewer, in every hour."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from planner.ways_out.formats import export
from planner.ways_out.hours import triggers

CHECK = jsonschema.Draft202012Validator(
    json.loads(Path(__file__).with_name("kubernetes.schema.json").read_text(encoding="utf-8"))
)


def objects(plan, name):
    for file in export(plan, [name]).files:
        if not file.path.endswith("kustomization.yaml"):
            yield from yaml.safe_load_all(file.text)


def workers(plan) -> Counter:
    return Counter({(row["point"], pool["role"]): pool["workers"] for row in plan.deployments for pool in row["pools"]})


@pytest.fixture
def names(plan):
    from planner.ways_out.deployed import deployed

    return {served.name: served for served in deployed(plan).served}


def groups(document):
    """Yield (deployment, role, workers, hosts, chips of a host) of an object."""
    spec = document["spec"]
    parts = [(role["spec"], spec["slices"]) for role in spec["roles"]] if "roles" in spec else [(spec, 1)]
    for part, times in parts:
        template = part["leaderWorkerTemplate"]["workerTemplate"]
        labels = template["metadata"]["labels"]
        (chips,) = template["spec"]["containers"][0]["resources"]["limits"].values()
        size = part["leaderWorkerTemplate"]["size"]
        yield (
            labels["app.kubernetes.io/name"],
            labels["app.kubernetes.io/component"],
            part["replicas"] * times,
            size,
            int(chips),
        )


@pytest.mark.parametrize("name", ["lws", "llm-d"])
def test_the_workers_are_those_of_the_plan(plan, names, name):
    found: Counter = Counter()
    for document in objects(plan, name):
        for deployment, role, count, size, chips in groups(document):
            served = names[deployment]
            found[served.point["id"], role] += count
            assert size * chips == next(pool.chips for pool in served.pools if pool.role == role)
    assert found == workers(plan)


def test_slices_are_whole_replicas_and_roles_their_pools(mixed_plan):
    rows = {row["point"].replace("/", "-"): row for row in mixed_plan.deployments}
    for document in objects(mixed_plan, "llm-d"):
        name, spec = document["metadata"]["name"], document["spec"]
        if document["kind"] == "DisaggregatedSet" and name in rows:
            assert spec["slices"] == rows[name]["replicas"]
            assert {role["name"]: role["spec"]["replicas"] for role in spec["roles"]} == {
                pool["role"]: pool["workers_per_replica"] for pool in rows[name]["pools"]
            }


def test_services_of_kserve_hold_both_pools(mixed_plan, mixed):
    served = {each.name: each for each in mixed.served}
    documents = list(objects(mixed_plan, "kserve"))
    assert {*served} - {document["metadata"]["name"] for document in documents} == {"assistant-us-texas-0"}
    for document in documents:
        pools = {pool.role: pool for pool in served[document["metadata"]["name"]].pools}
        for part, pool in ((document["spec"], pools["decode"]), (document["spec"]["prefill"], pools["prefill"])):
            assert (part["replicas"], *shape(part)) == (pool.workers, pool.tp, pool.pp, pool.dp, pool.chips)
            assert part["parallelism"].get("expert", False) == (pool.ep > 1)
            assert not any(word.startswith("--tensor-parallel") for word in part["template"]["containers"][0]["args"])
        appended = document["metadata"]["annotations"]["serving.kserve.io/merge-append-fields"].split("\n")
        assert ("worker.containers.[name=main].args" in appended) == ("worker" in document["spec"])


def shape(part) -> tuple[int, int, int, int]:
    """Return the degrees of a pool, and the chips of all its pods, whose number KServe takes from the degrees where there is a `worker`."""
    degrees = part["parallelism"]
    (chips,) = part["template"]["containers"][0]["resources"]["limits"].values()
    dp, pp = degrees.get("data", 1), degrees.get("pipeline", 1)
    pods = (dp // degrees["dataLocal"] if dp > 1 else pp) if "worker" in part else 1
    return degrees["tensor"], pp, dp, int(chips) * pods


@pytest.mark.parametrize(
    ("layout", "held"),
    [
        ({"tp": 8, "pp": 1, "dp": 1, "ep": 1}, True),
        ({"tp": 4, "pp": 2, "dp": 1, "ep": 1}, True),
        ({"tp": 4, "pp": 6, "dp": 1, "ep": 1}, True),
        ({"tp": 2, "pp": 1, "dp": 16, "ep": 32}, True),
        ({"tp": 2, "pp": 2, "dp": 2, "ep": 4}, False),
        ({"tp": 16, "pp": 1, "dp": 1, "ep": 1}, False),
        ({"tp": 16, "pp": 1, "dp": 2, "ep": 1}, False),
    ],
    ids=str,
)
def test_layouts_that_kserve_refuses_are_left_out_and_told(small_plan, layout, held):
    document = {**small_plan.document}
    point = {**document["workloads"][0]["points"][0]}
    point["pools"] = [{**point["pools"][0], "layout": layout}]
    document["workloads"] = [{**document["workloads"][0], "points": [point]}, document["workloads"][1]]
    plan = type(small_plan).of(document)
    found = list(objects(plan, "kserve"))
    assert (len(found), len(export(plan, ["kserve"]).left)) == ((1, 0) if held else (0, 1))
    for each in found:
        CHECK.validate(each)
        assert shape(each["spec"]) == (
            layout["tp"],
            layout["pp"],
            layout["dp"],
            layout["tp"] * layout["pp"] * layout["dp"],
        )


@given(st.lists(st.integers(0, 4), min_size=24, max_size=24))
def test_triggers_give_every_hour_its_workers(hours):
    found = [min(hours)] * 24
    for start, end, count in triggers(hours):
        first, last = int(start.split()[1]), int(end.split()[1]) + (end.startswith("59"))
        for hour in range(first, last if last > first else last + 24):
            found[hour % 24] = max(found[hour % 24], count)
    assert found == hours


def test_schedules_hold_the_resident_workers_of_every_hour(mixed_plan, mixed):
    served = {pool_name: (each, i) for each in mixed.served for i, pool in enumerate(each.pools) for pool_name in [f"{each.name}-{pool.role}"]}  # fmt: skip
    checked = 0
    for file in export(mixed_plan, ["keda"]).files:
        window = int(file.path.rpartition("window-")[2].partition(".")[0])
        for document in yaml.safe_load_all(file.text):
            each, place = served[document["metadata"]["name"]]
            slots = [s for s in mixed_plan.schedule if s["site"] == each.row["site"] and s["window"] == window]
            hours = [
                s["resident"].get(each.point["id"], [0, 0])[place] for s in sorted(slots, key=lambda s: s["hour_utc"])
            ]
            spec = document["spec"]
            assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (min(hours), max(hours))
            assert {int(t["metadata"]["desiredReplicas"]) for t in spec["triggers"]} | {min(hours)} == {*hours}
            checked += 1
    assert checked > 18


def test_chips_that_kubernetes_has_no_resource_for_are_left_out_and_told(small_plan, monkeypatch):
    from planner.ways_out import deployed

    monkeypatch.delitem(deployed.RESOURCES, "NVIDIA")
    found = export(small_plan, ["lws", "vllm"])
    assert {file.path.partition("/")[0] for file in found.files} == {"vllm"}
    assert [issue.path.partition(":")[0] for issue in found.left] == ["lws"] and "NVIDIA" in found.left[0].message


def test_images_for_other_vendors_are_asked_for(mixed_plan):
    texts = {file.path: file.text for file in export(mixed_plan, ["lws"]).files}
    assert "the one of AMD" in texts["lws/chat-us-california-0-decode.yaml"]
    assert "the one of" not in texts["lws/chat-us-texas-0-decode.yaml"]
