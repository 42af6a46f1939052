"""`redqueen examples`: bundled tasks, through the real verifier and graders."""

import asyncio
from dataclasses import dataclass

from redqueen.commands.command import Configured
from redqueen.console import console
from redqueen.errors import Fault
from redqueen.resources import open_verifier


@dataclass(frozen=True, kw_only=True)
class ExamplesCommand(Configured):
    """Run bundled example tasks through the real verifier and graders."""

    uses = ("verifier",)

    def run(self) -> None:
        from redqueen.tasks.code.run_examples import run_examples

        with open_verifier(self.settings.verifier) as verifier:
            report = asyncio.run(run_examples(verifier))
        report.render(console())
        if not report.ok:
            raise Fault("an example did not come out as stated; please report it with the table above")
