"""Trains the demo's byte-level BPE: 6400 ids, with MiniMind-3's added tokens at ids 0 to 35.

Training sees one character at a time, so that no merge joins two characters. In text of common characters a token is then
one character, the unit of verse.
"""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from prompts import IM_END, IM_START

VOCAB_SIZE = 6400
END_OF_TEXT = "<|endoftext|>"  # id 0: padding and unknown
SPECIAL_TOKENS = [
    *(END_OF_TEXT, IM_START, IM_END),  # ids 1 and 2: start and end of a text
    *("<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>"),
    *("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
    *("<|audio_start|>", "<|audio_end|>", "<|audio_pad|>"),
    *("<tts_pad>", "<tts_text_bos>", "<tts_text_eod>", "<tts_text_bos_single>"),
]
PLAIN_ADDED_TOKENS = [
    *("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"),
    *(f"<|buffer{i}|>" for i in range(1, 10)),
]


ROLES = ("user", "assistant")


def train_tokenizer(texts: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=SPECIAL_TOKENS + PLAIN_ADDED_TOKENS,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    # One line each, since the split into words separates lines; every sample contains the roles.
    tokenizer.train_from_iterator(("\n".join((*ROLES, *text)) for text in texts), trainer)
    as_json = json.loads(tokenizer.to_str())
    for added in as_json["added_tokens"]:  # the trainer marks all of them as special
        added["special"] = added["content"] in SPECIAL_TOKENS
    return Tokenizer.from_str(json.dumps(as_json))


def tokenizer_config(tokenizer: Tokenizer, max_length: int) -> dict:
    added = tokenizer.get_added_tokens_decoder()
    return {
        "add_bos_token": False,
        "add_eos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": {str(i): describe(added[i]) for i in sorted(added)},
        "bos_token": IM_START,
        "clean_up_tokenization_spaces": False,
        "eos_token": IM_END,
        "model_max_length": max_length,
        "pad_token": END_OF_TEXT,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": END_OF_TEXT,
    }


def describe(token: AddedToken) -> dict:
    flags = ("lstrip", "normalized", "rstrip", "single_word", "special")
    return {"content": token.content} | {flag: getattr(token, flag) for flag in flags}


def save_tokenizer(tokenizer: Tokenizer, folder: Path, max_length: int) -> None:
    tokenizer.save(str(folder / "tokenizer.json"))
    config = json.dumps(tokenizer_config(tokenizer, max_length), ensure_ascii=False, indent=4)
    (folder / "tokenizer_config.json").write_text(config + "\n", encoding="utf-8")
