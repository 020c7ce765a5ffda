"""A model, which writes texts and computes logits and scores."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import os
import secrets
import sys
import threading
import weakref
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Sized,
    Tuple,
    Union,
    overload,
)

import numpy as np
import numpy.typing as npt

from minimind_cpp import _library as c
from minimind_cpp._arguments import (
    Ids,
    check_messages,
    count,
    elements,
    id_array,
    json_bytes,
    name_bytes,
    path_bytes,
    pointer,
    strings,
)
from minimind_cpp._tensors import tensors_of
from minimind_cpp.completion import Chat, Completion, Stream, Text, logger, reader_of_answer
from minimind_cpp.processor import Processor, calling
from minimind_cpp.program import run
from minimind_cpp.recording import Recording
from minimind_cpp.sampling import SamplingParams
from minimind_cpp.session import Session
from minimind_cpp.tokenizer import Tokenizer

if TYPE_CHECKING:
    Prompt = Union[str, Ids, Chat]
    Path = Union[str, "os.PathLike[str]"]

MOST_STEPS_WITHOUT_POLL = 64
DEFAULTS = SamplingParams()
OPTIONS = {"chat_template": "template", "context_length": "ctx_size"}  # of the program, if they have other names there
WITHOUT_OPTION = ("kv_memory", "session_files")  # they change no text


class Model(c.Owner):
    """A checkpoint of MiniMind: .pth, .pt, .bin, .safetensors, .gguf or a Hugging Face folder. Without one, the bundled poet.

        with Model("out/full_sft_768.pth", lora=["lora_medical_768.pth:0.8"], type="q8_0") as model:
            print(model.generate("秦始皇的功绩包括", SamplingParams(temperature=0)).text)

    lora: "FILE" or "FILE:SCALE". loras: such files by names, for `with_lora`. type: how the weights are held, e.g. "f16", "q8_0" or "q4_k"; an error about another names all.
    As stored unless given, which is exact. kv_type: of keys and values, "f32", "f16" or "q8_0". parallel: how many texts are
    written at once; others wait. kv_memory: bytes that keys and values of all texts may take; half of the free memory unless
    given. session_files: sessions can be saved and loaded, for which opening reads all weights once more.

    A prompt is text, which follows bos_token as in MiniMind's scripts, token ids, to which nothing is added, or a Chat.
    Any number of threads may use a model. It cannot cross a fork. Memory is freed by close(), at the end of `with`, or with
    the last reference.
    """

    def __init__(
        self,
        path: Optional["Path"] = None,
        *,
        lora: Iterable[str] = (),
        loras: Optional[Mapping[str, str]] = None,
        type: Optional[str] = None,
        kv_type: Optional[str] = None,
        compute: Optional[str] = None,
        tokenizer: Optional["Path"] = None,
        config: Optional["Path"] = None,
        chat_template: Optional["Path"] = None,
        rope_scaling: Optional[str] = None,
        heads: Optional[int] = None,
        kv_heads: Optional[int] = None,
        experts_per_token: Optional[int] = None,
        threads: Optional[int] = None,
        context_length: Optional[int] = None,
        parallel: int = 16,
        kv_memory: Optional[int] = None,
        session_files: bool = False,
    ) -> None:
        same = {name: value for name, value in locals().items() if name not in ("self", "path", "lora", "loras")}
        self._pointer = ctypes.c_void_p()
        self._process = os.getpid()
        self._path: Optional["Path"] = c.DEMO if path is None else path
        self._loras = dict(loras or {})
        self._with_loras: Dict[str, Model] = {}
        self._lock, self._lora_lock = threading.Lock(), threading.Lock()
        self._users = 0
        self._calls = threading.RLock()  # of a step that may call functions of Python
        self._closed = False
        self._parallel = count(parallel, "parallel", 1, 255)
        options = c.ModelOptions()
        c.library.minimind_default_model_options(ctypes.byref(options), ctypes.sizeof(options))
        files = [lora] if isinstance(lora, str) else elements(lora, "lora", 'a list of "FILE" or "FILE:SCALE"')
        files = list(files)
        names = [path_bytes(name, "lora") for name in files]
        self._files, self._same = files, same
        options.loras, options.lora_count = strings(names), len(names)
        texts = {"type": type, "kv_type": kv_type, "compute": compute, "rope_scaling": rope_scaling}
        paths = {"tokenizer": tokenizer, "config": config, "chat_template": chat_template}
        counts = {
            "heads": heads, "kv_heads": kv_heads, "experts_per_token": experts_per_token, "threads": threads,
            "context_length": context_length, "parallel": parallel, "kv_memory": kv_memory,
        }  # fmt: skip
        for name, text in texts.items():
            if text is not None:
                setattr(options, name, name_bytes(text, name))
        for name, file in paths.items():
            if file is not None:
                setattr(options, name, path_bytes(file, name))
        for name, value in counts.items():
            if value is not None:
                setattr(options, name, count(value, name, 1))
        options.session_files = bool(session_files)
        error = c.Error()
        status = c.library.minimind_open(
            path_bytes(self._path, "path"), ctypes.byref(options), ctypes.byref(self._pointer), ctypes.byref(error)
        )
        if status != c.OK:
            raise c.exception_of(status, error.message)
        facts = self._facts()
        self.family: str = facts.family.decode()
        self.vocab_size: int = facts.vocab_size
        self.hidden_size: int = facts.hidden_size
        self.layers: int = facts.layers
        self.heads: int = facts.heads
        self.kv_heads: int = facts.kv_heads
        self.head_dim: int = facts.head_dim
        self.experts: int = facts.experts
        self.parameters: int = facts.parameters
        self.context_length: int = facts.context_length
        self.threads: int = facts.threads
        self.weights = 0  # how often they have been replaced
        self._eos_token: int = facts.eos_token
        self._tokenizer_size: int = facts.tokenizer_size
        self._log_notes(facts)

    # ---- Lifetime ----

    def close(self) -> None:
        """Frees the memory, once calls of other threads have returned. Later calls raise ValueError."""
        if self._process != os.getpid():
            return
        self._with_loras.clear()
        with self._lock:
            self._closed = True
            is_last = self._users == 0
        if is_last:
            self._free()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # When the interpreter ends, modules are already empty, and the memory goes with the process.
    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if getattr(self, "_lock", None) is not None and not is_finalizing():
            self.close()

    def __repr__(self) -> str:
        state = ", closed" if self._closed else ""
        return f"<minimind_cpp.Model {self.family}, {self.parameters / 1e6:.2f} M parameters{state}>"

    def _free(self) -> None:
        pointer, self._pointer = self._pointer, ctypes.c_void_p()
        c.library.minimind_close(pointer)

    @contextlib.contextmanager
    def _use(self) -> Iterator[ctypes.c_void_p]:
        """The handle, which is not freed meanwhile."""
        self._check_process()
        with self._lock:
            if self._closed:
                raise ValueError("the model is closed, expected an open one")
            self._users += 1
        try:
            yield self._pointer
        finally:
            with self._lock:
                self._users -= 1
                is_last = self._closed and self._users == 0
            if is_last:
                self._free()

    def _check(self, status: int) -> None:
        if status != c.OK:
            raise c.exception_of(status, c.library.minimind_model_error(self._pointer))

    def _facts(self) -> c.Facts:
        facts = c.Facts()
        with self._use() as model:
            self._check(c.library.minimind_get_facts(model, ctypes.byref(facts)))
        return facts

    def _log_notes(self, facts: c.Facts) -> None:
        for note in facts.notes.decode("utf-8", "replace").splitlines():
            logger.info("%s", note)

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError("a Model cannot cross a fork; open it in the child, or start children with spawn")

    def _check_may_wait(self) -> None:
        """Raises RuntimeError where a step would not end: in a forked child, and in a logits_processor that is part of it."""
        self._check_process()
        model = getattr(calling, "model", None)
        if model is not None and model() is self:
            raise RuntimeError("a logits_processor uses the model that calls it, expected another model or a later call")

    def _written(
        self, make: Callable[[int], Any], write: Callable[[Any, Any, int, Any], int], capacity: int
    ) -> Tuple[Any, int]:
        """What write(model, buffer, capacity, size) writes, which is called again if the buffer was too small, and its size."""
        size = ctypes.c_size_t()
        with self._use() as model:
            while True:
                buffer = make(capacity)
                status = write(model, buffer, capacity, ctypes.byref(size))
                if status != c.TOO_SMALL:
                    break
                capacity = size.value
            self._check(status)
        return buffer, size.value

    def _text(self, write: Callable[[Any, Any, int, Any], int], capacity: int) -> str:
        buffer, size = self._written(lambda room: ctypes.create_string_buffer(max(room, 1)), write, capacity)
        return bytes(memoryview(buffer)[:size]).decode()

    def _ids(self, write: Callable[[Any, Any, int, Any], int], capacity: int) -> npt.NDArray[np.int32]:
        def write_ids(model: Any, ids: Any, room: int, size: Any) -> int:
            return write(model, pointer(ids, ctypes.c_int32), room, size)

        ids, size = self._written(lambda room: np.empty(room, np.int32), write_ids, capacity)
        return ids[:size]  # type: ignore[no-any-return]

    # ---- Text ----

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer and the chat template. It keeps the model in memory, not the other way round."""
        return Tokenizer(self)

    def generate(
        self, prompt: "Prompt", params: SamplingParams = DEFAULTS, *, session: Optional[Session] = None
    ) -> Completion:
        """Continues one prompt. With a session, of the prompt only what the session lacks is computed."""
        text = self._start(prompt, params, session)
        try:
            while not text.ended:
                self._step()
                text.poll()
        finally:
            text.release()
        return text.completion()

    @overload
    def stream(
        self, prompt: Chat, params: SamplingParams = DEFAULTS, *, session: Optional[Session] = None
    ) -> Stream[Dict[str, Any]]: ...
    @overload
    def stream(
        self, prompt: Union[str, Ids], params: SamplingParams = DEFAULTS, *, session: Optional[Session] = None
    ) -> Stream[str]: ...
    def stream(
        self, prompt: "Prompt", params: SamplingParams = DEFAULTS, *, session: Optional[Session] = None
    ) -> Stream[Any]:
        """The same as it is written: pieces of text, or OpenAI's deltas of the answer to a Chat."""
        return Stream(self._start(prompt, params, session, held=True))

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        params: SamplingParams = DEFAULTS,
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        thinking: Optional[bool] = None,
        plain_content: bool = False,
    ) -> Completion:
        """Answers a Chat of these messages: `message` of the completion is the next one."""
        return self.generate(Chat(messages, tools, thinking, plain_content), params)

    def generate_batch(
        self, prompts: Iterable["Prompt"], params: Union[SamplingParams, Iterable[SamplingParams]] = DEFAULTS
    ) -> List[Completion]:
        """Continues many prompts at once, each as `generate` would alone: params.n texts of the first, then of the second, ...

        params: for all prompts, or one for each. A prompt of several texts is computed once.
        """
        return list(self.iterate_batch(prompts, params, in_order=True))

    def iterate_batch(
        self,
        prompts: Iterable["Prompt"],
        params: Union[SamplingParams, Iterable[SamplingParams]] = DEFAULTS,
        *,
        in_order: bool = False,
    ) -> Iterator[Completion]:
        """The same as an iterator, which yields texts as they end, unless in_order: `index` says which prompt they continue.

        Prompts are read as texts end, so that there may be any number of them. To leave the iterator early drops the texts.
        """
        if isinstance(prompts, (str, Chat)):
            raise TypeError(f"prompts is of type {type(prompts).__name__}, expected a list of prompts")
        numbered = enumerate(elements(prompts, "prompts", "a list of prompts"))
        if isinstance(params, SamplingParams):
            seed = secrets.randbits(63) if params.seed is None else params.seed
            numbered_texts = self._start_all(((i, prompt, params) for i, prompt in numbered), itertools.count(seed))
        else:
            if isinstance(prompts, Sized) and isinstance(params, Sized) and len(prompts) != len(params):
                raise ValueError(f"params has {len(params)} elements, expected {len(prompts)}, one for each prompt")
            each = iter(elements(params, "params", "SamplingParams, or a list of one for each prompt"))
            numbered_texts = self._start_all(((i, prompt, _next(each, i)) for i, prompt in numbered), None)
        return self._run_many(numbered_texts, in_order)

    # ---- Numbers ----

    def logits(self, ids: Ids) -> npt.NDArray[np.float32]:
        """The logits after each of the ids, float32 [T, vocab_size]."""
        array = id_array(ids, "ids")
        logits = np.empty((len(array), self.vocab_size), np.float32)
        given = (pointer(array, ctypes.c_int32), len(array), pointer(logits, ctypes.c_float), logits.size)
        self._compute(lambda model, *proceed: c.library.minimind_logits(model, *given, *proceed))
        return logits

    @overload
    def score(self, text: Union[str, Ids]) -> npt.NDArray[np.float64]: ...
    @overload
    def score(
        self, text: Union[List[str], Tuple[str, ...], List[List[int]], List[npt.NDArray[np.integer]]]
    ) -> List[npt.NDArray[np.float64]]: ...
    def score(self, text: Any) -> Any:
        """The log-probability (base e) of each token of a text after those before it, float64 [T]; a list of them for a list.

        A text follows bos_token, so that its first token has one as well. The first of given ids has none: NaN.
        """
        if isinstance(text, (list, tuple)) and len(text) > 0 and not isinstance(text[0], (int, np.integer)):
            return [self.score(each) for each in text]
        ids = id_array(self.tokenizer.encode_prompt(text) if isinstance(text, str) else text, "text")
        scores = np.full(len(ids), np.nan)
        given = (pointer(ids, ctypes.c_int32), len(ids), pointer(scores[1:], ctypes.c_double), len(scores) - 1)
        self._compute(lambda model, *proceed: c.library.minimind_score(model, *given, *proceed))
        if not isinstance(text, str):
            return scores
        return scores[len(ids) - len(self.tokenizer.encode(text)) :]

    def trace(
        self, prompt: "Prompt", points: Union[str, Iterable[str]] = (), layers: Iterable[int] = ()
    ) -> Dict[str, npt.NDArray[np.float32]]:
        """What `minimind trace` writes: float32 [tokens, ...] for each point, by the name that a forward hook of PyTorch has.

            model.trace("春天", "layers.*.mlp.*", layers=[0, 3])

        points: patterns of names, all unless given; `minimind trace MODEL --list` shows them with formulas. layers: all unless
        given. One thread computes, and the values may take 2 GiB. The points of an expert have a row for each token that chose it.
        """
        ids, _ = self._read(prompt)
        given = [points] if isinstance(points, str) else elements(points, "points", "a list of patterns")
        patterns = [name_bytes(each, "points") for each in given]
        numbers = [count(each, "layers") for each in elements(layers, "layers", "a list of int")]
        recording = Recording()
        chosen = (strings(patterns), len(patterns), (ctypes.c_size_t * len(numbers))(*numbers), len(numbers))
        self._compute(
            lambda model, *proceed: c.library.minimind_trace(
                model, pointer(ids, ctypes.c_int32), len(ids), *chosen, *proceed, *recording.outputs()
            )
        )
        return recording.arrays()

    def with_lora(self, name: str) -> "Model":
        """The model with one of its `loras`, which has weights of its own. It is opened when it is first asked for, and again
        after `reload`."""
        if name not in self._loras:
            raise ValueError(f"lora {name!r} is unknown, expected {' or '.join(self._loras) or 'none: the model has no loras'}")
        with self._use(), self._lora_lock:
            path = self._checkpoint()
            if name not in self._with_loras:
                self._with_loras[name] = Model(path, lora=[*self._files, self._loras[name]], **self._same)
            return self._with_loras[name]

    def _checkpoint(self) -> "Path":
        if self._path is None:
            raise RuntimeError("the weights are those of load_state_dict, expected those of a checkpoint, which is opened again")
        return self._path

    def batch(self, requests: "Path", output: "Path", *options: Union[str, "os.PathLike[str]"]) -> None:
        """Answers a file of requests with `minimind batch`, which opens the checkpoint again, with the options of this model.

            model.batch("in.jsonl", "out.jsonl", "--model-name", "any", "--seed", "1")

        options: any others of that command. Raises RuntimeError as `run` does.
        """
        own = [f"--lora={file}" for file in self._files]
        for name, value in self._same.items():
            if value is not None and name not in WITHOUT_OPTION:
                own.append(f"--{OPTIONS.get(name, name).replace('_', '-')}={value}")
        run("batch", requests, "-q", "-m", self._checkpoint(), "-o", output, *own, *options)

    def session(self, capacity: int = 0) -> Session:
        """An empty session for up to `capacity` tokens; 0: the context length."""
        return Session(self, capacity)

    def reload(self, path: "Path", *, keep_texts: bool = False) -> None:
        """Replaces the weights by those of another checkpoint of the same shape, opened with the same options.

        A file that states no hyper-parameters has those of this model.
        Raises RuntimeError while texts are being written, unless these are to be kept: they go on with the new weights after
        the keys and values of the old ones, and Completion.weights tells their tokens apart.
        """
        self._replace(keep_texts, path, c.library.minimind_reload, path_bytes(path, "path"))
        self._log_notes(self._facts())

    def load_state_dict(self, state_dict: Mapping[str, Any], *, keep_texts: bool = False) -> None:
        """Replaces the weights as `reload` does, by those of a state dict, without a file in between.

        Dense tensors of PyTorch or numpy arrays, float32, float16 or bfloat16, under any of MiniMind's names. LoRA files that
        the model was opened with are not added again. An adapter of PEFT must be merged: call merge_adapter() first.
        """
        tensors, owners = tensors_of(state_dict)
        self._replace(keep_texts, None, c.library.minimind_load_tensors, tensors, len(tensors))
        del owners

    def _replace(self, keep_texts: bool, path: Optional["Path"], replace: Callable[..., int], *arguments: Any) -> None:
        with self._use() as model:
            self._check(c.library.minimind_keep_texts(model, keep_texts))
            self._check(replace(model, *arguments))
            self.weights += 1
        with self._lora_lock:
            self._path = path
            self._with_loras.clear()

    def _compute(self, call: Callable[..., int]) -> None:
        """Calls call(model, proceed, data) on another thread, so that this one can be interrupted by Ctrl-C."""
        self._check_may_wait()
        stop = ctypes.c_int(0)
        failures: List[BaseException] = []

        def compute() -> None:
            try:
                with self._use() as model:
                    self._check(call(model, c.PROCEED_UNTIL_SET, ctypes.byref(stop)))
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=compute, name="minimind_cpp")
        thread.start()
        try:
            while thread.is_alive():
                thread.join(0.2)  # Windows tells of Ctrl-C between waits only
        except BaseException:
            stop.value = 1
            thread.join()
            raise
        if failures:
            raise failures[0]

    # ---- Texts that are being written ----

    def _read(self, prompt: "Prompt") -> Tuple[npt.NDArray[np.int32], Optional[str]]:
        """The ids of a prompt, and the text of a rendered Chat."""
        if isinstance(prompt, str):
            return id_array(self.tokenizer.encode_prompt(prompt), "prompt"), None
        if isinstance(prompt, Chat):
            return self._read_chat(prompt)
        return id_array(prompt, "prompt"), None

    def _read_chat(self, chat: Chat) -> Tuple[npt.NDArray[np.int32], str]:
        check_messages(chat.messages)
        messages = json_bytes(chat.messages, "messages")
        tools = json_bytes(chat.tools, "tools") if chat.tools else None
        thinking = -1 if chat.thinking is None else int(bool(chat.thinking))
        given = (messages, len(messages), tools, len(tools or b""), thinking)
        prompt = self._text(
            lambda model, buffer, capacity, size: c.library.minimind_chat_prompt(model, *given, buffer, capacity, size),
            2 * len(messages) + 2 * len(tools or b"") + 4096,
        )
        plain = bool(chat.plain_content)
        ids = self._ids(
            lambda model, buffer, capacity, size: c.library.minimind_chat_ids(model, *given, plain, buffer, capacity, size),
            len(prompt) + 64,
        )
        return ids, prompt

    def _start(
        self, prompt: "Prompt", params: SamplingParams, session: Optional[Session], held: bool = False
    ) -> Text:
        if not isinstance(params, SamplingParams):
            raise TypeError(f"params is of type {type(params).__name__}, expected SamplingParams")
        if params.n != 1:
            raise ValueError(f"n is {params.n}, expected 1 of a single text; generate_batch writes several")
        seed = secrets.randbits(63) if params.seed is None else params.seed
        return self._submit(*self._read(prompt), params, seed, 0, session, held)

    def _start_all(
        self, prompts: Iterable[Tuple[int, "Prompt", SamplingParams]], shared_seeds: Optional[Iterator[int]]
    ) -> Iterator[Text]:
        """Submits params.n texts of each prompt. Without shared seeds, those of a prompt are counted from its own."""
        for index, prompt, params in prompts:
            own = secrets.randbits(63) if params.seed is None else params.seed
            seeds = shared_seeds or itertools.count(own)
            ids, rendered = self._read(prompt)
            for seed in itertools.islice(seeds, params.n):
                yield self._submit(ids, rendered, params, seed, index)

    def _submit(
        self, ids: npt.NDArray[np.int32], rendered: Optional[str], params: SamplingParams, seed: int, index: int,
        session: Optional[Session] = None, held: bool = False,
    ) -> Text:  # fmt: skip
        if params.logprobs is not None and params.logprobs > self.vocab_size:
            raise ValueError(f"logprobs is {params.logprobs}, expected at most the vocabulary's {self.vocab_size}")
        self._check_may_wait()
        request = params._request(seed % 2**64)
        request.ids, request.id_count = pointer(ids, ctypes.c_int32), len(ids)
        request.chat = rendered is not None
        if session is not None and not isinstance(session, Session):
            raise TypeError(f"session is of type {type(session).__name__}, expected one of model.session()")
        request.session = None if session is None else session._pointer
        request.held = held
        text = Text(self, index, None if rendered is None else reader_of_answer(rendered, params.constrains))
        if params.logits_processor is not None:
            text.processor = Processor(params.logits_processor, self)
            _calling_models.add(self)
            request.process_logits = text.processor.callback
        with self._use() as model:
            self._check(c.library.minimind_submit(model, ctypes.byref(request), ctypes.byref(text.pointer)))
        return text

    def _run_many(self, texts: Iterator[Text], in_order: bool) -> Iterator[Completion]:
        """Yields what the texts are once they have ended. Only as many are submitted at once as keep the model busy."""
        running: List[Text] = []
        unyielded: List[Text] = []
        try:
            while True:
                for text in itertools.islice(texts, 2 * self._parallel - len(running)):
                    running.append(text)
                    unyielded.append(text)
                if not running:
                    return
                self._step_until_one_ends(len(running))
                for text in running:
                    text.poll()
                running = [text for text in running if not text.ended]
                ready = list(itertools.takewhile(_has_ended, unyielded) if in_order else filter(_has_ended, unyielded))
                unyielded = unyielded[len(ready) :] if in_order else list(running)
                for text in ready:
                    yield text.completion()
        finally:
            for text in running:
                text.release()

    def _step_until_one_ends(self, running: int) -> None:
        """Steps until the model writes fewer texts, or for some steps: to poll each text after each step takes longer."""
        texts = ctypes.c_size_t()
        for _ in range(MOST_STEPS_WITHOUT_POLL):
            self._step(ctypes.byref(texts))
            if texts.value < running:
                return
            running = texts.value

    def _step(self, texts: Any = None) -> None:
        self._check_may_wait()
        may_call = self in _calling_models
        with self._calls if may_call else contextlib.nullcontext():
            if may_call and _is_ending and threading.current_thread() is not threading.main_thread():
                raise SystemExit  # ends the thread, which others may wait for, without a message
            with self._use() as model:
                self._check(c.library.minimind_step(model, texts))


# Those that have had a logits_processor.
_calling_models: "weakref.WeakSet[Model]" = weakref.WeakSet()
_is_ending = False


@atexit.register
def _end_steps() -> None:
    """Lets no other thread start a step that may call Python: it would crash once the interpreter has ended."""
    global _is_ending
    _is_ending = True
    for model in list(_calling_models):
        if model._process == os.getpid() and model._calls.acquire(timeout=2):  # of a function that takes longer
            model._calls.release()


def _has_ended(text: Text) -> bool:
    return text.ended


def _next(params: Iterator[SamplingParams], index: int) -> SamplingParams:
    one = next(params, None)
    if one is None:
        raise ValueError(f"params has {index} elements, expected one for each prompt")
    if not isinstance(one, SamplingParams):
        raise TypeError(f"params[{index}] is of type {type(one).__name__}, expected SamplingParams")
    return one
