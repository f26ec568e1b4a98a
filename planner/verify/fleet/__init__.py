"""Check the fleet of a plan: systems, the time they are held, and the networks they stand on."""
