"""Find sentences of similar meaning with sentence-transformers on ELMo.

    pip install '.[ecosystem]'
    python examples/sentence_vectors.py

A plain ELMo folder is enough: sentence-transformers adds a mean over the words.
"""

import argparse

from sentence_transformers import SentenceTransformer

import elmo_hf  # noqa: F401  registers ELMo with transformers
from elmo_hf.hub import BUNDLED, find_model

SENTENCES = [
    "The company sold its shares.",
    "The firm sold its stock.",
    "A small bird sang in the tree.",
    "In the garden a little bird was singing.",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model_name_or_path", type=find_model, default=BUNDLED, help="an ELMo folder or Hub name"
    )
    parser.add_argument("--sentences", nargs="+", default=SENTENCES, help="text")
    args = parser.parse_args()
    model = SentenceTransformer(args.model_name_or_path)
    vectors = model.encode(args.sentences)
    similarities = model.similarity(vectors, vectors).fill_diagonal_(-1)
    for sentence, row in zip(args.sentences, similarities, strict=True):
        print(f"{sentence}\n    {row.max():.3f}  {args.sentences[int(row.argmax())]}")


if __name__ == "__main__":
    main()
