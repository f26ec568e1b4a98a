"""Plan random questions of three sizes through the ordinary pipeline; report times, and the gap proven for the whole problem.

    python benchmarks/scale.py small|medium|large [--seed N] [--phases P] [--no-plain] [--gap G] [--time-limit S] [--stages] [--threads N]
    python benchmarks/scale.py growth                  time against hours, sites and systems around the medium size
    python benchmarks/scale.py report [--write]        all sizes and seeds and the growth, as benchmarks/scale.md, in about two hours;
                                                       [--lines FILE] keeps what was measured and is not measured again

The last line of a size is one JSON object. "build_s" ends where the solver begins, "solve_s" is the solver's time, "total_s" goes from
the spec to the plan; "rows" and "columns" are those of the whole program, even where only a part of it was held in memory, "gap" refers
to the whole problem, and "peak_mb" adds the process in which small programs are solved. "plain" is the whole program in one piece, given
to HiGHS for 150 s in a process of its own and in no other figure; its gap is null where HiGHS found no solution or ran out of memory.
The questions are in benchmarks/scale_spec.py.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from benchmarks.scale_spec import SIZES, Size, question
from planner.tables import as_markdown

ASKED = {
    "small": (0.001, 60.0),
    "medium": (0.003, 200.0),
    "large": (0.01, 865.0),
    "features": (0.01, 180.0),
    "features-lines": (0.01, 180.0),
    "features-large": (0.02, 480.0),
    "year": (0.007, 240.0),
}  # gap, time limit [s]
SEEDS = (3, 4, 5)  # 0 to 2 were looked at while the questions were made
PLAIN_LIMIT_S, PLAIN_MEMORY = 150.0, 14 << 30
STAGES = {
    "names and figures": ("planner.resolve.resolver", "resolve_document"),
    "operating points": ("planner.candidates.search", "find_candidates"),
    "arrays": ("planner.formulate.formulation", "formulate"),
    "solver": ("solvers.search.joint", "solve"),
    "marginal values": ("planner.solving.marginal_values", "compute_marginal_values"),
    "plan document": ("planner.interpret.document", "interpret"),
}
WITHIN = {  # parts of the solver, where it decomposes the program by slots
    "root LP relaxation": ("solvers.decomposition.search", "solve_root"),
    "first-stage search": ("solvers.decomposition.search", "find_binaries"),
    "unit counts": ("solvers.decomposition.search", "_refine_to_all_slots"),
    "final repair": ("solvers.decomposition.search", "_recover_plan"),
    "node relaxations": ("solvers.decomposition.node_relaxation", "solve_interior_point"),
    "Benders master": ("solvers.decomposition.benders_master", "solve_mip"),
}
BUILD = ("names and figures", "operating points", "arrays")


@dataclass(frozen=True, slots=True)
class Run:
    """One question answered: the times of the stages [s], the plan, and input and output of the solver."""

    stages: dict[str, float]
    total_s: float
    plan: dict[str, Any]
    data: Any
    solution: Any
    peak_mb: float

    @property
    def build_s(self) -> float:
        return sum(self.stages[name] for name in BUILD)


@contextmanager
def timed(stages: dict[str, float], kept: dict[str, tuple[Any, Any]]) -> Iterator[None]:
    """Time the calls of the stages while the context lasts, and keep their first argument and their result."""
    before = {}
    for stage, (module, name) in (STAGES | WITHIN).items():
        home = importlib.import_module(module)
        before[stage] = home, name, getattr(home, name)
        stages[stage] = 0.0

        def call(*args: Any, stage: str = stage, inner: Any = before[stage][2], **named: Any) -> Any:
            begin = time.perf_counter()
            found = inner(*args, **named)
            stages[stage] += time.perf_counter() - begin
            kept[stage] = args[0], found
            return found

        setattr(home, name, call)
    try:
        yield
    finally:
        for home, name, inner in before.values():
            setattr(home, name, inner)


def run(size: Size, seed: int, gap: float, time_limit_s: float, threads: int, phases: int = 1) -> Run:
    from planner.pipeline import solve
    from solvers.backends import subprocess_mip

    stages: dict[str, float] = {}
    kept: dict[str, tuple[Any, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        document = question(size, seed, Path(folder), gap, time_limit_s, phases)
        with timed(stages, kept):
            begin = time.perf_counter()
            plan = solve(
                document,
                hourly=[Path(folder)],
                progress=lambda line: print(line, file=sys.stderr, flush=True),
                threads=threads,
            )
            total = time.perf_counter() - begin
    subprocess_mip.stop_processes()  # what a process took is known when it has ended
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return Run(stages, total, plan.document, *kept["solver"], peak / 1e3)


def figures(name: str, found: Run) -> dict[str, Any]:
    """Build the line of a size, without "plain"."""
    return {
        "size": name, "rows": found.solution.rows, "columns": found.solution.columns, "build_s": round(found.build_s, 2),
        "solve_s": round(found.stages["solver"], 2), "total_s": round(found.total_s, 2), "gap": found.solution.gap,
        "bound_of": found.plan["bound_of"], "peak_mb": round(found.peak_mb),
    }  # fmt: skip


def binding(found: Run) -> dict[str, float | None]:
    """Compute the shares of sites whose power, of used sites whose power, and of systems whose supply leaves no room for one more
    system; None without a plan.
    """
    rows = found.plan["limits"] if found.solution.values else []
    power, supply = ([row for row in rows if row["path"].endswith(end)] for end in (".power", ".supply"))
    least = float(found.data.holding_power_w[found.data.holding_power_w > 0].min())  # an idle system, at the meter
    share = lambda some, room: float(np.mean([row["slack"] < room for row in some])) if some else None
    return {
        "power": share(power, least),
        "power of used sites": share([row for row in power if row["value"] > 0], least),
        "supply": share(supply, 1),
    }


# -- the program in one piece ------------------------------------------------------------------------------------------


def plain(data: Any, gap: float, threads: int) -> dict[str, Any]:
    """Measure seconds and gap of HiGHS on the whole program, in a process of its own."""
    from dataclasses import fields

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.pickle"
        path.write_bytes(pickle.dumps({field.name: getattr(data, field.name) for field in fields(data)}))
        begin = time.perf_counter()
        ended = subprocess.run(
            [sys.executable, __file__, "plain", "--data", path, "--gap", str(gap), "--threads", str(threads)],
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - begin
    said = ended.stdout.strip().splitlines()
    told = json.loads(said[-1]) if ended.returncode == 0 and said else {"gap": None, "status": "out of memory"}
    print(f"plain: {told['status']}", file=sys.stderr)
    return {"plain_s": round(seconds, 2), "plain_gap": told["gap"]}


def solve_plain(path: Path, gap: float, threads: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (PLAIN_MEMORY, PLAIN_MEMORY))
    from solvers import mip
    from solvers.interface import Options
    from solvers.model.build import build, objective_vector
    from solvers.model.data import PlanData

    data = PlanData(**pickle.loads(path.read_bytes()))
    program = build(data)
    options = Options(gap=gap, time_limit_s=PLAIN_LIMIT_S, threads=threads, method="direct")
    found = mip.solve(program, objective_vector(program, data), "min", options, polished=False)
    print(json.dumps({"gap": found.gap, "status": found.status}))


# -- report ------------------------------------------------------------------------------------------------------------


def measured(command: list[str]) -> dict[str, Any]:
    """Run in a process of its own, so that its memory is its own: the figures and, under "stages", where the time went."""
    print(*command, file=sys.stderr, flush=True)
    ended = subprocess.run(
        [sys.executable, __file__, *command, "--stages"], stdout=subprocess.PIPE, text=True, check=True
    )
    stages, line = ended.stdout.strip().splitlines()[-2:]
    return json.loads(line) | {"stages": json.loads(stages)}


def remembered(command: list[str], lines: Path | None) -> dict[str, Any]:
    """Return what a run measured, from the file if it is there."""
    known = (
        []
        if lines is None or not lines.exists()
        else [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    )
    for line in known:
        if line["command"] == command:
            return line
    found = {"command": command} | measured(command)
    if lines is not None:
        with lines.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
    return found


AXES = {"hours": (96, 168, 336), "sites": (8, 15, 30), "systems": (10, 20, 40)}  # around the medium size


def growth(threads: int, lines: Path | None) -> list[dict[str, Any]]:
    """Time questions around the medium size along one axis at a time; fit the exponent of each in logarithms."""
    table = []
    for axis, values in AXES.items():
        at = [[] if value == getattr(SIZES["medium"], axis) else [f"--{axis}", str(value)] for value in values]
        rows = [remembered(["medium", *given, "--no-plain", "--threads", str(threads)], lines) for given in at]
        row: dict[str, Any] = {"axis": axis, "at": ", ".join(str(value) for value in values)}
        for part in ("build", "solve", "total"):
            seconds = [found[f"{part}_s"] for found in rows]
            row[f"{part}_s"] = ", ".join(f"{s:.1f}" for s in seconds)
            row[f"{part} exponent"] = round(float(np.polyfit(np.log(values), np.log(seconds), 1)[0]), 2)
        row["peak MB"], row["gaps"] = (
            ", ".join(str(found["peak_mb"]) for found in rows),
            ", ".join(_percent(found["gap"]) for found in rows),
        )
        table.append(row)
    return table


PHASED = ["medium", "--seed", "3", "--phases", "3", "--gap", "0.01", "--time-limit", "172", "--no-plain"]


def report(write: bool, threads: int, sizes: list[str], lines: Path | None) -> None:
    rows = [
        remembered([name, "--seed", str(seed), "--threads", str(threads)], lines) | {"seed": seed}
        for name in sizes
        for seed in SEEDS
    ]
    table = [
        {
            "size": row["size"], "seed": row["seed"], "rows": f"{row['rows']:,}", "columns": f"{row['columns']:,}", "build s": row["build_s"],
            "solve s": row["solve_s"], "total s": row["total_s"], "gap": _percent(row["gap"]), "of": row["bound_of"], "peak MB": row["peak_mb"],
            "plain s": row["plain_s"], "plain gap": _percent(row["plain_gap"]), "power binds": _percent(row["stages"]["power"]),
            "of used sites": _percent(row["stages"]["power of used sites"]), "supply binds": _percent(row["stages"]["supply"]),
        }
        for row in rows
    ]  # fmt: skip
    worst, parts = ([told([row for row in rows if row["size"] == name]) for name in sizes] for told in (_worst, _parts))
    text = "# Size\n\n`python benchmarks/scale.py report --write`\n\n" + __doc__.split("\n\n", 2)[2].strip() + "\n\n"
    text += (HERE / "scale_spec.py").read_text(encoding="utf-8").split('"""')[1].strip() + "\n"
    text += "\n## Three seeds\n\n" + as_markdown(table) + "\n## The worst of three seeds\n\n" + as_markdown(worst)
    text += (
        "\n## Where the time goes\n\nShares of the whole, mean of the seeds; after the colon parts of the solver's.\n\n"
        + as_markdown(parts)
    )
    phased = remembered([*PHASED, "--threads", str(threads)], lines)
    text += f"\n## Three phases\n\n`python benchmarks/scale.py {' '.join(PHASED)}`\n\n"
    text += as_markdown(
        [
            {
                name: _percent(phased[name]) if name == "gap" else phased[name]
                for name in ("rows", "columns", "build_s", "solve_s", "total_s", "gap", "peak_mb")
            }
        ]
    )
    text += "\n## Growth\n\nAround the medium size, along one axis at a time; exponents fitted in logarithms. Seconds end at the time limit.\n\n"
    text += as_markdown(growth(threads, lines))
    print(text)
    if write:
        (HERE / "scale.md").write_text(text, encoding="utf-8")


def _percent(gap: float | None) -> str:
    return "none" if gap is None else f"{gap:.2%}"


def _worst(rows: list[dict[str, Any]]) -> dict[str, Any]:
    gap, plain_gap = ([row[name] for row in rows] for name in ("gap", "plain_gap"))
    return {
        "size": rows[0]["size"], "gap": _percent(None if None in gap else max(gap)), **{name: max(row[name] for row in rows) for name in ("total_s", "peak_mb")},
        "plain gap": _percent(None if None in plain_gap else max(plain_gap)),
    }  # fmt: skip


def _parts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    known = [row["stages"] for row in rows]
    shares = {stage: float(np.mean([row[stage] / row["total"] for row in known])) for stage in STAGES}
    within = {f"solver: {part}": f"{np.mean([row[part] / row['total'] for row in known]):.0%}" for part in WITHIN}
    return {
        "size": rows[0]["size"],
        **{stage: f"{share:.0%}" for stage, share in shares.items()},
        "other": f"{1 - sum(shares.values()):.0%}",
        **within,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=(*SIZES, "growth", "report", "plain"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--phases",
        type=int,
        choices=range(1, 13),
        default=1,
        metavar="P",
        help="cut the year into so many phases of the build-out",
    )
    parser.add_argument("--gap", type=float)
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-plain", action="store_true", help="leave out the program in one piece")
    parser.add_argument(
        "--stages", action="store_true", help="print where the time went, and what binds, one line before the last"
    )
    parser.add_argument("--write", action="store_true", help="write the report into benchmarks/scale.md")
    parser.add_argument("--sizes", default="small,medium,large", help="of the report")
    parser.add_argument(
        "--lines", type=Path, metavar="FILE", help="one JSON object per run of the report, read and added to"
    )
    for axis in AXES:
        parser.add_argument(f"--{axis}", type=int, metavar="N", help="other than of this size")
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.what == "plain":
        return solve_plain(asked.data, asked.gap, asked.threads)
    if asked.what == "report":
        return report(asked.write, asked.threads, asked.sizes.split(","), asked.lines)
    if asked.what == "growth":
        return print(as_markdown(growth(asked.threads, asked.lines)))
    gap, limit = (
        own if given is None else given for given, own in zip((asked.gap, asked.time_limit), ASKED[asked.what])
    )
    size = replace(
        SIZES[asked.what], **{axis: getattr(asked, axis) for axis in AXES if getattr(asked, axis) is not None}
    )
    found = run(size, asked.seed, gap, limit, asked.threads, asked.phases)
    line = figures(asked.what, found)
    alone = {"plain_s": None, "plain_gap": None} if asked.no_plain else plain(found.data, gap, asked.threads)
    if asked.stages:
        print(
            json.dumps(
                {stage: round(seconds, 3) for stage, seconds in found.stages.items()}
                | {"total": round(found.total_s, 3)}
                | binding(found)
            )
        )
    print(json.dumps(line | alone))


if __name__ == "__main__":
    main()
