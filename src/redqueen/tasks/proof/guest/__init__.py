"""Proofs on the far side of the boundary: what is read, derived, drawn and graded there.

Standard library only: a zygote imports `redqueen_proof` and the package beside it. The host imports the kernel for
files that a user named, never for what a model wrote.
"""
