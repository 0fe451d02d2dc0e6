# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`pipeline("token-classification")` for words that are rows of characters."""

from typing import Any

import numpy as np
from transformers import TokenClassificationPipeline
from transformers.pipelines.token_classification import AggregationStrategy


class ElmoTokenClassificationPipeline(TokenClassificationPipeline):
    """transformers' own looks up a token's name by its id; here a word is a row of ids."""

    def gather_pre_entities(
        self, sentence, input_ids, scores, offset_mapping, special_tokens_mask, strategy, **kwargs
    ):
        words = super().gather_pre_entities(
            sentence,
            np.zeros(len(input_ids), dtype=int),
            scores,
            offset_mapping,
            special_tokens_mask,
            # words have no pieces to be joined, so there is no strategy to warn about
            AggregationStrategy.SIMPLE,
            **kwargs,
        )
        for word in words:
            word |= {"word": sentence[word["start"] : word["end"]], "is_subword": False}
        return words


class TokenClassification(TokenClassificationPipeline):
    """
    What `pipeline("token-classification")` calls after `import elmo_hf`: our pipeline for ELMo,
    and for every other model transformers' own, as an object of exactly that class.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        model = kwargs["model"] if "model" in kwargs else args[0]
        is_elmo = getattr(model.config, "model_type", None) == "elmo"
        chosen = ElmoTokenClassificationPipeline if is_elmo else TokenClassificationPipeline
        return chosen(*args, **kwargs)
