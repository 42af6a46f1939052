"""The phases of a step, one file each, as `loop.py` calls them: propose and verify, solve and grade, learn, evolve.

`race` has what they all work with, `state` what passes from one step to the next, `record` what is written down.
"""
