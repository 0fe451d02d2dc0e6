# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`pipeline("token-classification")` for words that are rows of characters."""

import numpy as np
from transformers import TokenClassificationPipeline
from transformers.pipelines.token_classification import AggregationStrategy


class ElmoTokenClassificationPipeline(TokenClassificationPipeline):
    """transformers' own, which looks a token's name up by its number; a word here has none."""

    def gather_pre_entities(
        self, sentence, input_ids, scores, offset_mapping, special_tokens_mask, strategy, **kwargs
    ):
        has_rows = input_ids.ndim == 2
        if has_rows:
            input_ids = np.zeros(len(input_ids), dtype=int)
            # words have no pieces to be put together, so there is no strategy to warn of
            strategy = AggregationStrategy.SIMPLE
        words = super().gather_pre_entities(
            sentence, input_ids, scores, offset_mapping, special_tokens_mask, strategy, **kwargs
        )
        if has_rows:
            for word in words:
                word |= {"word": sentence[word["start"] : word["end"]], "is_subword": False}
        return words
