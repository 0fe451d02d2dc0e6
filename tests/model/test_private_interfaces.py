"""What we use of other libraries although it is private: a clear failure when it goes away."""

import ast
from pathlib import Path

import pytest
import torch
import transformers
from torch import nn
from transformers.tokenization_utils_base import PreTrainedTokenizerBase
from transformers.utils import PushToHubMixin

import elmo_hf
from elmo_hf import ElmoConfig, ElmoModel, ElmoTokenizer
from elmo_hf import private_interfaces as private

PACKAGE = Path(elmo_hf.__file__).parent
CLASSES = {
    "PreTrainedTokenizerBase": PreTrainedTokenizerBase,
    "PushToHubMixin": PushToHubMixin,
}


@pytest.mark.parametrize(("name", "method"), private.OVERRIDDEN, ids=lambda part: part)
def test_overridden_methods_exist(name, method):
    owner = CLASSES.get(name) or getattr(transformers, name)
    found = hasattr(owner, method)
    if method == "_added_tokens_encoder":
        found = hasattr(ElmoTokenizer(), method)
    assert found, (
        f"transformers {transformers.__version__} has no {name}.{method}, which elmo_hf relies on: "
        f"{private.OVERRIDDEN[name, method]}."
    )


def test_autograd_counts_writes():
    weight = nn.Parameter(torch.ones(3))
    before = private.weight_version(weight)
    with torch.no_grad():
        weight.mul_(2)
    assert private.weight_version(weight) != before, "Tensor._version no longer counts writes."
    with torch.inference_mode():
        assert private.weight_version(torch.ones(3)) is None


@pytest.mark.parametrize(
    "register",
    [
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
    ],
)
def test_every_kind_of_hook_is_seen(register):
    module = nn.Linear(2, 2)
    assert not private.has_hooks(module)
    getattr(module, register)(lambda *_: None)
    assert private.has_hooks(module), f"A hook by {register} is no longer seen."


def test_a_replaced_forward_is_seen():
    module = nn.Linear(2, 2)
    module.forward = lambda given: given
    assert private.has_hooks(module)


def test_packed_products_are_products():
    weight, inputs, bias = torch.randn(6, 5), torch.randn(3, 5), torch.randn(6)
    add = torch.randn(3, 6)
    packed = private.pack_weight(weight)
    expected = inputs @ weight.T
    torch.testing.assert_close(private.packed_linear(inputs, packed), expected)
    torch.testing.assert_close(private.packed_linear(inputs, packed, bias), expected + bias)
    torch.testing.assert_close(private.packed_linear(inputs, packed, add=add), expected + add)


def test_scan_is_a_loop():
    def step(total, value):
        total = total + value
        return total, total.clone()

    last, all_of_them = private.scan(step, torch.zeros(1), torch.arange(1.0, 4.0).unsqueeze(1))
    assert last.tolist() == [6.0] and all_of_them.flatten().tolist() == [1.0, 3.0, 6.0]


def test_loaded_weights_are_marked(tmp_path, tiny_model):
    """Else the padding row of loaded embeddings would be set to zero."""
    with torch.no_grad():
        tiny_model.token_encoder.char_embeddings.weight[0] = 7
    tiny_model.save_pretrained(tmp_path)
    again = ElmoModel.from_pretrained(tmp_path)
    assert (again.token_encoder.char_embeddings.weight[0] == 7).all()


def test_a_missing_file_is_none(tmp_path):
    (tmp_path / "there.txt").write_text("here")
    assert private.find_file(tmp_path, "there.txt") == str(tmp_path / "there.txt")
    assert private.find_file(tmp_path, "not-there.txt") is None


def test_the_registry_of_pipelines_can_be_set(monkeypatch):
    tasks = private.PIPELINE_REGISTRY.supported_tasks
    monkeypatch.setitem(tasks["token-classification"], "impl", None)
    private.register_pipeline(str)
    assert private.PIPELINE_REGISTRY.check_task("token-classification")[1]["impl"] is str


def test_the_configuration_hides_the_pipelines_of_published_models():
    config = ElmoConfig(custom_pipelines={"token-classification": {}})
    assert config.custom_pipelines == {}


FOREIGN = (
    "torch",
    "transformers",
    "nn",
    "distributed",
    "huggingface_hub",
    "datasets",
    "accelerate",
)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_private_names_of_other_libraries_are_used_in_one_file_only(path):
    """
    What the syntax shows: private names in `from torch... import ...`, and private attributes
    reached from a library's own name, as in `torch.ops.mkldnn._linear_pointwise`. It cannot see
    what an object is: `weight._version` passes, and so do methods that a class of ours overrides
    or calls on `self`, private keyword arguments, and names behind `getattr` or an alias. Those in
    use are in `private_interfaces.py` too, by convention.
    """
    if path.name == "private_interfaces.py":
        return
    overridden = {method for _, method in private.OVERRIDDEN}
    wrong = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and not node.level:
            module = node.module or ""
            parts = module.split(".")
            names = [*parts, *(alias.name for alias in node.names)]
            if parts[0] in FOREIGN and any(
                name.startswith("_") and not name.startswith("__") for name in names
            ):
                wrong.append(f"line {node.lineno}: from {module}")
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            base = node
            while isinstance(base, ast.Attribute):
                base = base.value
            is_foreign = isinstance(base, ast.Name) and base.id in FOREIGN
            if is_foreign and node.attr not in overridden and not node.attr.startswith("__"):
                wrong.append(f"line {node.lineno}: {ast.unparse(node)}")
    assert not wrong
