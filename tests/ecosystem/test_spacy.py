"""The component `elmo` in spaCy pipelines, and the splitters spacy:LANG."""

import pickle
import random
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from helpers.tiny import WIDTH, tiny_config
from spacy.tokens import Doc, DocBin

from elmo_hf import (
    ElmoEmbedder,
    ElmoForTokenClassification,
    ElmoTagger,
    ElmoTokenizer,
    bundled_tagger,
    text_splitting,
)
from elmo_hf.text_splitting import SPACY_PIECE, find_splitter

TEXT = "They book a table.  She read\n the book in Paris!"
SENTENCES = [
    ["They", "book", "a", "table", "."],
    ["She", "read", "the", "book", "in", "Paris", "!"],
]
TEXTS = [TEXT, "", " \n ", "Stop.", "A much longer text, which is one sentence. " * 9, "Who?"]
CLOSE = {"rtol": 0, "atol": 2e-5}
# spaCy reports that hooks are not in `doc.to_bytes()`
ignore_lost_hooks = pytest.mark.filterwarnings("ignore:.*W109")


def make_nlp(**config):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config=config)
    return nlp


@pytest.fixture(scope="module")
def tagging():
    return make_nlp(tags=True)


@pytest.fixture
def tiny_tagger(tmp_path):
    """A folder with a tagger that concatenates nothing and whose tags are not universal."""
    labels = {0: "NN", 1: "VB", 2: "SYM"}
    config = tiny_config(id2label=labels, label2id={tag: at for at, tag in labels.items()})
    ElmoForTokenClassification(config).save_pretrained(tmp_path / "tagger")
    ElmoTokenizer(max_characters_per_token=WIDTH).save_pretrained(tmp_path / "tagger")
    return tmp_path / "tagger"


def words_of(doc):
    return [token for token in doc if not token.is_space]


def assert_same(docs, others):
    for doc, other in zip(docs, others, strict=True):
        np.testing.assert_allclose(doc.tensor, other.tensor, **CLOSE)
        assert [(t.text, t.pos_, t.tag_) for t in doc] == [(t.text, t.pos_, t.tag_) for t in other]


class TestValues:
    @pytest.mark.parametrize("layers", ["mix", "top", "mean", 1, "0"])
    @pytest.mark.parametrize("tags", [None, True])
    def test_vectors_are_those_of_the_embedder(self, layers, tags):
        doc = make_nlp(layers=layers, tags=tags)(TEXT)
        embedder = ElmoEmbedder(bundled_tagger() if tags else "bundled")
        expected = np.concatenate(embedder.embed(SENTENCES, layers=layers))
        vectors = [token.vector for token in words_of(doc)]
        np.testing.assert_allclose(vectors, expected, **CLOSE)

    def test_tags_are_those_of_the_tagger(self, tagging):
        doc = tagging(TEXT)
        expected = [tag for sentence in ElmoTagger().tag(SENTENCES) for tag in sentence.tags]
        assert [token.pos_ for token in words_of(doc)] == expected
        assert doc.has_annotation("POS") and not doc.has_annotation("TAG")

    def test_a_tagger_in_a_folder_tags_unless_vectors_are_asked_for(self, tiny_tagger):
        """One label of three is a universal part of speech; all go to the same attribute."""
        doc = make_nlp(model=str(tiny_tagger))(TEXT)
        expected = [t for s in ElmoTagger(str(tiny_tagger)).tag(SENTENCES) for t in s.tags]
        assert [token.tag_ for token in words_of(doc)] == expected
        assert not doc.has_annotation("POS")
        plain = make_nlp(model=str(tiny_tagger), tags=False)(TEXT)
        assert not plain.has_annotation("TAG")
        np.testing.assert_allclose(plain.tensor, doc.tensor, **CLOSE)

    @pytest.mark.parametrize("changes", [{"mix_layer_norm": True}, {"concatenate_layers": True}])
    def test_taggers_that_use_the_layers_otherwise(self, tmp_path, changes):
        config = tiny_config(num_labels=3, **changes)
        ElmoForTokenClassification(config).save_pretrained(tmp_path)
        ElmoTokenizer(max_characters_per_token=WIDTH).save_pretrained(tmp_path)
        layers = "mix" if "mix_layer_norm" in changes else "mean"
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"model": str(tmp_path), "layers": layers})
        doc = nlp("Stocks fell sharply.")
        words = [["Stocks", "fell", "sharply", "."]]
        [expected] = ElmoEmbedder(str(tmp_path)).embed(words, layers=layers)
        np.testing.assert_allclose(doc.tensor, expected, **CLOSE)
        [sentence] = ElmoTagger(str(tmp_path)).tag(words)
        assert [token.tag_ for token in doc] == sentence.tags

    def test_without_sentences_a_text_is_one(self):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo")
        [expected] = ElmoEmbedder().embed([SENTENCES[0] + SENTENCES[1]], layers="mix")
        vectors = [token.vector for token in words_of(nlp(TEXT))]
        np.testing.assert_allclose(vectors, expected, **CLOSE)

    def test_the_bilm_runs_once(self, tagging, monkeypatch):
        component = tagging.get_pipe("elmo")
        model, runs = component.reader.tagger.model.elmo, []
        read = model.run_layers
        monkeypatch.setattr(model, "run_layers", lambda *given: runs.append(1) or read(*given))
        tagging(TEXT)
        assert len(runs) == 1


class TestDocs:
    def test_blanks_have_zeros_and_no_tag(self, tagging):
        doc = tagging(TEXT)
        blanks = [token for token in doc if token.is_space]
        assert len(blanks) == 2
        for token in blanks:
            assert not token.vector.any() and not token.has_vector and not token.pos_
        assert doc[0].has_vector and doc.has_vector

    def test_spans_and_docs_have_means(self, tagging):
        doc = tagging(TEXT)
        np.testing.assert_allclose(doc.vector, doc.tensor.mean(axis=0), **CLOSE)
        np.testing.assert_allclose(doc[1:4].vector, doc.tensor[1:4].mean(axis=0), **CLOSE)
        assert not doc[2:2].vector.any()

    @pytest.mark.parametrize("text", ["", "  "])
    def test_docs_without_words(self, tagging, text):
        doc = tagging(text)
        assert doc.tensor.shape == (len(doc), 256) and doc.vector.shape == (256,)
        assert not doc.has_vector and doc.similarity(doc) == 0

    def test_similarity_depends_on_the_context(self, tagging):
        doc = tagging(TEXT)
        verb, noun = (token for token in doc if token.text == "book")
        assert 0 < verb.similarity(noun) < 0.99
        assert verb.similarity(verb) == pytest.approx(1)
        assert doc[0:5].similarity(doc) == pytest.approx(doc.similarity(doc[0:5]))

    def test_vectors_follow_the_tokens(self, tagging):
        doc = tagging(TEXT)
        part = doc[6:9].as_doc()
        np.testing.assert_array_equal(part[1].vector, doc[7].vector)
        last = doc[-1].vector
        with doc.retokenize() as retokenizer:
            retokenizer.merge(doc[0:4])
        np.testing.assert_array_equal(doc[-1].vector, last)

    def test_static_vectors_of_the_pipeline_are_not_used(self):
        nlp = spacy.blank("en")
        nlp.vocab.set_vector("book", np.ones(5, dtype=np.float32))
        nlp.add_pipe("elmo")
        doc = nlp("a book")
        np.testing.assert_array_equal(doc[1].vector, doc.tensor[1])
        assert doc.vector.shape == (256,)

    @ignore_lost_hooks
    def test_what_a_serialised_doc_keeps(self, tagging):
        doc = tagging(TEXT)
        again = Doc(tagging.vocab).from_bytes(doc.to_bytes())
        np.testing.assert_array_equal(again.tensor, doc.tensor)
        np.testing.assert_allclose(again.vector, doc.vector, **CLOSE)
        assert not again.user_token_hooks
        copy = pickle.loads(pickle.dumps(doc))
        assert copy[1].similarity(copy[8]) == doc[1].similarity(doc[8])
        [stored] = DocBin(docs=[doc]).get_docs(tagging.vocab)
        assert not stored.tensor.size and stored[1].pos_ == doc[1].pos_


class TestPipelines:
    @pytest.mark.parametrize("batch_size", [1, 2, 100])
    def test_a_stream_is_as_its_texts_one_by_one(self, tagging, batch_size):
        assert_same(tagging.pipe(TEXTS, batch_size=batch_size), map(tagging, TEXTS))

    @ignore_lost_hooks
    def test_several_processes(self, tagging):
        """Also after torch has used threads in this one, which a fork does not copy."""
        threads = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            expected = list(tagging.pipe(TEXTS * 4))
            assert_same(tagging.pipe(TEXTS * 4, n_process=2, batch_size=5), expected)
        finally:
            torch.set_num_threads(threads)

    def test_a_folder_needs_nothing_else(self, tiny_tagger, tmp_path):
        nlp = make_nlp(model=str(tiny_tagger), layers="top")
        expected = [nlp(text) for text in TEXTS]
        nlp.to_disk(tmp_path / "pipeline")
        shutil.rmtree(tiny_tagger)
        loaded = spacy.load(tmp_path / "pipeline")
        assert_same(loaded.pipe(TEXTS), expected)
        # into the folder it was loaded from
        loaded.to_disk(tmp_path / "pipeline")
        assert_same(spacy.load(tmp_path / "pipeline").pipe(TEXTS), expected)
        assert_same(make_nlp(layers="top").from_disk(tmp_path / "pipeline").pipe(TEXTS), expected)

    def test_a_bilm_is_saved(self, tmp_path):
        nlp = make_nlp()
        nlp.to_disk(tmp_path)
        assert_same(spacy.load(tmp_path).pipe(TEXTS), map(nlp, TEXTS))
        ElmoEmbedder(str(tmp_path / "elmo"))

    def test_bytes_and_pickles(self, tagging):
        expected = [tagging(text) for text in TEXTS]
        assert_same(make_nlp().from_bytes(tagging.to_bytes()).pipe(TEXTS), expected)
        assert_same(pickle.loads(pickle.dumps(tagging)).pipe(TEXTS), expected)

    def test_names_in_bytes_stay_in_the_folder(self, tmp_path):
        import srsly

        component = make_nlp().get_pipe("elmo")
        files = srsly.msgpack_loads(component.to_bytes())
        outside = tmp_path / "outside"
        component.from_bytes(srsly.msgpack_dumps(files | {str(outside): b"x"}))
        assert not outside.exists()

    def test_an_error_goes_to_the_handler(self):
        nlp = make_nlp(model="no/such/folder")
        seen = []
        nlp.set_error_handler(lambda name, component, docs, error: seen.append((name, len(docs))))
        assert list(nlp.pipe(["a", "b"])) == []
        assert seen == [("elmo", 2)]

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({"layers": "all"}, "`layers` is 'all' but a word has one vector in spaCy"),
            ({"layers": "7"}, "`layers` is '7' but must be one of"),
            ({"model": "no/such/folder"}, "is not an ELMo folder"),
        ],
    )
    def test_wrong_settings_end_in_one_sentence(self, config, message):
        with pytest.raises((ValueError, OSError), match=message):
            make_nlp(**config)("a")

    def test_a_bilm_cannot_tag(self, tiny_model, tmp_path):
        tiny_model.save_pretrained(tmp_path)
        with pytest.raises(ValueError, match="holds an ElmoModel, not a tagger"):
            make_nlp(model=str(tmp_path), tags=True)("a")

    def test_without_spacy(self, monkeypatch):
        monkeypatch.delitem(sys.modules, "elmo_hf.tagging.spacy_component", raising=False)
        monkeypatch.setitem(sys.modules, "spacy", None)
        monkeypatch.delitem(sys.modules, "spacy.language")
        with pytest.raises(ImportError, match=r"'elmo' requires spacy: pip install 'elmo_hf\[sp"):
            import elmo_hf.tagging.spacy_component  # noqa: F401

    def test_the_page_prints_what_it_says(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        page = Path(__file__).parents[2] / "docs" / "tagging.md"
        [code] = re.findall(r"^```python spacy\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
        exec(compile(code, page.name, "exec"), {})
        promised = re.findall(r"print\(.*\)\s+# (.+)", code)
        assert capsys.readouterr().out.splitlines() == promised and promised
        assert len(spacy.load("my-pipeline")("Go home.").tensor) == 3


def check_split(text: str, language: str) -> list[list[str]]:
    """Every span is its word, they follow each other, and only blanks are between them."""
    end, sentences = 0, []
    for sentence in find_splitter(f"spacy:{language}")(text):
        for word, (start, stop) in zip(sentence.words, sentence.spans, strict=True):
            assert word and text[start:stop] == word and start >= end
            assert not text[end:start].strip()
            end = stop
        sentences.append(sentence.words)
    assert not text[end:].strip()
    return sentences


SIGNS = "ab ÄöÅß.!?\t\n\r\x0b\x1c\x85\u2028\xa0\u3000\u200b\ufeff"
SIGNS += "日本。e\u0301👩‍👧\x00\x7fم؟'’–/:;()\"1,0"


def random_text(source: random.Random) -> str:
    def sign() -> str:
        if source.random() < 0.9:
            return source.choice(SIGNS)
        return chr(source.choice((source.randrange(0xD800), source.randrange(0xE000, 0x110000))))

    return "".join(sign() for _ in range(source.randrange(200)))


class TestSplitters:
    def test_finnish_and_german(self):
        text = "Hän asuu Oulussa. Ei kai klo 12.30?"
        assert check_split(text, "fi")[0] == ["Hän", "asuu", "Oulussa", "."]
        assert check_split("Das ist z.B. gut. Ja!", "de") == [
            ["Das", "ist", "z.B.", "gut", "."],
            ["Ja", "!"],
        ]

    @pytest.mark.parametrize("language", ["fi", "de"])
    def test_long_texts_are_as_their_parts(self, language):
        part = "Das Haus Nr. 5 ist groß, oder? Hän sanoi: ”Ei!” "
        count = 3 * SPACY_PIECE // len(part)
        once = [word for sentence in check_split(part, language) for word in sentence]
        many = [word for sentence in check_split(part * count, language) for word in sentence]
        assert many == once * count

    def test_a_sentence_longer_than_a_piece_keeps_its_words(self):
        words = [word for some in check_split("sanoja " * 2**15, "fi") for word in some]
        assert set(words) == {"sanoja"} and len(words) == 2**15

    def test_a_word_longer_than_a_piece(self):
        assert "".join(sum(check_split("日" * (2 * SPACY_PIECE + 3), "fi"), [])) == "日" * (
            2 * SPACY_PIECE + 3
        )

    @pytest.mark.parametrize("piece", [SPACY_PIECE, 50])
    def test_any_text(self, piece, monkeypatch):
        monkeypatch.setattr(text_splitting, "SPACY_PIECE", piece)
        source = random.Random(0)
        for number in range(300):
            check_split(random_text(source), ("fi", "de", "xx")[number % 3])

    @pytest.mark.parametrize("language", ["zz", "FI", "../x", "en_core_web_sm"])
    def test_unknown_languages(self, language):
        with pytest.raises(ValueError, match=r"spaCy cannot split .* are listed on") as error:
            list(find_splitter(f"spacy:{language}")("a"))
        assert "\n" not in str(error.value)
