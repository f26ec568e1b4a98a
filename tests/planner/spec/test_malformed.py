"""Whatever stands in a spec, the command answers: a plan, or each problem with its place and its remedy. Never a traceback.

Cases are generated from three small specs that between them use every key: each node is left out, given another type,
another unit, a value beyond all measure, a name that nobody has. The command runs in this process, as from a shell. About a third of the
cases are run, and all with FLOPWATT_ALL_CASES=1.
"""

from __future__ import annotations

import copy
import io
import json
import re
import sys
import time
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from planner.cli import main as cli
from planner.exit_codes import INFEASIBLE, INVALID, LIMIT, OK
from planner.plan import parse_plan
from planner.spec.document import read_document
from planner.spec.schema import spec_schema
from tests.solvers.reference import TIMES

SERVING: dict[str, Any] = {
    "$schema": "spec.schema.json", "schema_version": 1, "id": 7, "name": "malformed", "note": "a base", "currency": "USD",
    "exchange": {"CNY": {"per_usd": 7.2, "date": "2024"}},
    "horizon": {"start": "2027-01-01", "years": 1, "calendar": "representative-day", "discount_rate": 0.08},
    "objective": {"minimise": "cost"},
    "workloads": [{
        "name": "chat", "kind": "serving", "grade": "consumer", "architecture": "Llama-3.2-1B",
        "demand": {"requests_per_s": 30, "profile": [1, 0.5] * 12},
        "lengths": {"input": 500, "output": 200, "input_cv": 1, "output_cv": 0.5},
        "origins": [{"region": "us-virginia", "share": 1}],
        "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p50": "60 ms"}, "e2e": {"mean": "60 s"}},
        "precision": ["bf16"], "disaggregation": "never", "residency": ["us"], "weights_from": "us-virginia",
        "weight_updates_per_year": 12, "note": "",
    }],
    "sites": [{
        "region": "us-virginia", "power": "1 MW", "systems": ["DGX H100"], "topologies": ["scale-up"], "fabric": "InfiniBand NDR",
        "fixed_cost": "1000 USD/year", "crew": "1000 USD/year", "electricity_price": "0.08 USD/kWh", "pue": 1.2, "note": "",
    }],
    "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD", "supply": 50, "regions": ["us-virginia"], "note": ""}],
    "limits": {"budget": "100M CNY", "capital": "100M USD", "carbon": "100 kt", "export_control": True, "licences": ["H100 SXM5 80GB"]},
    "overrides": {"chips/H100 SXM5 80GB/hbm_bytes_per_s": {"value": "3.2 TB/s", "note": "measured"}},
    "solver": {"gap": 0.001, "time_limit": "5 s", "seed": 1, "backend": "highs", "points_per_system": 2},
}  # fmt: skip

TRAINING: dict[str, Any] = {
    "name": "malformed",
    "workloads": [{
        "name": "train", "kind": "training", "architecture": "Llama-3.2-1B", "tokens": "100B", "start": "1 d", "deadline": "30 d",
        "sequence_tokens": 4096, "batch_tokens": "1M", "precision": ["bf16"], "residency": ["us-virginia"],
    }],
    "sites": [{"region": "us-virginia", "systems": ["DGX H100"], "topologies": ["rail-optimised"]}],
    "offers": [{"system": "DGX H100", "how": "on_demand", "price": "60 USD/h"}],
    "solver": {"time_limit": "5 s"},
}  # fmt: skip

ALL_MONTHS = list(range(1, 13))


def _stated(**figures: Any) -> dict[str, Any]:
    return {name: {"value": value, "note": "made up"} for name, value in figures.items()}


DEFINED: dict[str, Any] = {
    "name": "malformed",
    "workloads": [{
        "name": "chat", "kind": "serving", "architecture": "my model", "demand": {"output_tokens": "1B tokens/day"},
        "lengths": {"input": 500, "output": 200}, "origins": [{"region": "my town", "share": 1}], "precision": ["fp8"], "disaggregation": "never",
    }],
    "sites": [{"region": "my town", "power": "1 MW", "topologies": ["rail-optimised"], "fabric": "my network", "tariff": "my tariff"}],
    "offers": [{"system": "my node", "how": "buy", "price": "100000 USD"}],
    "catalog": {
        "chips": [{"name": "my chip", "text": {"export_cn": "domestic"}, "figures": _stated(
            bf16_flop_per_s="400 TFLOP/s", fp8_flop_per_s="800 TFLOP/s", hbm_bytes="64 GB", hbm_bytes_per_s="2 TB/s", tdp_w="500 W",
            embodied_carbon_kg="100 kg")}],
        "systems": [{"name": "my node", "text": {"chip": "my chip"}, "figures": _stated(
            chips=8, scaleup_bytes_per_s="200 GB/s", scaleup_chips=8, nic_bytes_per_s="25 GB/s", nic_ports=8, power_w="6 kW")}],
        "fabrics": [{"name": "my network", "figures": _stated(
            port_bytes_per_s="25 GB/s", radix=64, switch_price="20000 USD", switch_power_w="1 kW", optic_power_w="15 W",
            link_price_one_tier="500 USD", link_price_two_tier="900 USD")}],
        "architectures": [{"name": "my model", "text": {"gated": "true"}, "figures": _stated(
            layers=8, hidden=1024, heads=16, kv_heads=4, head_dim=64, ffn=2048, vocab=32000, experts=8, topk=2, shared_experts=1,
            expert_ffn=512, dense_layers=1, window_tokens=256, window_layers=2)}],
        "regions": [{"name": "my town", "text": {"timezone": "America/New_York", "residency": "nw"}, "figures": _stated(
            latitude="40", longitude="75", electricity_price="0.07 USD/kWh", carbon_intensity="300 g/kWh", pue=1.3,
            construction_cost="10M USD/MW")}],
        "tariffs": [{"name": "my tariff", "figures": _stated(price_day="0.1 USD/kWh", price_night="0.05 USD/kWh"), "text": {"bands": [
            [ALL_MONTHS, "all", 8, 24, "day", "price_day"], [ALL_MONTHS, "all", 0, 8, "night", "price_night"]]}}],
    },
    "solver": {"time_limit": "5 s"},
}  # fmt: skip

BASES = {"serving": SERVING, "training": TRAINING, "defined": DEFINED}
SCHEMA = Draft202012Validator(spec_schema())
SLOWEST_S = 10.0

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Case:
    """`invalid`: it must be refused; else any answer will do. `at`: where the refusal must point, or at something inside or around it."""

    name: str
    data: bytes
    invalid: bool
    at: Path = ()


# -- generating --------------------------------------------------------------------------------------------------------

NUMBER = re.compile(r"([\d.]+)([kMBT]?)((?: .+)?)")
GONE = object()


def nodes(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every node below the root."""
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key), child
        yield from nodes(child, (*path, key))


def with_value(base: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(base)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    if value is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


def is_free(path: Path) -> bool:
    """Text that may be anything."""
    return path[-1] in ("note", "$schema", "date", "id") or "bands" in path


def is_number(path: Path, value: Any) -> bool:
    if (
        isinstance(value, bool)
        or is_free(path)
        or (path[-1] in ("start", "schema_version") and value in ("2027-01-01", 1))
    ):
        return False
    return isinstance(value, (int, float)) or (isinstance(value, str) and NUMBER.fullmatch(value) is not None)


def scaled(value: Any, factor: float) -> Any:
    """The number, or the number of a text with a unit, times a factor."""
    if not isinstance(value, str):
        return value * factor
    number, suffix, unit = NUMBER.fullmatch(value).groups()
    return f"{float(number) * factor!r}{suffix}{unit}"


def case(what: str, base: str, path: Path, value: Any, invalid: bool = True, at: Path | None = None) -> Case:
    document = with_value(BASES[base], path, value)
    return Case(
        f"{what}: {base} {'.'.join(map(str, path))} {_short(value)}",
        json.dumps(document).encode(),
        invalid,
        path if at is None else at,
    )


def _short(value: Any) -> str:
    text = "" if value is GONE else json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


REQUIRED = {
    "name", "workloads", "sites", "kind", "architecture", "demand", "lengths", "origins", "region", "share", "input", "output", "tokens",
    "deadline", "system", "how", "per_usd", "chip", "timezone", "value", "requests_per_s", "output_tokens",
    "hbm_bytes", "hbm_bytes_per_s", "layers", "hidden", "heads", "vocab", "carbon_intensity", "radix", "switch_price", "port_bytes_per_s",
}  # fmt: skip


def missing() -> Iterator[Case]:
    for base, document in BASES.items():
        for path, _ in nodes(document):
            required = (
                (path[-1] in REQUIRED and "residency" not in path)
                or (path[-2:-1] == ("figures",) and path[-1] == "chips")
                or (path[-1] == "note" and "figures" in path)
            )
            if required or (len(path) <= 3 and isinstance(path[-1], str) and base == "serving"):
                # a record without a figure is told where the record is used
                yield case("missing", base, path, GONE, invalid=required, at=() if "figures" in path else None)


WRONG: dict[type, tuple[Any, ...]] = {
    dict: ([], "text"),
    list: ({}, "text"),
    str: ([], True),
    int: ([], True),
    float: ([], True),
    bool: ("yes", 1),
}


def wrong_type() -> Iterator[Case]:
    for base, document in BASES.items():
        for i, (path, value) in enumerate(nodes(document)):
            if "bands" in path or (base != "serving" and (path[0] not in ("workloads", "catalog") or i % 2)):
                continue
            choices = WRONG[type(value)]
            for wrong in choices if base == "serving" and "profile" not in path else choices[:1]:
                yield case("type", base, path, wrong)


def wrong_unit() -> Iterator[Case]:
    for base, document in BASES.items():
        for path, value in nodes(document):
            if is_number(path, value) and isinstance(value, str):
                yield from (
                    case("unit", base, path, text) for text in ("3 parsec", "", "km")[: 3 if base == "serving" else 1]
                )


def not_finite() -> Iterator[Case]:
    for base, document in BASES.items():
        for path, value in nodes(document):
            if not is_number(path, value) or ("profile" in path and path[-1] != 5):
                continue
            if isinstance(value, str):
                yield from (
                    case("finite", base, path, text)
                    for text in ("nan", "inf W", "1e999 s")[: 3 if base == "serving" else 1]
                )
                continue
            for text in ("NaN", "Infinity", "-Infinity", "1e999")[: 4 if base == "serving" else 1]:
                data = json.dumps(with_value(document, path, "HERE")).replace('"HERE"', text).encode()
                yield Case(
                    f"finite: {base} {'.'.join(map(str, path))} {text}", data, True
                )  # told of the whole text, before it is a spec


def negative() -> Iterator[Case]:
    for base, document in BASES.items():
        for path, value in nodes(document):
            if is_number(path, value) and not {"latitude", "longitude", "profile"} & set(path):
                yield case("negative", base, path, f"-{value}" if isinstance(value, str) else -value)


NAMES = {"architecture", "region", "weights_from", "fabric", "tariff", "system", "chip"}
NAME_LISTS = {"residency", "systems", "regions", "licences"}


def unknown_name() -> Iterator[Case]:
    for base, document in BASES.items():
        for path, value in nodes(document):
            one = path[-1] in NAMES or (len(path) > 1 and path[-2] in NAME_LISTS)
            if isinstance(value, str) and one and (path[0] != "catalog" or path[-1] == "chip"):
                yield from (
                    case("name", base, path, text) for text in (f"{value} of nowhere", "模型", "x" * 201, "a\nb")
                )
    yield case("name", "serving", ("objective",), {"maximise": "throughput", "workload": "chatt"})
    yield case("name", "training", ("objective",), {"maximise": "throughput"})
    yield case("name", "serving", ("overrides",), {"chips/H900/hbm_bytes": {"value": "80 GB", "note": "x"}})
    yield case("name", "serving", ("overrides",), {"chips/H100 SXM5 80GB/hbm_byte": {"value": "80 GB", "note": "x"}})
    yield case("name", "serving", ("overrides",), {"chip/H100 SXM5 80GB/hbm_bytes": {"value": "80 GB", "note": "x"}})
    yield case("name", "serving", ("overrides",), {"hbm_bytes": {"value": "80 GB", "note": "x"}})


FACTORS = (1e-300, 1e-30, 1e-9, 1e-3, 1e3, 1e9, 1e30, 1e300)


def magnitude() -> Iterator[Case]:
    """Both ends of the range for every number, and one between them by turns."""
    for base, document in BASES.items():
        for i, (path, value) in enumerate(nodes(document)):
            if is_number(path, value) and ("profile" not in path or path[-1] == 4):
                between = FACTORS[1 + i % 6]
                yield from (
                    case(
                        f"x{factor:g}",
                        base,
                        path,
                        scaled(value, factor),
                        invalid=factor == 1e300 or (factor == 1e-300 and not str(path[-1]).endswith("_cv")),
                        at=path[:2],
                    )
                    for factor in (1e-300, between, 1e300)
                )
            if is_number(path, value) and not isinstance(value, str) and base == "serving" and "profile" not in path:
                yield case("huge", base, path, 10**400)


def override() -> Iterator[Case]:
    """Figures of every kind that a serving plan reads, moved a little, far, and out of this world."""
    paths = {
        "chips/H100 SXM5 80GB/fp16_flop_per_s": 989e12, "chips/H100 SXM5 80GB/hbm_bytes": 80e9, "chips/H100 SXM5 80GB/tdp_w": 700,
        "systems/DGX H100/chips": 8, "systems/DGX H100/power_w": 10200, "systems/DGX H100/scaleup_bytes_per_s": 450e9,
        "architectures/Llama-3.2-1B/layers": 16, "architectures/Llama-3.2-1B/heads": 32, "architectures/Llama-3.2-1B/vocab": 128256,
        "regions/us-virginia/latitude": 38.9, "regions/us-virginia/construction_cost": 11.7, "defaults/idle_power_fraction/value": 0.2,
        "defaults/system_life_s/value": 5, "constants/serving.memory_efficiency/value": 0.8, "constants/power.memory/value": 0.8,
    }  # fmt: skip
    units = {
        "fp16_flop_per_s": "FLOP/s",
        "hbm_bytes": "B",
        "tdp_w": "W",
        "power_w": "W",
        "scaleup_bytes_per_s": "B/s",
        "construction_cost": "USD/W",
    }
    for path, value in paths.items():
        for factor, invalid in (
            (0, False),
            (-1, "latitude" not in path),
            (1e-300, True),
            (0.1, False),
            (3, False),
            (1e280, True),
        ):
            unit = units.get(path.rpartition("/")[2])
            written = f"{value * factor!r} {unit}" if unit else value * factor
            yield case(
                f"override x{factor:g}",
                "serving",
                ("overrides",),
                {path: {"value": written, "note": "moved"}},
                invalid=invalid,
            )


def repeated() -> Iterator[Case]:
    for base, path in (
        ("serving", ("workloads",)),
        ("serving", ("sites",)),
        ("serving", ("workloads", 0, "origins")),
        ("training", ("workloads",)),
    ):
        there: Any = BASES[base]
        for key in path:
            there = there[key]
        yield case("twice", base, path, there * 2)
        yield case("twice", base, path, there * 2000)
    yield case(
        "twice",
        "serving",
        ("workloads", 0, "origins"),
        [{"region": "us-virginia", "share": 0.5}, {"region": "Virginia", "share": 0.5}],
    )
    yield case("twice", "serving", ("sites",), [{"region": "us-virginia"}, {"region": "US Virginia"}])
    yield case("twice", "serving", ("offers",), SERVING["offers"] * 2, invalid=False)
    text = json.dumps(SERVING)
    yield Case("twice: a key", text.replace('"name": "chat"', '"name": "chat", "name": "chat"').encode(), True)


def empty_and_null() -> Iterator[Case]:
    nullable = {"profile", "ttft", "tpot", "e2e", "p95", "p50", "mean", "grade", "residency", "weights_from", "power", "systems", "fixed_cost", "crew", "electricity_price", "pue",
                "price", "supply", "regions", "offers", "budget", "capital", "carbon", "discount_rate", "date", "id", "$schema"}  # fmt: skip
    for path, value in nodes(SERVING):
        if path[0] in ("workloads", "sites", "offers", "limits", "horizon", "objective", "solver") and isinstance(
            path[-1], str
        ):
            either = path[-1] in ("minimise", "requests_per_s")
            yield case("null", "serving", path, None, invalid=either or path[-1] not in nullable)
        if isinstance(value, list) and path[-1] != "licences":
            yield case("empty", "serving", path, [], invalid=path[-1] != "offers")
        if isinstance(value, dict) and path[-1] not in (
            "slo",
            "ttft",
            "tpot",
            "e2e",
            "limits",
            "solver",
            "horizon",
            "exchange",
            "overrides",
        ):
            yield case("empty", "serving", path, {})
        if isinstance(value, str) and not is_free(path):
            yield case("empty", "serving", path, " ")


def unknown_key() -> Iterator[Case]:
    for base, document in BASES.items():
        for path, value in nodes(document):
            if isinstance(value, dict) and path[-1] not in ("exchange", "overrides"):
                yield case("key", base, path, {**value, "bogus": 1})


def odd_texts() -> Iterator[Case]:
    whole = json.dumps(SERVING)
    raw = {
        "nothing": b"", "blank": b" \n\t ", "a byte order mark alone": b"\xef\xbb\xbf", "null": b"null", "a list": b"[]", "a text": b'"spec"', "a number": b"7",
        "an empty object": b"{}", "not JSON": b"name: malformed\nworkloads: []\n", "TOML": b"[sites]\nregion = 1\n", "cut off": whole[: len(whole) // 2].encode(),
        "a comma too many": whole.replace("}]", "},]", 1).encode(), "single quotes": whole.replace('"', "'").encode(), "two documents": (whole * 2).encode(),
        "a comment": b"// spec\n" + whole.encode(), "UTF-16": whole.encode("utf-16"), "UTF-32": whole.encode("utf-32"), "Latin-1": whole.replace("a base", "é").encode("latin-1"),
        "Latin-1 in a name": whole.replace("malformed", "HERE").encode().replace(b"HERE", b"caf\xe9"), "binary": bytes(range(256)), "a zero byte": whole.encode() + b"\0",
        "a PDF": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "deep lists": b"[" * 200_000, "deep objects": b'{"a":' * 200_000, "deep and closed": b"[" * 5000 + b"]" * 5000,
        "a number of 5000 digits": b'{"name": ' + b"9" * 5000 + b"}", "a long line": b"x" * 2_000_000, "half a character": whole.replace("malformed", "\\ud800").encode(),
        "half a character as a key": whole.replace('"note"', '"\\udfff"', 1).encode(), "a control character": whole.replace("malformed", "a\tb").encode(),
    }  # fmt: skip
    yield from (Case(f"text: {name}", data, True) for name, data in raw.items())
    for depth in (30, 3000):
        nested: Any = "x"
        for _ in range(depth if depth < 1000 else 400):
            nested = {"value": nested}
        yield case(f"nested {depth}", "serving", ("note",), nested)
        yield case(f"nested {depth}", "serving", ("catalog",), {"chips": [{"name": "c", "figures": {"tdp_w": nested}}]})
    for name in (
        "模型 🚀",
        "a/b",
        "a\nb",
        "a\u0000b",
        "chat/us-virginia/0",
        "..",
        "' OR 1=1",
        "<b>",
        "%s{}",
        "x" * 200,
        " padded ",
    ):
        yield case("odd name", "serving", ("workloads", 0, "name"), name, invalid=False)
        yield case("odd name", "serving", ("name",), name, invalid=False)
    yield Case("text: a byte order mark first", b"\xef\xbb\xbf" + whole.encode(), False)


def limits() -> Iterator[Case]:
    """Sound in form, beyond what can be had."""
    for path, value in (
        (("limits",), {"budget": "1 USD"}), (("limits",), {"carbon": "1 g"}), (("sites", 0, "power"), "1 W"), (("offers", 0, "supply"), 0),
        (("workloads", 0, "slo"), {"ttft": {"p99": "1 us"}}), (("workloads", 0, "slo"), {"tpot": {"p99": "1 us"}}), (("workloads", 0, "demand"), {"requests_per_s": 1e9}),
        (("workloads", 0, "demand"), {"requests_per_s": 0}), (("workloads", 0, "lengths"), {"input": 10_000_000, "output": 1_000_000}), (("offers",), []),
        (("workloads", 0, "residency"), ["cn"]), (("objective",), {"maximise": "throughput"}), (("objective",), {"minimise": "carbon"}),
    ):  # fmt: skip
        yield case("limit", "serving", path, value, invalid=False)
    yield Case("limit: nothing bounds the throughput", json.dumps({
        **{key: SERVING[key] for key in ("name", "workloads")}, "sites": [{"region": "us-virginia", "systems": ["DGX H100"], "topologies": ["scale-up"]}],
        "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}], "objective": {"maximise": "throughput"}}).encode(), True)  # fmt: skip
    for path, value in (
        (("workloads", 0, "tokens"), "1M"),
        (("workloads", 0, "tokens"), 7),
        (("workloads", 0, "deadline"), "25 h"),
        (("workloads", 0, "batch_tokens"), 4096),
    ):
        yield case("limit", "training", path, value, invalid=False)


FAMILIES = (
    missing,
    wrong_type,
    wrong_unit,
    not_finite,
    negative,
    unknown_name,
    magnitude,
    override,
    repeated,
    empty_and_null,
    unknown_key,
    odd_texts,
    limits,
)
# a spec with records of its own takes longest to read, so one in four of its cases
CASES = {
    found.name: found
    for family in FAMILIES
    for i, found in enumerate(family())
    if ": defined " not in found.name or i % 4 == 0
}


# -- checking ----------------------------------------------------------------------------------------------------------

REMEDY = re.compile(
    r"expected|such as|add it|known here|lists them all|close names|state (it|one|its)|state their|give |write |remove|save it|keep one|must |add its|join |lengthen|"
    r"no such|unknown|change or|bring |needs fewer|1e9"
)


def run(data: bytes, monkeypatch, capsys) -> tuple[int, str, str, float]:
    """(exit code, standard output, standard error, seconds of work) of `flopwatt plan -`."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    began = time.process_time()  # not the clock's: other work on the machine is not ours
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is divided by zero on the way either
        code = cli.main(["plan", "-", "--format", "json", "-q"])
    seconds = time.process_time() - began
    printed = capsys.readouterr()
    return code, printed.out, printed.err, seconds


def place_of(line: str) -> str:
    """The place that a problem names; empty where it is the whole text."""
    found = re.match(r"([$\w][^\s:]*(?:/[^:]*)?): ", line)
    return found[1] if found else ""


def as_text(path: Path) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def points_to(place: str, path: Path) -> bool:
    """At the place itself, inside it, or at a block around it."""
    wanted = as_text(path)
    return place.startswith(wanted) or (place != "" and wanted.startswith(place))


def test_there_are_enough_cases():
    assert len(CASES) >= 300
    assert sum(found.invalid for found in CASES.values()) >= 250


@pytest.mark.parametrize("base", BASES)
def test_the_bases_are_sound(base, monkeypatch, capsys):
    code, out, err, _ = run(json.dumps(BASES[base]).encode(), monkeypatch, capsys)
    assert (code, err) == (OK, "")
    assert parse_plan(out).status in ("optimal", "within_gap")


@pytest.mark.parametrize(
    "name", [name for name in CASES if TIMES > 1 or name.startswith("limit") or zlib.crc32(name.encode()) % 3 == 0]
)
def test_a_malformed_spec_is_answered(name, monkeypatch, capsys):
    given = CASES[name]
    code, out, err, seconds = run(given.data, monkeypatch, capsys)
    assert code in ((INVALID,) if given.invalid else (OK, INVALID, INFEASIBLE, LIMIT)), err
    assert seconds < SLOWEST_S
    if code == INVALID:
        lines = err.splitlines()
        assert lines
        assert all(REMEDY.search(line) for line in lines), lines
        if given.at:
            assert any(points_to(place_of(line), given.at) for line in lines), lines
        return
    plan = parse_plan(out)
    assert {OK: ("optimal", "within_gap"), INFEASIBLE: ("infeasible",), LIMIT: ("limit",)}[code].count(plan.status) == 1
    assert not err
    SCHEMA.validate(read_document(given.data))  # the schema is never stricter than the parser
