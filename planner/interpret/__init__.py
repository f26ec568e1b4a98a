"""Read a solution, and build the plan document."""
