"""How rewards become what a member learns from: reward shapes, advantage estimators, and what the engine is given.

Everything here is a pure function over plain data and needs no torch: the engine is blind to the algorithm, so an
algorithm is the numbers that it is given.

    verdicts -> rewards -> advantages (one estimator) -> batch (scaled, zeros dropped) -> kl (optional) -> engine
"""
