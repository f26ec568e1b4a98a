"""Money of a resolution: what owning costs."""
