"""LoRA on the LSTMs: trained, saved, loaded, merged."""

import re

import torch
from helpers.launch import run
from peft import PeftModel
from safetensors.torch import load_file

from elmo_hf import ElmoForTokenClassification, ElmoTokenizer, bundled_tagger


def test_example_trains_saves_and_merges(tmp_path):
    printed = run("run_lora.py", ["--output_dir", tmp_path, "--num_train_epochs", 2])
    first, second = (float(loss) for loss in re.findall(r"epoch \d: loss ([\d.]+)", printed))
    assert second < first
    # what starts as zeros was trained in every kind of layer
    adapter = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    counts = {"input_linear": 4, "recurrent_linear": 4, "projection": 5, "classifier": 1}
    for name, count in counts.items():
        grown = [part.abs().max() for key, part in adapter.items() if f"{name}.lora_B" in key]
        assert len(grown) == count and min(grown) > 0, name
    # and nothing but such matrices
    assert all(".lora_" in key for key in adapter)
    base = ElmoForTokenClassification.from_pretrained(bundled_tagger())
    adapted = PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    merged = ElmoForTokenClassification.from_pretrained(tmp_path / "merged").eval()
    tokenizer = ElmoTokenizer.from_pretrained(tmp_path / "merged")
    words = [["They", "book", "the", "book", "."], ["Go", "!"]]
    batch = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
    plain = ElmoForTokenClassification.from_pretrained(bundled_tagger()).eval()
    with torch.inference_mode():
        expected, before = adapted(**batch).logits, plain(**batch).logits
        torch.testing.assert_close(merged(**batch).logits, expected, rtol=1e-4, atol=1e-4)
        # an adapter keeps the fast copies away, and merged weights have them again
        fast = merged.prepare_for_inference()(**batch).logits
    torch.testing.assert_close(fast, expected, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(before, expected, atol=1e-2)
