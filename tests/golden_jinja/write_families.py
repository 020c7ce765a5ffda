#!/usr/bin/env python3
"""Writes families.jsonl: the conversations below, rendered by the chat templates of MiniMind's tokenizers.

usage: python write_families.py TOKENIZERS      with transformers and jinja2 installed; TOKENIZERS contains v1, v2 and v3,
                                                each with MiniMind's tokenizer_config.json
A line is {"family", "input", "rendered"}; the input is what `minimind render` reads.
"""
import copy
import json
import pathlib
import sys

from transformers.utils.chat_template_utils import _compile_jinja_template

HERE = pathlib.Path(__file__).parent


def turn(role, content, **more):
    return {"role": role, "content": content, **more}


PLAIN = [
    [turn("user", "你好")],
    [turn("system", "Answer in verse."), turn("user", "Hi\n"), turn("assistant", "Ho"), turn("user", "  again ")],
    [turn("user", "a"), turn("assistant", "b"), turn("system", "now softly"), turn("user", "c")],
    [turn("user", ""), turn("assistant", "")],
    [turn("assistant", "first"), turn("user", "</s><|im_end|>"), turn("other", "unseen")],
]
THINKING = [
    [turn("user", "a"), turn("assistant", "<think>\nwell\n\n</think>\n\nso"), turn("user", "b")],
    [turn("user", "a"), turn("assistant", "\nso", reasoning_content="\nwell\n")],
    [turn("user", "a"), turn("assistant", "no beginning</think>end</think>\n\nlast")],
    [turn("user", "a"), turn("assistant", "<think>x<think>y\n</think>z", reasoning_content=None)],
]
LOOK = {"name": "look", "arguments": {"where": "东", "deep": True}}
CALLING = [
    [turn("user", "a"), turn("assistant", "let me see", tool_calls=[{"type": "function", "function": LOOK}]),
     turn("tool", "{\"seen\": 1}"), turn("assistant", "one")],
    [turn("user", "a"), turn("assistant", "", tool_calls=[LOOK, {"name": "n", "arguments": "{\"raw\": 1}"}]),
     turn("tool", "1"), turn("tool", "2"), turn("user", "and?")],
    [turn("system", "s"), turn("tool", "alone"), turn("user", ["no", "text"]), turn("assistant", None, tool_calls=None)],
]
TOOLS = [{"type": "function", "function": {"name": "look", "description": "看 <\"around\">", "parameters":
         {"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]}}}]
VARIABLES = [{}, {"add_generation_prompt": True}, {"add_generation_prompt": True, "open_thinking": True},
             {"add_generation_prompt": True, "open_thinking": False, "enable_thinking": False},
             {"add_generation_prompt": True, "enable_thinking": True}]


def inputs(family):
    for messages in PLAIN + ([] if family == "v1" else THINKING + CALLING):
        for tools in [None] if family == "v1" else [None, TOOLS]:
            for variables in VARIABLES:
                yield {"messages": messages, **({"tools": tools} if tools else {}), **variables}


def main():
    with open(HERE / "families.jsonl", "w", encoding="utf-8") as out:
        for family in ["v1", "v2", "v3"]:
            config = json.loads((pathlib.Path(sys.argv[1]) / family / "tokenizer_config.json").read_text("utf-8"))
            template = _compile_jinja_template(config["chat_template"])
            for given in inputs(family):
                variables = {"tools": None, "documents": None, "add_generation_prompt": False, **copy.deepcopy(given)}
                line = {"family": family, "input": given, "rendered": template.render(**variables)}
                out.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
