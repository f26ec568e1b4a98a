"""Closed forms of training: layouts, memory, a layer's time, pipeline, the step, the run, and failures."""
