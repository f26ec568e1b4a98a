"""Profile how a case runs: all its operating points, its operators on the roofline, where its time and memory go, and its layouts."""
