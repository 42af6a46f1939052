"""What a member says is what PEFT says with that adapter alone, whoever else is in the batch."""

from random import Random

import pytest
import torch
from torch import Tensor

from engine import tiny
from redqueen.engine.attention import CausalAttention
from redqueen.engine.bank import Bank
from redqueen.engine.general import GeneralBody
from redqueen.engine.llama import LlamaBody
from redqueen.engine.protocol import ScoreRequest
from redqueen.engine.routing import Routing

WHO = ["m1", None, "m0", "m2", "m0", None]
LENGTHS = [24, 9, 1, 17, 20, 24]
WIDTH = 24


def batch(seed: int = 0) -> Tensor:
    """Sequences of all lengths, padded at their ends with whatever token."""
    return torch.tensor([tiny.tokens(Random(seed + row), WIDTH) for row in range(len(WHO))])


def logits(body: LlamaBody | GeneralBody, bank: Bank, token_B_T: Tensor, who: list[str | None]) -> Tensor:
    rows, width = token_B_T.shape
    routing = Routing(member_K=torch.tensor([bank.row(member) for member in who]))
    hidden_N_H = body.hidden(token_B_T.flatten(), routing, CausalAttention(rows, torch.arange(width).repeat(rows)))
    return body.head(hidden_N_H).view(rows, width, -1)


def furthest(mine_B_T_V: Tensor, right_T_V: Tensor, row: int) -> float:
    return float((mine_B_T_V[row, : LENGTHS[row]] - right_T_V[: LENGTHS[row]]).abs().max())


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_a_member_in_a_mixed_batch_says_what_peft_says_with_its_adapter_alone(architecture, tmp_path):
    token_B_T = batch()
    with tiny.engine(architecture) as opened, torch.no_grad():
        assert opened.body.path == ("llama" if architecture in tiny.FAST else "general")
        mine_B_T_V = logits(opened.body, opened.bank, token_B_T, WHO)
        alone = {m: tiny.with_adapter(architecture, opened.read(m), tmp_path / m) for m in opened.members}
    alone[None] = tiny.model(architecture)
    for row, member in enumerate(WHO):
        right_T_V = alone[member](token_B_T[row : row + 1, : LENGTHS[row]]).logits[0]
        assert furthest(mine_B_T_V, right_T_V, row) <= 1e-4
        if LENGTHS[row] > 1:  # and the others say something else
            assert min(furthest(mine_B_T_V, mine_B_T_V[other], row) for other in range(6) if other != row) > 0.1
    plain_T_V = alone[None](token_B_T[:1]).logits[0]
    assert furthest(mine_B_T_V, plain_T_V, 0) > 0.1, "the adapters do nothing"


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_scores_are_the_log_probabilities_and_hidden_states_of_transformers(architecture, tmp_path):
    random = Random(1)
    requests = [
        ScoreRequest(
            prompt=tiny.tokens(random, 1 + 3 * at), completion=tiny.tokens(random, 20 - 2 * at), member=member,
            temperature=[1.0, 0.5, 2.0][at % 3], hidden=at % 2 == 0,
        )
        for at, member in enumerate(WHO)
    ]  # fmt: skip
    with tiny.engine(architecture) as opened:
        opened.trainer.micro_tokens = 64
        scores = tiny.score(opened, requests)
        alone = {m: tiny.with_adapter(architecture, opened.read(m), tmp_path / m) for m in opened.members}
    alone[None] = tiny.model(architecture)
    for request, score in zip(requests, scores, strict=True):
        ids = torch.tensor([[*request.prompt, *request.completion]])
        with torch.no_grad():
            right = alone[request.member](ids, output_hidden_states=True)
        logprob_T_V = (right.logits[0] / request.temperature).log_softmax(-1)
        wanted = logprob_T_V[len(request.prompt) - 1 : -1].gather(1, torch.tensor(request.completion)[:, None])[:, 0]
        assert torch.allclose(torch.tensor(score.logprobs), wanted, rtol=0, atol=1e-4)
        if request.hidden:
            assert score.hidden is not None and score.hidden.dtype == torch.float32
            assert torch.allclose(score.hidden, right.hidden_states[-1][0, -1], rtol=0, atol=1e-4)
        else:
            assert score.hidden is None


@pytest.mark.parametrize("architecture", tiny.FAST)
def test_the_fast_path_says_what_the_general_path_says(architecture):
    token_B_T = batch()
    with tiny.engine(architecture) as opened, torch.no_grad():
        fast_B_T_V = logits(opened.body, opened.bank, token_B_T, WHO)
        body, bank = tiny.general(opened, architecture)
        general_B_T_V = logits(body, bank, token_B_T, WHO)
    assert isinstance(opened.body, LlamaBody)
    assert float((fast_B_T_V - general_B_T_V).abs().max()) <= 1e-4


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_padding_does_not_show(architecture):
    """Only what stands before a token is seen by it."""
    token_B_T = batch()
    other_B_T = token_B_T.clone()
    other_B_T[:, 12:] = batch(seed=100)[:, 12:]
    with tiny.engine(architecture) as opened, torch.no_grad():
        one, other = (logits(opened.body, opened.bank, ids, WHO) for ids in (token_B_T, other_B_T))
    assert torch.equal(one[:, :12], other[:, :12])
    assert not torch.allclose(one[:, 12:], other[:, 12:])


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # and is done in another way
def test_half_precision_members_stay_close_to_float32():
    """Compute copies are bfloat16, masters are not."""
    token_B_T = batch()
    with tiny.engine("qwen3", torch.bfloat16) as half, tiny.engine("qwen3") as whole, torch.no_grad():
        assert half.bank.masters_A_D.dtype == torch.float32 and half.bank.compute_A_D.dtype == torch.bfloat16
        one, other = (logits(opened.body, opened.bank, token_B_T, WHO) for opened in (half, whole))
    assert one.dtype == torch.float32
    assert float((one - other).norm() / other.norm()) <= 0.05
