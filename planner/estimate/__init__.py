"""The answer to one case: one workload on one system."""
