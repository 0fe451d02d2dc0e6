# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`_ElmoBiLm`: all layers of a pretrained biLM, under AllenNLP's names."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from tqdm.auto import tqdm

from elmo_hf.standin.boundaries import add_sentence_boundary_token_ids, make_mask
from elmo_hf.standin.character_encoder import _ElmoCharacterEncoder
from elmo_hf.standin.elmo_lstm import ElmoLstm
from elmo_hf.standin.errors import ConfigurationError
from elmo_hf.standin.indexer import ELMoCharacterMapper

# whose vectors are cached between two steps of the progress bar
WORDS_AT_ONCE = 4096


class _ElmoBiLm(nn.Module):
    """Characters or cached words to activations, (batch, words + 2, size) for each layer."""

    def __init__(
        self,
        options_file: Any,
        weight_file: Any,
        requires_grad: bool = False,
        vocab_to_cache: Iterable[str] | None = None,
    ):
        super().__init__()
        self._token_embedder = _ElmoCharacterEncoder(options_file, weight_file, requires_grad)
        config = self._token_embedder._network.config
        if not config.use_skip_connections:
            raise ConfigurationError(
                "The options have no `use_skip_connections`, but AllenNLP's ELMo reads only models "
                "with them; convert this one with `elmo-hf convert`."
            )
        self._requires_grad = requires_grad
        self._word_embedding: nn.Embedding | None = None
        self._bos_embedding: torch.Tensor | None = None
        self._eos_embedding: torch.Tensor | None = None
        if vocab_to_cache:
            self.create_cached_cnn_embeddings(list(vocab_to_cache))
        self._elmo_lstm = ElmoLstm.from_files(config, options_file, weight_file, requires_grad)
        # with the layer that is independent of the sentence
        self.num_layers = config.num_hidden_layers + 1

    def get_output_dim(self) -> int:
        return 2 * self._token_embedder.get_output_dim()

    def forward(
        self, inputs: torch.Tensor, word_inputs: torch.Tensor | None = None
    ) -> dict[str, Any]:
        """(batch, words, 50) character ids, or (batch, words) numbers of cached words."""
        tokens, mask = self._embed(inputs, word_inputs)
        layers = self._elmo_lstm(tokens, mask)
        masked = tokens * mask.unsqueeze(-1).to(tokens.dtype)
        return {"activations": [torch.cat([masked, masked], dim=-1), *layers], "mask": mask}

    def _embed(
        self, inputs: torch.Tensor, word_inputs: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if self._word_embedding is not None and word_inputs is not None:
            try:
                return add_sentence_boundary_token_ids(
                    self._word_embedding(word_inputs),
                    make_mask(word_inputs > 0),
                    self._bos_embedding,
                    self._eos_embedding,
                )
            except (RuntimeError, IndexError):
                # a word that is not cached: the characters of all words are read instead
                pass
        encoded = self._token_embedder(inputs)
        return encoded["token_embedding"], encoded["mask"]

    @torch.no_grad()
    def create_cached_cnn_embeddings(self, tokens: list[str]) -> None:
        """Reads the characters of these words once; their numbers are their places in the list."""
        mapper = ELMoCharacterMapper()
        words = [mapper.bos_token, mapper.eos_token, *tokens]
        rows = torch.tensor([mapper.convert_word_to_char_ids(word) for word in words])
        parts = rows.to(next(self._token_embedder.parameters()).device).split(WORDS_AT_ONCE)
        shown = tqdm(parts, desc="Caching words", disable=len(parts) == 1)
        vectors = torch.cat([self._token_embedder._embed_rows(part) for part in shown])
        self._bos_embedding, self._eos_embedding = vectors[0], vectors[1]
        cached = vectors[2:].clone()
        # number 0 is padding, whatever the word in its place
        cached[0] = 0
        self._word_embedding = nn.Embedding.from_pretrained(
            cached, freeze=not self._requires_grad, padding_idx=0
        )
