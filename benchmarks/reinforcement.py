"""Measure how far reinforcement learning is from published iterations, groups left out; fit its constants.

    python benchmarks/reinforcement.py --measurements DIR [--fit]

DIR holds other/rl_steps.csv and other/rl_breakdown.csv. A row is predicted by constants fitted without its group (source, architecture,
chip) in five folds. With --fit the constants fitted to all rows are printed; the catalog does not change.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import numpy as np
from scipy.optimize import least_squares

from catalog.errors import CatalogError
from catalog.lookup import Catalog
from models.arrays import Floats
from models.reinforcement.constants import ReinforcementConstants
from models.serving.decode import ServingLayouts
from models.training.constants import Recipe
from models.training.layouts import LayoutSpace, with_levels
from planner.candidates.layouts import legal_sizes, search_layouts
from planner.candidates.splits import Split, SplitSearch, colocated, separate
from planner.evaluate.layouts import TrainingSetup, recipe_of
from planner.evaluate.reinforcement import UpdatePool, iteration_of, updates_of
from planner.problem.constants import ModelConstants
from planner.problem.facts import ScaleOut, SystemFacts
from planner.problem.reinforcement import ReinforcementFacts
from planner.resolve.architectures import shape_of
from planner.resolve.constants import model_constants
from planner.resolve.ledger import Ledger
from planner.resolve.reinforcement import reinforcement_facts
from planner.resolve.systems import system_facts
from planner.spec.stack.case import CaseReinforcement

SYSTEMS = {"H100": "DGX H100", "GB200": "GB200 NVL72", "H20": "HGX H20 8-GPU server", "H200": "DGX H200"}
UNSTATED_CHIP = "H100"  # chip of the rows of a source that says "8 GPUs per node; H100 likely"
NAMES = {
    "DeepSeek V3": "DeepSeek-V3",
    "Qwen3-235B": "Qwen3-235B-A22B",
    "Qwen3-30B3A": "Qwen3-30B-A3B",
    "Qwen3 30B-A3B": "Qwen3-30B-A3B",
    "Qwen3 32B": "Qwen3-32B",
}
PROMPT_TOKENS, SAMPLES = 128, 16  # where a row states neither
FITTED_GRADES = ("A", "B")
FOLDS = 5
# Standard deviations of the logarithms of the constants about a start that says: as serving and training by themselves.
PRIOR = {
    "rollout_factor": (1.0, 0.5), "update_factor": (1.0, 0.5), "scoring_factor": (1.0, 0.5), "sync_bytes_per_s": (15e9, 1.0),
    "sync_start_s": (2.0, 1.0), "sync_tensor_s": (2e-4, 1.0), "worker_response_s": (0.016, 1.5),
}  # fmt: skip
ENDLESS_SHARE = 0.01  # held, not fitted: published rows state no share of responses that reach the limit
LOSS_SCALE = 0.15  # logarithm of a ratio from which on the loss is linear
METRICS = {
    "step": "step_s",
    "generation": "gen_s",
    "scoring": "old_log_prob_s",
    "update": "update_s",
    "synchronisation": "weight_sync_s",
}


class Unpredictable(Exception):
    """A row that the models cannot be asked about, with the reason."""


@dataclass(frozen=True)
class Case:
    """A row as a split in the printed layout, evaluated with the constants at 1."""

    id: str
    group: tuple[str, str, str]
    grade: str
    job: ReinforcementFacts
    split: Split
    chips: int
    release: str
    measured: Mapping[str, float]  # by metric [s]

    @property
    def fold(self) -> int:
        """Return the fold in which the group is left out."""
        return int(hashlib.sha256("|".join(("fold", *self.group)).encode()).hexdigest(), 16) % FOLDS

    def predicted(self, constants: ModelConstants) -> dict[str, float]:
        """Predict the times of the row [s]."""
        known, split = constants.reinforcement, self.split
        engines, updates = split.engines, split.update.updates
        rollout = engines.rollout
        times = {
            name: getattr(rollout, name) * known.rollout_factor
            for name in ("completion_s", "busy_s", "flow_s", "done_s")
        }
        update = replace(
            split.update,
            updates=replace(
                updates,
                scoring_s=updates.scoring_s * known.scoring_factor,
                update_s=updates.update_s * known.update_factor,
            ),
        )
        again = iteration_of(
            self.job, split.way, update, replace(engines, rollout=replace(rollout, **times)), split.pool, constants
        )
        parts = {name: float(part[split.engine]) for name, part in again.parts.items()}
        return {
            "step": float(again.iteration_s[split.engine]),
            "generation": parts["generation"] + parts["tail"],
            "scoring": parts["scoring"],
            "update": parts["update"],
            "synchronisation": parts["synchronisation"] + parts["resharding"],
            **{
                f"{side} pool": float(getattr(again, f"{side}_chain_s")[split.engine]) for side in ("rollout", "update")
            },
        }


@dataclass(frozen=True, slots=True)
class MeasuredSetup(TrainingSetup):
    """The update of a row, in the software that it names."""

    software: str = "other"
    year: float = 2026.0

    @property
    def recipe(self) -> Recipe:
        """Return what the software of the row does."""
        return replace(recipe_of(self.job, self.precision), framework=self.software, release_year=self.year)


class Reader:
    """Turns rows into cases."""

    def __init__(self) -> None:
        self.ledger = Ledger(Catalog.load())
        plain = model_constants(self.ledger, serves=False)
        self.constants = replace(
            plain, reinforcement=ReinforcementConstants(1.0, 1.0, 1.0, 1e18, 1e-9, 1e-9, 1e-9, ENDLESS_SHARE, 1.0, 1.0)
        )

    def system(self, chip: str) -> SystemFacts:
        """Look up the usual system of a chip."""
        if chip not in SYSTEMS:
            raise Unpredictable(f"no system of {chip or 'an unstated chip'} in the table of this benchmark")
        return system_facts(self.ledger.catalog.get("systems", SYSTEMS[chip]), self.ledger)

    def job(self, name: str, **stated: object) -> ReinforcementFacts:
        """Build the job of a row."""
        found = (
            re.sub(r" \(.*\)", "", name)
            .replace("LLAMA3.1_8B", "Llama-3.1-8B")
            .replace("LLAMA3.1_70B_instruct", "Llama-3.1-70B")
        )
        found = re.sub(r"Llama (3\.[13])-(\d+B).*", r"Llama-3.1-\2", found)
        try:
            shape = shape_of(self.ledger.catalog.get("architectures", NAMES.get(found, found)), self.ledger)
        except CatalogError as error:
            raise Unpredictable(str(error)) from None
        workload = CaseReinforcement.model_validate({"kind": "reinforcement", "architecture": name, **stated})
        return reinforcement_facts(self.ledger, "workload", workload, shape, None, None)

    def split(
        self,
        job: ReinforcementFacts,
        row: Mapping[str, str],
        chip: str,
        pools: tuple[int, int] | int,
        sizes: Mapping[str, int],
        engine: Sequence[int],
    ) -> Split:
        """Evaluate a row in the layouts that it prints; where a printed layout cannot be, in the best."""
        search, constants, system = SplitSearch(job, self.constants), self.constants, self.system(chip)
        chips = pools if isinstance(pools, int) else pools[0]
        scaleout = ScaleOut(system.nic_bytes_per_s)
        plain = "DTensor" in row["model"] + row.get("train_backend", "")
        year, month = map(float, row["release"].split("-"))
        software = "fsdp" if plain else "megatron"
        setup = MeasuredSetup(
            job, system, job.spec.precision[0], constants, scaleout, None, software, year + (month - 0.5) / 12.0
        )
        update = printed_update(setup, chips, sizes, plain)
        if update is None:
            raise Unpredictable("no update layout fits")
        search.known(setup, chips, update)
        where = (
            colocated(search, [setup], chips)
            if isinstance(pools, int)
            else separate(search, [setup], chips, (system, scaleout, pools[1]))
        )
        every = list(where)
        if not every:
            raise Unpredictable("no rollout layout fits")
        best = min(every, key=lambda split: split.iteration_s)
        if engine and engine[0]:
            layouts = ServingLayouts(*(np.array([n]) for n in (engine[0], engine[1], 1, 1)))
            again = search.split(best.way, best.update, best.pool, layouts)
            best = best if again is None else again
        return best

    def step_row(self, row: Mapping[str, str]) -> Case:
        """Read a row of rl_steps.csv."""
        if row["algorithm"] != "GRPO":
            raise Unpredictable(f"{row['algorithm']}: waits of its tools are not stated")
        rollouts = int(row["rollouts_per_step"])
        ahead = row["policy_staleness"] != "On policy"
        low = "FP8" in row["precision"]
        mean, limit = float(row["avg_generated_seq_len"]), int(row["max_seq_len"])
        job = self.job(
            row["model"], prompts=rollouts // SAMPLES, samples=SAMPLES, mini_batches=rollouts // int(row["train_global_batch"]),
            lengths={"prompt": PROMPT_TOKENS, "response": round(mean), "limit": limit - PROMPT_TOKENS}, engine="vllm",
            ways=["asynchronous"] if ahead else ["colocated"], precision=["fp8" if low else "bf16"], rollout_precision=["fp8" if low else "bf16"],
        )  # fmt: skip
        chips = int(row["n_chips"])
        numbers = [int(n) for n in re.findall(r"\d+", row["train_layout_as_printed"])]
        # tp, cp, ep, pp; where more are printed the meaning of the others is not stated
        sizes = dict(zip(("tp", "cp", "ep", "pp"), numbers)) if "n/a" in row["train_layout_as_printed"] else {}
        if len(numbers) >= 6:
            sizes = {"tp": numbers[0], "cp": numbers[1]}
        engine = [int(n) for n in re.findall(r"\d+", row["gen_layout_TP_PP"])][:2]
        split = self.split(job, row, row["chip"], (chips // 2, chips - chips // 2) if ahead else chips, sizes, engine)
        group = (row["source"][:40], row["model"], row["chip"])
        return Case(
            row["id"], group, row["grade"], job, split, chips, row["framework"], {"step": float(row["step_time_s"])}
        )

    def parts_row(self, row: Mapping[str, str]) -> Case:
        """Read a row of rl_breakdown.csv."""
        if not row["avg_response_len"]:
            raise Unpredictable("mean response length not stated")
        batch = re.search(r"rollout batch (\d+)", row["other_as_printed"])
        limit = re.search(r"max sequence length (\d+)", row["other_as_printed"])
        if not batch or not limit or "colocated" not in row["mode"]:
            raise Unpredictable("responses per step or limit not stated")
        chip, chips = row["chip"] or UNSTATED_CHIP, int(float(row["n_chips"]))
        job = self.job(
            row["model"], prompts=int(batch[1]) // SAMPLES, samples=SAMPLES, mini_batches=int(batch[1]) // int(float(row["mini_batch"])),
            lengths={"prompt": PROMPT_TOKENS, "response": round(float(row["avg_response_len"])), "limit": int(limit[1]) - PROMPT_TOKENS},
            engine="vllm", ways=["colocated"],
        )  # fmt: skip
        printed = {
            name.lower(): int(size) for name, size in re.findall(r"(TP|PP|EP|CP)(\d+)", row["layout_as_printed"])
        }
        split = self.split(job, row, chip, chips, printed, [])
        measured = {metric: float(row[column]) for metric, column in METRICS.items() if row[column]}
        group = (row["source"][:40], row["model"], chip)
        return Case(row["id"], group, row["grade"], job, split, chips, row["framework"], measured)


def printed_update(setup: MeasuredSetup, chips: int, sizes: Mapping[str, int], sharded: bool) -> UpdatePool | None:
    """Evaluate the printed update layout: plain 1F1B, micro-batches as long as the longest sample, the least recompute that fits.

    What is not printed is free. `sharded`: ZeRO-3 without pipeline, as of FSDP. Where no printed layout fits, any may be.
    """
    job = setup.job
    assert isinstance(job, ReinforcementFacts)
    legal = legal_sizes(job, chips, setup.system)
    packed = max(job.spec.longest_tokens // job.spec.sequence_tokens, 1)
    plain = (legal.schedule == 0) & (legal.vpp == 1) & (legal.micro_batch <= packed)
    kept = plain.copy()
    for name, size in sizes.items():
        kept &= getattr(legal, name) == size
    for some in (kept, plain):
        for offloads in ((0,), (0, 1, 2, 3)):
            space = LayoutSpace(zeros=(3,) if sharded else (1,), recomputes=(0, 1, 2), offloads=offloads)
            found = search_layouts(setup, with_levels(legal.take(some), space))
            if len(found):
                return UpdatePool(setup, updates_of(setup, found.layouts.take(np.array([0])), job))
    return None


def read(folder: Path) -> tuple[list[Case], Counter[str]]:
    """Read all rows; those that cannot be predicted are counted by reason."""
    reader, cases, refused = Reader(), [], Counter()
    for name, turn in (("rl_steps", reader.step_row), ("rl_breakdown", reader.parts_row)):
        with (folder / "other" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                try:
                    cases.append(turn(row))
                except Unpredictable as reason:
                    refused[f"{name}: {reason}"] += 1
    return cases, refused


def fit(cases: Sequence[Case], plain: ModelConstants) -> ModelConstants:
    """Fit the constants to the logarithms of measured over predicted times."""
    names = list(PRIOR)
    start = np.log([PRIOR[name][0] for name in names])
    spread = np.array([PRIOR[name][1] for name in names])
    used = [case for case in cases if case.grade in FITTED_GRADES]

    def constants(x: Floats) -> ModelConstants:
        return replace(
            plain,
            reinforcement=ReinforcementConstants(
                *map(float, np.exp(start + spread * x)),
                endless_share=ENDLESS_SHARE,
                interval_low=1.0,
                interval_high=1.0,
            ),
        )

    def residuals(x: Floats) -> Floats:
        at, found = constants(x), []
        for case in used:
            predicted = case.predicted(at)
            weight = len(case.measured) ** -0.5
            found += [weight * np.log(predicted[m] / value) for m, value in case.measured.items()]
        ratios = np.array(found) / LOSS_SCALE
        return np.concatenate([np.sign(ratios) * np.sqrt(2 * (np.sqrt(1 + ratios**2) - 1)), x])

    return constants(least_squares(residuals, np.zeros(len(names)), diff_step=1e-3).x)


def order_pairs(cases: Sequence[Case], predicted: Mapping[str, Mapping[str, float]]) -> tuple[int, int]:
    """Count (pairs in the right order, pairs): an asynchronous and a synchronous row of one release, architecture and chip, by chip time."""
    right = total = 0
    for one in cases:
        for other in cases:
            same = (one.release, one.group[1:], one.job.spec.precision) == (
                other.release,
                other.group[1:],
                other.job.spec.precision,
            )
            if (
                same
                and one.split.way == "asynchronous"
                and other.split.way == "colocated"
                and set(one.measured) == set(other.measured)
            ):
                measured = one.measured["step"] * one.chips - other.measured["step"] * other.chips
                found = predicted[one.id]["step"] * one.chips - predicted[other.id]["step"] * other.chips
                right, total = right + (measured * found > 0), total + 1
    return right, total


def main(argv: Sequence[str] | None = None) -> None:
    """Print errors, order of pairs, and the fitted constants."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--measurements", metavar="DIR", required=True, type=Path)
    parser.add_argument("--fit", action="store_true", help="print the constants fitted to all rows")
    parser.add_argument("--rows", action="store_true", help="print every row")
    arguments = parser.parse_args(argv)
    cases, refused = read(arguments.measurements)
    plain = Reader().constants
    held_out: dict[str, Mapping[str, float]] = {}
    for fold in range(FOLDS):
        out = [case for case in cases if case.fold == fold]
        if out:
            constants = fit([case for case in cases if case.fold != fold], plain)
            held_out |= {case.id: case.predicted(constants) for case in out}
    for metric in METRICS:
        errors = np.array([held_out[c.id][metric] / c.measured[metric] - 1 for c in cases if metric in c.measured])
        print(
            f"{metric}: {len(errors)} rows, median |error| {np.median(np.abs(errors)):.1%}, bias {np.median(errors):+.1%}, within 20 % {np.mean(np.abs(errors) <= 0.2):.0%}, 80 % within {np.quantile(np.abs(errors), 0.8):.1%}"
        )
    ratios = [case.measured["step"] / held_out[case.id]["step"] for case in cases if "step" in case.measured]
    print("80 % of steps: measured / predicted from {:.2f} to {:.2f}".format(*np.quantile(ratios, [0.1, 0.9])))
    print("asynchronous against synchronous: {} of {} pairs in the right order".format(*order_pairs(cases, held_out)))
    for reason, count in sorted(refused.items()):
        print(f"not predictable: {count} x {reason}")
    if arguments.rows:
        for case in cases:
            words = " ".join(f"{m} {held_out[case.id][m]:.1f}/{value:.1f}" for m, value in case.measured.items())
            pools = " ".join(f"{side} {held_out[case.id][side]:.1f}" for side in ("rollout pool", "update pool"))
            tp = case.split.update.updates.layouts.row(0)
            print(
                case.id,
                case.group[1:],
                case.split.way,
                case.chips,
                {k: v for k, v in tp.items() if v > 1},
                [
                    int(x[case.split.engine])
                    for x in (case.split.engines.layouts.tp, case.split.engines.layouts.dp, case.split.engines.slots)
                ],
                words,
                "|",
                pools,
            )
    if arguments.fit:
        print(fit(cases, plain).reinforcement)


if __name__ == "__main__":
    main()
