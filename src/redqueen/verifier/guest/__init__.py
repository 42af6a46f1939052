"""What runs on the far side of the boundary. Standard library only: a bare interpreter executes these files.

`literals` is also imported by the host, which reads replies with its strict parser.
"""
