"""Stories in controlled English: text to sentences (`reading`), sentences to their one canonical text (`writing`), to
linear equations (`equations`) and to numbers drawn by lot (`drawing`).

A sentence is a pair: the name of its form, and its slots as sorted pairs of a letter and a value. `forms` has the list.
"""
