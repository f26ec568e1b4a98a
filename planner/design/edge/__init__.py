"""Tasks of devices at the edge: each on the device, near it or in a centre (`flopwatt edge`)."""
