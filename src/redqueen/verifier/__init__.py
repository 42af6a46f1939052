"""Untrusted programs, judged in isolation: jobs in, outcomes out.

    with LocalVerifier() as verifier:
        [outcome] = verifier.run_sync([Job.calls("def f(x): return x + 1", ["41"])])
        outcome.results[0].verdict        # 'ok:42'

`jobs` has the format, `pool` the host's side, `guest/` what runs on the other side of the boundary, `tiers` how the
isolation is chosen. docs/verifier.md has the threat model.
"""

from redqueen.verifier.checkers import Checker
from redqueen.verifier.jobs import MOST_SEEDS, USUAL_SEEDS, Job, Limits, Mode, Outcome, Result, Status
from redqueen.verifier.pool import LocalVerifier, OpenVerifier, StrictVerifier, Verifier, available_tier, every_verdict
from redqueen.verifier.tiers import AvailableTier, Refusal, Tier

__all__ = [
    "MOST_SEEDS",
    "USUAL_SEEDS",
    "AvailableTier",
    "Checker",
    "Job",
    "Limits",
    "LocalVerifier",
    "Mode",
    "OpenVerifier",
    "Outcome",
    "Refusal",
    "Result",
    "Status",
    "StrictVerifier",
    "Tier",
    "Verifier",
    "available_tier",
    "every_verdict",
]
