"""Prints the loss per token of MiniMind's own dataset and model, to compare with `minimind perplexity --jsonl`.

    python tools/reference/dataset_loss.py TREE MODEL TOKENIZER DATA [--config '{"num_attention_heads": 6}']

TREE is MiniMind's repository at v2-early, v2 or v3. MODEL is a .pth of it; `random:OUT` first writes one with random weights to
OUT. TOKENIZER is a folder, DATA lines of JSON of one kind. The random changes of v3's dataset are disabled: system messages and
the removal of empty thinking. For DPO data it prints one line for chosen and one for rejected.
"""

import argparse
import importlib
import json
import sys
import types
from pathlib import Path
from unittest import mock

import torch
from transformers import AutoTokenizer

MAX_LENGTH = 1024


def minimind_modules(tree: Path) -> tuple[types.ModuleType, types.ModuleType, types.ModuleType]:
    """Returns the modules of the dataset, the model and its config. Early datasets import pandas and sklearn without use."""
    sys.path[0] = str(tree)  # instead of this folder, which also has a model.py
    newer = (tree / "model" / "model_minimind.py").exists()
    names = ["model.model_minimind"] * 2 if newer else ["model.model", "model.LMConfig"]
    model, config = (importlib.import_module(name) for name in names)
    name = "dataset.lm_dataset" if newer else "model.dataset"
    if "import pandas" not in (tree / f"{name.replace('.', '/')}.py").read_text(encoding="utf-8"):
        return importlib.import_module(name), model, config
    unused = {name: types.ModuleType(name) for name in ("pandas", "sklearn", "sklearn.model_selection")}
    unused["sklearn.model_selection"].train_test_split = None
    with mock.patch.dict(sys.modules, unused):
        return importlib.import_module(name), model, config


def load_model(model_module, config_module, path: str, settings: dict) -> torch.nn.Module:
    config_class = getattr(config_module, "MiniMindConfig", None) or config_module.LMConfig
    model_class = getattr(model_module, "MiniMindForCausalLM", None) or model_module.MiniMindLM
    torch.manual_seed(1)
    model = model_class(config_class(**settings)).float()
    if path.startswith("random:"):
        for weight in model.parameters():
            if weight.dim() == 2:
                torch.nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
        path = path.removeprefix("random:")
        torch.save(model.state_dict(), path)
    state = torch.load(path, map_location="cpu")
    missing, unexpected = model.load_state_dict({name: t.float() for name, t in state.items()}, strict=False)
    assert not unexpected and all("mask" in name or "pos_cis" in name for name in missing), (missing, unexpected)
    return model.eval()


def samples(dataset_module, data: Path, tokenizer):
    """Yields for each sample its group, inputs, targets and the mask of scored targets."""
    fields = json.loads(data.read_text(encoding="utf-8").splitlines()[0])
    if "chosen" in fields:
        for sample in dataset_module.DPODataset(str(data), tokenizer, MAX_LENGTH):
            for group in ("chosen", "rejected"):
                yield group, *(sample[f"{part}_{group}"] for part in ("x", "y", "mask"))
        return
    kind = dataset_module.SFTDataset if "conversations" in fields else dataset_module.PretrainDataset
    for sample in kind(str(data), tokenizer, max_length=MAX_LENGTH):
        if len(sample) == 3:
            yield "scored", *sample
        else:
            ids, labels = sample
            yield "scored", ids[:-1], labels[1:].clamp(min=0), labels[1:] != -100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("model")
    parser.add_argument("tokenizer")
    parser.add_argument("data", type=Path)
    parser.add_argument("--config", type=json.loads, default={})
    options = parser.parse_args()
    dataset, model_module, config_module = minimind_modules(options.tree)
    for random_change in ("pre_processing_chat", "post_processing_chat"):
        if hasattr(dataset, random_change):
            setattr(dataset, random_change, lambda text: text)
    tokenizer = AutoTokenizer.from_pretrained(options.tokenizer)
    model = load_model(model_module, config_module, options.model, options.config)
    sums: dict[str, list[float]] = {}
    with torch.no_grad():
        for group, inputs, targets, counted in samples(dataset, options.data, tokenizer):
            logits = model(inputs[None]).logits[0].double()
            nats = -torch.log_softmax(logits, -1)[torch.arange(len(targets)), targets]
            total = sums.setdefault(group, [0, 0])
            total[0] += int(counted.sum())
            total[1] += float(nats[counted.bool()].sum())
    for group, (tokens, nats) in sums.items():
        print(json.dumps({"group": group, "tokens": tokens, "nats_per_token": nats / tokens}))


if __name__ == "__main__":
    main()
