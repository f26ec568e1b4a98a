"""Exit codes of the command, and which one a plan's status means."""

OK, BUG, USAGE, INVALID, INFEASIBLE, LIMIT, BROKEN, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130
EXIT_BY_STATUS = {"optimal": OK, "within_gap": OK, "limit": LIMIT, "infeasible": INFEASIBLE, "unbounded": INVALID}
WORST_FIRST = (BUG, INVALID, INFEASIBLE, LIMIT, OK)
