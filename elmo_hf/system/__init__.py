"""What the operating system and the installation give: programs, processes, memory, files."""

from elmo_hf.system.program import run_program
from elmo_hf.system.writing import new_folder, refuse_existing_folder, write_text

__all__ = ["new_folder", "refuse_existing_folder", "run_program", "write_text"]
