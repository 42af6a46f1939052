"""PyPI's `populora` as the operators' peer, run by an interpreter that has it: nothing of Red Queen is imported here.

Each line of JSON on standard input gets a line in answer. The first one describes the population and gets the peer's
version; each further one names an operator and gets its seconds for one child of two parents:

    {"slots": [[outputs, inputs], ...], "rank": 32, "device": "cpu", "threads": 2}    {"version": "populora 0.4.5"}
    {"operator": "dare"}                                                              {"seconds": 0.5}

Its operators need only the two tables of factors of a population, so no base is loaded.
"""

import importlib
import importlib.metadata
import json
import math
import sys
import time
from typing import Any

import torch

PARENTS = 2
CHILD = 2
"""The parents come first."""


class PeerPopulation:
    """What the peer's operators read: factors by module, [individual, inputs or outputs, rank]."""

    def __init__(self, slots: list[list[int]], rank: int, device: str) -> None:
        self.device = torch.device(device)
        numbers = torch.Generator().manual_seed(0)
        falling_R = (1 + torch.arange(rank)) ** -0.5
        self.weight_down, self.weight_up = torch.nn.ParameterDict(), torch.nn.ParameterDict()
        for index, (outputs, inputs) in enumerate(slots):
            down = (2 * torch.rand(PARENTS + 1, inputs, rank, generator=numbers) - 1) / math.sqrt(inputs)
            up = torch.randn(PARENTS + 1, outputs, rank, generator=numbers) * (0.02 * falling_R)
            for table, drawn in ((self.weight_down, down), (self.weight_up, up)):
                table[f"slot{index}"] = torch.nn.Parameter(drawn.to(self.device), requires_grad=False)

    def renew(self) -> None:
        """Reset the child to its first parent, since mutations change it in place."""
        for table in (self.weight_down, self.weight_up):
            for weight in table.values():
                weight.data[CHILD] = weight.data[0]


def timed(operators: Any, population: PeerPopulation, name: str) -> float:
    child = torch.tensor([CHILD], device=population.device)
    population.renew()
    _wait(population.device)
    started = time.perf_counter()
    if name in operators.MUTATION_REGISTRY:
        operators.MUTATION_REGISTRY[name](population, child)
    else:
        parents = torch.tensor([[0, 1]], device=population.device)
        fitnesses = torch.tensor([1.0, 0.0, 0.0], device=population.device)
        operators.CROSSOVER_REGISTRY[name](population, parents, child, fitnesses=fitnesses)
    _wait(population.device)
    return time.perf_counter() - started


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@torch.no_grad()
def main() -> None:
    operators = importlib.import_module("populora.operators")
    settings = json.loads(sys.stdin.readline())
    torch.set_num_threads(settings["threads"])
    small = PeerPopulation([[48, 40], [40, 48]], 4, settings["device"])
    population = PeerPopulation(settings["slots"], settings["rank"], settings["device"])
    version = f"populora {importlib.metadata.version('populora')}, torch {torch.__version__}"
    print(json.dumps({"version": version}), flush=True)
    for line in sys.stdin:
        name = json.loads(line)["operator"]
        # A first turn that is not timed, as ours has one.
        timed(operators, small, name)
        print(json.dumps({"seconds": timed(operators, population, name)}), flush=True)


if __name__ == "__main__":
    main()
