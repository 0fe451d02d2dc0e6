"""The recipe of the bundled model: its text, its steps, and what it writes in the end."""

import csv
import gzip
import json
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from helpers.launch import EXAMPLES, load_script
from typer.main import get_command

from elmo_hf import ElmoConfig, ElmoForPreTraining, ElmoTokenizer, WordVocabulary, bundled_model
from elmo_hf.cli import app
from elmo_hf.pretraining import PretrainingSettings
from elmo_hf.tagging import DataSettings, HubSettings, ModelSettings, TrainingSettings
from elmo_hf.word_vocabulary import SPECIAL_WORDS

RECIPE = EXAMPLES / "bundled_model"
text = load_script("bundled_model/prepare_text.py")
make = load_script("bundled_model/make.py")
figures = load_script("bundled_model/write_figures.py")


@pytest.mark.parametrize(
    ("tokens", "written"),
    [
        ("He didn 't go , she 'd say .", "He didn't go, she'd say."),
        ("They didn 't , O 'Brien 's said", "They didn't, O'Brien's said"),
        ('" Go ! " he said ( at 3 : 30 ) : " Now . "', '"Go!" he said (at 3:30): "Now."'),
        ("real @-@ time 1 @,@ 000 or 2 @.@ 5 %", "real-time 1,000 or 2.5%"),
        ("1849 – 1850 , an idea – mine", "1849–1850, an idea – mine"),
        ("the books ' covers are ' blue '", "the books' covers are 'blue'"),
        ("a ' blue ' book of $ 5 and / or £ 3", "a 'blue' book of $5 and/or £3"),
        ("design — three [ sic ] “ mints ”", "design—three [sic] “mints”"),
        ("R & B , U.S. and No. 5", "R & B, U.S. and No. 5"),
    ],
)
def test_tokens_of_wikitext_become_raw_text(tokens, written):
    assert text.undo_tokens(tokens.split()) == written


def test_wikitext_is_read_without_headings_and_unknown_words(tmp_path):
    path = tmp_path / "wiki.txt"
    path.write_text(
        " \n = Coins = \n \n"
        " One is gold . The <unk> is not . It 's here . <unk> won . \n = = <unk> = = \n <unk> . \n"
    )
    assert list(text.wikitext_paragraphs(path)) == ["One is gold. It's here.\n"]


@pytest.fixture
def data(tmp_path) -> Path:
    """Corpora of a few words in the layout that the script reads."""
    data = tmp_path / "data"
    for folder in ("english_prose", "wikitext2", "ud_english_ewt"):
        (data / folder).mkdir(parents=True)
    free, ours = "CC0 1.0 (text: US public domain)", "CC BY 4.0"
    kept = "CC0 1.0 (text: US public domain; in copyright where life+70 applies)"
    rows = [
        ("standardebooks/free", "Free", free, "4", "train-00"),
        ("standardebooks/kept", "Kept", kept, "3", "train-00"),
        ("openstax/ours", "Ours, by OpenStax", ours, "2", "train-01"),
        ("openstax/held", "Held, by OpenStax", ours, "2", "test"),
        ("standardebooks/valid", "Valid", kept, "1", "valid"),
    ]
    with (data / "english_prose" / "SOURCES.tsv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(["slug", "title", "commit", "licence", "words", "part"])
        writer.writerows([slug, title, "0a", *rest] for slug, title, *rest in rows)
    lines = {
        "train-00": "Free ‘one’.\nFree two.\nKept kept kept.\n",
        "train-01": "Ours “isn’t”.\n",
        "test": "Held held.\n",
        "valid": "Valid.\n",
    }
    for part, some in lines.items():
        (data / "english_prose" / f"{part}.txt.gz").write_bytes(gzip.compress(some.encode()))
    line = "Ann B. Author. OpenStax, Rice University. CC BY 4.0. Access for free at openstax.org"
    (data / "english_prose" / "PROVENANCE.txt").write_text(f"Attribution:\n  Ours. {line}\n")
    for split in ("train", "test"):
        (data / "wikitext2" / f"{split}.txt").write_text(f" = A = \n A {split} of @-@ course . \n")
    for split in ("train", "dev"):
        sentence = f"# sent_id = 1\n# text = The {split}'s.\n1\tThe\n\n"
        (data / "ud_english_ewt" / f"en_ewt-ud-{split}.conllu").write_text(sentence)
    return data


def prepare(data: Path, output: Path, monkeypatch) -> None:
    arguments = ["prepare_text.py", "--data", str(data), "--output_dir", str(output)]
    monkeypatch.setattr(sys, "argv", arguments)
    text.main()


def test_text_is_that_of_free_books_and_nothing_held_out_is_read(data, tmp_path, monkeypatch):
    output = tmp_path / "text"
    prepare(data, output, monkeypatch)
    read = {path.stem: path.read_text() for path in (output / "train").iterdir()}
    assert read == {
        "standardebooks": "Free ‘one’.\nFree two.\n",
        # typed, as every other book
        "openstax": 'Ours "isn\'t".\n',
        "wikitext-2": "A train of-course.\n" * text.TIMES["wikitext-2"],
        "ewt": "The train's.\n" * text.TIMES["ewt"],
    }
    held_out = {path.name: path.read_text() for path in output.glob("*.txt")}
    attribution = held_out.pop("attribution.txt")
    assert attribution.startswith("Ours. Ann B. Author. OpenStax, Rice University. CC BY 4.0.")
    assert held_out == {
        "prose-test.txt": "Held held.\n",
        "prose-valid.txt": "Valid.\n",
        "wikitext-2-test.txt": "A test of-course.\n",
        "ewt-dev.txt": "The dev's.\n",
    }
    with (output / "sources.tsv").open() as file:
        sources = {row["source"]: row for row in csv.DictReader(file, delimiter="\t")}
    assert list(sources) == ["standardebooks/free", "openstax/ours", "wikitext-2", "ewt"]
    assert {row["words"] for row in sources.values()} == {"4", "2", "3"}
    assert sources["ewt"]["licence"] == "CC BY-SA 4.0" and sources["ewt"]["times"] == "8"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("Free one.\nFree two.\nKept kept kept.\nMore.\n", "goes on after its last book"),
        ("Free one.\nFree two.\nKept kept.\n", "'Kept' should have 3 words but has 2"),
        ("Free one and more.\n", "'Kept' should have 3 words but has 0"),
        ("Free one of three two.\nKept kept kept.\n", "'Free' should have 4 words but has 5"),
    ],
)
def test_books_that_are_not_as_listed_are_refused(content, complaint, data, tmp_path, monkeypatch):
    path = data / "english_prose" / "train-00.txt.gz"
    path.write_bytes(gzip.compress(content.encode()))
    with pytest.raises(ValueError, match=complaint):
        prepare(data, tmp_path / "text", monkeypatch)
    assert not (tmp_path / "text").exists()


def test_a_textbook_without_attribution_is_refused(data, tmp_path, monkeypatch):
    (data / "english_prose" / "PROVENANCE.txt").write_text("Attribution:\n")
    with pytest.raises(ValueError, match=r"no attribution for 'Ours'; add it"):
        prepare(data, tmp_path / "text", monkeypatch)


def known_options(command: list[str]) -> set[str]:
    """The options of the program that a step runs."""
    if command[1:3] == ["-m", "elmo_hf"]:
        found = get_command(app).commands[command[3]].params
        return {name for option in found for name in option.opts}
    script = next(Path(part) for part in command if part.endswith(".py"))
    settings = {
        "run_pretrain.py": [PretrainingSettings],
        "run_pos.py": [DataSettings, ModelSettings, TrainingSettings, HubSettings],
    }
    if script.name in settings:
        return {f"--{field.name}" for kind in settings[script.name] for field in fields(kind)}
    return set(re.findall(r'"(--[a-z_]+)"', script.read_text(encoding="utf-8")))


def test_steps_are_commands_that_exist(tmp_path):
    steps = list(make.all_steps(tmp_path / "data", tmp_path / "output"))
    results = [step.result for step in steps]
    assert len(set(results)) == len(results)
    for _, command in steps:
        own = (
            command[next(at for at, part in enumerate(command) if part.endswith(".py")) :]
            if "elmo_hf" not in command
            else command[3:]
        )
        options = {part for part in own if part.startswith("--")}
        assert options <= known_options(command), command
        for part in command:
            assert not part.endswith(".py") or Path(part).is_file(), part
    # every run that the tables show is made
    made = {result.relative_to(tmp_path / "output").as_posix() for result in results}
    for model in figures.MODELS:
        for run in figures.RUNS | figures.OTHERS:
            assert f"figures/{model}/{run}/all_results.json" in made


def test_a_step_that_has_its_result_is_skipped_and_a_failed_one_ends_the_run(
    tmp_path, monkeypatch, capsys
):
    first, second = tmp_path / "first", tmp_path / "second"
    code = "import sys; open(sys.argv[1], 'x').write('done')"
    steps = [
        make.Step(first, [sys.executable, "-c", code, str(first)]),
        make.Step(second, [sys.executable, "-c", "raise SystemExit(1)"]),
    ]
    monkeypatch.setattr(make, "all_steps", lambda data, output: iter(steps))
    arguments = ["--data", str(tmp_path), "--output_dir", str(tmp_path / "output")]
    monkeypatch.setattr(sys, "argv", ["make.py", *arguments])
    with pytest.raises(ValueError, match="second' failed; repair"):
        make.main()
    assert first.read_text() == "done"
    kept = {path.name: path.read_bytes() for path in (tmp_path / "output" / "before").iterdir()}
    assert kept == {path.name: path.read_bytes() for path in Path(bundled_model()).iterdir()}
    # the first would fail if it ran again
    steps[1] = make.Step(second, [sys.executable, "-c", code, str(second)])
    make.main()
    assert second.read_text() == "done"
    capsys.readouterr()


def test_a_step_without_its_result_has_failed(tmp_path):
    step = make.Step(tmp_path / "result", [sys.executable, "-c", ""])
    with pytest.raises(ValueError, match="result' failed"):
        make.run(step, "[1/1]")


def test_perplexity_is_measured_on_the_words_of_the_models_splitter(tmp_path, monkeypatch, capsys):
    words = [*SPECIAL_WORDS, "It", "'s", "here", "."]
    config = ElmoConfig(
        cell_size=8,
        projection_size=4,
        char_filters=[[1, 4]],
        num_highway_layers=0,
        lm_vocab_size=len(words),
    )
    model = ElmoForPreTraining(config)
    model.vocabulary = WordVocabulary(words)
    model.save_pretrained(tmp_path / "elmo")
    ElmoTokenizer(word_splitter="english").save_pretrained(tmp_path / "elmo")
    raw = tmp_path / "raw.txt"
    raw.write_text("It's here. It's not.\n")
    script = load_script("bundled_model/measure_perplexity.py")
    output = tmp_path / "figures.json"
    arguments = [
        "measure_perplexity.py",
        str(tmp_path / "elmo"),
        str(raw),
        "--output_file",
        str(output),
    ]
    monkeypatch.setattr(sys, "argv", arguments)
    script.main()
    capsys.readouterr()
    found = json.loads(output.read_text())
    assert found["raw_words"] == 8 and found["raw_unknown_share"] == pytest.approx(1 / 8)
    # a model that knows nothing thinks all of its words equally likely, about
    assert found["raw_perplexity"] == pytest.approx(len(words), rel=0.5)


def write_results(output: Path) -> None:
    """What `make.py` leaves, with made-up figures."""
    share = 0.5
    for model in figures.MODELS:
        for run in figures.RUNS | figures.OTHERS:
            share += 0.001
            goal = "f1" if run == "names" else "accuracy"
            results = {f"{split}_{goal}": share for split in figures.SPLITS}
            results |= {f"{split}_baseline_{goal}": 0.25 for split in figures.SPLITS}
            folder = output / "figures" / model / run
            folder.mkdir(parents=True)
            (folder / "all_results.json").write_text(json.dumps(results | {"goal": goal}))
            for split in figures.SPLITS.values():
                raw = {"upos": {"f1": share - 0.1}}
                (folder / f"raw-{split}.json").write_text(json.dumps(raw))
        (output / "figures" / model / "senses").mkdir()
        senses = {"all": [0.44, 0.9, 0.8]}
        (output / "figures" / model / "senses" / "senses.json").write_text(json.dumps(senses))
    perplexities = {
        f"{name}_{kind}": value
        for name in figures.TEXTS
        for kind, value in (("perplexity", 99.94), ("words", 1000), ("unknown_share", 0.0123))
    }
    (output / "perplexity.json").write_text(json.dumps(perplexities))
    (output / "model").mkdir()
    for name in ("config.json", "model.safetensors", "upos.json", "upos.safetensors"):
        (output / "model" / name).write_bytes((Path(bundled_model()) / name).read_bytes())
    (output / "bilm").mkdir()
    run = {"train_words": 31_500_000, "train_seconds": 7200}
    (output / "bilm" / "all_results.json").write_text(json.dumps(run))
    (output / "vocabulary.txt").write_text("<S>\n</S>\n<UNK>\nthe\n")


def test_card_and_table_have_the_figures_of_the_runs(data, tmp_path, monkeypatch, capsys):
    output = tmp_path / "output"
    prepare(data, output / "text", monkeypatch)
    write_results(output)
    monkeypatch.setattr(sys, "argv", ["write_figures.py", str(output)])
    figures.main()
    capsys.readouterr()
    table = (output / "table.md").read_text()
    rows = [line for line in table.splitlines() if line.startswith("| **mix, linear**")]
    # the fourth run of each model, on gold words and from raw text
    assert [re.findall(r"\d+\.\d\d", row)[:6] for row in rows] == [
        ["50.40", "50.40", "51.40", "51.40", "52.40", "52.40"],
        ["40.40", "40.40", "41.40", "41.40", "42.40", "42.40"],
    ]
    card = " ".join((output / "model" / "README.md").read_text().split())
    assert not re.search(r"\{\w+\}", card)
    for fact in (
        "31.5 million words, read in 2.0 hours",
        "| 1 books of [Standard Ebooks](https://standardebooks.org), CC0 1.0 | 4 | 1 x |",
        "- Ours. Ann B. Author. OpenStax, Rice University. CC BY 4.0.",
        "| WikiText-2 test | 99.9 | 1,000 | 1.2 % |",
        "over 4 words",
        "cc-by-sa-4.0",
        "3.0 million weights are stored in half precision (5.7 MiB)",
    ):
        assert fact in card, fact
    assert (output / "model" / "sources.tsv").read_text().startswith("source\ttitle\tcommit")
