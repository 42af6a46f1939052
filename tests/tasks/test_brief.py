"""Teachers are asked for what a task is about, drawn by lot, and get nothing for other things."""

import ast
import builtins
from collections import Counter
from random import Random

import pytest

from redqueen.settings import load
from redqueen.tasks.code import FAMILY
from redqueen.tasks.code.brief import DATA, NO_BRIEF, RETURNS, USES, Brief, data_of
from redqueen.tasks.code.program import read_program
from redqueen.tasks.code.seeds import SEEDS
from redqueen.tasks.code.task import CodeTask
from redqueen.tasks.protocol import Form
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.training.rules import read_rules
from tests.tasks.proposing import pair, propose

HAVE = {
    "'abc'": {"text"},
    "text='abc'": {"text"},
    "{'a': 1}": {"dict"},
    "['a', 'b']": {"texts"},
    "[1, 2.5]": {"numbers"},
    "[[1], (2, 3)]": {"nested"},
    "3, 4": {"number"},
    "[1, 2], 3": {"numbers", "several"},
    "'a', {'b': 2}": {"text", "dict", "several"},
    "[]": set(),
    "[1, 'a']": set(),
    "None": set(),
    "(1, 2)": set(),
    "True": set(),
    "[True, False]": set(),
}


@pytest.mark.parametrize(("given", "data"), HAVE.items())
def test_what_an_input_has(given, data):
    assert set(data_of(given)) == data


def test_everything_is_drawn_and_each_part_as_often():
    drawn = [Brief.drawn(Random(number)) for number in range(14_000)]
    data = Counter(brief.data for brief in drawn)
    assert data.keys() == DATA.keys() and min(data.values()) > 1_700
    assert all(bool(brief.uses) != bool(brief.returns) for brief in drawn)
    assert 6_700 < sum(bool(brief.uses) for brief in drawn) < 7_300
    assert {(brief.data, brief.uses) for brief in drawn if brief.uses} == {(d, use) for d in DATA for use in USES[d]}
    assert {(brief.data, brief.returns) for brief in drawn if brief.returns} == {(d, r) for d in DATA for r in RETURNS}


@pytest.mark.parametrize("use", sorted({use for uses in USES.values() for use in uses}))
def test_what_is_asked_for_can_be_used(use):
    """The contract forbids none of it, and it is found where it is called."""
    called = f"x{use}(x)" if use.startswith(".") else f"{use}(x)"
    program = f"def f(x):\n    return {called}"
    assert isinstance(read_program(program), ast.Module)
    assert Brief(uses=use).not_called(program) is None
    name = use.removeprefix(".")
    for another in (
        f"def f({name}):\n    return {name}(1)",
        f"def {name}(x):\n    return x\n\ndef f(x):\n    return {name}(x)",
        f"def f(x):\n    x.{name} = 1\n    return x",
    ):
        assert Brief(uses=use).not_called(another) == f"asked for `{use}(...)`"
    assert hasattr(builtins, use) or any(hasattr(kind, name) for kind in (str, list, dict, set))


OFF = {
    "other data": (Brief(data="dict"), "asked for a dictionary in the input"),
    "another method": (Brief(uses=".rjust"), "asked for `.rjust(...)`"),
    "another result": (Brief(returns="number"), "asked for a number as the result"),
    "another result beside the data": (Brief("text", ".upper", "dict"), "asked for a dictionary as the result"),
}


@pytest.mark.parametrize(("brief", "says"), OFF.values(), ids=OFF)
@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_what_does_not_keep_to_its_brief_is_refused(verifier, kind, brief, says):
    text = pair("def f(x):\n    return [x.upper(), len(x)]", "'abc'")
    context = {"data": brief.data, "uses": brief.uses, "returns": brief.returns}
    refused = propose(FAMILY.kinds()[kind], verifier, text, context)
    assert isinstance(refused, Rejection)
    assert (refused.reason, refused.detail) == (Reason.OFF_BRIEF, says)
    kept = {"data": "text", "uses": ".upper", "returns": "list"}
    assert isinstance(propose(FAMILY.kinds()[kind], verifier, text, kept), CodeTask)
    assert isinstance(propose(FAMILY.kinds()[kind], verifier, text, {}), CodeTask)


def test_truth_values_are_no_numbers():
    assert Brief(returns="number").missed("1", "True") is not None
    assert Brief(returns="number").missed("1", "2.5") is None


@pytest.mark.parametrize("form", [Form.LONG, Form.DIRECT])
@pytest.mark.parametrize("kind", ["code_o", "code_i"])
def test_the_prompt_says_the_brief_and_those_that_the_earlier_ones_kept_to(form, kind):
    for number in range(20):
        prompt = FAMILY.kinds(form)[kind].propose_prompt(SEEDS, Random(number))
        asked = [message["content"] for message in prompt.messages if message["role"] == "user"]
        brief = Brief.asked(prompt.context)
        assert asked[-1].endswith(brief.words)
        assert DATA[brief.data] in brief.words
        asks = f"call `{brief.uses}(...)` somewhere." if brief.uses else f"return {RETURNS[brief.returns]}."
        assert brief.words.endswith(f"The program must {asks}")
        shown = [message["content"] for message in prompt.messages if message["role"] == "assistant"]
        for request, answer in zip(asked, shown, strict=False):
            [seed] = [seed for seed in SEEDS if seed.program in answer]
            assert request.endswith(seed.brief.words)
            assert seed.brief.not_called(seed.program) is None
            assert seed.brief.missed(seed.inputs[0], seed.outputs[0]) is None


def test_a_function_that_is_passed_on_is_used():
    assert Brief(uses="ord").not_called("def f(x):\n    return list(map(ord, x))") is None
    assert Brief(uses=".upper").not_called("def f(x):\n    return list(map(str.upper, x))") is None


def test_tasks_whose_answer_is_no_value_can_be_shown_beside_a_brief():
    named = CodeTask("code_e", program="def f(n):\n    return 1 // n", inputs=("0",), outputs=("ZeroDivisionError",))
    assert named.brief == Brief(data="number")
    for kind in ("code_o", "code_i"):
        prompt = FAMILY.kinds()[kind].propose_prompt([named], Random(0))
        assert Brief.asked(prompt.context) != NO_BRIEF


@pytest.mark.parametrize("kinds", [FAMILY.kinds(Form.SHORT), FAMILY.without_briefs().kinds()], ids=["short", "off"])
def test_teachers_may_be_left_to_choose(kinds):
    for kind in ("code_o", "code_i"):
        prompt = kinds[kind].propose_prompt(SEEDS, Random(0))
        assert Brief.asked(prompt.context) == NO_BRIEF
        assert not any("must be or hold" in message["content"] for message in prompt.messages)


def test_the_setting_reaches_the_race():
    for briefs in (True, False):
        rules = read_rules(load("medium", [("tasks.briefs", str(briefs).lower())]))
        assert rules.families.kinds["code_o"].briefs is briefs
    assert load("paper").tasks.briefs is False, "as far as is known of it"
