"""Fleets as kubectl, Slurm, a spreadsheet and SkyPilot's price lists state them."""

from __future__ import annotations

import json

import pytest

from catalog.lookup import shipped_catalog
from planner.errors import SpecError
from planner.ways_in.accelerators import CHIPS, REGIONS, chip_called, region_called, system_called
from planner.ways_in.fleets import read_fleet


def read(tmp_path, text, name="fleet.csv"):
    path = tmp_path / name
    path.write_text(text)
    return read_fleet(path, shipped_catalog())


def node(product="", chips="8", **labels):
    named = {"nvidia.com/gpu.product": product} if product else {}
    return {
        "metadata": {"labels": {**named, **labels}},
        "status": {"capacity": {"nvidia.com/gpu": chips} if chips else {"cpu": "8"}},
    }


def test_kubernetes_nodes_count_by_product_instance_and_region(tmp_path):
    region = {"topology.kubernetes.io/region": "us-west-2", "node.kubernetes.io/instance-type": "p5.48xlarge"}
    nodes = [node("NVIDIA-H200"), node("NVIDIA-H200"), node(**region), node(chips="")]
    found = read(tmp_path, json.dumps({"kind": "List", "items": nodes}), "nodes.json")
    assert found.counts == {("DGX H200", ""): 2, ("AWS p5.48xlarge", "us-oregon"): 1}
    assert [note.message.code for note in found.notes] == ["ways_in.fleet_read", "ways_in.nodes_without"]


def test_slurm_nodes_in_two_partitions_count_once(tmp_path):
    text = "NODELIST NODES GRES\ngpu[1-8] 8 gpu:h100:8(S:0-1)\ngpu[1-8] 8 gpu:h100:8(S:0-1)\nmi[1-2] 2 gpu:mi300x:8\ncpu[1-4] 4 (null)\n"
    found = read(tmp_path, text, "sinfo.txt")
    assert found.counts == {("DGX H100", ""): 8, ("MI300X 8x OAM node", ""): 2}
    rows = {
        "nodes": [
            {"name": "a", "gres": "gpu:b200:8"},
            {"name": "a", "gres": "gpu:b200:8"},
            {"name": "b", "gres": "gpu:b200:8"},
        ]
    }
    assert read(tmp_path, json.dumps(rows), "s.json").counts == {("DGX B200", ""): 2}
    rows = {"sinfo": [{"nodes": {"total": 3, "nodes": ["a", "b", "c"]}, "gres": {"total": "gpu:h200:8"}}]}
    assert read(tmp_path, json.dumps(rows), "s.json").counts == {("DGX H200", ""): 3}


def test_an_inventory_names_systems_or_chips(tmp_path):
    text = "GPU,GPUs_per_node,Nodes,Location\nH100 SXM5 80GB,8,4,eastus\n,,,\nA100-SXM4-80GB,8,2,\n"
    assert read(tmp_path, text).counts == {("DGX H100", "us-virginia"): 4, ("DGX A100 80GB", ""): 2}
    assert read(tmp_path, "system,count\nGB200 NVL72,3\n").counts == {("GB200 NVL72", ""): 3}


def test_prices_of_instances_become_offers_at_the_least_of_their_zones(tmp_path):
    text = (
        "InstanceType,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice\n"
        "p5.48xlarge,H100,8,,us-east-1,a,55.04,20.5\np5.48xlarge,H100,8,,us-east-1,b,55.04,19\nm5.large,,,,us-east-1,a,0.1,\nodd,T4,1,,us-east-1,a,1,\n"
    )
    found = read(tmp_path, text)
    assert found.counts == {} and found.offers == [
        {"system": "AWS p5.48xlarge", "how": "on_demand", "price": "55.04 USD/h", "regions": ["us-virginia"]},
        {"system": "AWS p5.48xlarge", "how": "spot", "price": "19 USD/h", "regions": ["us-virginia"]},
    ]


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("gpu,count\nT1000,3\nH100,x\n", "f.csv", ["f.csv line 2: no chip of the catalog is called T1000", "f.csv line 3, column 2: count: expected a whole number"]),
        ("gpu,gpus,count\nH100,7,3\n", "f.csv", ["the catalog has no system with 7 x H100 SXM5 80GB"]),
        ("gpu,count\n" + "x" * 200_000, "f.csv", ["is not text in UTF-8 of the expected layout"]),
        ("a,b\n1,2\n", "f.csv", ["is no fleet that is read"]),
        ("InstanceType,AcceleratorName,AcceleratorCount,Price\np5.48xlarge,H100,8,0\n", "f.csv", ["line 2, column 4: expected a price per instance hour above 0"]),
        ("PARTITION NODES STATE\ngpu 8 idle\n", "s.txt", ['run sinfo -o "%N %D %G"']),
        ("NODES GRES\nmany gpu:h100:8\n3\n", "s.txt", ["line 2, column 1: NODES: expected a whole number", "line 3: expected 2 columns"]),
        ('{"items": [}', "n.json", ["n.json line 1, column 12: is not JSON"]),
        (json.dumps({"items": [node("NVIDIA-H100"), node("NVIDIA-X9")]}), "n.json", ["n.json item 2: no chip of the catalog is called NVIDIA-X9"]),
        ('{"items": []}', "n.json", ["names no system with accelerators"]),
        ("3", "n.json", ["is no fleet"]),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_named_by_line(tmp_path, text, name, words):
    with pytest.raises(SpecError) as caught:
        read(tmp_path, text, name)
    for expected in words:
        assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("name", "chip"),
    [
        ("NVIDIA-H100-80GB-HBM3", "H100 SXM5 80GB"), ("NVIDIA-H100-NVL", "H100 NVL 94GB"), ("NVIDIA H100 PCIe", "H100 PCIe 80GB"),
        ("NVIDIA-A100-SXM4-40GB", "A100 SXM 40GB"), ("NVIDIA-A100-SXM4-80GB", "A100 SXM 80GB"), ("NVIDIA-A100-80GB-PCIe", "A100-PCIe-80GB"),
        ("NVIDIA-L40S", "L40S"), ("NVIDIA-L4", "L4"), ("NVIDIA-GB200", "GB200 (per GPU)"), ("AMD_Instinct_MI300X_OAM", "MI300X"),
        ("NVIDIA-B200", "B200 SXM"), ("NVIDIA-H20", "H20 96GB"), ("Tesla-T4", ""),
    ],
)  # fmt: skip
def test_products_have_the_chips_that_they_name(name, chip):
    assert chip_called(name, shipped_catalog()) == chip


def test_every_name_of_the_tables_is_one_of_the_catalog():
    catalog = shipped_catalog()
    assert all(catalog.has("chips", chip) for _, chip in CHIPS)
    assert all(region_called(name, catalog) for name in REGIONS)
    assert system_called("Standard_ND96isr_H100_v5", catalog) == "Azure ND96isr_H100_v5"


def codes(fleet):
    return [fact.message.code for fact in fleet.notes]


def test_counts_of_servers_without_gpus_are_said_to_be_servers_of_eight(tmp_path):
    found = read(tmp_path, "gpu,nodes,region\nH100,64,us-east-1\n")
    assert found.counts == {("DGX H100", "us-virginia"): 64} and "ways_in.eight_each" in codes(found)
    stated = read(tmp_path, "gpu,gpus,count,region\nH100,8,8,us-east-1\n")
    assert stated.counts == {("DGX H100", "us-virginia"): 8} and "ways_in.eight_each" not in codes(stated)


@pytest.mark.parametrize("header", ["gpu,count,region", "gpu,gpus,region", "accelerator,quantity,location"])
def test_counts_of_chips_become_servers_and_the_remainder_is_told(tmp_path, header):
    whole = read(tmp_path, f"{header}\nH100,64,us-east-1\n")
    assert whole.counts == {("DGX H100", "us-virginia"): 8} and codes(whole) == ["ways_in.fleet_read"]
    found = read(tmp_path, f"{header}\nH100,70,us-east-1\nH100,13,us-east-1\nL40S,1,us-east-1\n")
    assert found.counts[("DGX H100", "us-virginia")] == 8 + 1
    (left,) = [fact.message for fact in found.notes if fact.message.code == "ways_in.chips_left"]
    assert (left.arguments["count"], left.arguments["chip"]) == (6 + 5, "H100 SXM5 80GB")
    with pytest.raises(SpecError, match="no system with 3 x H100"):
        read(tmp_path, f"{header}\nH100,3,us-east-1\n")


def test_prices_beside_counts_are_those_of_what_exists(tmp_path):
    text = "instance_type,count,region,price\np5.48xlarge,4,us-east-1,31.2\na3-highgpu-8g,2,us-east4,\n"
    found = read(tmp_path, text)
    assert found.counts == {("AWS p5.48xlarge", "us-virginia"): 4, ("GCP a3-highgpu-8g", "us-virginia"): 2}
    assert found.rents == {("AWS p5.48xlarge", "us-virginia"): 31.2} and not found.offers
    with pytest.raises(SpecError, match="line 2, column 4: expected a price per instance hour above 0"):
        read(tmp_path, text.replace("31.2", "0"))
