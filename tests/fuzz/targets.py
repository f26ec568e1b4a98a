"""What is fuzzed: each target answers a seed with a result or with an error of the contract; anything else it raises is a bug."""

from __future__ import annotations

import copy
import io
import json
import random
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

import planner
from catalog.errors import CatalogError
from catalog.lookup import Catalog
from planner.cli.main import main
from planner.errors import MOST_CHARACTERS, SpecError
from planner.estimate.answer import estimate, sections
from planner.estimate.case import best_layouts
from planner.pipeline import check_document
from planner.plan import parse_plan
from planner.plan.schema import plan_schema
from planner.spec.document import read_document
from planner.spec.series import read_series
from planner.studies.compare import compare
from planner.studies.roi import planned_fleet, returns
from planner.studies.side_by_side import side_by_side
from tests.fuzz import dashboard
from tests.fuzz.consistency import check_consistency
from tests.fuzz.mutations import ODD, as_json, bytes_mutated, mutated
from tests.planner.spec import test_malformed
from tests.planner.verify import tampering

ROOT = Path(__file__).resolve().parents[2]
SMALL = ROOT / "tests" / "golden" / "small_spec.json"
CODES = {0, 2, 3, 4, 5, 6, 141}
MOST = (1, 1, 2, 4)  # changes of a document: one is most often valid still


@cache
def specs() -> list[Any]:
    """List the specs to start from: the examples, and small ones that use every key between them."""
    files = [*sorted((ROOT / "examples").glob("*.json")), SMALL]
    every = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return every + [v for v in vars(test_malformed).values() if isinstance(v, dict) and "workloads" in v]


@cache
def small_plan() -> Any:
    """Solve the small spec once."""
    return json.loads(planner.solve(json.loads(SMALL.read_text(encoding="utf-8"))).to_json())


def check_spec(rng: random.Random) -> None:
    """Check a spec without solving it."""
    check_document(read_document(as_json(mutated(rng, rng.choice(specs()), specs(), rng.choice(MOST)))))


def check_case(rng: random.Random) -> None:
    """Estimate a case, or rank its layouts."""
    files = sorted((ROOT / "examples" / "cases").glob("*.json"))
    cases = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    cases += [{"workload": w, "system": "DGX H100", "chips": 8} for w in small_plan()["spec"]["workloads"]]
    document = read_document(as_json(mutated(rng, rng.choice(cases), cases, rng.choice(MOST))))
    if rng.random() < 0.2:
        best_layouts(document, (), 5)
    elif (found := estimate(document, ())).answer:
        json.dumps(found.answer, allow_nan=False)
        sections(found.answer)


def check_overlay(rng: random.Random) -> None:
    """Load an overlay, and resolve a spec with it where it is valid."""
    overlays: list[Any] = []
    for file in sorted((ROOT / "catalog" / "data").glob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8")).get(file.stem)
        some = content[:3] if isinstance(content, list) else dict(list(content.items())[:3]) if content else {}
        overlays.append({file.stem: some})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / rng.choice(("a.json", "a.json", "a.json", "x.config.json"))
        file.write_bytes(as_json(mutated(rng, rng.choice(overlays), overlays, rng.choice(MOST))))
        Catalog.load([file])
        check_document(json.loads(SMALL.read_text(encoding="utf-8")), overlays=[file])


def check_series(rng: random.Random) -> None:
    """Read an hourly file, and resolve a spec that names it where it is one."""
    hours = "".join(f"2024-01-{d:02d}T{h:02d},{20 + h},{300 - d},0.5\n" for d in range(1, 4) for h in range(24))
    text = f"timestamp_utc,price_usd_per_mwh,carbon_g_per_kwh,wind\n{hours}"
    series = read_series(bytes_mutated(rng, text.encode()))
    document = copy.deepcopy(small_plan()["spec"])
    document["sites"][0] |= {"hourly": {"file": "a.csv", "fill": "linear"}}
    document["series"] = {"a.csv": series}
    check_document(read_document(as_json(document)))


def check_plan(rng: random.Random) -> None:
    """Compare a plan, put it side by side with others, and ask for its returns."""
    good = parse_plan(json.dumps(small_plan()))
    plan = parse_plan(as_json(mutated(rng, small_plan(), [small_plan()], rng.choice(MOST))))
    kind = rng.random()
    found: Any
    if kind < 0.4:
        found = compare(good, plan)
    elif kind < 0.6:
        found = compare(plan, good)
    elif kind < 0.8:
        found = side_by_side([good, plan])
    else:
        found = returns(planned_fleet(plan))
    json.dumps(found.document, allow_nan=False)
    assert found.words and found.sections is not None and found.rows is not None


def check_options(rng: random.Random) -> None:
    """Run a command that solves nothing with odd options."""
    texts = [str(value) for value in ODD] + [
        "sites[0].power=1 MW",
        "sites[" + "1" * 5000 + "].power=1",
        "x:offers[9]",
        "=",
        "a=",
        "[[[",
        "\udc80=1",
    ]
    option = rng.choice(("--set", "--set", "--format", "--catalog", "--hourly", "--output"))
    spec = str(SMALL)
    commands = (
        ["check", spec, option, _safe(option, rng.choice(texts))],
        ["check", spec, "--set", f"{rng.choice(texts)}={rng.choice(texts)}"],
        ["roi", "--cost", rng.choice(("1B CNY/month", *texts)), "--chips", rng.choice(("100", *texts)), "--mfu", rng.choice(("0.4", *texts))],
        ["roi", "--cost", "1B CNY/month", "--chips", "9", "--mfu", "0.4", f"--gain={rng.choice(texts)}", f"--team={rng.choice(texts)}"],
        ["catalog", "show", rng.choice(texts)],
        ["catalog", "list", rng.choice(texts)],
        ["dashboard", "--server.port", rng.choice(("99999", "-1", "x", "9" * 5000))],
        ["frontier", spec, "--against", "latency", f"--span={rng.choice(texts)}", f"--points={rng.choice(('0', '-1', '10000', 'x'))}"],
        ["ladder", spec, "--lever", rng.choice(("x:offers[9]", "", ":", "x:")), "--time-limit", "nan"],
        ["plan", spec, f"--{rng.choice(('gap', 'seed', 'time-limit'))}={rng.choice(('nan', '-1', 'x', '1e999', ''))}"],
    )  # fmt: skip
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main([text.replace("\0", "") for text in rng.choice(commands)])
        except SystemExit as leaving:  # argparse
            code = leaving.code  # type: ignore[assignment]
    assert code in CODES, f"exit code {code}"
    assert max(map(len, err.getvalue().splitlines()), default=0) <= 3 * MOST_CHARACTERS


def _safe(option: str, text: str) -> str:
    """Write nowhere: an output goes to a folder that does not exist and cannot be made."""
    return f"/dev/null/{text}" if option == "--output" else text


def solve_spec(rng: random.Random) -> None:
    """Solve a small spec, and check what the command says of it; `solve` raises where its plan fails verification.

    Each plan has the shape that `flopwatt schema plan` states.
    """
    base = rng.choice([s for s in specs() if len(json.dumps(s)) < 2500])
    document = read_document(as_json(mutated(rng, base, specs(), 1)))
    check_document(copy.deepcopy(document))
    options = document.get("solver")
    document["solver"] = {**(options if isinstance(options, dict) else {}), "time_limit": "3 s"}
    plan = json.loads(planner.solve(document).to_json())
    assert not [error.json_path for error in _plan_validator().iter_errors(plan)]


@cache
def _plan_validator() -> Draft202012Validator:
    return Draft202012Validator(plan_schema())


@cache
def tampered_plan(name: str) -> Any:
    """Solve a spec of those whose plans are tampered with, once."""
    return json.loads(planner.solve(tampering.SPECS[name]()).to_json())


def check_tampered(rng: random.Random) -> None:
    """Change one value of a plan: `verify` must notice, or list the place as unchecked."""
    name = rng.choice(sorted(tampering.SPECS))
    missed = tampering.unnoticed(tampered_plan(name), 1, rng.randrange(2**32))
    assert not missed, f"{name}: {missed[0]}"


def check_link(rng: random.Random) -> None:
    """Open an address of the dashboard."""
    dashboard.check_link(rng, small_plan())


def check_upload(rng: random.Random) -> None:
    """Take files that were uploaded to the dashboard."""
    dashboard.check_upload(rng, small_plan())


TARGETS: dict[str, Callable[[random.Random], None]] = {
    "specs": check_spec,
    "cases": check_case,
    "overlays": check_overlay,
    "series": check_series,
    "plans": check_plan,
    "options": check_options,
    "solves": solve_spec,
    "tampered": check_tampered,
    "consistency": check_consistency,
    "links": check_link,
    "uploads": check_upload,
}


def errors_of(name: str, seed: int) -> str | None:
    """Run a target on a seed: None where it is answered or refused as the contract says, else what went wrong."""
    try:
        TARGETS[name](random.Random(seed))
    except (SpecError, CatalogError) as error:
        longest = max(map(len, str(error).splitlines()), default=0)
        if isinstance(error, SpecError) and longest > MOST_CHARACTERS:
            return f"a message of {longest} characters"
    except ValueError as error:
        if name != "series" or type(error) is not ValueError:
            return f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
