"""Turns a training checkpoint into the files of weights/demo, its card measured on the way.

python tools/demo/export.py --data FOLDER --work FOLDER --out weights/demo
"""

import argparse
import math
import shutil
from pathlib import Path

import torch
from tokenizers import Tokenizer

from card import card
from poems import load_poems
from task import BATCH, CONFIG, MAX_POSITIONS, MiniMind, encode, validation_loss
from tokenizer import save_tokenizer

END_OF_TEXT_ID = 2
LONGEST_SAMPLE = 128
SAMPLES = (("七言绝句《山居》\n", 1), ("五言律诗《秋夜》\n", 2))  # prompt and seed


def half_state(model: MiniMind) -> dict[str, torch.Tensor]:
    """float16 under MiniMind's names; the tied lm_head shares the embedding's storage, which halves its cost."""
    state = {name: weight.half().cpu() for name, weight in model.state_dict().items()}
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    return state


@torch.inference_mode()
def sample(model: MiniMind, ids: list[int], seed: int, temperature: float = 0.85, top_p: float = 0.95) -> list[int]:
    """The prompt and what follows it, up to the end of text."""
    random = torch.Generator().manual_seed(seed)
    ids = list(ids)
    while len(ids) < LONGEST_SAMPLE:
        ranked, order = (model(torch.tensor([ids]))[0, -1] / temperature).softmax(-1).sort(descending=True)
        ranked[ranked.cumsum(-1) - ranked >= top_p] = 0
        token = int(order[torch.multinomial(ranked, 1, generator=random)])
        if token == END_OF_TEXT_ID:
            break
        ids.append(token)
    return ids


def export(data: Path, work: Path, out: Path) -> None:
    checkpoint = torch.load(work / "checkpoint.pth", weights_only=True)
    tokenizer = Tokenizer.from_file(str(work / "tokenizer.json"))
    model = MiniMind(CONFIG).eval()
    model.load_state_dict(checkpoint["model"])
    state = half_state(model)
    out.mkdir(parents=True, exist_ok=True)
    torch.save(state, out / "model.pth")
    save_tokenizer(tokenizer, out, MAX_POSITIONS)

    model.load_state_dict({name: weight.float() for name, weight in state.items()})
    validation = encode(tokenizer, load_poems(data / "poems_val.jsonl.xz"))
    loss = validation_loss(model, validation)
    samples = [(s, tokenizer.decode(sample(model, tokenizer.encode(prompt).ids, s))) for prompt, s in SAMPLES]
    train = encode(tokenizer, load_poems(data / "poems_train.jsonl.xz"))
    numbers = checkpoint["report"] | {
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "train_poems": len(train),
        "train_tokens": sum(map(len, train)),
        "longest": max(map(len, train)),
        "validation_poems": len(validation),
        "batch": BATCH,
        "loss": loss,
    }
    text = card(CONFIG, numbers, samples)
    (out / "README.md").write_text(text, encoding="utf-8")
    shutil.copyfile(Path(__file__).with_name("DATA_LICENSE"), out / "LICENSE")
    shutil.copyfile(Path(__file__).with_name("chat_template.jinja"), out / "chat_template.jinja")
    print(f"validation loss {loss:.4f}, perplexity {math.exp(loss):.1f}")
    for seed, poem in samples:
        print(f"seed {seed}\n{poem}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the poems")
    parser.add_argument("--work", type=Path, required=True, help="folder of the checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    args = parser.parse_args()
    torch.set_num_threads(1)
    export(args.data, args.work, args.out)


if __name__ == "__main__":
    main()
