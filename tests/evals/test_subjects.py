"""Adapters of any rank and target modules on one engine, each the update that it is."""

import pytest
import torch

from redqueen.engine.protocol import MemberState
from redqueen.errors import InputError
from redqueen.evals.subjects import BARE, Group, Subjects, of_one_shape


def member(rank: int, alpha: float, *modules: str, inputs: int = 3) -> MemberState:
    torch.manual_seed(rank)
    factors = {module: (torch.randn(rank, inputs), torch.randn(5, rank)) for module in modules}
    return MemberState(rank=rank, alpha=alpha, factors=factors)


def update(state: MemberState, module: str) -> torch.Tensor:
    a_R_I, b_O_R = state.factors[module]
    return state.alpha / state.rank * b_O_R @ a_R_I


def test_everybody_keeps_its_update_in_the_widest_shape():
    members = {"ours": member(4, 8.0, "q", "v"), "theirs": member(2, 16.0, "q"), "other": member(1, 1.0, "up")}
    shaped = of_one_shape(members)
    for name, state in shaped.items():
        assert (state.rank, state.alpha, set(state.factors)) == (4, 8.0, {"q", "v", "up"})
        for module in state.factors:
            known = module in members[name].factors
            expected = update(members[name], module) if known else torch.zeros(5, 3)
            assert torch.allclose(update(state, module), expected, atol=1e-6)


def test_weights_are_compared_once(monkeypatch):
    same = member(4, 8.0, "q")
    group = Group(
        what="run", step=1, role=None, members={"a": same, "b": member(4, 8.0, "q"), "c": member(2, 8.0, "q")}
    )
    subjects, compared = Subjects("base", (group,), {}, ()), []
    monkeypatch.setattr(torch.Tensor, "equal", lambda one, other: compared.append(one) or torch.equal(one, other))
    assert subjects.in_engine == {BARE: None, "a": "a", "b": "a", "c": "c"}
    before = len(compared)
    assert before > 0 and subjects.in_engine and len(compared) == before


def test_who_has_the_shape_already_is_left_as_it_is():
    members = {"a": member(4, 8.0, "q"), "b": member(4, 8.0, "q"), "c": member(2, 4.0, "q")}
    shaped = of_one_shape(members)
    assert shaped["a"] is members["a"] and shaped["b"] is members["b"]
    assert torch.equal(shaped["c"].factors["q"][1][:, :2], members["c"].factors["q"][1]), "one alpha / rank"
    assert of_one_shape({}) == {}


def test_an_adapter_of_another_base_is_refused():
    with pytest.raises(InputError, match=r"b is of another base: q is \(3, 5\) for others and \(4, 5\) for it"):
        of_one_shape({"a": member(4, 8.0, "q"), "b": member(4, 8.0, "q", inputs=4)})
