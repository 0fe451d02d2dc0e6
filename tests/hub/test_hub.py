"""To the Hub and back, on a server of our own: pushed once, loaded in fresh processes."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import torch
from helpers.hub_server import HubServer
from helpers.launch import start
from helpers.many_langs import write_many_langs
from helpers.tiny import WIDTH, tiny_config
from huggingface_hub import ModelCard

from elmo_hf import ElmoForTokenClassification, ElmoModel, ElmoTokenizer
from elmo_hf.conversion.convert_allennlp_to_hf import convert
from elmo_hf.hub import make_tokenizer, publish

pytestmark = pytest.mark.program

REPO = "me/elmo-pos"
SENTENCE = ["Dogs", "bark", "unbelievably", "."]
# prints ids and logits exactly; `elmo_hf` may be hidden from the process
LOAD = """
import json, sys
if {hidden}:
    sys.modules["elmo_hf"] = None
else:
    import elmo_hf
from transformers import AutoModel, AutoModelForTokenClassification, AutoTokenizer
options = dict(trust_remote_code={hidden}) if {hidden} else dict()
tokenizer = AutoTokenizer.from_pretrained("{repo}", **options)
model = {cls}.from_pretrained("{repo}", **options).eval()
assert type(model).__module__.startswith("transformers_modules" if {hidden} else "elmo_hf")
batch = tokenizer([{sentence}], is_split_into_words=True, return_tensors="pt")
print(json.dumps([batch["input_ids"].tolist(), model(**batch)[0].tolist()]))
"""


def run(code: str | list, environment: dict[str, str], status: int = 0) -> str:
    """What a fresh process prints, or complains of."""
    command = [sys.executable, "-c", code] if isinstance(code, str) else code
    done = subprocess.run(
        [*map(str, command)], env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def push(folder, environment, status=0) -> str:
    return run(
        [sys.executable, "-m", "elmo_hf", "push", REPO, "--model", folder], environment, status
    )


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    torch.manual_seed(0)
    labels = ["A", "B"]
    config = tiny_config(id2label=dict(enumerate(labels)), label2id={"A": 0, "B": 1})
    folder = tmp_path_factory.mktemp("hub") / "tagger"
    ElmoForTokenClassification(config).save_pretrained(folder)
    ElmoTokenizer(max_characters_per_token=WIDTH).save_pretrained(folder)
    (folder / "checkpoint-7").mkdir()
    (folder / "checkpoint-7" / "optimizer.bin").write_text("stays at home")
    return folder


def expected(folder, part=None) -> list:
    model = ElmoForTokenClassification.from_pretrained(folder).eval()
    batch = ElmoTokenizer.from_pretrained(folder)(
        [SENTENCE], is_split_into_words=True, return_tensors="pt"
    )
    return [batch["input_ids"].tolist(), (part or (lambda m: m))(model)(**batch)[0].tolist()]


@pytest.mark.parametrize("lfs", [False, True], ids=["regular", "lfs"])
def test_push_and_load_everywhere(tagger, tmp_path, lfs):
    with HubServer(lfs=lfs) as hub:
        home = hub.environment(tmp_path / "pushing")
        assert hub.url in push(tagger, home)
        names = hub.files(REPO).keys()
        assert {"model.safetensors", "modeling_elmo.py", "README.md"} <= names
        assert not any("optimizer" in name for name in names)
        card = ModelCard(hub.files(REPO)["README.md"].decode())
        assert card.data.pipeline_tag == "token-classification"
        assert "AutoModelForTokenClassification.from_pretrained" in card.text
        assert ("PUT" in {method for method, _ in hub.requests}) == lfs
        auto = "AutoModelForTokenClassification"
        for hidden in (False, True):
            fresh = hub.environment(tmp_path / f"loading-{hidden}", token="")
            code = LOAD.format(hidden=hidden, repo=REPO, cls=auto, sentence=SENTENCE)
            assert json.loads(run(code, fresh)) == expected(tagger)
        # what was fetched is enough without the Hub, and there is an AutoModel too
        code = LOAD.format(hidden=True, repo=REPO, cls="AutoModel", sentence=SENTENCE)
        asked = len(hub.requests)
        found = json.loads(run(code, fresh | {"HF_HUB_OFFLINE": "1"}))
        assert found == expected(tagger, lambda model: model.elmo)
        assert len(hub.requests) == asked
        # once more, into a repository that exists
        push(tagger, home)
        assert hub.files(REPO).keys() == names


def test_dictionaries_go_along(tmp_path):
    """A tagger on a model of ELMoForManyLangs, loaded by somebody who has not installed elmo_hf."""
    write_many_langs(tmp_path / "source")
    convert(str(tmp_path / "source"), output_dir=tmp_path / "elmo")
    torch.manual_seed(0)
    tagger = ElmoForTokenClassification.from_pretrained(tmp_path / "elmo", num_labels=2)
    tagger.save_pretrained(tmp_path / "tagger")
    make_tokenizer(tagger).save_pretrained(tmp_path / "tagger")
    with HubServer() as hub:
        push(tmp_path / "tagger", hub.environment(tmp_path / "pushing"))
        assert {"char.dic", "word.dic", "dictionaries.py"} <= hub.files(REPO).keys()
        auto = "AutoModelForTokenClassification"
        code = LOAD.format(hidden=True, repo=REPO, cls=auto, sentence=SENTENCE)
        found = run(code, hub.environment(tmp_path / "loading", token=""))
    assert json.loads(found) == expected(tmp_path / "tagger")


def test_model_and_tokenizer_push_themselves_with_their_code(tagger, tmp_path):
    code = f"""
from elmo_hf import ElmoForTokenClassification, ElmoModel, ElmoTokenizer
from elmo_hf.hub import publish
ElmoForTokenClassification.from_pretrained({str(tagger)!r}).push_to_hub("{REPO}")
ElmoTokenizer.from_pretrained({str(tagger)!r}).push_to_hub("{REPO}")
"""
    with HubServer() as hub:
        run(code, hub.environment(tmp_path / "pushing"))
        auto = "AutoModelForTokenClassification"
        code = LOAD.format(hidden=True, repo=REPO, cls=auto, sentence=SENTENCE)
        found = run(code, hub.environment(tmp_path / "loading", token=""))
        assert json.loads(found) == expected(tagger)
        # and once more by someone who has not installed elmo_hf
        code = f"""
import sys
sys.modules["elmo_hf"] = None
from transformers import AutoModelForTokenClassification, AutoTokenizer
for auto in (AutoModelForTokenClassification, AutoTokenizer):
    auto.from_pretrained("{REPO}", trust_remote_code=True).push_to_hub("me/again")
"""
        run(code, hub.environment(tmp_path / "pushing again"))
        assert hub.files("me/again").keys() == hub.files(REPO).keys()
        code = LOAD.format(hidden=True, repo="me/again", cls=auto, sentence=SENTENCE)
        found = run(code, hub.environment(tmp_path / "loading again", token=""))
        assert json.loads(found) == expected(tagger)
    assert not (tagger / "modeling_elmo.py").exists()


@pytest.mark.parametrize("lfs", [False, True], ids=["regular", "lfs"])
def test_an_interrupted_push_changes_nothing_and_can_be_repeated(tagger, tmp_path, lfs):
    with HubServer(lfs=lfs) as hub:
        home = hub.environment(tmp_path / "home")
        hub.fail_after(5 if lfs else 2)
        complained = push(tagger, home, status=1)
        assert "Repeat the command to try again" in complained and "Traceback" not in complained
        assert "config.json" not in hub.files(REPO)
        push(tagger, home)
        assert "config.json" in hub.files(REPO)


@pytest.mark.parametrize("token", ["hf_wrong", ""], ids=["wrong", "none"])
def test_without_the_right_token_one_sentence(tagger, tmp_path, token):
    with HubServer() as hub:
        complained = push(tagger, hub.environment(tmp_path, token=token), status=1)
        assert "or set HF_TOKEN to a token with write access" in complained
        assert "Traceback" not in complained and "hf_wrong" not in complained


def test_an_impossible_name_is_reported(tagger, tmp_path):
    with HubServer() as hub:
        command = [sys.executable, "-m", "elmo_hf", "push", "me/elmo/pos", "--model", tagger]
        complained = run(command, hub.environment(tmp_path), status=1)
        assert "Repo id must be" in complained and "interrupted" not in complained


def test_a_folder_without_a_model_is_not_pushed(tmp_path):
    with HubServer() as hub:
        complained = push(tmp_path, hub.environment(tmp_path / "home"), status=1)
        assert "is not a model folder: it has no config.json" in complained and not hub.requests


def test_a_trained_tagger_goes_to_the_hub_with_its_figures(tmp_path):
    bilm = tmp_path / "bilm"
    ElmoModel(tiny_config()).save_pretrained(bilm)
    arguments = ["--model_name_or_path", bilm, "--output_dir", tmp_path / "out"]
    arguments += ["--num_train_epochs", 1, "--max_train_samples", 100, "--task_lstm_size", 4]
    arguments += ["--push_to_hub", "--hub_model_id", REPO, "--license", "cc-by-4.0"]
    with HubServer() as hub:
        process = start("run_pos.py", arguments, **hub.environment(tmp_path / "home"))
        printed, _ = process.communicate(timeout=120)
        assert process.returncode == 0, printed
        assert f"pushed to {hub.url}/{REPO}" in printed and hub.token not in printed
        card = ModelCard(hub.files(REPO)["README.md"].decode())
    assert card.data.license == "cc-by-4.0"
    results = json.loads((tmp_path / "out" / "all_results.json").read_text())
    found = {result.dataset_split: result.metric_value for result in card.data.eval_results}
    assert found == {split: results[f"{split}_accuracy"] for split in ("validation", "test")}
    for split, share in found.items():
        assert f"| {split} | {100 * share:.2f} % |" in card.text
    assert 'pipeline("token-classification"' in card.text
    text = "".join(path.read_text(errors="ignore") for path in (tmp_path / "out").glob("*.*"))
    assert hub.token not in text


def test_trainer_pushes_with_the_code(tmp_path):
    bilm = tmp_path / "bilm"
    ElmoModel(tiny_config()).save_pretrained(bilm)
    ElmoTokenizer(max_characters_per_token=WIDTH).save_pretrained(bilm)
    arguments = ["--model_name_or_path", bilm, "--output_dir", tmp_path / "out", "--use_cpu"]
    arguments += ["--max_steps", 1, "--push_to_hub", "--hub_model_id", REPO]
    with HubServer() as hub:
        process = start("run_pos_trainer.py", arguments, **hub.environment(tmp_path / "home"))
        printed, _ = process.communicate(timeout=120)
        assert process.returncode == 0, printed
        assert f"pushed to {hub.url}/{REPO}" in printed
        names = hub.files(REPO).keys()
    assert {"model.safetensors", "tokenizer_config.json", "modeling_elmo.py"} <= names


def test_the_bundled_tagger_is_pushed_whole_and_works_elsewhere(tmp_path):
    text, home = "Will you book the book ?", {"ELMO_HF_HOME": str(tmp_path / "cache")}
    with HubServer() as hub:
        code = "from elmo_hf import bundled_tagger; print(bundled_tagger())"
        folder = run(code, home).strip()
        assert folder.startswith(home["ELMO_HF_HOME"])
        push(folder, hub.environment(tmp_path / "pushing"))
        card = ModelCard(hub.files(REPO)["README.md"].decode())
        assert card.data.license == "cc-by-sa-4.0" and card.data.language == "en"
        assert card.data.pipeline_tag == "token-classification"
        assert 'pipeline("token-classification"' in card.text and "Limits" in card.text
        # the snippet of the card, without elmo_hf
        [snippet] = re.findall(r"```python\n(from transformers.*?)```", card.text, re.S)
        code = "import sys\nsys.modules['elmo_hf'] = None\n" + snippet
        code = code.replace("this-repository", REPO)
        printed = run(code, hub.environment(tmp_path / "loading", token=""))
    rows = [line.split() for line in printed.splitlines()]
    assert [row[0] for row in rows] == text.split()
    assert [row[1] for row in rows] == ["AUX", "PRON", "VERB", "DET", "NOUN", "PUNCT"]


def test_the_bundled_bilm_is_pushed_without_the_taggers(tmp_path):
    with HubServer() as hub:
        push("bundled", hub.environment(tmp_path / "home"))
        names = hub.files(REPO).keys()
    assert {"config.json", "model.safetensors", "README.md", "tokenizer_config.json"} <= names
    assert not any("upos" in name for name in names)


@pytest.mark.parametrize("place", ["../shared.safetensors", "lost.safetensors"])
def test_a_model_whose_weights_are_elsewhere_is_not_pushed_in_part(tagger, tmp_path, place):
    folder = tmp_path / "parts"
    shutil.copytree(tagger, folder)
    index = {"metadata": {}, "weight_map": {"classifier.bias": place}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="a part of its weights elsewhere"):
        publish(folder, REPO)
