"""What a plan is held against: another version of it in a pull request, what was measured since, and what changed a plan."""
