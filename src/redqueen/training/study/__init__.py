"""A study: the population, its baselines and its ablations over seeds, with an exam for all their students.

`design` says which races there are, `races` runs them on one engine, `jobs` shares them out among processes, `exam`
examines their students, `sweep` chooses learning rates, `outcomes` and `gains` make figures of it all, which `tables`
and `plots` show. `study` leads from the first to the last.
"""
