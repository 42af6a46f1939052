"""What `processes` runs in another process, under another hash seed: the family's name, the tier of isolation, the
most tasks of a kind and perhaps `unfenced` in; the parts of each kind out, as a line of JSON."""

import asyncio
import json
import sys

from redqueen.tasks.families import Families
from redqueen.tasks.soundness.material import gather
from redqueen.tasks.soundness.processes import parts_of
from redqueen.verifier import LocalVerifier, StrictVerifier, Tier


async def main(name: str, tier: Tier, most: int, unfenced: bool) -> None:
    families = Families.of([name], unfenced=unfenced)
    with LocalVerifier(tier=tier, minimum=tier, run_unprotected=tier is Tier.NONE, workers=1) as verifier:
        strict = StrictVerifier(verifier)
        materials = await gather(families, strict, most)
        found = {material.kind.name: await parts_of(material, strict) for material in materials}
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Tier(sys.argv[2]), int(sys.argv[3]), "unfenced" in sys.argv[4:]))
