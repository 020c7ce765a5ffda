"""Compares minimind's answers with those of a MiniMind checkout: python tools/reference/compare_eval.py CHECKOUT

CHECKOUT is MiniMind's source tree of any generation. A small model of its own code is trained briefly on a few texts, so that
greedy choices are clear and answers end. The model is saved in float32. Then MiniMind and minimind answer some questions,
greedy, in float32, with the checkout's tokenizer. MiniMind's side uses its own generate(), and prompts and history as in its
evaluation script: 0-eval_pretrain.py and 2-eval.py, eval_model.py, or eval_llm.py. The tokens of every prompt and answer and
the texts must be equal.

Not compared: half precision, which eval_llm.py uses and in which near ties may differ, and the prefix "请问，" of 2-eval.py.

Prints a table. The exit status is 1 if any text differs.
"""

import argparse
import importlib
import json
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoTokenizer

TOKENS = 40  # limit per answer
STEPS = 150
ALL = 1_000_000  # messages of history
HISTORIES = (0, 2, 4, ALL)
PROMPTS = ("秦始皇的功绩包括", "The sky is", "  床前明月光，", "1+1=", "万有引力是\n", "<b>&\"'")
QUESTIONS = ("你好", "天空为什么是蓝色的？", "Who are you?", "再说一遍", "北京天气怎么样")
ANSWERS = ("你好！我是 MiniMind。", "因为大气散射蓝光。\n\n就是这样。", "I am a small model.", "好的，再说一遍。")
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "北京"}}\n</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]


@dataclass
class Generation:
    model: torch.nn.Module
    tokenizer: object
    tokenizer_folder: Path
    generate: object  # (input ids, limit) -> the new ids, with or without an end token
    thinking: str  # the variable of the chat template that enables thinking, or ""
    tools: bool


def generate_v1(model, tokenizer, ids: list[int], count: int) -> list[int]:
    new = []
    limit = len(ids) + count + 1  # its limit counts prompt and answer together, plus one
    for tokens in model.generate(torch.tensor([ids]), tokenizer.eos_token_id, max_new_tokens=limit, temperature=0.0):
        new = tokens[0].tolist()
    return new


def generate_v2_early(model, tokenizer, ids: list[int], count: int) -> list[int]:
    new, limit = [], len(ids) + count + 1
    options = {"eos_token_id": tokenizer.eos_token_id, "max_new_tokens": limit, "temperature": 0.0, "stream": True}
    for tokens in model.generate(torch.tensor([ids]), **options):
        new = tokens[0].tolist()
    return new


def generate_v2(model, tokenizer, ids: list[int], count: int) -> list[int]:
    """Generates without the KV cache, which transformers 5 does not pass as this code expects."""
    tokens = torch.tensor([ids])
    for _ in range(count):
        best = model(tokens, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, best], -1)
        if best.item() == tokenizer.eos_token_id:
            break
    return tokens[0, len(ids) :].tolist()


def generate_v3(model, tokenizer, ids: list[int], count: int) -> list[int]:
    inputs = torch.tensor([ids])
    options = {"attention_mask": torch.ones_like(inputs), "max_new_tokens": count, "do_sample": False}
    tokens = model.generate(inputs=inputs, eos_token_id=tokenizer.eos_token_id, **options)
    return tokens[0, len(ids) :].tolist()


def open_checkout(checkout: Path) -> Generation:
    """Returns a small model of the checkout's own classes, with the heads assumed for a .pth of its generation."""
    sys.path[0] = str(checkout)  # instead of this folder, which also has a model.py
    folder = checkout / "model"
    if (folder / "minimind_tokenizer").exists():
        folder = folder / "minimind_tokenizer"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    if (checkout / "model" / "model_minimind.py").exists():
        module = importlib.import_module("model.model_minimind")
        config = module.MiniMindConfig(hidden_size=64, num_hidden_layers=2, use_moe=False)
        model = module.MiniMindForCausalLM(config)
        is_v3 = any(name.endswith("q_norm.weight") for name in model.state_dict())
        generate = generate_v3 if is_v3 else generate_v2
    else:
        module = importlib.import_module("model.model")
        lm_config = importlib.import_module("model.LMConfig").LMConfig(dim=64, n_layers=2, use_moe=False)
        is_v1 = hasattr(module, "Transformer")
        model = (module.Transformer if is_v1 else module.MiniMindLM)(lm_config)
        generate = generate_v1 if is_v1 else generate_v2_early
    template = tokenizer.chat_template
    thinking = next((name for name in ("open_thinking", "enable_thinking") if name in template), "")
    return Generation(model.float(), tokenizer, folder, generate, thinking, "tools" in template)


def render(generation: Generation, messages: list[dict], thinking: bool | None, tools: list | None, **options) -> str:
    """Renders messages as the checkout's scripts do."""
    options |= {} if thinking is None else {generation.thinking: thinking}
    options |= {} if tools is None else {"tools": tools}
    return generation.tokenizer.apply_chat_template(messages, tokenize=False, **options)


def training_texts(generation: Generation) -> list[str]:
    tokenizer = generation.tokenizer
    texts = [f"{tokenizer.bos_token}{prompt}{answer}{tokenizer.eos_token}" for prompt, answer in zip(PROMPTS, ANSWERS)]
    modes = [(None, thinking) for thinking in ([None, True, False] if generation.thinking else [None])]
    for tools, thinking in modes + ([(TOOLS, None)] if generation.tools else []):
        for i, question in enumerate(QUESTIONS[-1:] if tools else QUESTIONS):
            history = [{"role": "user", "content": QUESTIONS[0]}, {"role": "assistant", "content": ANSWERS[0]}]
            messages = (history if i % 2 else []) + [{"role": "user", "content": question}]
            prompt = render(generation, messages, thinking, tools, add_generation_prompt=True)
            thought = "想一想。\n</think>\n\n" if prompt.endswith("<think>\n") else ""
            answer = CALL if tools else ANSWERS[i % len(ANSWERS)]
            texts.append(f"{prompt}{thought}{answer}{tokenizer.eos_token}\n")
    return texts


def train(generation: Generation) -> None:
    """Trains until the model has memorised most texts, so that argmax has no near ties and answers end."""
    rows = [torch.tensor(generation.tokenizer(text)["input_ids"][-384:]) for text in training_texts(generation)]
    padding = generation.tokenizer.pad_token_id or 0
    inputs = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=padding)
    targets = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-100)[:, 1:]
    model = generation.model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(STEPS):
        picked = torch.randperm(len(rows))[:4]
        logits = all_logits(generation, inputs[picked])
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), targets[picked].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


def all_logits(generation: Generation, inputs: torch.Tensor) -> torch.Tensor:
    if generation.generate is generate_v1:  # without targets it returns only the logits of the last token
        return generation.model(inputs, targets=inputs).logits
    return generation.model(inputs).logits


@torch.no_grad()
def answer(generation: Generation, prompt: str) -> dict:
    tokenizer = generation.tokenizer
    ids = tokenizer(prompt)["input_ids"]
    new = generation.generate(generation.model, tokenizer, ids, TOKENS)
    if len(new) < TOKENS and new[-1:] != [tokenizer.eos_token_id]:
        new = [*new, tokenizer.eos_token_id]  # v1's generate() omits it
    return {"tokens": ids + new, "content": tokenizer.decode(new, skip_special_tokens=True)}


def converse(generation: Generation, history: int, thinking: bool | None, tools: list | None) -> list[dict]:
    """Answers the questions as the loop of eval_llm.py and eval_model.py does."""
    conversation, answers = [], []
    for question in QUESTIONS:
        conversation = conversation[-history:] if history else []
        conversation.append({"role": "user", "content": question})
        prompt = render(generation, conversation, thinking, tools, add_generation_prompt=True)
        answers.append(answer(generation, prompt))
        conversation.append({"role": "assistant", "content": answers[-1]["content"]})
    return answers


def tokens_of_session(session: bytes) -> list[int]:
    """Returns the tokens of a session file, the last prompt and its answer: see runtime/chat/session_file.h."""
    (header_size,) = struct.unpack_from("<Q", session, 20)
    (count,) = struct.unpack_from("<Q", session, 28 + header_size)
    return list(struct.unpack_from(f"<{count}i", session, 36 + header_size))


def has_tags(text: str) -> bool:
    return any(tag in text for tag in ("<think>", "</think>", "<tool_call>", "</tool_call>"))


class Program:
    """minimind with the model of a generation."""

    def __init__(self, program: str, model: Path, tokenizer: Path):
        self.program = program
        self.options = ["-m", str(model), "--tokenizer", str(tokenizer), "--greedy", "-n", str(TOKENS), "-q", "-t", "1"]

    def run(self, command: str, *options: str, text: str = "") -> str:
        call = [self.program, command, *self.options, *options]
        done = subprocess.run(call, input=text.encode(), capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(call)}: status {done.returncode}: {done.stderr.decode()}")
        return done.stdout.decode()

    def continue_text(self, prompt: str) -> str:
        return self.run("generate", text=prompt)

    def converse(self, folder: Path, history: int, thinking: bool | None, tools: Path | None) -> list[dict]:
        """Returns for each question the tokens of prompt and answer, and the displayed answer."""
        session = folder / "chat.session"
        session.unlink(missing_ok=True)
        options = ["--json", "--session", str(session), "--historys", str(history)]
        options += [] if thinking is None else ["--think" if thinking else "--no-think"]
        options += [] if tools is None else ["--tools", str(tools)]
        answers = []
        for question in QUESTIONS:
            shown = json.loads(self.run("chat", *options, "-p", question))
            answers.append({"tokens": tokens_of_session(session.read_bytes()), "content": shown["content"]})
        return answers


class Table:
    def __init__(self):
        self.failed = 0

    def row(self, name: str, expected: list, found: list) -> None:
        differing = [i for i, pair in enumerate(zip(expected, found)) if pair[0] != pair[1]]
        same = not differing and len(expected) == len(found)
        self.failed += not same
        print(f"{'equal' if same else 'DIFFERS':8} {name:56} {len(expected) - len(differing)} of {len(expected)}")
        for i in differing:
            print(f"  {i}: expected {expected[i]!r}\n  {i}: found    {found[i]!r}")


def compare(generation: Generation, program: Program, tools_file: Path) -> int:
    """Prints the table. Returns the number of rows that differ."""
    table = Table()
    bos = generation.tokenizer.bos_token
    expected = [answer(generation, bos + prompt)["content"] for prompt in PROMPTS]
    table.row("bos_token + prompt", expected, [program.continue_text(prompt) for prompt in PROMPTS])
    for tools in [None, TOOLS] if generation.tools else [None]:
        for thinking in [None, True, False] if generation.thinking else [None]:
            for history in HISTORIES:
                expected = converse(generation, history, thinking, tools)
                found = program.converse(tools_file.parent, history, thinking, tools_file if tools else None)
                shown = "all" if history == ALL else history
                how = {None: "of the template", True: "on", False: "off"}[thinking]
                name = f"history {shown}, thinking {how}{', tools' if tools else ''}"
                table.row(f"{name}: tokens", [a["tokens"] for a in expected], [a["tokens"] for a in found])
                # Thinking and calls are displayed separately from the text, without their tags.
                plain = [i for i, a in enumerate(expected) if not thinking and not has_tags(a["content"])]
                texts = [[answers[i]["content"] for i in plain] for answers in (expected, found)]
                table.row(f"{name}: text", *texts)
    return table.failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="MiniMind's source tree")
    parser.add_argument("--program", default="./minimind", help="minimind (default: ./minimind)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the weights (default: 1)")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    generation = open_checkout(options.checkout.resolve())
    train(generation)
    with tempfile.TemporaryDirectory() as folder:
        model, tools = Path(folder) / "full_sft_64.pth", Path(folder) / "tools.json"
        torch.save(generation.model.state_dict(), model)
        tools.write_text(json.dumps(TOOLS), encoding="utf-8")
        failed = compare(generation, Program(options.program, model, generation.tokenizer_folder), tools)
    print(f"{options.checkout}: {'equal' if not failed else f'{failed} rows differ'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
