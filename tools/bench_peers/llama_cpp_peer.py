"""Measures llama.cpp through its C API: python llama_cpp_peer.py MODEL.gguf --threads N ...

The settings are llama.cpp's defaults, which are its fastest: flash attention if that is faster, weights repacked for the
machine, keys and values in f16. Batches have 512 tokens, as in its own benchmark. Only the last token gets logits.
Several texts are decoded as by its batched-bench: one token for each text in a batch, all with logits.
"""

import ctypes

import llama_cpp
from llama_cpp import llama_cpp as api

from peer import arguments, cannot_load, fill, longest_context, report

BATCH = 512


@api.llama_log_callback
def silence(_level: int, _text: bytes, _data: object) -> None:
    pass


class LlamaCpp:
    def __init__(self, path: str, threads: int, positions: int):
        api.llama_log_set(silence, ctypes.c_void_p(0))
        api.llama_backend_init()
        self.model = api.llama_model_load_from_file(path.encode(), api.llama_model_default_params())
        if not self.model:
            cannot_load(path, "llama.cpp")
        self.vocab_size = api.llama_vocab_n_tokens(api.llama_model_get_vocab(self.model))
        self.threads, self.context = threads, None
        self.one = (api.llama_token * 1)()
        self.single = api.llama_batch_get_one(self.one, 1)
        self.open(positions)

    def open(self, positions: int, texts: int = 1) -> None:
        if self.context:
            api.llama_free(self.context)
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = texts * positions, BATCH, BATCH
        params.n_threads = params.n_threads_batch = self.threads
        params.n_seq_max = texts
        self.context = api.llama_init_from_model(self.model, params)
        if not self.context:
            raise SystemExit(f"llama.cpp cannot make a context of {texts} x {positions} tokens")
        self.memory = api.llama_get_memory(self.context)
        self.texts = range(texts)

    def rewind(self, position: int) -> None:
        for text in self.texts:
            api.llama_memory_seq_rm(self.memory, text, position, -1)

    def copy_first(self) -> None:
        for text in self.texts[1:]:
            api.llama_memory_seq_cp(self.memory, 0, text, -1, -1)

    def batch(self, tokens: list[int], position: int) -> api.llama_batch:
        return fill(api.llama_batch_init(len(tokens), 0, 1), tokens, position)

    def run(self, tokens: list[int]) -> None:
        if len(tokens) == 1:  # decoding: keep Python's share of the time small
            self.one[0] = tokens[0]
            self.decode(self.single)
            return
        for begin in range(0, len(tokens), BATCH):
            part = tokens[begin : begin + BATCH]
            ids = (api.llama_token * len(part))(*part)  # the batch only points to them
            self.decode(api.llama_batch_get_one(ids, len(part)))

    def decode(self, batch: api.llama_batch) -> None:
        if api.llama_decode(self.context, batch) != 0:
            raise SystemExit("llama_decode failed")


def main() -> None:
    options = arguments(__doc__).parse_args()
    engine = LlamaCpp(options.model, options.threads, longest_context(options))
    report(llama_cpp.__version__, engine, options)


if __name__ == "__main__":
    main()
