"""Exit codes of the command, and the exit code of each status of a plan."""

OK, BUG, USAGE, INVALID, INFEASIBLE, LIMIT, BROKEN, OVER_BUDGET = range(8)
INTERRUPTED, BROKEN_PIPE = 130, 141
EXIT_BY_STATUS = {"optimal": OK, "within_gap": OK, "limit": LIMIT, "infeasible": INFEASIBLE, "unbounded": INVALID}
WORST_FIRST = (BUG, INVALID, INFEASIBLE, LIMIT, OK)
