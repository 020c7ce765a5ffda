"""libminimind: its structures and functions as runtime/api/minimind.h declares them, and its failures as exceptions.

The library, the program and the bundled poet are in the package as a wheel has them, or where `make` builds them in the checkout
that the package is part of.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint64, c_void_p
from typing import Any

ABI = 1

PACKAGE = pathlib.Path(__file__).resolve().parent
CHECKOUT = PACKAGE.parents[2]

OK, BAD_ARGUMENT, NOT_FOUND, BAD_INPUT, NO_TOKENIZER, TOO_SMALL, BUSY, INTERRUPTED, OUT_OF_MEMORY, INTERNAL = range(10)
EXCEPTIONS = {
    BAD_ARGUMENT: ValueError,
    NOT_FOUND: FileNotFoundError,
    BAD_INPUT: ValueError,
    NO_TOKENIZER: ValueError,
    BUSY: RuntimeError,
    INTERRUPTED: KeyboardInterrupt,
    OUT_OF_MEMORY: MemoryError,
}

ENCODE_TEXT, ENCODE_SPECIAL, ENCODE_PROMPT = range(3)
RUNNING = 0
FINISH_REASONS = {1: "stop", 2: "length", 3: "cancelled"}


class Owner:
    """Of memory of the library, which a copy would free once more."""

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be pickled or copied; open another")


class Structure(ctypes.Structure):
    """A structure whose first field is its size."""

    def __init__(self) -> None:
        super().__init__()
        self.size = ctypes.sizeof(self)


class ModelOptions(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("loras", POINTER(c_char_p)),
        ("lora_count", c_size_t),
        ("type", c_char_p),
        ("kv_type", c_char_p),
        ("compute", c_char_p),
        ("tokenizer", c_char_p),
        ("config", c_char_p),
        ("chat_template", c_char_p),
        ("rope_scaling", c_char_p),
        ("heads", c_size_t),
        ("kv_heads", c_size_t),
        ("experts_per_token", c_size_t),
        ("threads", c_size_t),
        ("context_length", c_size_t),
        ("parallel", c_size_t),
        ("kv_memory", c_size_t),
        ("session_files", c_int),
    ]


class Facts(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("family", c_char_p),
        ("path", c_char_p),
        ("kv_type", c_char_p),
        ("kernels", c_char_p),
        ("notes", c_char_p),
        ("vocab_size", c_size_t),
        ("hidden_size", c_size_t),
        ("layers", c_size_t),
        ("heads", c_size_t),
        ("kv_heads", c_size_t),
        ("head_dim", c_size_t),
        ("experts", c_size_t),
        ("parameters", c_size_t),
        ("context_length", c_size_t),
        ("threads", c_size_t),
        ("has_tokenizer", c_int),
        ("eos_token", c_int),
        ("tokenizer_size", c_size_t),
    ]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("type", c_char_p),
        ("shape", POINTER(c_size_t)),
        ("rank", c_size_t),
        ("data", c_void_p),
        ("bytes", c_size_t),
    ]


class LogitBias(ctypes.Structure):
    _fields_ = [("token", c_int32), ("bias", c_double)]


PROCESS = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_int32), c_size_t, POINTER(c_float), c_size_t)


class Request(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("ids", POINTER(c_int32)),
        ("id_count", c_size_t),
        ("text", c_char_p),
        ("text_size", c_size_t),
        ("max_tokens", c_size_t),
        ("temperature", c_double),
        ("top_p", c_double),
        ("min_p", c_double),
        ("typical_p", c_double),
        ("top_k", c_size_t),
        ("repeat_penalty", c_double),
        ("presence_penalty", c_double),
        ("frequency_penalty", c_double),
        ("dry_multiplier", c_double),
        ("dry_base", c_double),
        ("dry_allowed_length", c_size_t),
        ("dry_penalty_last_n", c_size_t),
        ("logit_bias", POINTER(LogitBias)),
        ("logit_bias_count", c_size_t),
        ("seed", c_uint64),
        ("stop", POINTER(c_char_p)),
        ("stop_count", c_size_t),
        ("grammar", c_char_p),
        ("grammar_size", c_size_t),
        ("json_schema", c_char_p),
        ("json_schema_size", c_size_t),
        ("ignore_eos", c_int),
        ("chat", c_int),
        ("log_probabilities", c_int),
        ("top_count", c_size_t),
        ("session", c_void_p),
        ("stop_tokens", POINTER(c_int32)),
        ("stop_token_count", c_size_t),
        ("min_tokens", c_size_t),
        ("regex", c_char_p),
        ("regex_size", c_size_t),
        ("choices", POINTER(c_char_p)),
        ("choice_count", c_size_t),
        ("process_logits", PROCESS),
        ("process_data", c_void_p),
        ("open_schema", c_int),
        ("held", c_int),
        ("dry_sequence_breakers", POINTER(c_char_p)),
        ("dry_sequence_breaker_count", c_size_t),
        ("repeat_last_n", c_size_t),
    ]


class Point(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("formula", c_char_p),
        ("values", c_void_p),
        ("shape", POINTER(c_size_t)),
        ("rank", c_size_t),
    ]


class Output(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("text", c_void_p),
        ("text_size", c_size_t),
        ("ids", POINTER(c_int32)),
        ("id_count", c_size_t),
        ("log_probabilities", POINTER(c_double)),
        ("top_ids", POINTER(c_int32)),
        ("top_log_probabilities", POINTER(c_double)),
        ("top_count", c_size_t),
        ("finish", c_int),
        ("conforms", c_int),
        ("prompt_tokens", c_size_t),
        ("prompt_tokens_reused", c_size_t),
        ("notes", c_char_p),
        ("weights", POINTER(c_size_t)),
    ]


class Error(ctypes.Structure):
    _fields_ = [("message", ctypes.c_char * 1024)]


PROCEED = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t)

SIGNATURES = {
    "default_model_options": (None, [POINTER(ModelOptions), c_size_t]),
    "open": (c_int, [c_char_p, POINTER(ModelOptions), POINTER(c_void_p), POINTER(Error)]),
    "close": (None, [c_void_p]),
    "model_error": (c_char_p, [c_void_p]),
    "get_facts": (c_int, [c_void_p, POINTER(Facts)]),
    "reload": (c_int, [c_void_p, c_char_p]),
    "load_tensors": (c_int, [c_void_p, POINTER(Tensor), c_size_t]),
    "keep_texts": (c_int, [c_void_p, c_int]),
    "encode": (c_int, [c_void_p, c_char_p, c_size_t, c_int, POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "decode": (c_int, [c_void_p, POINTER(c_int32), c_size_t, c_int, c_char_p, c_size_t, POINTER(c_size_t)]),
    "render": (c_int, [c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, POINTER(c_size_t)]),
    "chat_prompt": (
        c_int,
        [c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, c_int, c_char_p, c_size_t, POINTER(c_size_t)],
    ),
    "chat_ids": (
        c_int,
        [c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, c_int, c_int, POINTER(c_int32), c_size_t, POINTER(c_size_t)],
    ),
    "proceed_until_set": (c_int, [c_void_p, c_size_t]),
    "logits": (c_int, [c_void_p, POINTER(c_int32), c_size_t, POINTER(c_float), c_size_t, PROCEED, c_void_p]),
    "score": (c_int, [c_void_p, POINTER(c_int32), c_size_t, POINTER(c_double), c_size_t, PROCEED, c_void_p]),
    "trace": (
        c_int,
        [
            c_void_p, POINTER(c_int32), c_size_t, POINTER(c_char_p), c_size_t, POINTER(c_size_t), c_size_t, PROCEED, c_void_p,
            POINTER(c_void_p), POINTER(c_size_t),
        ],
    ),
    "recording_point": (c_int, [c_void_p, c_size_t, POINTER(Point)]),
    "recording_close": (None, [c_void_p]),
    "recording_error": (c_char_p, [c_void_p]),
    "default_request": (None, [POINTER(Request), c_size_t]),
    "submit": (c_int, [c_void_p, POINTER(Request), POINTER(c_void_p)]),
    "step": (c_int, [c_void_p, POINTER(c_size_t)]),
    "poll": (c_int, [c_void_p, POINTER(Output)]),
    "cancel": (None, [c_void_p]),
    "release": (None, [c_void_p]),
    "generation_error": (c_char_p, [c_void_p]),
    "session_open": (c_int, [c_void_p, c_size_t, POINTER(c_void_p)]),
    "session_run": (c_int, [c_void_p, POINTER(c_int32), c_size_t, c_size_t, POINTER(c_float), c_size_t]),
    "session_ids": (c_int, [c_void_p, POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "session_rewind": (c_int, [c_void_p, c_size_t]),
    "session_save": (c_int, [c_void_p, c_char_p]),
    "session_load": (c_int, [c_void_p, c_char_p]),
    "session_close": (None, [c_void_p]),
    "session_error": (c_char_p, [c_void_p]),
    "answer_open": (c_int, [c_char_p, c_size_t, POINTER(c_void_p), POINTER(Error)]),
    "answer_push": (c_int, [c_void_p, c_char_p, c_size_t, c_int, POINTER(c_char_p), POINTER(c_size_t)]),
    "answer_close": (None, [c_void_p]),
    "answer_error": (c_char_p, [c_void_p]),
    "vocabulary_open": (
        c_int,
        [
            POINTER(c_char_p), POINTER(c_size_t), c_size_t, POINTER(c_int32), c_size_t, POINTER(c_void_p),
            POINTER(Error),
        ],
    ),
    "vocabulary_close": (None, [c_void_p]),
    "grammar_compile": (c_int, [POINTER(Request), POINTER(c_void_p), POINTER(Error)]),
    "grammar_notes": (c_char_p, [c_void_p]),
    "grammar_close": (None, [c_void_p]),
    "matcher_open": (c_int, [c_void_p, c_void_p, POINTER(c_void_p), POINTER(Error)]),
    "matcher_mask": (c_int, [c_void_p, c_size_t, c_void_p, c_size_t]),
    "matcher_accept": (c_int, [c_void_p, POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "matcher_rollback": (c_int, [c_void_p, c_size_t]),
    "matcher_end": (c_int, [c_void_p, POINTER(c_uint64), POINTER(c_int)]),
    "matcher_close": (None, [c_void_p]),
    "matcher_error": (c_char_p, [c_void_p]),
}


def _first(*files: pathlib.Path) -> pathlib.Path:
    """The first that exists, otherwise the last."""
    return next((file for file in files if file.exists()), files[-1])


# On Linux and macOS, and on Windows.
PROGRAM_NAME = "minimind.exe" if sys.platform == "win32" else "minimind"
LIBRARY_NAMES = {"win32": f"libminimind-{ABI}.dll", "darwin": f"libminimind.{ABI}.dylib"}

PROGRAM = _first(PACKAGE / PROGRAM_NAME, CHECKOUT / PROGRAM_NAME)
DEMO = _first(*(folder / "weights" / "demo" / "model.pth" for folder in (PACKAGE, CHECKOUT)))


def _find() -> str:
    """That of the package, unless MINIMIND_LIBRARY names another; else the system's."""
    name = LIBRARY_NAMES.get(sys.platform, f"libminimind.so.{ABI}")
    file = _first(PACKAGE / name, CHECKOUT / "build" / "release" / name)
    return os.environ.get("MINIMIND_LIBRARY") or (str(file) if file.exists() else name)


def _load() -> ctypes.CDLL:
    path = _find()
    try:
        library = ctypes.CDLL(path)
        found = library.minimind_abi()
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"{path}: cannot be used as the library of minimind.cpp ({error}); install the package again, or run "
            "`make lib` in the checkout, or set MINIMIND_LIBRARY to a libminimind"
        ) from error
    if found != ABI:
        raise ImportError(f"{path}: its ABI is {found}, expected {ABI}; install the library and this package from one version")
    library.minimind_version.restype = c_char_p
    for name, (result, arguments) in SIGNATURES.items():
        try:
            function = getattr(library, f"minimind_{name}")
        except AttributeError as error:
            raise ImportError(f"{path}: is older than this package ({error}); install both from one version") from error
        function.restype = result
        function.argtypes = arguments
    return library


library = _load()

# Ends logits, scores and traces once a c_int is not 0. A function of Python there would need the GIL, and a thread that asks for it
# while the interpreter ends is ended inside of the library, which crashes.
PROCEED_UNTIL_SET = PROCEED(("minimind_proceed_until_set", library))


def version() -> str:
    """The version of the library, such as "0.2.0"."""
    written: bytes = library.minimind_version()
    return written.decode()


def exception_of(status: int, message: bytes) -> BaseException:
    """The exception for a call that failed."""
    return EXCEPTIONS.get(status, RuntimeError)(message.decode("utf-8", "replace"))
