"""Closed forms of networks: collectives, scale-out fabric designs, and placement of groups on them."""
