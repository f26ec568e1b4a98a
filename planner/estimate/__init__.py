"""Answer one case: one workload on one system."""
