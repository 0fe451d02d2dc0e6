"""The tables of the campaign. A new capability adds its row here."""

from faults.downloads import ConvertByName, Download
from faults.inputs_archives import Alignment, AllennlpArchive, Tar
from faults.inputs_folders import Folder, LanguageModelFolder, TaggerFolder
from faults.inputs_many_langs import ManyLangs, WordLevel
from faults.inputs_resumed import (
    CHECKPOINTS,
    Chunks,
    Features,
    TrainingFeatures,
    UnfinishedFeatures,
)
from faults.inputs_settings import Overrides, WordVectors
from faults.inputs_tagging import RawText, Treebank
from faults.inputs_tensorflow import Checkpoint, Module
from faults.inputs_texts import Fasta, GzippedText, Tagged, Text
from faults.inputs_weights import GzippedVocabulary, Options, Vocabulary, Weights, Zip
from faults.kind import Command, Kind
from faults.programs import PROGRAMS

# inputs that may be damaged
KINDS: list[Kind] = [
    Weights(),
    Options(),
    Zip(),
    Tar(),
    AllennlpArchive(),
    Alignment(),
    Checkpoint(),
    Module(),
    ManyLangs(),
    WordLevel(),
    Vocabulary(),
    GzippedVocabulary(),
    Text(),
    GzippedText(),
    RawText(),
    Treebank(),
    Fasta(),
    Tagged("conllu"),
    Tagged("columns"),
    Tagged("joined"),
    Tagged("json"),
    Tagged("parquet"),
    Overrides(),
    WordVectors(),
    Folder(),
    TaggerFolder(),
    LanguageModelFolder(),
    Chunks(),
    Features(),
    UnfinishedFeatures(),
    TrainingFeatures(),
    *CHECKPOINTS,
]
# commands that are killed, run out of disk, and meet each other
COMMANDS: list[Command] = [*PROGRAMS, Download(), ConvertByName()]
