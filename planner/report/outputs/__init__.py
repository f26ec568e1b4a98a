"""Write a plan as files for other programs: a self-contained HTML page, and a workbook of tables."""
