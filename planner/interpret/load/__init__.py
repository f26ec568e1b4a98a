"""Plan rows of what the planned load means: sessions at work, queues of tenants, how full the systems are."""
