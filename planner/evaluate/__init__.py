"""Evaluate given operating points and layouts by the closed forms of `models`.

Nothing here chooses: a caller names a workload, a system and a layout, and gets its performance, memory and power. `planner.candidates`
calls this package on whole grids, `planner.verify` and `planner.scenarios` on the points of a plan, `planner.estimate` on one case. It
imports none of them, so that the check of a plan shares the closed forms with the search, and nothing else of it:

- `serving`, `disaggregated`: steady state of serving in one pool, or in separate pools for prefill and decode
- `serving_state`: prefix caches and speculation of a spec in the form that the closed forms take
- `layouts`, `training`: step time and memory of training layouts; a layout at its width, goodput included
- `interruptions`: goodput, spares, pre-emption and storage traffic of training
- `power_caps`: an operating point slowed down by a power cap
- `rank_placement`: order of the parallel dimensions on the network of a training point
"""
