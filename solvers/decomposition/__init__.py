"""Decomposition of large programs by time slot.

First-stage variables (sites, designs, hosting, placements of jobs, counts of systems) are decided once; for a given first stage, each
slot is a small linear program of its own. The search solves the LP relaxation over all slots by an interior-point method that exploits
these blocks, with column generation over fleet options and placements, and turns its duals into a Lagrangian bound on the full problem.
Diving and branching then make the first-stage binaries integer, on merged slots first where there are many. A Benders master, with a
cut from every relaxation solved, proposes better binaries and raises the bound. Counts of systems are made integer last, and recovered
into a plan that every slot can be dispatched with. Very large programs replace the Benders loop by dual ascent on the bound.

The search, in the order of its steps

    solve.py              entry: which programs are covered, scaling, plan and duals in SI
    search.py             the steps below, and how the time is divided among them
    root_relaxation.py    LP relaxation over all slots: merged slots, column generation, active fleet options
    dive_and_branch.py    diving heuristic and branching on first-stage columns, over `node_relaxation.py`
    node_relaxation.py    LP relaxation of one search node, warm-started
    benders_loop.py       Benders decomposition: trial points of the master, evaluated by node relaxations
    benders_master.py     Benders master: cuts, no-good cuts, local branching, reduced-cost fixing
    sub_mips.py           sub-MIPs: nearest feasible binaries, rounding of counts, counts by the whole of a small program
    integer_recovery.py   from a relaxed node to a plan: integer counts that leave no slot short
    dual_ascent.py        Lagrangian bound of very large programs, by multiplicative steps on the duals

What they use

    reformulation.py      the problem as first stage and slots, with penalties and bounds that all steps share
    first_stage.py        first-stage columns and rows, bound propagation
    slots.py              the slots as arrays; dominated points, merged slots
    slot_clustering.py    which slots are merged
    linking.py            what a first-stage point gives to each slot: systems, watts, open gates
    subproblems.py        the linear program of each slot, with slack at a penalty
    recovery_master.py    master of integer recovery: first stage, running jobs, cuts from the subproblems
    lagrangian_bound.py   lower bound and Benders cut from any duals
    smoothed_response.py  use of systems and power at given duals, smoothed, for dual ascent
    limit_duals.py        duals of limits, in SI
    cheap_hosting.py      negligible hosting costs, left out of the search
    interior_point/       the interior-point method: block structure, Newton step, iterations
"""
