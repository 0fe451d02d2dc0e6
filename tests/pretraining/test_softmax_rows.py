"""Training by drawn rows: the same numbers as with the whole table, which no step walks over."""

import copy
import json
import sys
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.tracking import GeneralTracker
from helpers.launch import run
from helpers.tiny import PRETRAINING_SHAPE
from torch.utils._python_dispatch import TorchDispatchMode

from elmo_hf.pretraining import (
    Corpus,
    Pretraining,
    PretrainingSettings,
    make_model,
    make_streams,
    make_vocabulary,
)
from elmo_hf.pretraining.row_optimizers import RowAdagrad, RowAdamW
from elmo_hf.pretraining.softmax_rows import SoftmaxRows
from elmo_hf.pretraining.training import learning_rate
from elmo_hf.pretraining.weight_average import WeightAverage
from elmo_hf.softmax_elmo import ElmoSoftmax

WORDS, WIDTH, RATE = 60, 6, 0.1
TEXT = "the dog sees the small cat .\na bird hears the dog .\n"
SHAPE = PRETRAINING_SHAPE | {"num_negative_samples": 12, "hidden_dropout": 0.1}


def drawn_in_turn(steps: int) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """For each step: some words, the first ones often, and gradients of their rows and biases."""
    found = []
    for _ in range(steps):
        words = (torch.rand(20) ** 3 * (WORDS - 1)).long().unique()
        found.append((words, torch.randn(len(words), WIDTH), torch.randn(len(words))))
    return found


def step_by_rows(optimizer, words, gradients):
    rows = optimizer.values(words)
    for values, gradient in zip(rows, gradients, strict=True):
        values.grad = gradient
    optimizer.step(words, rows, RATE)


def train_both_ways(steps, make_dense, make_rows):
    """Tables trained with gradients of their own size, and by rows alone."""
    dense = [torch.randn(WORDS, WIDTH, requires_grad=True), torch.randn(WORDS, requires_grad=True)]
    tables = [table.detach().clone() for table in dense]
    before = [table.clone() for table in tables]
    optimizer, by_rows = make_dense(dense), make_rows(tables)
    for words, *gradients in steps:
        for table, gradient in zip(dense, gradients, strict=True):
            table.grad = torch.zeros_like(table)
            table.grad[words] = gradient
        optimizer.step()
        step_by_rows(by_rows, words, gradients)
    seen = torch.cat([words for words, *_ in steps]).unique()
    for table, old in zip(tables, before, strict=True):
        never = torch.ones(WORDS, dtype=torch.bool).index_fill_(0, seen, False)
        assert never.any() and table[never].equal(old[never])
        assert not table.equal(old)
    return dense, tables, by_rows


def test_adagrad_by_rows_is_torchs_adagrad_to_the_bit():
    dense, tables, _ = train_both_ways(
        drawn_in_turn(5),
        lambda both: torch.optim.Adagrad(both, 0.1, initial_accumulator_value=1.0, fused=True),
        lambda both: RowAdagrad(both, 1.0),
    )
    for table, expected in zip(tables, dense, strict=True):
        assert table.equal(expected)


def make_adamw(both):
    groups = [{"params": both[:1], "weight_decay": 0.1}, {"params": both[1:]}]
    return torch.optim.AdamW(groups, lr=RATE, weight_decay=0.0)


def test_adamw_by_rows_is_torchs_adamw_where_every_row_is_drawn(monkeypatch):
    monkeypatch.setattr(RowAdamW, "FIRST_MOMENT", torch.float32)
    steps = [
        (torch.arange(WORDS - 1), torch.randn(WORDS - 1, WIDTH), torch.randn(WORDS - 1))
        for _ in range(20)
    ]
    dense, tables, _ = train_both_ways(steps, make_adamw, lambda both: RowAdamW(both, [0.1, 0.0]))
    for table, expected in zip(tables, dense, strict=True):
        torch.testing.assert_close(table[:-1], expected[:-1], rtol=1e-5, atol=1e-5)


def test_adamw_by_rows_follows_torchs_adamw_where_rows_are_drawn_now_and_then():
    """Within 3 % of how far weights have moved; without a first moment it would be 22 %."""
    steps = drawn_in_turn(200)
    start = None

    def make_rows(both):
        nonlocal start
        start = [table.clone() for table in both]
        return RowAdamW(both, [0.1, 0.0])

    dense, tables, by_rows = train_both_ways(steps, make_adamw, make_rows)
    values = by_rows.values(torch.arange(WORDS))
    by_rows.settle(torch.arange(WORDS))
    for table, value, expected, first in zip(tables, values, dense, start, strict=True):
        assert table.equal(value)
        moved = (expected - first).norm()
        assert (value - expected).norm() < 0.03 * moved
    # all is up to date: nothing more happens
    for value, again in zip(values, by_rows.values(torch.arange(WORDS)), strict=True):
        assert again.equal(value)


@pytest.mark.parametrize("make", [lambda t: RowAdagrad(t, 1.0), lambda t: RowAdamW(t, [0.1, 0.0])])
def test_a_restored_optimizer_goes_on_alike(make):
    steps = drawn_in_turn(8)
    _, tables, old = train_both_ways(steps[:5], lambda both: torch.optim.SGD(both, 0.1), make)
    again = [table.clone() for table in tables]
    new = make(again)
    new.load_state_dict(copy.deepcopy(old.state_dict()))
    for words, *gradients in steps[5:]:
        step_by_rows(old, words, gradients)
        step_by_rows(new, words, gradients)
    for table, other in zip(tables, again, strict=True):
        assert table.equal(other)


def test_the_mean_by_rows_is_the_mean_of_all_weights():
    softmax = ElmoSoftmax(WIDTH, WORDS)
    expected = WeightAverage(softmax, 0.125)
    average = WeightAverage(softmax, 0.125, list(softmax.parameters()))
    assert not average.means
    for step, (words, *changes) in enumerate(drawn_in_turn(300), start=1):
        average.before_change(words, [weight[words] for weight in softmax.parameters()])
        for weight, change in zip(softmax.parameters(), changes, strict=True):
            weight.data[words] += 0.1 * change
        average.update(step)
        expected.update(step)
        if step == 150:
            # a look at the mean changes nothing, and it can be saved
            average.before_change(torch.arange(WORDS), list(softmax.parameters()))
            last = [weight.clone() for weight in softmax.parameters()]
            with average.applied():
                pass
            for weight, kept in zip(softmax.parameters(), last, strict=True):
                assert weight.equal(kept)
            saved = copy.deepcopy(average.state_dict())
            average = WeightAverage(softmax, 0.125, list(softmax.parameters()))
            average.load_state_dict(saved)
    average.before_change(torch.arange(WORDS), list(softmax.parameters()))
    with average.applied():
        for weight, mean in zip(softmax.parameters(), expected.means, strict=True):
            torch.testing.assert_close(weight.detach(), mean, rtol=1e-5, atol=1e-6)


def test_drawn_rows_get_the_gradients_of_the_whole_table():
    softmax = ElmoSoftmax(WIDTH, WORDS)
    hidden = torch.randn(2, 30, WIDTH)
    targets = torch.arange(60).view(2, 30) % 10
    torch.manual_seed(1)
    expected = softmax.sampled_losses(hidden, targets, 12)
    expected.sum().backward()
    weight, bias = softmax.weight.grad, softmax.bias.grad
    softmax.zero_grad()
    rows = SoftmaxRows(
        Accelerator(cpu=True),
        softmax,
        RowAdagrad(list(softmax.parameters()), 1.0),
        WeightAverage(softmax, 0.0),
    )
    torch.manual_seed(1)
    losses = softmax.sampled_losses(hidden, targets, 12)
    losses.sum().backward()
    assert losses.equal(expected) and softmax.weight.grad is None
    [rows] = rows.drawn
    assert rows.room == 2 * (30 + 12) and len(rows.words) < rows.room
    assert rows.weight.grad.equal(weight[rows.words]) and rows.bias.grad.equal(bias[rows.words])
    assert weight.norm() == pytest.approx(rows.weight.grad.norm().item(), rel=1e-6)


@pytest.fixture
def folder(tmp_path):
    """With a text and a shape."""
    (tmp_path / "train.txt").write_text(TEXT * 300)
    (tmp_path / "shape.json").write_text(json.dumps(SHAPE))
    return tmp_path


def write_words(folder: Path, size: int) -> Path:
    words = ["<S>", "</S>", "<UNK>", *sorted(set(TEXT.split()))]
    words += [f"filler{number}" for number in range(size - len(words))]
    path = folder / f"{size}.txt"
    path.write_text("\n".join(words) + "\n")
    return path


@pytest.fixture
def make_run(folder):
    """Makes a run with a vocabulary of a size."""

    def make(name: str, size: int, **more) -> Pretraining:
        text = folder / "train.txt"
        settings = PretrainingSettings(
            train_file=str(text),
            vocab_file=write_words(folder, size),
            config_overrides=folder / "shape.json",
            per_device_train_batch_size=4,
            output_dir=folder / name,
            **more,
        )
        model = make_model(settings, make_vocabulary(settings, None))
        AcceleratorState._reset_state()
        accelerator = Accelerator(cpu=True, mixed_precision=settings.mixed_precision)
        streams = make_streams(accelerator, Corpus([text]), 4, settings.window_size, settings.seed)
        return Pretraining(settings, accelerator, model, streams)

    return make


def test_a_run_by_rows_is_the_run_with_the_whole_table(make_run):
    """Everything together for bilm-tf's recipe: sampling, clipping and Adagrad."""
    by_rows, whole = make_run("rows", WORDS, recipe="bilm"), make_run("all", WORDS, recipe="bilm")
    assert by_rows.rows is not None and whole.rows is not None
    whole.rows.release()
    whole.rows = None
    whole.optimizer = whole.accelerator.prepare(
        torch.optim.Adagrad(whole.model.parameters(), 0.2, initial_accumulator_value=1.0)
    )
    found = []
    for some in (by_rows, whole):
        torch.manual_seed(3)
        found.append(torch.stack([some.train_step() for _ in range(20)]))
    torch.testing.assert_close(*found, rtol=1e-5, atol=0)
    for name, weight in by_rows.model.named_parameters():
        expected = whole.model.get_parameter(name)
        torch.testing.assert_close(weight, expected, rtol=1e-4, atol=1e-6, msg=name)


class TableWatch(TorchDispatchMode):
    """Notes all operations that read or make something with a row for every word."""

    def __init__(self, size: int):
        super().__init__()
        self.size, self.seen = size, set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for part in torch.utils._pytree.tree_leaves([args, kwargs, result]):
            if isinstance(part, torch.Tensor) and self.size in part.shape:
                self.seen.add(function._schema.name)
        return result


@pytest.mark.parametrize("recipe", ["adamw", "bilm"])
def test_no_step_walks_over_the_table(make_run, recipe):
    size = 30_011
    run = make_run("watched", size, recipe=recipe)
    with TableWatch(size) as watch:
        # the running mean takes part in every tenth step
        for _ in range(11):
            run.train_step()
    # they copy some rows out of a table or into it; a detached tensor is the same memory
    assert watch.seen <= {"aten::index", "aten::index_put_", "aten::detach", "aten::alias"}
    assert {"aten::index", "aten::index_put_"} <= watch.seen


def test_windows_of_a_step_add_up_to_their_mean(make_run):
    """Two windows of half the rate of a sum: the gradients of both, of rows and of all others."""
    run = make_run("windows", WORDS, recipe="bilm", gradient_accumulation_steps=2)
    assert run.words_per_step == pytest.approx(2 * 4 * 20 * 6 / 7, rel=0.05)
    run.wrapped_model.train()
    softmax, drawn = run.model.softmax, []
    expected = torch.zeros(WORDS, 8)
    for number in range(2):
        run.read_window(number)
        [rows] = run.rows.drawn[number:]
        drawn.append(rows)
        expected[rows.words] += rows.weight.grad
    weight, bias = run.rows.collect()
    assert weight.equal(softmax.weight[run.rows.words]) and len(bias) == len(weight)
    torch.testing.assert_close(weight.grad, expected[run.rows.words])
    assert set(run.rows.words.tolist()) == {word for part in drawn for word in part.words.tolist()}
    assert run.rows.drawn == []


class TwoProcesses:
    """Stands for accelerate in one of two processes; `others` is what the other one sends."""

    num_processes, mixed_precision = 2, "no"

    def __init__(self, others: list[torch.Tensor]):
        self.others, self.sent = others, []

    def gather(self, part: torch.Tensor) -> torch.Tensor:
        self.sent.append(part)
        return torch.cat([part, self.others.pop(0) if self.others else torch.zeros_like(part)])


def test_two_processes_step_by_the_mean_of_their_gradients():
    softmax = ElmoSoftmax(WIDTH, WORDS)
    hidden, targets = torch.randn(2, 2, 9, WIDTH), torch.randint(0, WORDS, (2, 2, 9))
    average = WeightAverage(softmax, 0.0)
    collected, expected, others = [], [torch.zeros(WORDS, WIDTH), torch.zeros(WORDS)], []
    for number in (0, 1):
        accelerator = TwoProcesses(others)
        rows = SoftmaxRows(
            accelerator, softmax, RowAdagrad(list(softmax.parameters()), 1.0), average
        )
        softmax.sampled_losses(hidden[number], targets[number], 12).sum().backward()
        [drawn] = rows.drawn
        for total, part in zip(expected, (drawn.weight, drawn.bias), strict=True):
            total[drawn.words] += part.grad / 2
        collected = rows.collect()
        others = accelerator.sent
        # as much in every step
        assert [len(part) for part in others] == [drawn.room, drawn.room]
    assert sorted(rows.words.tolist()) == expected[1].nonzero().squeeze(1).tolist()
    for values, total in zip(collected, expected, strict=True):
        torch.testing.assert_close(values.grad, total[rows.words])


@pytest.mark.parametrize("recipe", ["adamw", "bilm"])
def test_bf16_trains_nearly_alike(make_run, recipe, monkeypatch):
    losses = []
    for mode in ("no", "bf16"):
        run = make_run(mode, WORDS, recipe=recipe, mixed_precision=mode)
        torch.manual_seed(3)
        losses.append(torch.stack([run.train_step() for _ in range(10)]))
        assert all(weight.dtype == torch.float32 for weight in run.model.parameters())
    assert not losses[0].equal(losses[1])
    torch.testing.assert_close(*losses, rtol=0.02, atol=0)


@pytest.mark.parametrize("recipe", ["adamw", "bilm"])
def test_bf16_and_several_windows_per_step_resume_exactly(make_run, recipe):
    settings = {"recipe": recipe, "mixed_precision": "bf16", "gradient_accumulation_steps": 2}
    weights = []
    # 15 steps are not a multiple of those between two updates of the mean
    for name, stops in (("once", [25]), ("twice", [15, 25])):
        for stop in stops:
            run = make_run(name, WORDS, **settings)
            assert run.resume() == (stop != stops[0])
            while run.progress.step < stop:
                run.train_step()
            run.checkpoints.save(stop)
        run.settle_rows()
        run.average.copy_to_model()
        weights.append(run.model.state_dict())
    for name, weight in weights[0].items():
        assert weight.equal(weights[1][name]), name


class Tracker(GeneralTracker):
    """One of accelerate's, which keeps what it is sent."""

    name, requires_logging_directory, tracker = "ours", False, None

    def __init__(self):
        super().__init__()
        self.logged = []

    def store_init_configuration(self, values: dict) -> None:
        pass

    def log(self, values: dict, step: int | None = None, **kwargs) -> None:
        self.logged.append((step, values))


def test_a_tracker_is_sent_losses_rates_speeds_and_perplexities(make_run):
    run = make_run("tracked", WORDS, max_train_steps=30)
    run.validation = run.corpus
    tracker = Tracker()
    run.accelerator.trackers = [tracker]
    run.train()
    losses = {step: figures for step, figures in tracker.logged if "train_loss_sampled" in figures}
    assert list(losses) == [20, 30]
    for step, figures in losses.items():
        assert figures["learning_rate"] == learning_rate(run.settings, step - 1, 30)
        assert figures["words_per_second"] > 0 and 0 < figures["train_loss_sampled"] < 10
    [perplexity] = [figures for _, figures in tracker.logged if "validation_perplexity" in figures]
    assert perplexity["validation_perplexity"] == run.progress.best


def test_fp16_of_the_launcher_is_refused(make_run, monkeypatch):
    monkeypatch.setattr(Accelerator, "mixed_precision", "fp16")
    with pytest.raises(ValueError, match="pass --mixed_precision bf16 or no"):
        make_run("half", WORDS)


@pytest.mark.program
@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux what was sent")
def test_processes_send_as_much_for_a_large_vocabulary_as_for_a_small_one(folder):
    sizes = [20_000, 800_000]
    for size in sizes:
        write_words(folder, size)
    program = Path(__file__).parents[1] / "helpers" / "bytes_sent.py"
    printed = run(str(program), [folder, *sizes], processes=2)
    small, large = json.loads(printed.splitlines()[-1]).values()
    # far less than the smaller of the two tables
    assert 0 < small["bytes"] == large["bytes"] < 20_000 * 8 * 4
    assert small["same_tables"] and large["same_tables"]
