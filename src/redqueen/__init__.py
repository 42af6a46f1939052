"""Red Queen: populations of teacher and student LoRA adapters that teach themselves to reason.

Teachers propose tasks, students attempt them, and a sandboxed verifier judges both. Import the part that
you need (`redqueen.verifier`, `redqueen.tasks`); the command line is `redqueen`.
"""

__version__ = "0.1.0"
