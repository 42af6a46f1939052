"""Who came of whom: generations, and the family tree as text or for Graphviz.

A fresh member counts as a founder: it has no parents either.
"""

from collections.abc import Mapping, Sequence

from redqueen.population.members import Member, MemberId, Population, Role


def everybody(population: Population) -> dict[MemberId, Member]:
    """The dead and the living, in the order of their births; those born together by seat."""
    dead = [grave.member for grave in population.graves]
    return {each.id: each for each in sorted([*dead, *population.members], key=_order)}


def generations(parents: Mapping[MemberId, Sequence[MemberId]]) -> dict[MemberId, int]:
    """How many births lie between each member and its furthest founder. Parents stand before their children."""
    found: dict[MemberId, int] = {}
    for id, own in parents.items():
        found[id] = 1 + max((found[parent] for parent in own), default=-1)
    return found


def draw(population: Population) -> str:
    """The family tree for a terminal: every member below its better parent, `+` the dead."""
    members = everybody(population)
    living = {each.id for each in population.members}
    children: dict[MemberId | None, list[Member]] = {}
    for member in members.values():
        children.setdefault(next(iter(member.birth.parents), None), []).append(member)
    lines: list[str] = []
    # What is to be drawn next comes last: a member, what stands before it, and before what is below it.
    left = [(founder, "", "") for founder in reversed(children[None])]
    while left:
        member, lead, below = left.pop()
        born = member.birth
        origin = f"  {born.operator or 'fresh'}, step {born.step}" if born.step else ""
        other = f" with {', '.join(born.parents[1:])}" if len(born.parents) > 1 else ""
        mark = "" if member.id in living else " +"
        lines.append(f"{lead}{member.id}{mark}{origin}{other}")
        offspring = children.get(member.id, [])
        for child in reversed(offspring):
            last = child is offspring[-1]
            left.append((child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")))
    return "\n".join(lines)


def dot(population: Population) -> str:
    """The family tree in Graphviz' language: both parents of a crossover, the dead dashed."""
    living = {each.id for each in population.members}
    lines = ["digraph lineage {", "  rankdir=LR;"]
    for id, member in everybody(population).items():
        shape = "box" if member.role is Role.TEACHER else "ellipse"
        lines.append(f'  "{id}" [shape={shape}{"" if id in living else ", style=dashed"}];')
        label = (member.birth.operator or "").replace("\\", "\\\\").replace('"', '\\"')
        lines += [f'  "{parent}" -> "{id}" [label="{label}"];' for parent in member.birth.parents]
    return "\n".join([*lines, "}"])


def _order(member: Member) -> tuple[int, bool, int]:
    return member.birth.step, member.role is Role.STUDENT, int(member.seat[1:])
