"""Processes that share a job, and the device each of them takes."""

import multiprocessing
import os

import pytest
import torch
from helpers.launch import free_port

from elmo_hf.system.processes import Processes, choose_device, lock_file, process_group


def test_a_process_takes_its_own_gpu(monkeypatch):
    assert choose_device() == ("cuda:0" if torch.cuda.is_available() else "cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert choose_device() == "cuda:3"
    assert choose_device("cpu") == "cpu"


def test_a_device_that_cannot_be_used_is_one_sentence():
    with pytest.raises(ValueError, match="The device 'gpu' cannot be used: Expected one of cpu"):
        choose_device("gpu")
    with pytest.raises(ValueError, match="The device 'cuda:99' cannot be used: "):
        choose_device("cuda:99")


def test_one_process_works_alone():
    with process_group() as processes:
        assert processes == Processes(0, 1) and processes.is_first
        assert processes.by_the_first(lambda: "found") == "found"
        processes.wait_for_all()


def share(rank: int, port: int, results) -> None:
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}

    def refuse():
        raise FileExistsError("the file exists")

    with process_group() as processes:
        found = processes.by_the_first(lambda: f"by {processes.rank}")
        try:
            processes.by_the_first(refuse)
        except FileExistsError as error:
            found += f", {error}"
        processes.wait_for_all()
    results.put((rank, found))


@pytest.mark.program
def test_what_the_first_finds_reaches_all():
    context = multiprocessing.get_context("spawn")
    results, port = context.Queue(), free_port()
    pair = [context.Process(target=share, args=(rank, port, results)) for rank in range(2)]
    for process in pair:
        process.start()
    found = dict(results.get(timeout=120) for _ in pair)
    for process in pair:
        process.join()
    assert found == dict.fromkeys(range(2), "by 0, the file exists")


def test_one_process_locks_a_file(tmp_path):
    with (tmp_path / "lock").open("w") as file, (tmp_path / "lock").open("w") as other:
        assert lock_file(file)
        assert not lock_file(other)
    with (tmp_path / "lock").open("w") as file:
        assert lock_file(file)
