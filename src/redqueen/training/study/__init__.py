"""A study: the population, its baselines and its ablations over seeds, with an exam for all their students.

`design` lists the races, `races` runs them on one engine, `jobs` shares them among processes, `exam` evaluates their
students, `sweep` chooses learning rates, `outcomes` computes the figures that `tables` and `plots` show. `study` runs
it all.
"""
