"""Find the catalog's chip, system and region by the names that clusters, clouds and drivers use."""

from __future__ import annotations

import re

from catalog.lookup import Catalog
from catalog.records import Record

CHIPS = (
    (r"gb300", "GB300 (per GPU)"),
    (r"gb200", "GB200 (per GPU)"),
    (r"gh200.*144", "GH200-144GB"),
    (r"gh200", "GH200 96/144GB"),
    (r"b300", "B300 SXM (Blackwell Ultra)"),
    (r"b200", "B200 SXM"),
    (r"h200.*nvl", "H200-NVL"),
    (r"h200", "H200 SXM 141GB"),
    (r"h100.*nvl", "H100 NVL 94GB"),
    (r"h100.*pcie", "H100 PCIe 80GB"),
    (r"h100", "H100 SXM5 80GB"),
    (r"h800", "H800 SXM 80GB"),
    (r"h20", "H20 96GB"),
    (r"a100.*pcie", "A100-PCIe-80GB"),
    (r"a100.*80g", "A100 SXM 80GB"),
    (r"a100", "A100 SXM 40GB"),
    (r"a800.*40", "A800-40GB"),
    (r"a800", "A800 SXM 80GB"),
    (r"l40s", "L40S"),
    (r"l20", "L20"),
    (r"l4", "L4"),
    (r"v100", "V100 SXM2 32GB"),
    (r"rtxpro6000", "RTX PRO 6000 Blackwell Server"),
    (r"mi455x", "MI455X"),
    (r"mi355x", "MI355X"),
    (r"mi350x", "MI350X"),
    (r"mi325x", "MI325X"),
    (r"mi300x", "MI300X"),
    (r"mi250x", "MI250X"),
    (r"gaudi3", "Gaudi3 (OAM)"),
    (r"gaudi2", "Gaudi2"),
)
"""Pattern in a product's name, without marks between its letters -> chip of the catalog; the first that fits counts."""

REGIONS = {
    "us-east-1": "us-virginia", "us-east-2": "us-ohio", "us-west-2": "us-oregon", "us-west-1": "us-california", "eu-west-1": "ie-dublin",
    "eu-west-2": "uk-london", "eu-west-3": "fr-paris", "eu-central-1": "de-frankfurt", "eu-north-1": "se-stockholm",
    "ap-northeast-1": "jp-tokyo", "ap-northeast-3": "jp-osaka", "ap-northeast-2": "kr-seoul", "ap-southeast-1": "sg",
    "ap-southeast-2": "au-sydney", "ap-south-1": "in-mumbai", "sa-east-1": "br-saopaulo", "ca-central-1": "ca-montreal",
    "eastus": "us-virginia", "eastus2": "us-virginia", "southcentralus": "us-texas", "westus2": "us-oregon", "northeurope": "ie-dublin",
    "westeurope": "nl-eemshaven", "uksouth": "uk-london", "germanywestcentral": "de-frankfurt", "francecentral": "fr-paris",
    "swedencentral": "se-stockholm", "japaneast": "jp-tokyo", "koreacentral": "kr-seoul", "southeastasia": "sg", "australiaeast": "au-sydney",
    "us-east4": "us-virginia", "us-east5": "us-ohio", "us-central1": "us-iowa", "us-west1": "us-oregon", "us-west4": "us-nevada",
    "europe-west1": "be-stghislain", "europe-west2": "uk-london", "europe-west3": "de-frankfurt", "europe-west4": "nl-eemshaven",
    "europe-west9": "fr-paris", "europe-north1": "fi-hamina", "asia-east1": "tw-changhua", "asia-northeast1": "jp-tokyo",
    "asia-northeast3": "kr-seoul", "asia-southeast1": "sg", "asia-south1": "in-mumbai",
}  # fmt: skip
"""Regions of AWS, Azure and Google Cloud -> region of the catalog in the same place."""

CLOUDS = ("AWS ", "Azure ", "GCP ", "Nebius ")


def chip_called(name: str, catalog: Catalog) -> str:
    """Return the chip of the catalog that a product's name means; empty if none fits.

    >>> chip_called("NVIDIA-H100-80GB-HBM3", Catalog.load())
    'H100 SXM5 80GB'
    """
    if catalog.has("chips", name):
        return catalog.get("chips", name).name
    bare = re.sub(r"[^a-z0-9]", "", name.lower())
    return next((chip for pattern, chip in CHIPS if re.search(pattern, bare) and catalog.has("chips", chip)), "")


def system_called(name: str, catalog: Catalog) -> str:
    """Return the system of the catalog with this name, or of this instance type of a cloud; empty if there is none."""
    if catalog.has("systems", name):
        return catalog.get("systems", name).name
    typed = name.lower().removeprefix("standard_")
    for record in catalog.records("systems"):
        words = record.name.lower().split(" ", 1)
        if record.name.startswith(CLOUDS) and typed in words[1].split(" / "):
            return record.name
    return ""


def system_with(chip: str, count: int, catalog: Catalog) -> str:
    """Return the system of the catalog that has `count` of the chip, one of no cloud before others; empty if there is none."""
    found = [
        record for record in catalog.records("systems") if record.words("chip") == chip and _chips(record) == count
    ]
    return min(found, key=lambda record: record.name.startswith(CLOUDS)).name if found else ""


def _chips(record: Record) -> float:
    figure = record.get("chips")
    return figure.number if figure is not None else 0.0


def region_called(name: str, catalog: Catalog) -> str:
    """Return the region of the catalog that a cloud's region means; empty if it is not known."""
    if catalog.has("regions", name):
        return catalog.get("regions", name).name
    known = REGIONS.get(name.lower(), "")
    return known if known and catalog.has("regions", known) else ""
