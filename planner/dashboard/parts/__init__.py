"""The six parts of the dashboard, a page each: decision (in `views.plan`), change, reasons, operations, physics, evidence."""
