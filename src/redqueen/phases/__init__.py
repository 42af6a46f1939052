"""The phases of a step, one file each, as `loop.py` calls them: propose and verify, solve and grade, learn, evolve.

A text passes through them as one `rl.rollout.Rollout`. `race` has what they all work with, `state` what passes from one
step to the next, `record` what is written down.
"""
