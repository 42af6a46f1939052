"""Who descends from whom: generations, and the family tree as text or for Graphviz.

A fresh member counts as a founder: it has no parents either.
"""

from collections.abc import Mapping, Sequence

from redqueen.population.members import Member, MemberId, Population, Role


def everybody(population: Population) -> dict[MemberId, Member]:
    """The dead and the living, in the order of their births; those born together by seat."""
    members = [*(grave.member for grave in population.graves), *population.members]
    members.sort(key=lambda member: (member.birth.step, member.role is Role.STUDENT, member.seat_number))
    return {member.id: member for member in members}


def generations(parents: Mapping[MemberId, Sequence[MemberId]]) -> dict[MemberId, int]:
    """The generation of each member, 0 for founders. Parents must come before their children."""
    generation: dict[MemberId, int] = {}
    for id, own in parents.items():
        generation[id] = 1 + max((generation[parent] for parent in own), default=-1)
    return generation


def draw(population: Population) -> str:
    """The family tree for a terminal: every member below its better parent, the dead marked with `+`."""
    living = {member.id for member in population.members}
    children: dict[MemberId | None, list[Member]] = {}
    for member in everybody(population).values():
        children.setdefault(next(iter(member.birth.parents), None), []).append(member)
    lines: list[str] = []
    # A stack of members, each with the prefix of its own line and that of the lines below it.
    stack = [(founder, "", "") for founder in reversed(children[None])]
    while stack:
        member, prefix, below = stack.pop()
        birth = member.birth
        origin = f"  {birth.operator or 'fresh'}, step {birth.step}" if birth.step else ""
        mate = f" with {', '.join(birth.parents[1:])}" if len(birth.parents) > 1 else ""
        mark = "" if member.id in living else " +"
        lines.append(f"{prefix}{member.id}{mark}{origin}{mate}")
        offspring = children.get(member.id, [])
        for child in reversed(offspring):
            last = child is offspring[-1]
            stack.append((child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")))
    return "\n".join(lines)


def dot(population: Population) -> str:
    """The family tree in Graphviz' language: both parents of a crossover, the dead dashed."""
    living = {member.id for member in population.members}
    lines = ["digraph lineage {", "  rankdir=LR;"]
    for id, member in everybody(population).items():
        shape = "box" if member.role is Role.TEACHER else "ellipse"
        lines.append(f'  "{id}" [shape={shape}{"" if id in living else ", style=dashed"}];')
        label = (member.birth.operator or "").replace("\\", "\\\\").replace('"', '\\"')
        lines += [f'  "{parent}" -> "{id}" [label="{label}"];' for parent in member.birth.parents]
    return "\n".join([*lines, "}"])
