# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`pipeline("token-classification")` for words that are rows of characters."""

import numpy as np
from transformers import TokenClassificationPipeline


class ElmoTokenClassificationPipeline(TokenClassificationPipeline):
    """transformers' own, which looks a token's name up by its number; a word here has none."""

    def gather_pre_entities(self, sentence, input_ids, *args, **kwargs):
        if input_ids.ndim == 1:
            return super().gather_pre_entities(sentence, input_ids, *args, **kwargs)
        numbers = np.zeros(len(input_ids), dtype=int)
        words = super().gather_pre_entities(sentence, numbers, *args, **kwargs)
        for word in words:
            word |= {"word": sentence[word["start"] : word["end"]], "is_subword": False}
        return words
