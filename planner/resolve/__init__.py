"""From a spec and the catalog to a problem."""
