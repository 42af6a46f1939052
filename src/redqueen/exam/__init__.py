"""Exams: how good members are on tasks that are the same for everybody and every time, beside the bare base.

A race's own solve rates are against tasks that move with its teachers. `exam.py` asks, `figures.py` counts,
`sitting.py` goes from what the user names to what `report.py` shows.
"""
