"""Forked workers that run trials one by one, so that a crash or a hang costs one trial only."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

from faults.children import silence
from faults.judge import Outcome, failure

# what a worker does with the number of a trial: its outcome, and what was done to the input
Trial = Callable[[int], tuple[Outcome, str]]


class Done(NamedTuple):
    number: int
    outcome: Outcome
    damage: str


class Worker:
    """A forked process that waits for numbers of trials."""

    def __init__(self, trial: Trial):
        self.ours, theirs = Pipe()
        self.process = get_context("fork").Process(target=serve, args=(trial, theirs, self.ours))
        self.process.start()
        theirs.close()
        self.number = -1
        self.deadline = 0.0

    def begin(self, number: int, seconds: float) -> None:
        self.number, self.deadline = number, time.monotonic() + seconds
        self.ours.send(number)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.ours.close()


def serve(trial: Trial, pipe: Connection, parents: Connection) -> None:
    parents.close()
    silence()
    while True:
        try:
            number = pipe.recv()
        except EOFError:
            os._exit(0)
        try:
            found = trial(number)
        except BaseException as error:
            found = failure("the campaign itself fails", repr(error)), ""
        pipe.send(found)


def run_trials(trial: Trial, numbers: Iterable[int], jobs: int, seconds: float) -> Iterator[Done]:
    """Runs trials until there is no further number; each may take so many seconds."""
    left = iter(numbers)
    workers: list[Worker] = []
    try:
        for number in left:
            worker = Worker(trial)
            worker.begin(number, seconds)
            workers.append(worker)
            if len(workers) == jobs:
                break
        while workers:
            for worker in ready(workers):
                done, alive = finish(worker)
                yield done
                if not alive:
                    worker.end()
                    workers.remove(worker)
                number = next(left, None)
                if number is None:
                    if alive:
                        worker.end()
                        workers.remove(worker)
                    continue
                if not alive:
                    worker = Worker(trial)
                    workers.append(worker)
                worker.begin(number, seconds)
    finally:
        for worker in workers:
            worker.end()


def ready(workers: list[Worker]) -> list[Worker]:
    """Workers that have an answer, died, or are late."""
    soonest = min(worker.deadline for worker in workers)
    answered = wait([worker.ours for worker in workers], max(0, soonest - time.monotonic()))
    now = time.monotonic()
    return [one for one in workers if one.ours in answered or one.deadline <= now]


def finish(worker: Worker) -> tuple[Done, bool]:
    """The end of a worker's trial, and whether the worker lives."""
    if not worker.ours.poll():
        return Done(worker.number, failure("hangs"), ""), False
    try:
        outcome, damage = worker.ours.recv()
    except EOFError:
        worker.process.join()
        code = worker.process.exitcode or 0
        return Done(worker.number, failure(f"the interpreter died ({code})"), ""), False
    return Done(worker.number, outcome, damage), True
