"""Studies around a plan: compare, alternatives, sensitivity, frontier, sharing, ladder, roi, what-if, batch."""
