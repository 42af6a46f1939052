"""Word problems on the far side of the boundary: what is read, drawn, solved and graded there.

Standard library only: a zygote imports `redqueen_math` and the package `stories` beside it. The host imports from
`stories` what keys need, for stories that were found sound; so that it can, files of that package import each other
relatively.
"""
