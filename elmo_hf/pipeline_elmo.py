# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""`pipeline("token-classification")` for words that are rows of characters."""

from typing import Any, cast

import numpy as np
import torch
from transformers import TokenClassificationPipeline
from transformers.pipelines.token_classification import AggregationStrategy


class ElmoTokenClassificationPipeline(TokenClassificationPipeline):
    """
    transformers' own reads a text as one sequence; here the model reads its sentences one by one,
    as the tokenizer splits them. It looks up a token's name by its id; here a word is a row of
    ids. And it takes the softmax of logits; here the model says which tags they mean.
    """

    def _forward(self, model_inputs):
        outputs = super()._forward(model_inputs)
        if self.model.config.classifier_decoder == "crf":
            outputs["logits"] = self.decoded(outputs["logits"], outputs["attention_mask"])
        return outputs

    def decoded(self, logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        (batch, words, tags + 1): logits whose softmax is the probability of the chosen tag of each
        word, nothing for the other tags, and what is left in one more column.
        """
        numbers, chances = cast(Any, self.model).decode(logits, mask)
        columns = logits.new_zeros(*logits.shape[:2], logits.shape[2] + 1, dtype=chances.dtype)
        columns[..., -1] = 1 - chances
        # never zero, or the tag would be one of many
        kept = chances.clamp(min=torch.finfo(chances.dtype).tiny)
        return columns.scatter_(2, numbers.unsqueeze(-1), kept.unsqueeze(-1)).log()

    def preprocess(self, sentence, offset_mapping=None, **preprocess_params):
        is_text = isinstance(sentence, str) and not preprocess_params["is_split_into_words"]
        # with a stride or offsets the text is to be read in other pieces
        is_whole = offset_mapping is None and "tokenizer_params" not in preprocess_params
        parts = list(self.tokenizer.split(sentence)) if is_text and is_whole else []
        if not parts:
            yield from super().preprocess(sentence, offset_mapping, **preprocess_params)
        for number, part in enumerate(parts, start=1):
            inputs = self.tokenizer(
                part.words,
                is_split_into_words=True,
                return_tensors="pt",
                truncation=self.tokenizer.model_max_length > 0,
                return_special_tokens_mask=True,
            )
            # like the other inputs, as a batch of one
            spans = torch.tensor([part.spans[: inputs["input_ids"].shape[1]]])
            yield {
                **inputs,
                "offset_mapping": spans,
                "sentence": sentence if number == 1 else None,
                "is_last": number == len(parts),
            }

    def gather_pre_entities(
        self, sentence, input_ids, scores, offset_mapping, special_tokens_mask, strategy, **kwargs
    ):
        # without the column of `decoded` that is no tag
        scores = scores[:, : len(self.model.config.id2label)]
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
