"""Groups and clues to their one canonical text."""

from .terms import COUNT, is_range


def write(groups, clues):
    """The canonical text."""
    lines = []
    for names, values, different in groups:
        domain = f"{values[0]}..{values[-1]}" if is_range(values) else ", ".join(map(str, values))
        lines.append(f"{', '.join(names)} in {domain}{', different' * different}")
    return "\n".join([*lines, *map(write_clue, clues)])


def write_asking(groups, clues, asked):
    """The canonical text of a puzzle that asks for a number."""
    return f"{write(groups, clues)}\nask {COUNT if asked is None else write_clue(asked)}"


_BINDS = {"or": 1, "and": 2, "not": 3, "cmp": 4, "+": 5, "-": 5, "*": 6, "%": 6, "neg": 7}


def write_clue(node, binds=0):
    """With as few brackets as it takes."""
    what = node[0]
    if what in ("int", "name", "word"):
        return str(node[1])
    if what == "says":
        return f"{node[1]} says {write_clue(node[2])}"
    if what == "abs":
        return f"abs({write_clue(node[1])})"
    if what == "count":
        return f"count({', '.join(map(write_clue, node[1]))})"
    own = _BINDS[what]
    if what in ("or", "and"):
        text = f" {what} ".join(write_clue(part, own + 1) for part in node[1])
    elif what in ("not", "neg"):
        text = ("not " if what == "not" else "-") + write_clue(node[1], own + 1 if what == "not" else own)
    elif what == "cmp":
        text = f"{write_clue(node[2], own + 1)} {node[1]} {write_clue(node[3], own + 1)}"
    else:
        text = f"{write_clue(node[1], own)} {what} {write_clue(node[2], own + 1)}"
    return f"({text})" if own < binds else text
