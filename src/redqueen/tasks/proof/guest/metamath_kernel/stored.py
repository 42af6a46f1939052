"""The proofs that a database stores, normal or compressed, checked as the Metamath language says: by substitution of
symbols on a stack. It shares nothing with unification, so each of the two can be tried on what the other accepts."""


class BadProof(Exception):
    """The proof proves something else, or nothing, for what it says in one line."""


def verify(database, statement, steps=None):
    """Check a proof of an assertion; the stored one when no steps are given."""
    stack, saved = [], []
    for what, value in steps_of(statement) if steps is None else steps:
        if what == "save":
            if not stack:
                raise BadProof("nothing is there to be saved")
            saved.append(stack[-1])
        elif what == "saved":
            if value >= len(saved):
                raise BadProof("it refers to a step that is not saved yet")
            stack.append(saved[value])
        else:
            _apply(database, _cited(database, statement, value), statement, stack)
    if stack != [statement.symbols]:
        raise BadProof("it does not end with the statement that it is of")


def steps_of(statement):
    """The stored proof as pairs: "label" with one, "save" for what was just proved, "saved" with the number of that."""
    proof = statement.proof
    return list(_compressed(statement, proof)) if proof[:1] == ("(",) else [("label", label) for label in proof]


def _cited(database, statement, label):
    cited = database.statements.get(label)
    if cited is None or cited.at >= statement.at:
        raise BadProof(f"{label} is no earlier statement")
    if cited.kind == "$e" and cited not in statement.hyps:
        raise BadProof(f"{label} is no hypothesis of it")
    if cited.kind == "$f" and cited.ends is not None and cited.ends <= statement.at:
        raise BadProof(f"{label} is no longer in force")
    return cited


def _apply(database, cited, statement, stack):
    if cited.kind in ("$e", "$f"):
        stack.append(cited.symbols)
        return
    frame = cited.frame
    if len(stack) < len(frame):
        raise BadProof(f"{cited.label} needs {len(frame)} steps before it")
    given = stack[len(stack) - len(frame) :]
    del stack[len(stack) - len(frame) :]
    meant = {}
    for hyp, symbols in zip(frame, given, strict=True):
        if hyp.kind == "$f":
            if symbols[0] != hyp.symbols[0]:
                raise BadProof(f"{cited.label} needs another type for {hyp.symbols[1]}")
            meant[hyp.symbols[1]] = symbols[1:]
    for hyp, symbols in zip(frame, given, strict=True):
        if hyp.kind == "$e" and _substituted(hyp.symbols, meant) != symbols:
            raise BadProof(f"{cited.label} does not fit what stands before it")
    for one, other in cited.pairs:
        _distinct(database, statement, meant[one], meant[other])
    stack.append(_substituted(cited.symbols, meant))


def _substituted(symbols, meant):
    found = []
    for symbol in symbols:
        if symbol in meant:
            found += meant[symbol]
        else:
            found.append(symbol)
    return tuple(found)


def _distinct(database, statement, some, others):
    ours = {symbol for symbol in others if symbol in database.types}
    for one in {symbol for symbol in some if symbol in database.types}:
        for other in ours:
            if ((one, other) if one < other else (other, one)) not in statement.all_pairs:
                raise BadProof(f"{one} and {other} must be distinct")


def _compressed(statement, proof):
    """The steps of a compressed proof: labels in brackets, then numbers in letters, of which A to T end one."""
    if ")" not in proof:
        raise BadProof("its labels do not end")
    end = proof.index(")")
    labels = [*(hyp.label for hyp in statement.frame), *proof[1:end]]
    number = 0
    for letter in "".join(proof[end + 1 :]):
        if "A" <= letter <= "T":
            number = 20 * number + ord(letter) - ord("A")
            yield ("label", labels[number]) if number < len(labels) else ("saved", number - len(labels))
            number = 0
        elif "U" <= letter <= "Y":
            number = 5 * number + ord(letter) - ord("U") + 1
        elif letter == "Z" and not number:
            yield "save", 0
        else:
            raise BadProof("it is not whole")
    if number:
        raise BadProof("it is not whole")
