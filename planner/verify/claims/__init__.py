"""Check what a plan claims beyond its amounts: status, bound and gap, its record of figures, values of limits, and that there is no plan."""
