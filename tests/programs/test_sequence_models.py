"""Sequence models for 20 steps, eagerly and as a graph, against losses of PyTorch.

`python tests/programs/test_sequence_models.py` prints the losses, if PyTorch is installed.
"""

from pathlib import Path

import numpy as np
import pytest

import minflow as flow
from minflow.models import GPT, GPTConfig
from tests.graph_models import Step

PROGRAM = Path(__file__).with_name("sequence_models.py")
STEPS = 20
PYTORCH = {
    "char_lstm": [
        2.9463655598,
        2.8646773484,
        2.8016600016,
        2.7527229946,
        2.7122949022,
        2.6755737530,
        2.6400370410,
        2.6051226123,
        2.5713746642,
        2.5399626263,
        2.5125996363,
        2.4913803332,
        2.4772713667,
        2.4688893267,
        2.4643799937,
        2.4624058107,
        2.4618387252,
        2.4612131664,
        2.4593888208,
        2.4563259636,
    ],
    "nanogpt": [
        2.2429998951,
        2.1954815426,
        2.1450902776,
        2.1033768245,
        2.0705196325,
        2.0385714965,
        2.0086049790,
        1.9809321664,
        1.9551551253,
        1.9309557750,
        1.9080995789,
        1.8862488420,
        1.8648686617,
        1.8433067815,
        1.8210316268,
        1.7977975015,
        1.7732176796,
        1.7459055364,
        1.7151658562,
        1.6851158722,
    ],
    "sentences": [
        1.0847194080,
        1.0743678126,
        1.0568735297,
        1.0362373374,
        1.0154703496,
        0.9945670726,
        0.9693018635,
        0.9324423621,
        0.8778288435,
        0.8056574451,
        0.7240298172,
        0.6405922173,
        0.5576186974,
        0.4798607345,
        0.4123718297,
        0.3560977432,
        0.3110234282,
        0.2762897747,
        0.2462661747,
        0.2128051832,
    ],
}


def losses_of(names: dict, program: str) -> list[float]:
    """Return the loss before each of 20 steps."""
    _, optimizer, loss_of, batch = names[program]()
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def run_program(library: str = "minflow") -> dict:
    names: dict = {"__name__": "sequence_models"}
    text = PROGRAM.read_text(encoding="utf-8").replace("import minflow as torch", f"import {library} as torch")
    exec(compile(text.replace("minflow", library), str(PROGRAM), "exec"), names)
    return names


@pytest.mark.parametrize("program", PYTORCH)
def test_losses_match_pytorch(program):
    np.testing.assert_allclose(losses_of(run_program(), program), PYTORCH[program], rtol=1e-8)


@pytest.mark.parametrize("program", PYTORCH)
def test_graph_gives_the_same_losses(program):
    names = run_program()
    model, optimizer, loss_of, batch = names[program](*[False] * (program == "sentences"))
    step = Step(model, optimizer, loss_of)
    losses = [step(*batch).item() for _ in range(STEPS)]
    np.testing.assert_allclose(losses, PYTORCH[program], rtol=1e-8)
    if program != "sentences":  # the eager run is packed
        assert losses == losses_of(names, program)


def test_our_gpt_equals_nanogpt():
    """From the same weights, and with its own attention."""
    model, _, loss_of, (x, y) = run_program()["nanogpt"]()
    ours = GPT(GPTConfig(8, 11, 2, 2, 12)).double()
    ours.load_state_dict(model.state_dict())
    logits, loss = ours(x, y)
    assert abs(loss.item() - loss_of(x, y).item()) < 1e-12 and logits.shape == (3, 8, 11)
    last, none = ours(x)
    np.testing.assert_allclose(last[:, 0].detach().numpy(), logits[:, -1].detach().numpy(), rtol=1e-12)
    assert none is None and ours.get_num_params(False) - ours.get_num_params() == 8 * 12
    flow.manual_seed(0)
    text = ours.generate(x[:, :3], 9, temperature=0.8, top_k=4)
    assert text.shape == (3, 12) and text[:, :3].tolist() == x[:, :3].tolist()
    likely = [text[:, :3]]
    for _ in range(2):
        likely.append(ours(flow.cat(likely, 1))[0][:, -1].argmax(-1, keepdim=True))
    assert ours.generate(x[:, :3], 2, top_k=1).tolist() == flow.cat(likely, 1).tolist()
    with pytest.raises(ValueError, match="9 tokens, block_size is 8"):
        ours(text[:, :9])
    with pytest.raises(IndexError, match="temperature must be above 0, got 0"):
        ours.generate(x, 1, temperature=0)
    with pytest.raises(ValueError, match="n_embd is 10, and n_head 3"):
        GPT(GPTConfig(8, 11, 1, 3, 10))


if __name__ == "__main__":
    for name in PYTORCH:
        print(f'    "{name}": {[round(x, 10) for x in losses_of(run_program("torch"), name)]},')
