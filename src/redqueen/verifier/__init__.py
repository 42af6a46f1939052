"""Untrusted programs, judged in isolation: jobs in, outcomes out.

    with LocalVerifier() as verifier:
        [outcome] = verifier.run_sync([Job.calls("def f(x): return x + 1", ["41"])])
        outcome.results[0].verdict        # 'ok:42'

Read `jobs` for the format, `pool` for the host's side, `guest/` for what runs on the other side of the
boundary, `tiers` for how the isolation is chosen. docs/verifier.md has the threat model.
"""

from redqueen.verifier.jobs import MOST_SEEDS, USUAL_SEEDS, Job, Limits, Mode, Outcome, Result, Status
from redqueen.verifier.pool import LocalVerifier, Verifier, examine
from redqueen.verifier.tiers import Examination, Refusal, Tier

__all__ = [
    "MOST_SEEDS",
    "USUAL_SEEDS",
    "Examination",
    "Job",
    "Limits",
    "LocalVerifier",
    "Mode",
    "Outcome",
    "Refusal",
    "Result",
    "Status",
    "Tier",
    "Verifier",
    "examine",
]
