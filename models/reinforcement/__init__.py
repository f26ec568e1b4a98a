"""Closed forms of reinforcement learning: rollout, weight synchronisation, and the iteration that they make with the passes of training."""
