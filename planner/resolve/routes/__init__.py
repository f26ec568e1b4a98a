"""Resolve how traffic goes between regions: paths of the wide-area network, rented lines, and the routes of each workload."""
