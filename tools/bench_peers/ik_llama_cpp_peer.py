"""Measures ik_llama.cpp through its C API: python ik_llama_cpp_peer.py MODEL.gguf --threads N ...

Weights are repacked for the machine, as its option -rtr does; keys and values are f16. PyPI's wheel is compiled for AVX2.
Its flash attention fails an assertion on processors without VNNI, so it is used only with VNNI.
"""

import ctypes
from importlib.metadata import version
from pathlib import Path

from ik_llama_cpp import _ctypes_api as api

from peer import arguments, cannot_load, longest_context, report

BATCH = 512
LIBRARY = api._lib  # the binding does not declare these
LIBRARY.llama_batch_get_one.argtypes = [ctypes.POINTER(ctypes.c_int32), ctypes.c_int32, ctypes.c_int32, ctypes.c_int32]
LIBRARY.llama_batch_get_one.restype = api.llama_batch
LIBRARY.llama_kv_cache_seq_rm.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32]
LIBRARY.llama_kv_cache_seq_rm.restype = ctypes.c_bool
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
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = positions, BATCH, BATCH
        params.n_threads = params.n_threads_batch = threads
        params.flash_attn = has_vnni()
        self.context = api.llama_init_from_model(self.model, params)
        if not self.context:
            raise SystemExit(f"{path}: ik_llama.cpp cannot make a context of {positions} tokens")
        self.vocab_size = LIBRARY.llama_n_vocab(self.model)
        self.position = 0

    def rewind(self, position: int) -> None:
        LIBRARY.llama_kv_cache_seq_rm(self.context, 0, position, -1)
        self.position = position

    def run(self, tokens: list[int]) -> None:
        for begin in range(0, len(tokens), BATCH):
            part = tokens[begin : begin + BATCH]
            ids = (ctypes.c_int32 * len(part))(*part)  # the batch only points to them
            if api.llama_decode(self.context, LIBRARY.llama_batch_get_one(ids, len(part), self.position, 0)) != 0:
                raise SystemExit("llama_decode failed")
            self.position += len(part)


def main() -> None:
    options = arguments(__doc__).parse_args()
    engine = IkLlamaCpp(options.model, options.threads, longest_context(options))
    report(version("ik-llama-cpp-python"), engine, options)


if __name__ == "__main__":
    main()
