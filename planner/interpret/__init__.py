"""From a solution to the plan document."""
