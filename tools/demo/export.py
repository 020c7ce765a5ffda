"""Writes the files of weights/demo and its measured card from a training run, which may be unfinished.

    python tools/demo/export.py --data FOLDER --work FOLDER --program ./minimind --out weights/demo
"""

import argparse
import json
import random
import shutil
from pathlib import Path

import torch
from tokenizers import Tokenizer

from card import card
from curve import draw, read_log
from measure_poems import measure
from poems import CHARACTERS, common_characters, read_poems, readable
from prompts import IM_END
from task import BATCH, CONFIG, DECAY, MAX_POSITIONS, SEED, MiniMind, rows_of
from tokenizer import save_tokenizer


def half_state(model: MiniMind) -> dict[str, torch.Tensor]:
    """float16 under MiniMind's names; the tied lm_head shares the embedding's storage, which halves its size."""
    state = {name: weight.half() for name, weight in model.state_dict().items()}
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    return state


def export_weights(work: Path, out: Path) -> int:
    """Writes the weights to `out`. Returns the number of parameters."""
    model = MiniMind(CONFIG)
    model.load_state_dict(torch.load(work / "poet.pth", weights_only=True)["model"])
    torch.save(half_state(model), out)
    return sum(weight.numel() for weight in model.parameters())


def save_config(path: Path, tokenizer: Tokenizer) -> None:
    """MiniMind's config.json, with what no tensor shows."""
    shown = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
             "intermediate_size", "rms_norm_eps", "rope_theta", "hidden_act", "tie_word_embeddings")
    config = {"model_type": "minimind"} | {name: getattr(CONFIG, name) for name in shown}
    config |= {"max_position_embeddings": MAX_POSITIONS, "rope_scaling": None, "is_causal": True}
    config["eos_token_id"] = tokenizer.token_to_id(IM_END)
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def export(data: Path, work: Path, program: Path, out: Path) -> None:
    here = Path(__file__).parent
    tokenizer = Tokenizer.from_file(str(work / "tokenizer.json"))
    out.mkdir(parents=True, exist_ok=True)
    parameters = export_weights(work, out / "model.pth")
    save_config(out / "config.json", tokenizer)
    save_tokenizer(tokenizer, out, MAX_POSITIONS)
    shutil.copyfile(here / "DATA_LICENSE", out / "LICENSE")
    shutil.copyfile(here / "chat_template.jinja", out / "chat_template.jinja")
    log = read_log(work / "poet.log")
    draw(log, out / "loss.svg")

    every = read_poems(data / "poems_train.jsonl.xz")
    trained = readable(every, common_characters(every))
    validation = read_poems(data / "poems_val.jsonl.xz")
    numbers = log[-1] | measure(every, validation, program, out / "model.pth") | {
        "parameters": parameters,
        "megabytes": (out / "model.pth").stat().st_size / 1e6,
        "train_poems": len(every),
        "trained_poems": len(trained),
        "characters": CHARACTERS,
        "longest": max(len(row.tokens) for row in rows_of(trained, tokenizer, random.Random(SEED))),
        "batch": BATCH,
        "decay": DECAY,
    }
    (work / "numbers.json").write_text(json.dumps(numbers, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    (out / "README.md").write_text(card(CONFIG, numbers), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the poems")
    parser.add_argument("--work", type=Path, required=True, help="folder of the checkpoint")
    parser.add_argument("--program", type=Path, default="./minimind", help="minimind, which writes the poems to measure")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    export(args.data, args.work, args.program.resolve(), args.out)


if __name__ == "__main__":
    main()
