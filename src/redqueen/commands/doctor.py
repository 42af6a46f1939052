"""`redqueen doctor`: what this machine offers."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from redqueen.commands.command import Configured, Reporting, positive
from redqueen.console import Report


@dataclass(frozen=True, kw_only=True)
class DoctorCommand(Reporting, Configured):
    """Check this machine: cores, memory, device, isolation, and what is missing; and a cluster, if one is named."""

    uses = (
        "verifier.minimum", "verifier.run_unprotected",
        "engine.device", "engine.dtype", "engine.rank", "engine.memory", "engine.quantise", "engine.target_modules",
        "cluster.address", "cluster.gpus_per_worker",
    )  # fmt: skip
    base: Annotated[str | None, tyro.conf.arg(metavar="BASE")] = None
    """Also check what fits with this base: a known name, a folder, a .gguf file, a hub id, or a shape (random:7b)."""
    members: int = 8
    """How many members are to be trained on it, of the rank in --engine.rank."""

    def report(self) -> Report:
        from redqueen.training import doctor

        members = positive("--members", self.members)
        base = None if self.base is None else doctor.check_base(self.base, members, self.settings.engine)
        cluster = self.settings.cluster
        machines = () if cluster.address is None else doctor.check_cluster(cluster, self.settings.engine)
        fits = () if self.base is None else doctor.check_workers(self.base, self.settings.engine, machines)
        return doctor.check(self.settings.verifier, base, machines, fits)
