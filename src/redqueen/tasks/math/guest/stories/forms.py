"""The forms of sentences and of questions: how each may be written, and how the verifier writes it back.

Slots: A, B, C, D owners; I, J items, in the plural; N an amount, which is drawn or computed; K, L small factors and P a
percentage, which are drawn; V a verb, U a unit of time. In ways to read, T is `K times` and F a fraction; a question
mark makes an item optional: it is then the one that was last spoken of. Texts are normalised before (`english`).
"""

MOST_CHARS = 2_000
MOST_SENTENCES, MOST_SENTENCE_CHARS = 20, 200
MOST_NUMBER = 9_999

GAIN, LOSE = "gain", "lose"
VERBS = {
    "gets": ("get", "got", GAIN), "buys": ("buy", "bought", GAIN), "finds": ("find", "found", GAIN),
    "picks": ("pick", "picked", GAIN), "wins": ("win", "won", GAIN), "collects": ("collect", "collected", GAIN),
    "makes": ("make", "made", GAIN), "bakes": ("bake", "baked", GAIN), "earns": ("earn", "earned", GAIN),
    "receives": ("receive", "received", GAIN), "saves": ("save", "saved", GAIN), "reads": ("read", "read", GAIN),
    "catches": ("catch", "caught", GAIN), "walks": ("walk", "walked", GAIN), "runs": ("run", "ran", GAIN),
    "drives": ("drive", "drove", GAIN), "rides": ("ride", "rode", GAIN), "swims": ("swim", "swam", GAIN),
    "travels": ("travel", "traveled", GAIN), "writes": ("write", "wrote", GAIN), "adds": ("add", "added", GAIN),
    "loses": ("lose", "lost", LOSE), "eats": ("eat", "ate", LOSE), "sells": ("sell", "sold", LOSE),
    "uses": ("use", "used", LOSE), "spends": ("spend", "spent", LOSE), "drops": ("drop", "dropped", LOSE),
    "breaks": ("break", "broke", LOSE), "drinks": ("drink", "drank", LOSE), "burns": ("burn", "burned", LOSE),
    "throws away": ("throw away", "threw away", LOSE), "gives away": ("give away", "gave away", LOSE),
    "returns": ("return", "returned", LOSE), "removes": ("remove", "removed", LOSE),
}  # fmt: skip
"""Verbs by how they are written back: bare and past form, and what they do to what their subject has."""
OTHER_VERBS = {
    "has": ("have", "had"), "gives": ("give", "gave"), "takes": ("take", "took"), "puts": ("put", "put"),
    "shares": ("share", "shared"), "packs": ("pack", "packed"), "costs": ("cost", "cost"), "pays": ("pay", "paid"),
    "divides": ("divide", "divided"), "splits": ("split", "split"), "is": ("are", "was"), "is ": ("be", "were"),
    "holds": ("hold", "held"), "contains": ("contain", "contained"), "starts": ("start", "started"),
    "sends": ("send", "sent"), "needs": ("need", "needed"), "lends": ("lend", "lent"), "hands": ("hand", "handed"),
}  # fmt: skip
UNITS = ("second", "minute", "hour", "day", "week", "month", "year")
PERCENTAGES = (10, 20, 25, 40, 50, 60, 75)
FRACTIONS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth"}

_AS_MANY, _MORE, _FEWER = "as (?:many|much)", "more", "(?:fewer|less)"
FORMS = {
    # What somebody has.
    "none": ("At the start {A} has no {I}.", ("at the start A has no I", "A starts with no I")),
    "has": ("{A} has {N} {I}.", ("A (?:has|starts with|holds|contains) N I", "there is N I (?:in|on|at) A",
                                 "N I is (?:in|on|at) A", "A has N",
                                 "(?:in|on|at) A,? there is N I")),
    "more": ("{A} has {N} more {I} than {B}.", (f"A (?:has|gets) N {_MORE} I? than B",)),
    "fewer": ("{A} has {N} fewer {I} than {B}.", (f"A has N {_FEWER} I? than B",)),
    "times": ("{A} has {T} as many {I} as {B}.", (f"A has T {_AS_MANY} I? as B", "A has T more I? than B",
                                                  "A has T the (?:number|amount) of I (?:of|as|that|than) B")),
    "part": ("{A} has {F} as many {I} as {B}.", (f"A has F {_AS_MANY} I? as B",
                                                 "A has F the (?:number|amount) of I (?:of|as|that|than) B")),
    "times_more": ("{A} has {N} more than {T} as many {I} as {B}.", (f"A has N more than T {_AS_MANY} I? as B",)),
    "times_fewer": ("{A} has {N} fewer than {T} as many {I} as {B}.",
                    (f"A has N {_FEWER} than T {_AS_MANY} I? as B",)),
    "same": ("{A} has as many {I} as {B}.", (f"A has {_AS_MANY} I? as B", "A has the same number of I as B")),
    "sum": ("{A} has as many {I} as {B} and {C} together.", (f"A has {_AS_MANY} I? as B and C together",)),
    "together": ("{ABCD} have {N} {I} together.", ("ABCD has N I? together", "ABCD shares N I?",
                                                  "ABCD together has N I?", "together ABCD has N I?")),
    # Two sorts of things.
    "kinds_more": ("{A} has {N} more {I} than {J}.", (f"A has N {_MORE} I than J",)),
    "kinds_fewer": ("{A} has {N} fewer {I} than {J}.", (f"A has N {_FEWER} I than J",)),
    "kinds_times": ("{A} has {T} as many {I} as {J}.", (f"A has T {_AS_MANY} I as J",)),
    "kinds_part": ("{A} has {F} as many {I} as {J}.", (f"A has F {_AS_MANY} I as J",)),
    "kinds_together": ("{A} has {N} {I} and {J} together.", ("A has N I and J together",)),
    "boxes": ("{A} has {K} {J} with {N} {I} in each.",
              ("A has K J (?:with|of|containing|and each has) N I(?: in)?(?: each)?(?: of them)?",)),
    "packs": ("{A} packs the {I} into {J} of {K}.",
              ("A (?:packs|puts|divides|splits) (?:the|all the|all) I (?:into|in) J (?:of|with) K(?: each)?",)),
    # What happens.
    "gets": ("{A} {V} {N} {I}.", ("A G N(?: more)? I?",)),
    "loses": ("{A} {V} {N} {I}.", ("A O N(?: more)? I?",)),
    "gets_rate": ("{A} {V} {N} {I} every {U} for {K} {U}s.",
                  ("A G N I? (?:every|each|per|a|an) U for K Us?", "A G at N I (?:every|each|per|a|an) U for K Us?")),
    "loses_rate": ("{A} {V} {N} {I} every {U} for {K} {U}s.", ("A O N I? (?:every|each|per|a|an) U for K Us?",)),
    "gives": ("{A} gives {N} {I} to {B}.", ("A (?:gives|sends|lends|hands) N(?: more)? I? to B",
                                            "A (?:gives|sends|lends|hands) B N(?: more)? I?",
                                            "A puts N(?: more)? I? (?:in|into|on) B", "A sells N I? to B")),
    "takes": ("{B} gives {N} {I} to {A}.", ("A (?:takes|gets|receives|removes) N I? (?:from|out of) B",)),
    "gives_part": ("{A} gives {F} of the {I} to {B}.", ("A (?:gives|sends|lends|hands) F(?: the)? I? to B",
                                                        "A (?:gives|sends|lends|hands) B F(?: the)? I?")),
    "loses_part": ("{A} {V} {F} of the {I}.", ("A O F(?: the)? I?",)),
    "loses_percent": ("{A} {V} {P} percent of the {I}.", ("A O P percent(?: of)?(?: the)? I?",)),
    "shares": ("{A} shares the {I} equally among {K} friends.",
               ("A (?:shares|divides|splits|gives) (?:the|all the|all|them)? ?I? ?(?:equally|evenly)?"
                " ?(?:among|between|with|to) (?:the )?K [a-z]+(?: equally| evenly)?",)),
    # Money.
    "buys": ("{A} buys {K} {I} for {N} dollars each.", ("A buys K I (?:for|at) N dollars? (?:each|per [a-z]+)",
                                                        "A buys K I that is N dollars? each")),
    "sells": ("{A} sells {K} {I} for {N} dollars each.", ("A sells K I (?:for|at) N dollars? (?:each|per [a-z]+)",)),
    "cost": ("One {I1} costs {N} dollars.", ("(?:each|every|a|an|one|1|the) I costs N dollars?(?: each)?",
                                            "I costs N dollars? each",
                                            "the price of (?:a|an|one|1|each) I is N dollars?")),
    "cost_more": ("One {I1} costs {N} dollars more than one {J1}.",
                  ("(?:each|a|an|one|1|the) I costs N dollars? more than (?:each|a|an|one|1|the) J",)),
    "cost_less": ("One {I1} costs {N} dollars less than one {J1}.",
                  ("(?:each|a|an|one|1|the) I costs N dollars? (?:less|cheaper) than (?:each|a|an|one|1|the) J",)),
    "cost_times": ("One {I1} costs {T} as much as one {J1}.",
                   (f"(?:each|a|an|one|1|the) I costs T {_AS_MANY} as (?:each|a|an|one|1|the) J",)),
    "bill": ("{A} pays {N} dollars for {K} {I} and {L} {J}.", ("A (?:pays|spends) N dollars? (?:for|on) K I and L J",)),
    "bill_one": ("{A} pays {N} dollars for {K} {I}.", ("A (?:pays|spends) N dollars? (?:for|on) K I",
                                                       "A buys K I for N dollars?")),
    "pays": ("{A} pays for {K} {I}.", ("A pays for K I",)),
    # Ages.
    "age": ("{A} is {N} years old.", ("A is N years? old", "the age of A is N(?: years)?", "A is N")),
    "older": ("{A} is {N} years older than {B}.", ("A is N years? older than B",)),
    "younger": ("{A} is {N} years younger than {B}.", ("A is N years? younger than B",)),
    "age_times": ("{A} is {T} as old as {B}.", ("A is T (?:as old as|older than|the age of) B",)),
    "age_part": ("{A} is {F} as old as {B}.", ("A is F (?:as old as|the age of) B",)),
    "age_together": ("{ABCD} are {N} years old together.",
                     ("ABCD is N years? old together", "the (?:sum of the )?ages of ABCD (?:is|add up to) N(?: years)?",
                      "together ABCD is N years? old")),
    "age_later": ("In {N} years {A} will be {T} as old as {B}.",
                  ("in N years? A will is T (?:as old as|the age of) B", "A will is T as old as B in N years?")),
    "age_ago": ("{N} years ago {A} was {T} as old as {B}.",
                ("N years? ago A is T (?:as old as|the age of) B", "A is T (?:as old as|the age of) B N years? ago")),
}  # fmt: skip
"""By name: how it is written back, and the ways to read it."""

_DO, _END = "(?:do|does|did|will|is|can)", "(?: (?:together|then|each))?"
QUESTIONS = {
    "own": ("How many {I} does {A} have?",
            (f"how (?:many|much) I {_DO} A (?:has|W|is|holds|contains)(?: to W)?(?: together)?",
             "how (?:many|much) I is (?:there )?(?:in|on|at) A", "how (?:many|much) I is left (?:in|on|at) A",
             f"how far {_DO} A W", f"how (?:many|much) {_DO} A (?:has|W)")),
    "first": ("How many {I} did {A} have at first?", ("how (?:many|much) I? ?(?:do|does|did) A has at first",
                                                     "how (?:many|much) I? ?(?:do|does|did) A start with")),
    "all": ("How many {I} do {ABCD} have together?",
            (f"how many I {_DO} ABCD (?:has|W|is){_END}", "how many I is there together", "how many I is there",
             "how many I is left", f"how many I {_DO} (?:they|all|they all|both) (?:has|W){_END}")),
    "more": ("How many more {I} does {A} have than {B}?", (f"how many more I {_DO} A (?:has|W) than B",)),
    "less": ("How many more {I} does {B} have than {A}?", (f"how many (?:fewer|less) I {_DO} A (?:has|W) than B",)),
    "kinds": ("How many more {I} than {J} does {A} have?", (f"how many more I than J {_DO} A has",)),
    "each": ("How many {I} does each friend get?",
             (f"how many I? ?{_DO} (?:each|every|each of the|each one)(?: of the)? ?[a-z]* (?:gets|has|receives)",)),
    "price": ("How many dollars does one {I1} cost?",
              (f"how (?:many dollars|much|much money) {_DO} (?:each|a|an|one|1|the) I costs",
               "what is the (?:price|cost) of (?:each|a|an|one|1|the) I")),
    "bill": ("How many dollars do {K} {I} and {L} {J} cost?",
             (f"how (?:many dollars|much) {_DO} K I and L J costs?{_END}",)),
    "bill_one": ("How many dollars do {K} {I} cost?", (f"how (?:many dollars|much) {_DO} K I costs?{_END}",)),
    "age": ("How old is {A}?", ("how old is A", "how many years old is A", "what is the age of A")),
    "age_then": ("How old will {A} be in {N} years?", ("how old will A is in N years?", "how old is A in N years?")),
    "age_more": ("How many years older is {A} than {B}?", ("how many years older is A than B",
                                                          "how much older is A than B")),
}  # fmt: skip
"""The same of questions."""
COMPARISONS = {"more": "fewer", "kinds_more": "kinds_fewer", "cost_more": "cost_less", "older": "younger",
               "times_more": "times_fewer"}  # fmt: skip
"""Forms that lot turns into each other."""
TURNED = COMPARISONS | {less: more for more, less in COMPARISONS.items()}
"""Each with its counterpart."""
SORTS = {
    "change": ("gets", "loses", "gives", "gives_part", "loses_part", "loses_percent", "gets_rate", "loses_rate"),
    "compare": ("more", "fewer", "kinds_more", "kinds_fewer", "older", "younger", "cost_more", "cost_less"),
    "times": ("times", "part", "times_more", "times_fewer", "kinds_times", "kinds_part", "same", "age_times",
              "age_part", "cost_times"),
    "together": ("together", "sum", "kinds_together", "age_together"),
    "share": ("shares", "packs", "boxes"),
    "money": ("buys", "sells", "bill", "bill_one", "pays"),
    "time": ("age_later", "age_ago"),
}  # fmt: skip
"""Sorts of sentences; those that give a bare amount are of none."""
SORT_OF = {form: sort for sort, forms in SORTS.items() for form in forms}
EVENTS = frozenset((*SORTS["change"], *SORTS["money"], "shares"))
"""Forms that change what somebody has; all others say how things stand."""
FACTOR_FROM_TWO = frozenset((*SORTS["times"], *SORTS["time"], "gives_part", "loses_part", "shares", "packs"))
"""Forms whose factor is two at least."""
ZERO = "none"
"""The form that says that somebody begins with nothing; the verifier adds it."""
SAID_FROM_THE_OTHER_SIDE = {"takes": "gives", "less": "more"}
"""Forms, of sentences and of questions, that say what another one says with A and B in each other's place."""
STANDS = frozenset((
    "has", "more", "fewer", "times", "part", "times_more", "times_fewer", "same", "sum", "together", "kinds_more",
    "kinds_fewer", "kinds_times", "kinds_part", "kinds_together",
))  # fmt: skip
"""Forms about what is so at a time: after an event they are written with "Now"."""
