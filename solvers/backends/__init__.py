"""Solvers of linear and mixed-integer programs: HiGHS and CBC."""
