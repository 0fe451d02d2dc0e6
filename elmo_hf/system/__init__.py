"""What the operating system and the installation give: programs, processes, memory, files."""

from elmo_hf.system.program import run_program

__all__ = ["run_program"]
