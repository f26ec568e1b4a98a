"""Break one rule at a time in a copy of the tree, and see whether the tests of the matching folder notice.

Run: `python -m tests.mutations [NUMBER ...] [--jobs 2]`, as `make nightly` does; exit code 1 where a mutation went unnoticed. In parts:
`--resume FILE --minutes 15`, again and again while the exit code is 3.
Each mutation is a file, a piece of its text that stands there once, the text in its place, and what that breaks: a sign, a unit, an
index, or a term of a sum. `FOLDERS` says whose tests must notice; without a mutation they must pass. `tests/house/test_mutations.py` keeps
the pieces up to date.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from threading import Lock

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("planner", "solvers", "models", "catalog", "tests", "examples", "docs", "pyproject.toml")
LONGEST_S = 6000.0  # time for the tests of one folder, beside other work on a busy machine too
PASSED, FAILED = 0, 1  # exit codes of pytest
UNDONE = 3  # exit code where time was up before all mutations were tried
FOLDERS = {
    "planner/formulate/": "tests/planner/formulate",
    "planner/money/": "tests/planner/money",
    "solvers/model/": "tests/solvers/model",
    "planner/evaluate/": "tests/planner/evaluate",
    "planner/interpret/": "tests/planner/interpret",
    "planner/verify/": "tests/planner/verify",
}


@dataclass(frozen=True, slots=True)
class Mutation:
    """A piece of text of a file, and the wrong text in its place."""

    file: str
    right: str
    wrong: str

    @property
    def tests(self) -> str:
        """Return the folder whose tests must notice."""
        return next(tests for folder, tests in FOLDERS.items() if self.file.startswith(folder))

    def applied_to(self, root: Path) -> str:
        """Return the text of the file with the mutation. Raises ValueError unless the piece stands there once."""
        text = (root / self.file).read_text(encoding="utf-8")
        if (count := text.count(self.right)) != 1:
            raise ValueError(f"{self.file}: {count} places with {self.right!r}, expected one")
        return text.replace(self.right, self.wrong)


FORMULATE, MONEY, MODEL, EVALUATE, INTERPRET, VERIFY = (
    "planner/formulate", "planner/money", "solvers/model", "planner/evaluate", "planner/interpret", "planner/verify",
)  # fmt: skip
MUTATIONS = (
    Mutation(f"{FORMULATE}/apis.py", "output_price * asked.lengths.output", "output_price * asked.prompt_tokens"),
    Mutation(f"{FORMULATE}/facility.py", "hall.positions / racks if", "hall.positions * racks if"),
    Mutation(f"{FORMULATE}/limits.py", "supply.phase in (None, term.phase)", "supply.phase == term.phase"),
    Mutation(f"{FORMULATE}/limits.py", "systems / point.capacity)", "systems * point.capacity)"),
    Mutation(f"{FORMULATE}/lines.py", "weight_updates_per_year / YEAR_S", "weight_updates_per_year"),
    Mutation(f"{FORMULATE}/lines.py", 'return side if traffic == "control" else 1 - side', "return side"),
    Mutation(f"{FORMULATE}/residency.py", "/ (1.0 + use.option.headroom)", "* (1.0 + use.option.headroom)"),
    Mutation(f"{FORMULATE}/storage.py", "sum_of(rates(problem, point))", "rates(problem, point)[0]"),
    Mutation(f"{MONEY}/owning.py", "both * bought.upkeep", "bought.price * bought.upkeep"),
    Mutation(f"{MONEY}/terms.py", "self.profile / self.dates.discount * self.dates.inside(p)", "self.profile * self.dates.inside(p)"),
    Mutation(f"{MONEY}/terms.py", "replace(self, worth=self.worth * _even(self.dates, v))", "self"),
    Mutation(f"{MODEL}/routing.py", "np.concatenate([np.ones(len(arc)), -data.point_capacity[point]])", "np.concatenate([np.ones(len(arc)), -0.5 * data.point_capacity[point]])"),
    Mutation(f"{MODEL}/routing.py", "np.concatenate([np.ones(len(arc)), -together[lead, slot]])", "np.concatenate([np.ones(len(arc)), -0.5 * together[lead, slot]])"),
    Mutation(f"{MODEL}/fleet.py", "np.concatenate([systems[use], -np.ones(len(pair))])", "np.concatenate([systems[use], -2.0 * np.ones(len(pair))])"),
    Mutation(f"{MODEL}/fleet.py", "power_w[part], -limit", "0.0 * power_w[part], -limit"),
    Mutation(f"{MODEL}/electricity.py", "-step * eta, step / eta", "-step / eta, step * eta"),
    Mutation(f"{MODEL}/electricity.py", '("discharge", meters.battery_meter, -1.0)', '("discharge", meters.battery_meter, 1.0)'),
    Mutation(f"{MODEL}/facility.py", "data.holding_racks[holding],\n", "np.ceil(data.holding_racks[holding]),\n"),
    Mutation(f"{MODEL}/preemption.py", "np.repeat([1.0, -1.0, 1.0, 1.0], len(row))", "np.repeat([1.0, 1.0, 1.0, 1.0], len(row))"),
    Mutation(f"{MODEL}/schedule.py", "data.slot_hours_s[at] * data.point_capacity[point], -data.job_work", "data.point_capacity[point], -data.job_work"),
    Mutation(f"{MODEL}/residency.py", "np.repeat([1.0, -1.0, -1.0], len(row))", "np.repeat([1.0, 0.0, -1.0], len(row))"),
    Mutation(f"{EVALUATE}/interruptions.py", "loaded / rate * facts.reads_back", "loaded / rate"),
    Mutation(f"{EVALUATE}/interruptions.py", "(spot.interval_s * terms.system_chips)", "spot.interval_s"),
    Mutation(f"{EVALUATE}/interruptions.py", "math.ceil(chips / system.chips)", "math.floor(chips / system.chips)"),
    Mutation(f"{EVALUATE}/controller.py", "each * job.spec.responses / workers", "each * job.spec.responses"),
    Mutation(f"{EVALUATE}/engine_memory.py", "512.0 + 1.5 * tokens + 2.0 * requests", "512.0 + 1.5 * tokens + requests"),
    Mutation(f"{EVALUATE}/residency.py", "float(load_s(size, [1.0 - here, here], rates))", "float(load_s(size, [here, 1.0 - here], rates))"),
    Mutation(f"{EVALUATE}/sessions.py", "calls_per_s * call_s + waiting", "calls_per_s * call_s"),
    Mutation(f"{EVALUATE}/sessions.py", "calls_per_s / block.calls", "calls_per_s"),
    Mutation(f"{INTERPRET}/storage.py", "point_storage[p] * decided.active[p]", "point_storage[p] * (decided.active[p] > 0)"),
    Mutation(f"{INTERPRET}/facility.py", "hall.racks_per_system(rack) * int(counts.max())", "int(counts.max())"),
    Mutation(f"{INTERPRET}/owned.py", "left = count - kept - sum_of(moved.values())", "left = count - kept"),
    Mutation(f"{INTERPRET}/quality.py", "float(flow[a] @ problem.calendar.seconds)", "float(flow[a].sum())"),
    Mutation(f"{INTERPRET}/electricity.py", "*= outward / inward", "*= inward / outward"),
    Mutation(f"{INTERPRET}/preemption.py", "data.slot_hours_s / data.order.step_s", "data.slot_hours_s"),
    Mutation(f"{INTERPRET}/lines.py", "self.load[line, 1 - side] += prompt", "self.load[line, side] += prompt"),
    Mutation(f"{VERIFY}/sums.py", "joules * float(option.site.carbon_kg_per_j[hour])", "watts * float(option.site.carbon_kg_per_j[hour])"),
    Mutation(f"{VERIFY}/fleet/economics.py", "sold - bought) * (1 + money.discount_rate) ** -sold", "sold - bought) * (1 + money.discount_rate) ** -bought"),
    Mutation(f"{VERIFY}/electricity.py", "efficiency * row[\"charge_w\"]", "row[\"charge_w\"]"),
    Mutation(f"{VERIFY}/schedule.py", "busy[key] += replicas[t] * systems", "busy[key] += replicas[t]"),
)  # fmt: skip


def copy_of_tree(target: Path) -> Path:
    """Copy what the tests of the packages need."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
        else:
            shutil.copy(source, target / name)
    return target


def first_failure(tests: str, root: Path, first: str = "") -> str:
    """Run the tests of a folder, those of a file `first` before the others; return the first test that fails, or "".

    Raises RuntimeError where the tests cannot run at all.
    """
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *([first] if first else []), tests],
        cwd=root, env={**os.environ, "PYTHONPATH": str(root), "HYPOTHESIS_PROFILE": "ci"},
        capture_output=True, text=True, timeout=LONGEST_S,
    )  # fmt: skip
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if done.returncode not in (PASSED, FAILED) or (done.returncode == FAILED) != (failed is not None):
        raise RuntimeError(f"{tests}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return failed.group(1) if failed else ""


def noticed_by(mutation: Mutation, root: Path) -> str:
    """Return a test of the matching folder that fails with the mutation, or ""; the tree is as before afterwards.

    The test file of the same name as the mutated file runs first, where there is one.
    """
    file, before = root / mutation.file, (root / mutation.file).read_text(encoding="utf-8")
    likely = f"{mutation.tests}/test_{file.name}"
    file.write_text(mutation.applied_to(root), encoding="utf-8")
    try:
        return first_failure(mutation.tests, root, likely if (root / likely).exists() else "")
    finally:
        file.write_text(before, encoding="utf-8")


def digest_of_tree(root: Path) -> str:
    """Return the digest of all files of a copied tree."""
    found = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        found.update(f"{path.relative_to(root)}\n{path.stat().st_size}\n".encode() + path.read_bytes())
    return found.hexdigest()


class Record:
    """What was tried on one tree: the test that noticed each mutation, "" where none did; kept in a file where one is named."""

    def __init__(self, path: Path | None, digest: str):
        self.path, self.digest = path, digest
        known = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else {}
        self.tried: dict[str, str] = known["tried"] if known.get("digest") == digest else {}
        self.lock = Lock()

    def keep(self, what: str, test: str) -> None:
        """Add an outcome, and write the file anew."""
        with self.lock:
            self.tried[what] = test
            if self.path is not None:
                text = json.dumps({"digest": self.digest, "tried": self.tried}, indent=1)
                self.path.write_text(text + "\n", encoding="utf-8")


def try_all(numbers: Sequence[int], record: Record, folder: Path, whole: Path, jobs: int, until: float) -> None:
    """Try the mutations that the record lacks, as long as there is time; first the tests of their folders without any.

    Raises SystemExit where a test fails without a mutation.
    """
    left = [number for number in numbers if str(number) not in record.tried]
    for tests in sorted({MUTATIONS[number - 1].tests for number in left} - record.tried.keys()):
        if time.monotonic() > until:
            return
        if failed := first_failure(tests, whole):
            raise SystemExit(f"without a mutation {failed} fails")
        record.keep(tests, "")
    trees: Queue[Path] = Queue()
    for job in range(jobs if left else 0):
        trees.put(copy_of_tree(folder / str(job)))

    def try_one(number: int) -> None:
        if time.monotonic() > until:
            return
        mutation, tree = MUTATIONS[number - 1], trees.get()
        try:
            test = noticed_by(mutation, tree)
        finally:
            trees.put(tree)
        record.keep(str(number), test)
        word = f"noticed by {test}" if test else "UNNOTICED"
        print(f"{number:3d} {mutation.file}: {mutation.right.strip()}: {word}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(try_one, left))


def main() -> int:
    """Apply the mutations, print one line for each, and count those that were noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, help="mutations to apply, counted from 1 (default: all)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="keep outcomes there, and skip those that it holds of this tree"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no further mutation after so long")
    arguments = parser.parse_args()
    numbers = arguments.numbers or range(1, len(MUTATIONS) + 1)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        whole = copy_of_tree(Path(folder) / "whole")
        record = Record(arguments.resume, digest_of_tree(whole))
        try_all(numbers, record, Path(folder), whole, arguments.jobs, began + 60.0 * arguments.minutes)
    found = [record.tried[str(number)] for number in numbers if str(number) in record.tried]
    left, spent = len(numbers) - len(found), time.monotonic() - began
    print(
        f"{sum(map(bool, found))} of {len(found)} mutations are noticed by the tests of their folder; {left} left; {spent:.0f} s"
    )
    return UNDONE if left and all(found) else 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
