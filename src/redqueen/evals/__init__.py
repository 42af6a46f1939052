"""Evaluations: how good members are on tasks that are the same for everybody and every time, beside the bare base.

`benchmarks/` has one file for each benchmark: how it is loaded, asked, read and graded; an exam is one of them.
`code.py`, `cruxeval.py` and `maths.py` grade, `data.py` finds the rows, `subjects.py` those who are evaluated.
`asking.py` has everybody answer, `answers.py` keeps every answer, `figures.py` counts. `evaluation.py` (benchmarks) and
`examination.py` (exams) go all the way to `report.py` and `exam_report.py`.
"""
