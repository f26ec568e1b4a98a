"""Money: the components of a cost, the terms of a plan's amounts, and what owning a system costs.

A term is an amount per unit of one decision (`terms`), under the name of its component (`components`). The objective, the budgets of
phases, carbon and the books of a plan are sums of the same terms. Not here: the prices of a question (`planner.resolve`), which
decisions there are (`planner.formulate`), and the check (`planner.verify`), which adds up every amount by code of its own.
"""
