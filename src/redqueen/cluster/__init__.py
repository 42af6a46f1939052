"""The same engine on several workers, which may die: members in shards, one log of changes for each shard.

`ClusterEngine` (engine.py) is an `Engine` over whatever workers it is given: those of this process (inside.py) or Ray's
(ray.py). `staff.py` says what every worker has, and does again elsewhere what a lost one had.
"""
