"""The configuration files and the Slurm script of examples/cluster start the processes they say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.launch import EXAMPLES, free_port

pytestmark = pytest.mark.program

CLUSTER = EXAMPLES / "cluster"
# each process leaves a file
SCRIPT = """
import sys
from pathlib import Path
from accelerate import Accelerator

started = Accelerator()
Path(sys.argv[1], str(started.process_index)).write_text(f"{started.num_processes} {sys.argv[2:]}")
started.wait_for_everyone()
started.end_training()
"""
# what Slurm has in the place of these names: two nodes, which are both this machine
PROGRAMS = {
    "scontrol": '#!/bin/sh\n[ "$*" = "show hostnames nodes[1-2]" ] && echo 127.0.0.1; echo other\n',
    "srun": '#!/bin/sh\nSLURM_NODEID=1 "$@" & SLURM_NODEID=0 "$@" && wait $!\n',
}


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def launch(config: str, *arguments: object) -> subprocess.Popen:
    command = [sys.executable, "-m", "accelerate.commands.launch"]
    command += ["--config_file", CLUSTER / config, "--main_process_port", *arguments]
    return subprocess.Popen(
        list(map(str, command)), env=os.environ | {"ACCELERATE_USE_CPU": "true"}
    )


def assert_all_ran(folder: Path, *arguments: str) -> None:
    for rank in range(2):
        assert (folder / str(rank)).read_text() == f"2 {list(arguments)}"


def test_one_machine(script, tmp_path):
    process = launch("one_machine.yaml", free_port(), "--num_processes", 2, script, tmp_path)
    assert process.wait(timeout=200) == 0
    assert_all_ran(tmp_path)


def test_two_machines(script, tmp_path):
    port, together = free_port(), ["--num_processes", 2, "--main_process_ip", "127.0.0.1"]
    started = [
        launch("two_machines.yaml", port, *together, "--machine_rank", rank, script, tmp_path)
        for rank in range(2)
    ]
    assert [process.wait(timeout=200) for process in started] == [0, 0]
    assert_all_ran(tmp_path)


def test_slurm(script, tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    slurm = {
        "SLURM_JOB_NODELIST": "nodes[1-2]",
        "SLURM_NNODES": "2",
        "SLURM_GPUS_ON_NODE": "1",
        "SLURM_JOB_ID": str(free_port()),
        "PATH": os.pathsep.join(
            [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        ),
    }
    subprocess.run(
        ["bash", CLUSTER / "train.slurm", script, tmp_path, "--file", "two words *.txt"],
        cwd=EXAMPLES.parent,
        env=os.environ | slurm | {"ACCELERATE_USE_CPU": "true"},
        check=True,
        timeout=200,
    )
    assert_all_ran(tmp_path, "--file", "two words *.txt")
