"""The run directory: what a race records, what it saves, and how it goes on after anything.

RUN/config.toml   RUN/lock   RUN/records.sqlite   RUN/checkpoints/step-000120/
"""

CONFIG = "config.toml"
REPORT = "report.md"
"""In the folder of every run that came to its end."""
CHECKPOINTS = "checkpoints"
FORKED_FROM = "forked_from"
"""The fact that a fork has: the run that it began from, and the step."""
