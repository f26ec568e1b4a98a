"""Draw the uncertain parts of a problem: paths of demand over time."""
