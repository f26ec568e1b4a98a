"""What a workload asks of any chip, and which chips of the catalog can carry it (`flopwatt characterise`)."""
