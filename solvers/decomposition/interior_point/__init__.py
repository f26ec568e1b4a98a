"""Solve the LP relaxation over all slots by a primal-dual interior-point method that exploits its block-angular structure.

`lp_data.py` holds the sets, bounds and matrices of the LP, `site_blocks.py` cuts them into blocks of slots and of sites within them, and
`blocks.py` multiplies with its matrix and the transpose. `method.py` is Mehrotra's predictor-corrector iteration, started by
`starting_points.py`, cold or from the iterate of a similar LP. Its Newton steps are in `newton.py`: `slot_elimination.py` takes the rows of each
slot out of the equations, and `link_system.py` factors the Schur complement in the columns that link the slots. `settings.py` lists the
tolerances and effort limits of all of them.
"""
