# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""Every use of another library's private interface, in one place, each with its reason.

Nothing else in this package touches an underscore of torch or transformers, except to override the
methods listed in `OVERRIDDEN`. A test exercises each entry, so that a new version of a library that
takes one away fails with its name.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import TokenClassificationPipeline
from transformers.dynamic_module_utils import get_relative_import_files
from transformers.pipelines import PIPELINE_REGISTRY
from transformers.utils import cached_file

# Methods of transformers' classes that ours override although they are not documented: the class,
# the method, and what depends on it.
OVERRIDDEN = {
    ("PreTrainedTokenizer", "_convert_token_to_id"): "a word becomes a row of ids, not one id",
    ("PreTrainedTokenizer", "_convert_id_to_token"): "ids have names of our own",
    ("PreTrainedTokenizer", "_encode_plus"): "three-dimensional input ids with offsets",
    ("PreTrainedTokenizer", "_decode"): "decoding goes through the words of rows",
    ("PreTrainedTokenizer", "_added_tokens_encoder"): "get_vocab lists tokens that users add",
    (
        "PreTrainedTokenizerBase",
        "_get_padding_truncation_strategies",
    ): "pad() understands the same arguments as every tokenizer",
    ("PushToHubMixin", "_upload_modified_files"): "push_to_hub takes the code of the model along",
    ("PreTrainedModel", "_init_weights"): "weights start as in bilm-tf",
    ("TokenClassificationPipeline", "gather_pre_entities"): "the words of rows in a pipeline",
    ("TokenClassificationPipeline", "_forward"): "the tags of a CRF in a pipeline",
}

# arguments of `from_pretrained` that say where the files beside the weights are
HUB_ARGUMENTS = (
    "cache_dir",
    "force_download",
    "local_files_only",
    "revision",
    "subfolder",
    "token",
)


def weight_version(weight: torch.Tensor) -> int | None:
    """
    A number that autograd raises with every in-place write; None for a tensor made in inference
    mode, which has none. It tells that a prepared copy of the weight is stale.
    """
    return None if weight.is_inference() else weight._version


def has_hooks(module: nn.Module) -> bool:
    """
    Whether something other than the module's own `forward` runs when it is called. The fast paths
    read a module's weights instead of calling it, which must not bypass anybody's hook.
    """
    return bool(
        "forward" in vars(module)
        or module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )


def pack_weight(weight: torch.Tensor) -> torch.Tensor:
    """
    A weight in the blocked order of oneDNN, two to four times faster for few rows. torch packs
    weights this way inside its compiler only.
    """
    # the number of rows is only a hint for the block size; 32 was as good as any from 1 to 512
    return torch.ops.mkldnn._reorder_linear_weight(weight, 32)


def packed_linear(
    inputs: torch.Tensor,
    packed: torch.Tensor,
    bias: torch.Tensor | None = None,
    add: torch.Tensor | None = None,
) -> torch.Tensor:
    """inputs W^T, plus `bias` (a vector), plus `add` (of the result's shape)."""
    product = torch.ops.mkldnn._linear_pointwise
    if add is None:
        return product(inputs, packed, bias, "none", [], "")
    return product.binary(inputs, add, packed, bias, "add")


def scan(step: Any, first: Any, inputs: torch.Tensor) -> Any:
    """A loop over time that an exporter can follow; torch has no public one yet."""
    from torch._higher_order_ops import scan as torch_scan

    return torch_scan(step, first, inputs)


def is_loaded(weight: torch.Tensor) -> bool:
    """Whether `from_pretrained` has put a value there, so that initialisation must not touch it."""
    return getattr(weight, "_is_hf_initialized", False)


def imported_files(module: Path) -> list[Path]:
    """
    The files of the same folder that a module imports, directly or not: exactly those that
    transformers fetches for `trust_remote_code=True`.
    """
    return [Path(file) for file in get_relative_import_files(module)]


def find_file(name_or_path: Any, file: str, **arguments: Any) -> str | None:
    """
    A file of a model folder or Hub repository; None if it has no such file. The arguments are those
    of `from_pretrained`.
    """
    hub = {name: arguments[name] for name in HUB_ARGUMENTS if name in arguments}
    # without the private argument a missing file and a broken connection are the same error
    return cached_file(name_or_path, file, _raise_exceptions_for_missing_entries=False, **hub)


def register_pipeline(pipeline_class: type[TokenClassificationPipeline]) -> None:
    """
    Lets `pipeline("token-classification")` choose a subclass for models that ask for one. The
    public `register_pipeline` can only replace the class for all models.
    """
    PIPELINE_REGISTRY.supported_tasks["token-classification"]["impl"] = pipeline_class


def ignore_custom_pipelines(config_class: type) -> None:
    """
    A published model names a pipeline of its own in `custom_pipelines`, for those who have not
    installed this package. transformers would ask everybody else for `trust_remote_code`, too.
    """
    config_class.custom_pipelines = property(  # type: ignore[attr-defined]
        lambda self: {}, lambda self, value: None
    )
