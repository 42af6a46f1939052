"""Benchmarks: held-out tasks that everybody knows, scored as the field scores them.

`benchmarks/` has one file for each: how it is loaded, asked, read and graded. `code.py` and `maths.py` grade, `data.py`
finds the rows, `asking.py` has everybody answer and writes every answer down, `figures.py` and `report.py` count, and
`sitting.py` goes from what the user names to the report.
"""
