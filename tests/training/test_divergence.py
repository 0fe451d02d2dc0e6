"""A training whose numbers are not finite stops."""

import math

import pytest
import torch

from elmo_hf.system.checksums import write_checksums
from elmo_hf.training.divergence import refuse_divergence


def test_finite_numbers_pass(tmp_path):
    refuse_divergence(tmp_path, 3, 0.5, torch.nn.Linear(2, 2))


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, loss):
    for step in (2, 3):
        (tmp_path / f"checkpoint-{step}").mkdir()
    # the other one was not finished
    write_checksums(tmp_path / "checkpoint-2")
    with pytest.raises(ValueError) as raised:
        refuse_divergence(tmp_path, 3, loss, torch.nn.Linear(2, 2))
    assert str(raised.value) == (
        f"The loss is {loss} after step 3: the training has diverged. Start again with a lower "
        "--learning_rate and --overwrite_output_dir; checkpoint-2 is from before."
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e30])
def test_a_weight_that_is_not_finite_stops_the_run(tmp_path, value):
    model = torch.nn.Linear(2, 2)
    with torch.no_grad():
        model.weight[1, 1] = value
    with pytest.raises(ValueError, match="weights are NaN, infinite or huge after step 3"):
        refuse_divergence(tmp_path, 3, 0.5, model)
