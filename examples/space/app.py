"""A page to look into ELMo: tags with confidence, layer weights, and a word that moves.

    python examples/space/app.py        # then open the address it prints

`README.md` beside it says how to make it a Space of the Hub.
"""

import html

import gradio as gr
import torch

from elmo_hf import ElmoModel, ElmoTagger, ElmoTokenizer, bundled_model

SENTENCE = "Will you book the book that they left on the left bank ?"
WORD = "left"
CONTEXTS = """She left the house before dawn .
They left without a word .
Turn left at the bridge .
He writes with his left hand ."""
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
.sure { height: 3px; border-radius: 2px; background: #ffffff55; margin-top: .3rem }
.sure i { display: block; height: 3px; border-radius: 2px; background: #fff }
.bar { display: grid; grid-template-columns: 7.5rem 1fr 3.5rem; gap: .7rem; align-items: center;
  margin: .35rem 0 }
.bar i { display: block; height: .8rem; border-radius: .4rem; background: #3d7ea6 }
.planes { display: flex; flex-wrap: wrap; gap: 1rem } .planes svg { border-radius: .6rem;
  background: #8b949e1a } .planes figure { margin: 0 } .planes + ol { margin-top: 1rem }
.note { color: #c8553d; font-weight: 600 }
"""

tagger = ElmoTagger()
model = ElmoModel.from_pretrained(bundled_model()).prepare_for_inference()
tokenizer = ElmoTokenizer.from_pretrained(bundled_model())


def note(text: str) -> str:
    return f'<p class="note">{html.escape(text)}</p>'


def show_tags(sentence: str) -> str:
    """Each word with its tag, and a line as long as the tagger is sure."""
    if not sentence.split():
        return note("Type a sentence, with spaces between words and punctuation.")
    [found] = tagger.tag([sentence.split()])
    words = [
        f'<div class="word" style="background:{COLORS.get(tag, OTHER)}" title="{score:.1%} sure">'
        f"<b>{html.escape(word)}</b><small>{html.escape(tag)} {score:.0%}</small>"
        f'<div class="sure"><i style="width:{score:.0%}"></i></div></div>'
        for word, tag, score in zip(found.words, found.tags, found.scores, strict=True)
    ]
    return f'<div class="words">{"".join(words)}</div>'


def show_layers() -> str:
    """How much of each layer the tagger reads: the softmax of its mix's weights."""
    [mix, *_] = tagger.model.elmo.mixes
    weights = mix.scalars.detach().softmax(dim=0).tolist()
    names = ["characters", *(f"biLSTM {number}" for number in range(1, len(weights)))]
    bars = [
        f'<div class="bar"><span>{name}</span><i style="width:{weight / max(weights):.0%}"></i>'
        f"<span>{weight:.2f}</span></div>"
        for name, weight in zip(names, weights, strict=True)
    ]
    return "".join(bars)


@torch.inference_mode()
def show_moves(word: str, text: str) -> str:
    """The word's vector in each sentence, on a plane for every layer, and the cosines."""
    lines = [line.split() for line in text.splitlines() if line.split()]
    word = word.strip()
    missing = [" ".join(line) for line in lines if word not in line]
    if len(lines) < 2:
        return note("Give two sentences or more, one a line.")
    if missing:
        return note(f"The word {word!r} does not stand in: {missing[0]}")
    batch = tokenizer(lines, is_split_into_words=True, padding=True, return_tensors="pt")
    layers = torch.stack(model(**batch, output_hidden_states=True).hidden_states)
    vectors = layers[:, range(len(lines)), [line.index(word) for line in lines]]
    planes = [draw_plane(number, some, lines) for number, some in enumerate(vectors)]
    legend = "".join(f"<li>{html.escape(' '.join(line))}</li>" for line in lines)
    return f'<div class="planes">{"".join(planes)}</div><ol>{legend}</ol>'


def draw_plane(number: int, vectors: torch.Tensor, lines: list[list[str]]) -> str:
    centred = vectors - vectors.mean(dim=0)
    places = torch.zeros(len(vectors), 2)
    if centred.abs().max() > 1e-4:
        places = centred @ torch.linalg.svd(centred, full_matrices=False)[2][:2].T
        places = places / places.abs().max()
    dots = []
    for place, ((x, y), line) in enumerate(zip((110 + 88 * places).tolist(), lines, strict=True)):
        dots.append(
            f'<g><title>{html.escape(" ".join(line))}</title><circle cx="{x:.0f}" cy="{y:.0f}" '
            f'r="11" fill="#c8553d"/><text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle" '
            f'font-size="12" fill="#fff">{place + 1}</text></g>'
        )
    unit = torch.nn.functional.normalize(vectors, dim=-1)
    cosines = (unit @ unit.T)[torch.ones(len(unit), len(unit)).tril(-1).bool()]
    name = f"biLSTM layer {number}" if number else "token layer"
    return (
        f'<figure><svg viewBox="0 0 220 220" width="220" height="220">{"".join(dots)}</svg>'
        f"<figcaption>{name}<br><small>mean cosine {cosines.mean():.2f}</small></figcaption>"
        "</figure>"
    )


with gr.Blocks(title="ELMo, looked into") as page:
    gr.Markdown("# ELMo, looked into\nA small English biLM and a tagger on it, in your hands.")
    with gr.Tab("Tags"):
        sentence = gr.Textbox(SENTENCE, label="Sentence", info="Spaces between words, please.")
        button = gr.Button("Tag", variant="primary", elem_id="tag")
        tags = gr.HTML(show_tags(SENTENCE), elem_id="tags")
        gr.Markdown("### What the tagger reads of each layer")
        gr.HTML(show_layers(), elem_id="layers")
        gr.on([button.click, sentence.submit], show_tags, sentence, tags)
    with gr.Tab("A word that moves"):
        with gr.Row():
            # so wide that on a phone they stand one below the other
            word = gr.Textbox(WORD, label="Word", scale=1, min_width=240)
            contexts = gr.Textbox(
                CONTEXTS, label="Sentences, one a line", lines=5, scale=3, min_width=280
            )
        move = gr.Button("Look", variant="primary", elem_id="look")
        moved = gr.HTML(show_moves(WORD, CONTEXTS), elem_id="moves")
        gr.Markdown("The token layer sees the word alone. Above it, the sentence moves the vector.")
        move.click(show_moves, [word, contexts], moved)

if __name__ == "__main__":
    page.launch(css=CSS)
