"""A page that shows ELMo at work: tags with probabilities, layer weights, a word in context.

    python examples/space/app.py        # then open the address it prints

`README.md` beside this file explains how to publish it as a Space on the Hub.
"""

import html

import gradio as gr
import torch

from elmo_hf import ElmoModel, ElmoTagger, ElmoTokenizer, bundled_model
from elmo_hf.pages import Dot, draw_plane, layer_name, vectors_in_context
from elmo_hf.tagging import TaggedSentence

TEXT = "Will you book the book? They've left it on the left bank."
WORD = "left"
CONTEXTS = """She left the house before dawn.
They left without a word.
Turn left at the bridge.
He writes with his left hand."""
COLORS = {
    "NOUN": "#3d7ea6",
    "PROPN": "#2b5d86",
    "PRON": "#5f9ea0",
    "VERB": "#c8553d",
    "AUX": "#e08e79",
    "ADJ": "#7a9e5f",
    "ADV": "#a7a04a",
    "ADP": "#8a6fa8",
    "DET": "#b58db6",
    "NUM": "#c99a3b",
}
OTHER = "#8b949e"
CSS = """
.words { display: flex; flex-wrap: wrap; gap: .5rem; padding: .4rem 0 }
.word { border-radius: .55rem; padding: .35rem .65rem .45rem; text-align: center;
  min-width: 2.6rem }
.word b, .word small { color: #fff !important }
.word b { display: block; font-size: 1.1rem; font-weight: 600 }
.word small { opacity: .92; letter-spacing: .03em }
.probability { height: 3px; border-radius: 2px; background: #ffffff55; margin-top: .3rem }
.probability i { display: block; height: 3px; border-radius: 2px; background: #fff }
.bar { display: grid; grid-template-columns: 7.5rem 1fr 3.5rem; gap: .7rem; align-items: center;
  margin: .35rem 0 }
.bar i { display: block; height: .8rem; border-radius: .4rem; background: #3d7ea6 }
.planes { display: flex; flex-wrap: wrap; gap: 1rem } .plane { margin: 0 }
.plane svg { border-radius: .6rem; background: #8b949e1a } .planes + ol { margin-top: 1rem }
.note { color: #c8553d; font-weight: 600 }
"""

tagger = ElmoTagger()
model = ElmoModel.from_pretrained(bundled_model()).prepare_for_inference()
tokenizer = ElmoTokenizer.from_pretrained(bundled_model())


def note(text: str) -> str:
    return f'<p class="note">{html.escape(text)}</p>'


def show_tags(text: str) -> str:
    """A row for each sentence: its words with their tags."""
    rows = [show_sentence(tagged) for tagged in tagger(text)]
    return "".join(rows) or note("Type a sentence.")


def show_sentence(tagged: TaggedSentence) -> str:
    """Each word with its tag and a bar as long as the tag is probable."""
    triples = zip(tagged.words, tagged.tags, tagged.scores, strict=True)
    boxes = [
        f'<div class="word" style="background:{COLORS.get(tag, OTHER)}" title="{score:.1%}">'
        f"<b>{html.escape(word)}</b><small>{html.escape(tag)} {score:.0%}</small>"
        f'<div class="probability"><i style="width:{score:.0%}"></i></div></div>'
        for word, tag, score in triples
    ]
    return f'<div class="words">{"".join(boxes)}</div>'


def show_layers() -> str:
    """How much the tagger uses each layer: the softmax of its mix's weights."""
    [mix, *_] = tagger.model.elmo.mixes
    weights = mix.get_parameter("scalars").detach().softmax(dim=0).tolist()
    bars = [
        f'<div class="bar"><span>{layer_name(number)}</span>'
        f'<i style="width:{weight / max(weights):.0%}"></i><span>{weight:.2f}</span></div>'
        for number, weight in enumerate(weights)
    ]
    return "".join(bars)


def show_contexts(word: str, text: str) -> str:
    """The word's vector in each sentence, on a plane for every layer, and the mean cosine."""
    word = word.strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    sentences = [tokenizer.tokenize(line) for line in lines]
    missing = [line for line, words in zip(lines, sentences, strict=True) if word not in words]
    if len(lines) < 2:
        return note("Enter at least two sentences, one per line.")
    if missing:
        return note(f"The word {word!r} does not occur in: {missing[0]}")
    dots = [Dot("#c8553d", line, label=str(number)) for number, line in enumerate(lines, start=1)]
    planes = []
    for number, vectors in enumerate(vectors_in_context(model, tokenizer, word, sentences)):
        unit = torch.nn.functional.normalize(vectors, dim=-1)
        cosines = (unit @ unit.T)[torch.ones(len(unit), len(unit)).tril(-1).bool()]
        caption = f"mean cosine {cosines.mean():.2f}"
        planes.append(draw_plane(vectors, dots, layer_name(number), caption))
    legend = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f'<div class="planes">{"".join(planes)}</div><ol>{legend}</ol>'


with gr.Blocks(title="ELMo at work") as page:
    gr.Markdown("# ELMo at work\nA small English biLM and a part-of-speech tagger built on it.")
    with gr.Tab("Tags"):
        text = gr.Textbox(TEXT, label="Text")
        button = gr.Button("Tag", variant="primary", elem_id="tag")
        tags = gr.HTML(show_tags(TEXT), elem_id="tags")
        gr.Markdown("### How much the tagger uses each layer")
        gr.HTML(show_layers(), elem_id="layers")
        gr.on([button.click, text.submit], show_tags, text, tags)
    with gr.Tab("A word in context"):
        with gr.Row():
            # wide enough to be placed one below the other on a phone
            word = gr.Textbox(WORD, label="Word", scale=1, min_width=240)
            contexts = gr.Textbox(
                CONTEXTS, label="Sentences, one per line", lines=5, scale=3, min_width=280
            )
        compare = gr.Button("Compare", variant="primary", elem_id="compare")
        compared = gr.HTML(show_contexts(WORD, CONTEXTS), elem_id="compared")
        gr.Markdown(
            "The token layer sees only the word itself. In the biLSTM layers the vector depends on "
            "the sentence around it."
        )
        compare.click(show_contexts, [word, contexts], compared)

if __name__ == "__main__":
    page.launch(css=CSS)
