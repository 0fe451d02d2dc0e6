r"""Run a training script on a Ray cluster: what `accelerate launch` does on machines of your own.

    python examples/cluster/train_with_ray.py --num_workers 2 examples/run_pretrain.py \
        --train_file 'corpus/*.txt' --preset small --output_dir /shared/my-elmo

What follows the script are its own options. Ray Train starts one process per worker and connects
them; the script trains as it does under `accelerate launch`, and ends with the same weights.

A worker that dies, or a machine that goes away, ends all workers, and Ray starts them again. The
script then resumes from the last checkpoint in its output folder. So this folder, the script and
the text must have the same paths on all machines, in a file system that they share.

Needs `pip install '.[ray,train,plot]'`.
"""

import argparse
import os
import runpy
import sys
from pathlib import Path
from typing import Any

# Before Ray is imported: it would report how it is used, and print everything twice.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_TRAIN_ENABLE_PRINT_PATCH", "0")

import ray
from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
from ray.train.torch import TorchTrainer

from elmo_hf.system import run_program


def train(command: dict[str, Any]) -> None:
    """What each worker does: the script, as if it had been started from a shell."""
    os.chdir(command["folder"])
    sys.argv = [command["script"], *command["arguments"]]
    try:
        runpy.run_path(command["script"], run_name="__main__")
    except SystemExit as end:
        # Its error has been printed. To Ray, the end of a program is no failure of a worker.
        if end.code:
            raise RuntimeError(f"{command['script']} ended with an error") from None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--num_workers", type=int, default=1, help="how many processes train")
    parser.add_argument("--use_gpu", action="store_true", help="give every worker a GPU")
    parser.add_argument(
        "--max_failures",
        type=int,
        default=3,
        help="how often workers are started again after one has failed (default: 3)",
    )
    parser.add_argument(
        "--storage_path",
        type=Path,
        help="a folder that all machines share, for Ray's own notes (default: ~/ray_results)",
    )
    parser.add_argument("script", type=Path, help="run_pos.py or run_pretrain.py")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the options of the script")
    options = parser.parse_args()
    if not options.script.is_file():
        raise FileNotFoundError(f"There is no script {str(options.script)!r}.")
    # the cluster of RAY_ADDRESS, or of this machine; if there is none, one that ends with us
    # without a dashboard, which Ray would warn of every second
    ray.init(include_dashboard=False, logging_config=ray.LoggingConfig(log_level="ERROR"))
    trainer = TorchTrainer(
        train,
        train_loop_config={
            "folder": os.getcwd(),
            "script": str(options.script.absolute()),
            "arguments": options.arguments,
        },
        scaling_config=ScalingConfig(num_workers=options.num_workers, use_gpu=options.use_gpu),
        run_config=RunConfig(
            storage_path=options.storage_path and str(options.storage_path.absolute()),
            failure_config=FailureConfig(max_failures=options.max_failures),
        ),
    )
    try:
        trainer.fit()
    except TrainingFailedError as error:
        raise ValueError("The training failed; its workers have printed why.") from error


if __name__ == "__main__":
    run_program(main)
