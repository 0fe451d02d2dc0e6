"""What `make benchmark` measures: every row of the tables, and the program that measures it."""

from typing import NamedTuple


class Row(NamedTuple):
    # which part of the tables it belongs to
    part: str
    name: str
    # the program in this folder, and its options
    program: str
    options: str
    # what it reads: the names of options that name a text
    texts: tuple[str, ...] = ("text",)
    # options in place of these with QUICK=1; None leaves the row out
    quick: str | None = None
    # about how long it takes, to tell what is left
    seconds: int = 60
    quick_seconds: int = 0
    # the row without which there is nothing to time
    after: str = ""

    @property
    def key(self) -> str:
        return f"{self.part}: {self.name}"


def agreement(size: str, quick: bool) -> Row:
    options = f"--model {size} --case agreement"
    row = Row("agreement", size, "compare.py", options)
    return row._replace(quick=options, quick_seconds=30) if quick else row


def speed(
    size: str,
    case: str,
    sentences: int,
    rounds: int,
    seconds: int,
    *,
    part: str = "speed",
    simple_elmo: bool = False,
    quick: int = 0,
    quick_seconds: int = 0,
) -> Row:
    """`quick` is the number of sentences with QUICK=1."""
    options = f"--model {size} --case {case}" + " --peers allennlp simple_elmo" * simple_elmo
    return Row(
        part,
        f"{size}, {case.replace('-', ' ', 1).replace('-', ', ')}",
        "compare.py",
        f"{options} --sentences {sentences} --rounds {rounds}",
        quick=f"{options} --sentences {quick} --rounds 3" if quick else None,
        seconds=seconds,
        quick_seconds=quick_seconds,
        after=f"agreement: {size}",
    )


def growth(name: str, options: str) -> Row:
    return Row("growth", name, "growth.py", options, after="agreement: small")


def tokenizer(case: str) -> Row:
    options = f"--case {case}"
    row = Row("tokenizer", case.replace("-", " "), "tokenizer_speed.py", options)
    return row._replace(seconds=20, quick=options, quick_seconds=20)


def vocabulary(recipe: str, rounds: str, **more) -> Row:
    options = f"--recipe {recipe} {rounds}"
    return Row("vocabulary", recipe, "vocabulary_growth.py", options, ("train",), **more)


def onnx(batch: int, quick: str) -> Row:
    options = f"--batch {batch}"
    name = f"batch {batch}"
    return Row("onnx", name, "onnx_speed.py", options, quick=f"{options} {quick}", quick_seconds=30)


LENGTHS = (10, 100, 1000, 10000)
BATCHES = (1, 16, 256)
ROWS = (
    agreement("small", quick=True),
    speed("small", "batch-32", 512, 5, 250, simple_elmo=True, quick=128, quick_seconds=90),
    speed("small", "batch-32-sorted", 1024, 5, 300),
    speed("small", "batch-1", 128, 5, 90, quick=64, quick_seconds=45),
    speed("small", "batch-128", 256, 3, 100),
    speed("small", "batch-32-plain", 256, 3, 80),
    speed("small", "train", 128, 5, 120),
    agreement("medium", quick=False),
    speed("medium", "batch-32", 96, 3, 120, simple_elmo=True),
    speed("medium", "batch-1", 96, 3, 90),
    speed("medium", "batch-128", 96, 3, 70),
    agreement("original", quick=True),
    speed("original", "batch-32", 128, 5, 400, simple_elmo=True, quick=64, quick_seconds=150),
    speed("original", "batch-32-sorted", 512, 5, 500),
    speed("original", "batch-1", 24, 5, 150),
    speed("original", "batch-128", 128, 3, 150),
    speed("small", "corpus", 2001, 5, 500, part="corpus", quick=256, quick_seconds=100),
    speed("original", "corpus", 2001, 5, 1500, part="corpus"),
    *(growth(f"sentences of {n:,} words", f"--words-per-sentence {n}") for n in LENGTHS),
    *(growth(f"batches of {n}", f"--batch {n}") for n in BATCHES),
    Row("large corpus", "elmo-hf embed, .npy", "corpus_growth.py", "--ending .npy", seconds=2100),
    tokenizer("split-words"),
    tokenizer("raw-strings"),
    tokenizer("padded-tensor"),
    Row(
        "pretraining",
        "speed",
        "pretraining.py",
        "--words 200000",
        ("train",),
        quick="--words 20000 --rounds 3",
        seconds=700,
        quick_seconds=120,
    ),
    Row(
        "perplexity",
        "one epoch",
        "pretraining.py",
        "--rounds 1",
        ("train", "heldout"),
        seconds=1200,
    ),
    vocabulary("bilm", "--rounds 5", seconds=1500),
    vocabulary("adamw", "--rounds 5", seconds=1500),
    onnx(1, "--sentences 64 --rounds 3"),
    onnx(32, "--rounds 3"),
    Row(
        "raw text",
        "the bundled tagger",
        "raw_tagging.py",
        "--rounds 7",
        ("treebank",),
        quick="--rounds 3",
        quick_seconds=20,
    ),
)
