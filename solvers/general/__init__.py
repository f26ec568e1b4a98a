"""A plan and a bound for a program of any blocks that is too large for one search: by merged slots, and day by day."""
