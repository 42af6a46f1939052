"""The check that graders of a source run nothing that a student writes.

A guest contains what an answer does, but not what it says: an answer that is executed can make itself right.
"""

from redqueen.tasks.soundness.findings import Finding, excerpt, failed, named, ok, untried
from redqueen.tasks.soundness.material import Material
from redqueen.tasks.sources import Source
from redqueen.verifier import Verifier

WORD = "zq17"
"""That no grader has."""
PROBES = (
    f"{WORD}(1)",
    f"[{WORD}(1)]",
    f"[[{WORD}(1)]]",
    f"2*x + {WORD}(1)",
    f"x = {WORD}(1)",
    f'{{"a": {WORD}(1)}}',
    f"def f(*given):\n    return {WORD}(given)",
)
_TASKS = 8
"""Whose graders are tried: that they execute an answer hardly depends on the task."""


async def runs_nothing(material: Material, verifier: Verifier) -> Finding:
    """No answer is executed."""
    source = material.family
    if not isinstance(source, Source):
        return untried("no source")
    pairs = [(task, text) for task in material.tasks[:_TASKS] for text in PROBES]
    run = await source.runs([task for task, _ in pairs], [text for _, text in pairs], WORD, verifier)
    executed = [pair for pair, yes in zip(pairs, run, strict=True) if yes]
    figure, values = f"{len(executed)} of {len(pairs)} run", {"tried": len(pairs), "run": len(executed)}
    if not executed:
        return ok(figure, values)
    task, text = executed[0]
    return failed(
        figure,
        f"its grader executes {len(executed)} of {len(pairs)} answers that are code",
        example=f"{named(task)}: {excerpt(text)} is executed",
        mend="read answers without `eval`, as `ast.literal_eval` does",
        values=values,
    )
