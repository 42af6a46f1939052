"""Families and kinds of tasks: prompt, parse, validate, grade.

`protocol` has the protocols and the data, `verdicts` what becomes of texts. A family is a package or a file that
provides kinds and all that knows them; a kind is one small file, entered in its family's dict. `families` has those of
a race. docs/extending.md has a worked example of each.
"""
