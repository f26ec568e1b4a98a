"""Read past demand from a CSV, and forecast it: level, growth, shape over day and week, and how far off such forecasts were."""
