"""Measure what a promise costs and whether it is kept: robust plans and the ordinary plan of an example, in sampled scenarios.

    python benchmarks/robust.py examples/mixed_fleet.json [--confidence 0.8 0.9] [--scenarios 1000] [--seed 7] [--set PATH=VALUE] [--write]

Scenarios are those of `planner.problem.scenarios`: demand, prices, and errors as on measurements that the models were not fitted to. The
scenarios of the table are drawn with a seed that no plan was made with. With --write the table goes to benchmarks/robust.md.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from planner.pipeline import solve_document
from planner.problem.scenarios import draw
from planner.resolve.price_steps import raised
from planner.resolve.resolver import resolve_document
from planner.spec.document import changed, edited, read_document
from planner.tables import as_markdown
from planner.verify.check import read_through
from planner.verify.plan import verify_plan
from planner.verify.robust.check import cost_by_price, outcome_in

HEAD = """# Robust plans

Written by `python benchmarks/robust.py {arguments} --write`. Each row is one plan in the same {scenarios:,} scenarios (seed {seed}, which no
plan was made with); "kept": all demand within the latency limits, all jobs in time, and the budget. The price of the promise is the
difference in cost at typical prices.

"""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("spec", type=Path)
    parser.add_argument("--confidence", type=float, nargs="+", default=[0.8, 0.9])
    parser.add_argument("--scenarios", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(argv)
    document = changed(read_document(options.spec.read_bytes()), options.set, {})
    rows, nominal = [], None
    for confidence in (None, *options.confidence):
        asked = (
            edited(document, (("robust.confidence", confidence),))
            if confidence is not None
            else {k: v for k, v in document.items() if k != "robust"}
        )
        began = time.perf_counter()
        plan = solve_document(asked, progress=lambda line: print(line, file=sys.stderr, flush=True))
        seconds = time.perf_counter() - began
        if not plan.has_answer:
            rows.append({"asked": f"{confidence:.0%}", "kept": plan.status})
            continue
        findings = verify_plan(plan)
        problem = resolve_document(asked if confidence is not None else edited(asked, (("robust", {}),)))
        scenarios = draw(problem, options.scenarios, options.seed)
        outcome = outcome_in(
            problem,
            plan.document,
            scenarios,
            cost_by_price(problem, plan.document, raised(problem, ()), read_through),
            read_through,
        ).as_json()
        total = plan["totals"]["cost"]
        nominal = nominal or total
        rows.append({
            "asked": "as predicted" if confidence is None else f"{confidence:.0%}", "cost": f"{total:,.0f}", "price of the promise": f"{total / nominal - 1:+.1%}",
            "kept": f"{outcome['kept']:.1%}", **{name: f"{share:.1%}" for name, share in outcome["workloads"].items()}, "budget": f"{outcome['budget']:.1%}",
            "cost in 90 % of scenarios": f"{outcome['cost']['p5'] / 1e6:,.1f}M to {outcome['cost']['p95'] / 1e6:,.1f}M", "chips": f"{plan['totals']['chips']:,}",
            "time": f"{seconds:.0f} s", "re-check": "holds" if not findings else f"{len(findings)} findings",
        })  # fmt: skip
        print(rows[-1], *findings[:5], file=sys.stderr, flush=True)
    text = HEAD.format(
        arguments=shlex.join(word for word in (sys.argv[1:] if argv is None else argv) if word != "--write"),
        scenarios=options.scenarios,
        seed=options.seed,
    ) + as_markdown(rows)
    print(text)
    if options.write:
        (HERE / "robust.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
