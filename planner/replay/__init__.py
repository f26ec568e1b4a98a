"""Request-level simulation of the deployments of a plan, beside the closed forms that chose them: `flopwatt replay`."""
