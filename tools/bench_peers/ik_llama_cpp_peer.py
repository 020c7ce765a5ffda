"""Measures ik_llama.cpp through its C API: python ik_llama_cpp_peer.py MODEL.gguf --threads N ...

Weights are repacked for the machine, as its option -rtr does; keys and values are f16. PyPI's wheel is compiled for AVX2.
Its flash attention fails an assertion on processors without VNNI, so it is used only with VNNI.
Several texts share the positions of their prompt. With positions of its own, each text would attend to those of all texts.
"""

import ctypes
from importlib.metadata import version
from pathlib import Path

from ik_llama_cpp import _ctypes_api as api

from peer import arguments, cannot_load, fill, longest_context, report

BATCH = 512
LIBRARY = api._lib  # the binding does not declare these
LIBRARY.llama_batch_get_one.argtypes = [ctypes.POINTER(ctypes.c_int32), ctypes.c_int32, ctypes.c_int32, ctypes.c_int32]
LIBRARY.llama_batch_get_one.restype = api.llama_batch
LIBRARY.llama_kv_cache_seq_rm.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32]
LIBRARY.llama_kv_cache_seq_rm.restype = ctypes.c_bool
LIBRARY.llama_kv_cache_seq_cp.argtypes = [ctypes.c_void_p] + 4 * [ctypes.c_int32]
LIBRARY.llama_kv_cache_seq_cp.restype = None
LIBRARY.llama_n_vocab.argtypes = [ctypes.c_void_p]
LIBRARY.llama_n_vocab.restype = ctypes.c_int32
LOG = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


@LOG
def silence(_level: int, _text: bytes, _data: object) -> None:
    pass


def has_vnni() -> bool:
    flags = Path("/proc/cpuinfo").read_text()
    return "avx512_vnni" in flags or "avx_vnni" in flags


class IkLlamaCpp:
    def __init__(self, path: str, threads: int, positions: int):
        LIBRARY.llama_log_set(silence, None)
        api.llama_backend_init()
        model_params = api.llama_model_default_params()
        model_params.repack_tensors, model_params.use_mmap = True, False
        self.model = api.llama_model_load_from_file(path.encode(), model_params)
        if not self.model:
            cannot_load(path, "ik_llama.cpp")
        self.vocab_size = LIBRARY.llama_n_vocab(self.model)
        self.threads, self.context = threads, None
        self.open(positions)

    def open(self, positions: int, texts: int = 1) -> None:
        if self.context:
            api.llama_free(self.context)
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = texts * positions, BATCH, BATCH
        params.n_threads = params.n_threads_batch = self.threads
        params.n_seq_max = texts
        params.flash_attn = has_vnni()
        self.context = api.llama_init_from_model(self.model, params)
        if not self.context:
            raise SystemExit(f"ik_llama.cpp cannot make a context of {texts} x {positions} tokens")
        self.texts = range(texts)
        self.position = 0

    def rewind(self, position: int) -> None:
        for text in self.texts:
            LIBRARY.llama_kv_cache_seq_rm(self.context, text, position, -1)
        self.position = position

    def copy_first(self) -> None:
        for text in self.texts[1:]:
            LIBRARY.llama_kv_cache_seq_cp(self.context, 0, text, -1, -1)

    def batch(self, tokens: list[int], position: int) -> api.llama_batch:
        return fill(api.llama_batch_init(len(tokens), 0, 1), tokens, position)

    def run(self, tokens: list[int]) -> None:
        for begin in range(0, len(tokens), BATCH):
            part = tokens[begin : begin + BATCH]
            ids = (ctypes.c_int32 * len(part))(*part)  # the batch only points to them
            self.decode(LIBRARY.llama_batch_get_one(ids, len(part), self.position, 0))
            self.position += len(part)

    def decode(self, batch: api.llama_batch) -> None:
        if api.llama_decode(self.context, batch) != 0:
            raise SystemExit("llama_decode failed")


def main() -> None:
    options = arguments(__doc__).parse_args()
    engine = IkLlamaCpp(options.model, options.threads, longest_context(options))
    report(version("ik-llama-cpp-python"), engine, options)


if __name__ == "__main__":
    main()
