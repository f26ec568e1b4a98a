"""Draw charts of a plan as Altair objects, for the dashboard, the HTML report and notebooks alike. Every chart has a description in words."""
