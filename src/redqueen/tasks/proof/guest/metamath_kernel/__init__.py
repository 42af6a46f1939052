"""A small Metamath kernel: databases, stored proofs, formulas, unification, theorems of chains of references.

database   the text of a .mm file to statements with their hypotheses and distinct-variable conditions
stored     the proofs that a database stores, checked symbol by symbol; knows nothing of the modules below
grammar    formulas as trees, by the database's own syntax axioms
terms      unification and matching of trees, under counted fuel
library    the statements that proofs may refer to, and whether one of them says all by itself
steps      a model's text to a chain of references
theorem    the most general theorem of a chain, what of it is needed, and whether it proves a goal
judging    what makes a chain a task, and what an answer is worth
"""
