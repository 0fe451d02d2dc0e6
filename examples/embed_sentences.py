"""Embed two sentences that share a word, and compare the word's vectors layer by layer.

    python examples/embed_sentences.py [--model_name_or_path my-elmo]

The token layer reads the word alone, so its two vectors are the same there (cosine 1). The biLSTM
layers read the sentence around it and tell the two uses apart.
"""

import argparse

import torch

from elmo_hf import ElmoModel, ElmoTokenizer
from elmo_hf.hub import BUNDLED, find_model

SENTENCES = [
    "They sat on the green bank of the river.",
    "She took the money to the bank on Monday.",
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model_name_or_path", type=find_model, default=BUNDLED, help="an ELMo folder or Hub name"
    )
    parser.add_argument("--word", default="bank", help="a word of both sentences")
    parser.add_argument("--sentences", nargs=2, default=SENTENCES, help="text")
    args = parser.parse_args()

    tokenizer = ElmoTokenizer.from_pretrained(args.model_name_or_path)
    model = ElmoModel.from_pretrained(args.model_name_or_path).eval()
    batch = tokenizer(args.sentences, padding=True, return_tensors="pt")
    with torch.inference_mode():
        output = model(**batch, output_hidden_states=True)

    places = []
    for sentence in args.sentences:
        words = tokenizer.tokenize(sentence)
        if args.word not in words:
            parser.error(f"the word {args.word!r} is not in {sentence!r}")
        places.append(words.index(args.word))
    print("input_ids", tuple(batch["input_ids"].shape))
    for number, layer in enumerate(output.hidden_states):
        first, second = (layer[row, place] for row, place in enumerate(places))
        cosine = torch.cosine_similarity(first, second, dim=0).item()
        print(f"layer {number} {tuple(layer.shape)}  cosine of {args.word!r}: {cosine:.3f}")
    print("last_hidden_state", tuple(output.last_hidden_state.shape))


if __name__ == "__main__":
    main()
