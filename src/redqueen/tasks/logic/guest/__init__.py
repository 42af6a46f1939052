"""Logic puzzles on the far side of the boundary: what is read, drawn, searched and graded there.

Standard library only: a zygote imports `redqueen_logic` and what stands beside it. The host imports the package
`logic_language` alone, for the keys of puzzles that were found sound.
"""
