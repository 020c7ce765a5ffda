"""A model, and the texts that it writes."""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import itertools
import json
import logging
import os
import secrets
import sys
import threading
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Deque,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
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
    id_arrays,
    json_bytes,
    name_bytes,
    path_bytes,
    pointer,
    request_of,
    strings,
)
from minimind_cpp._files import DEMO
from minimind_cpp._tensors import tensors_of
from minimind_cpp.tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing import Literal

    Prompt = Union[str, Ids]
    Path = Union[str, "os.PathLike[str]"]

logger = logging.getLogger("minimind_cpp")

MOST_STEPS_WITHOUT_POLL = 64


class Completion(NamedTuple):
    """A sampled text as token ids."""

    ids: npt.NDArray[np.int32]  # [T], as sampled, with the token that ended the text
    log_probabilities: Optional[npt.NDArray[np.float64]]  # [T], base e, of the untouched logits; None unless requested
    finish_reason: str  # "stop", "length" or "cancelled"


class Model:
    """A checkpoint of MiniMind: .pth, .pt, .bin, .safetensors, .gguf or a Hugging Face folder. Without one, the bundled poet.

        with Model("out/full_sft_768.pth", lora=["lora_medical_768.pth:0.8"], type="q8_0") as model:
            print(model.generate("秦始皇的功绩包括"))

    lora: "FILE" or "FILE:SCALE". type: how the weights are held, e.g. "f16", "q8_0" or "q4_k"; an error about another names all.
    As stored unless given, which is exact. kv_type: of keys and values, "f32", "f16" or "q8_0". parallel: how many texts are
    written at once; others wait. kv_memory: bytes that keys and values of all texts may take; half of the free memory unless
    given.

    `generate`, `generate_batch`, `chat` and `rollout` share the options of a text: max_tokens (512), temperature (0.85; 0 takes
    the largest logit), top_k (50), top_p (0.95), min_p, typical_p, repeat_penalty, presence_penalty, frequency_penalty,
    dry_multiplier, dry_base, dry_allowed_length, dry_penalty_last_n, logit_bias ({id: bias}), stop (text or texts), grammar
    (GBNF), json_schema (text or dict), ignore_eos and seed. Equal seeds give equal texts; without one it is random. Text i of
    several has the seed plus i.

    Any number of threads may use a model. It cannot cross a fork. Memory is freed by close(), at the end of `with`, or with
    the last reference.
    """

    def __init__(
        self,
        path: Optional["Path"] = None,
        *,
        lora: Iterable[str] = (),
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
    ) -> None:
        self._pointer = ctypes.c_void_p()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._users = 0
        self._closed = False
        self._parallel = count(parallel, "parallel", 1, 255)
        options = c.ModelOptions()
        c.library.minimind_default_model_options(ctypes.byref(options), ctypes.sizeof(options))
        files = [lora] if isinstance(lora, str) else elements(lora, "lora", 'a list of "FILE" or "FILE:SCALE"')
        names = [path_bytes(name, "lora") for name in files]
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
        error = c.Error()
        status = c.library.minimind_open(
            path_bytes(DEMO if path is None else path, "path"), ctypes.byref(options), ctypes.byref(self._pointer), ctypes.byref(error)
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
        self._log_notes(facts)

    # ---- Lifetime ----

    def close(self) -> None:
        """Frees the memory, once calls of other threads have returned. Later calls raise ValueError."""
        if self._process != os.getpid():
            return
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

    def __reduce__(self) -> Any:
        raise TypeError("a Model cannot be pickled or copied; open it in each process")

    def _free(self) -> None:
        pointer, self._pointer = self._pointer, ctypes.c_void_p()
        c.library.minimind_close(pointer)

    @contextlib.contextmanager
    def _use(self) -> Iterator[ctypes.c_void_p]:
        """The handle, which is not freed meanwhile."""
        if self._process != os.getpid():
            raise RuntimeError("a Model cannot cross a fork; open it in the child, or start children with spawn")
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

    def _text(self, write: Callable[[Any, Any, int, Any], int], capacity: int) -> str:
        """What write(model, buffer, capacity, size) writes, which is called again if the buffer was too small."""
        size = ctypes.c_size_t()
        with self._use() as model:
            while True:
                buffer = ctypes.create_string_buffer(max(capacity, 1))
                status = write(model, buffer, capacity, ctypes.byref(size))
                if status != c.TOO_SMALL:
                    break
                capacity = size.value
            self._check(status)
        return buffer.raw[: size.value].decode()

    # ---- Text ----

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer and the chat template. It keeps the model in memory, not the other way round."""
        return Tokenizer(self)

    @overload
    def generate(self, prompt: "Prompt", *, stream: "Literal[False]" = False, **options: Any) -> str: ...
    @overload
    def generate(self, prompt: "Prompt", *, stream: "Literal[True]", **options: Any) -> Iterator[str]: ...
    @overload
    def generate(self, prompt: "Prompt", *, stream: bool, **options: Any) -> Union[str, Iterator[str]]: ...
    def generate(self, prompt: "Prompt", *, stream: bool = False, **options: Any) -> Union[str, Iterator[str]]:
        """Continues a text, after bos_token as MiniMind's scripts do, or ids, to which nothing is added.

        With `stream`, an iterator of pieces of text. To leave it early drops the text.
        """
        self.tokenizer.encode("")  # text needs one
        text = self._submit(self._prompt(prompt), options)
        pieces = (piece for piece, _, _ in self._run(text))
        return pieces if stream else "".join(pieces)

    def generate_batch(self, prompts: Iterable["Prompt"], **options: Any) -> List[str]:
        """Continues many texts at once, each as `generate` would alone. The texts in the order of their prompts."""
        if isinstance(prompts, str):
            raise TypeError("prompts is of type str, expected a list of prompts")
        self.tokenizer.encode("")
        ids = [self._prompt(prompt) for prompt in elements(prompts, "prompts", "a list of prompts")]
        options = _with_seed(options)
        return [
            written.text
            for written in self._run_many(functools.partial(self._submit, each, options, i) for i, each in enumerate(ids))
        ]

    def batch(self, requests: Iterable[Mapping[str, Any]], **options: Any) -> Iterator[Dict[str, Any]]:
        """Answers many requests at once, each with options of its own. Yields the results in the order of the requests.

        A request is {"prompt": text or ids, ...} or {"messages": [...], "tools": [...], "thinking": ..., "plain_content": ...,
        ...} with options of a text; `options` are those of requests that do not say. A result is {"text": ...}, or {"message": ...} for messages, with
        finish_reason, prompt_tokens and tokens; {"error": ...} for a request that cannot be answered. Requests are read as
        texts end, so that there may be any number of them.
        """
        self.tokenizer.encode("")
        options = _with_seed(options)
        numbered = enumerate(elements(requests, "requests", "a list of dicts"))
        submits = (functools.partial(self._submit_request, request, options, i) for i, request in numbered)
        return (written.result() for written in self._run_many(submits, keep_errors=True))

    def _submit_request(self, request: Mapping[str, Any], options: Mapping[str, Any], index: int) -> "_Text":
        if not isinstance(request, Mapping):
            raise TypeError(f"the request is of type {type(request).__name__}, expected a dict")
        given = dict(request)
        if ("prompt" in given) == ("messages" in given):
            raise ValueError("the request has " + ("both" if "prompt" in given else "none") + ", expected prompt or messages")
        index = 0 if "seed" in given else index
        if "prompt" in given:
            return self._submit(self._prompt(given.pop("prompt")), {**options, **given}, index)
        messages, tools, thinking = given.pop("messages"), given.pop("tools", None), given.pop("thinking", None)
        plain_content = given.pop("plain_content", False)
        return self._submit_chat(messages, tools, thinking, plain_content, {**options, **given}, index)

    @overload
    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        thinking: Optional[bool] = None,
        plain_content: bool = False,
        stream: "Literal[False]" = False,
        **options: Any,
    ) -> Dict[str, Any]: ...
    @overload
    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        thinking: Optional[bool] = None,
        plain_content: bool = False,
        stream: "Literal[True]",
        **options: Any,
    ) -> Iterator[Dict[str, Any]]: ...
    @overload
    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        thinking: Optional[bool] = None,
        plain_content: bool = False,
        stream: bool,
        **options: Any,
    ) -> Union[Dict[str, Any], Iterator[Dict[str, Any]]]: ...
    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Optional[Sequence[Mapping[str, Any]]] = None,
        thinking: Optional[bool] = None,
        plain_content: bool = False,
        stream: bool = False,
        **options: Any,
    ) -> Union[Dict[str, Any], Iterator[Dict[str, Any]]]:
        """Answers OpenAI's messages: {"role": "assistant", "content": ..., "reasoning_content": ..., "tool_calls": [...]}.

        The last two are there if the model wrote some. With `stream`, an iterator of OpenAI's deltas. thinking: on, off,
        or as the chat template decides. plain_content: messages and tools are ordinary text, also where they spell control
        tokens such as <|im_end|>, which otherwise a user can write, as in transformers.
        """
        text = self._submit_chat(messages, tools, thinking, plain_content, options)
        deltas = self._deltas(text)
        return deltas if stream else _message_of(deltas)

    def _submit_chat(
        self,
        messages: Any,
        tools: Any,
        thinking: Optional[bool],
        plain_content: bool,
        options: Mapping[str, Any],
        index: int = 0,
    ) -> "_Text":
        check_messages(messages)
        conversation = json_bytes(messages, "messages")
        functions = json_bytes(tools, "tools") if tools else None
        chat = (conversation, len(conversation), functions, len(functions or b""), -1 if thinking is None else int(bool(thinking)))
        prompt = self._text(
            lambda model, buffer, capacity, size: c.library.minimind_chat_prompt(model, *chat, buffer, capacity, size),
            2 * len(conversation) + 2 * len(functions or b"") + 4096,
        )
        plain = options.get("grammar") is not None or options.get("json_schema") is not None
        if plain and prompt.rstrip().endswith("<think>"):
            raise ValueError("the grammar is for the answer, but the prompt starts a thought; give thinking=False")
        ids = self._chat_ids(chat, prompt) if plain_content else self.tokenizer.encode(prompt)
        text = self._submit(id_array(ids, "ids"), options, index, chat=True)
        text.answer = _PlainAnswer() if plain else _Answer(prompt)
        return text

    def _chat_ids(self, chat: Any, prompt: str) -> Any:
        ids = np.empty(len(prompt.encode()) + 64, np.int32)  # a token has at least a byte
        size = ctypes.c_size_t()
        with self._use() as model:
            self._check(
                c.library.minimind_chat_ids(model, *chat, 1, pointer(ids, ctypes.c_int32), len(ids), ctypes.byref(size))
            )
        return ids[: size.value]

    def _deltas(self, text: "_Text") -> Iterator[Dict[str, Any]]:
        assert text.answer is not None
        for piece, _, _ in self._run(text):
            yield from text.answer.push(piece)
        yield from text.answer.push("", last=True)

    # ---- Numbers ----

    def logits(self, ids: Ids) -> npt.NDArray[np.float32]:
        """The logits after each of the ids, float32 [T, vocab_size]."""
        array = id_array(ids, "ids")
        logits = np.empty((len(array), self.vocab_size), np.float32)
        self._compute(c.library.minimind_logits, array, logits, ctypes.c_float)
        return logits

    def score(self, text: "Prompt") -> npt.NDArray[np.float64]:
        """The log-probability (base e) of each token of a text after those before it, float64 [T].

        A text follows bos_token, so that its first token has one as well. The first of given ids has none: NaN.
        """
        ids = self._prompt(text)
        scores = np.full(len(ids), np.nan)
        self._compute(c.library.minimind_score, ids, scores[1:], ctypes.c_double)
        if not isinstance(text, str):
            return scores
        return scores[len(ids) - len(self.tokenizer.encode(text)) :]

    @overload
    def rollout(self, prompt_ids: Ids, n: int = 1, logprobs: bool = False, **options: Any) -> List[Completion]: ...
    @overload
    def rollout(
        self, prompt_ids: Sequence[Ids], n: int = 1, logprobs: bool = False, **options: Any
    ) -> List[List[Completion]]: ...
    def rollout(
        self, prompt_ids: Union[Ids, Sequence[Ids]], n: int = 1, logprobs: bool = False, **options: Any
    ) -> Union[List[Completion], List[List[Completion]]]:
        """Samples n texts for a prompt of ids [T], or for each of several prompts: [n] or [prompts][n] Completions.

        Their log-probabilities are those of the untouched logits, as a trainer computes them: temperature, top_p and top_k
        do not change them, so that temperature=1, top_p=1, top_k=0 samples by exactly these.
        """
        count(n, "n", 1)
        prompts, several = id_arrays(prompt_ids, "prompt_ids")
        texts = [prompt for prompt in prompts for _ in range(n)]
        options = _with_seed(options)
        submits = (functools.partial(self._submit, ids, options, i, logprobs=logprobs) for i, ids in enumerate(texts))
        written = [text.completion(logprobs) for text in self._run_many(submits)]
        groups = [written[i : i + n] for i in range(0, len(written), n)]
        return groups if several else groups[0]

    def reload(self, path: "Path") -> None:
        """Replaces the weights by those of another checkpoint of the same shape, opened with the same options.

        Raises RuntimeError while texts are being written.
        """
        with self._use() as model:
            self._check(c.library.minimind_reload(model, path_bytes(path, "path")))
        self._log_notes(self._facts())

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Replaces the weights by those of a state dict of PyTorch tensors or numpy arrays, without a file in between.

        float32, float16 or bfloat16, under any of MiniMind's names. LoRA files that the model was opened with are not
        added again. Raises RuntimeError while texts are being written.
        """
        tensors, owners = tensors_of(state_dict)
        with self._use() as model:
            self._check(c.library.minimind_load_tensors(model, tensors, len(tensors)))
        del owners

    def _compute(self, function: Any, ids: npt.NDArray[np.int32], output: npt.NDArray[Any], element: Any) -> None:
        """Calls minimind_logits or minimind_score on another thread, so that this one can be interrupted by Ctrl-C."""
        stop = ctypes.c_int(0)
        failures: List[BaseException] = []

        def compute() -> None:
            try:
                with self._use() as model:
                    status = function(
                        model, pointer(ids, ctypes.c_int32), len(ids), pointer(output, element), output.size,
                        c.PROCEED_UNTIL_SET, ctypes.byref(stop),
                    )  # fmt: skip
                    self._check(status)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=compute, name="minimind_cpp")
        thread.start()
        try:
            thread.join()
        except BaseException:
            stop.value = 1
            thread.join()
            raise
        if failures:
            raise failures[0]

    # ---- Texts that are being written ----

    def _prompt(self, prompt: "Prompt") -> npt.NDArray[np.int32]:
        return id_array(self.tokenizer.encode_prompt(prompt) if isinstance(prompt, str) else prompt, "prompt")

    def _submit(
        self, ids: npt.NDArray[np.int32], options: Mapping[str, Any], index: int = 0, chat: bool = False, logprobs: bool = False
    ) -> "_Text":
        seed = options.get("seed")
        seed = secrets.randbits(63) if seed is None else count(seed, "seed", 0, 2**64 - 1)
        request = request_of(options, (seed + index) % 2**64)
        request.ids, request.id_count = pointer(ids, ctypes.c_int32), len(ids)
        request.chat, request.log_probabilities = chat, logprobs
        text = _Text(self)
        with self._use() as model:
            self._check(c.library.minimind_submit(model, ctypes.byref(request), ctypes.byref(text.pointer)))
        return text

    def _run(self, text: "_Text") -> Iterator[Any]:
        """Steps until the text has ended. Yields what is new: (text, ids, log-probabilities)."""
        try:
            while text.finish == c.RUNNING:
                self._step()
                yield text.poll()
        finally:
            text.release()

    def _run_many(self, submits: Iterable[Callable[[], "_Text"]], keep_errors: bool = False) -> Iterator["_Written"]:
        """Yields what all texts wrote, in their order. Only as many are submitted at once as keep the model busy.

        With keep_errors, a text that fails has an error; otherwise it is raised.
        """
        waiting = iter(submits)
        unyielded: Deque[_Written] = collections.deque()
        running: List[_Written] = []
        try:
            while True:
                for submit in itertools.islice(waiting, 2 * self._parallel - len(running)):
                    written = _Written(keep_errors)
                    unyielded.append(written)
                    running += [written] if written.start(submit) else []
                if not unyielded:
                    return
                if running:
                    self._step_until_one_ends(len(running))
                running = [written for written in running if not written.poll()]
                while unyielded and unyielded[0].ended:
                    yield unyielded.popleft()
        finally:
            for written in running:
                written.release()

    def _step_until_one_ends(self, running: int) -> None:
        """Steps until the model writes fewer texts, or for some steps: to poll each text after each step takes longer."""
        texts = ctypes.c_size_t()
        for _ in range(MOST_STEPS_WITHOUT_POLL):
            with self._use() as model:
                self._check(c.library.minimind_step(model, ctypes.byref(texts)))
            if texts.value < running:
                return
            running = texts.value

    def _step(self) -> None:
        with self._use() as model:
            self._check(c.library.minimind_step(model, None))


class _Written:
    """All that a text wrote, or why it failed."""

    def __init__(self, keep_error: bool) -> None:
        self.keep_error = keep_error
        self.text_of_library: Optional[_Text] = None
        self.pieces: List[str] = []
        self.ids: List[int] = []
        self.log_probabilities: List[float] = []
        self.finish_reason = ""
        self.error = ""
        self.prompt_tokens = 0
        self.message: Optional[Dict[str, Any]] = None

    def start(self, submit: Callable[[], "_Text"]) -> bool:
        """Whether the text is running."""
        with self._kept_error():
            self.text_of_library = submit()
        return not self.ended

    def poll(self) -> bool:
        """Whether the text has ended."""
        text = self.text_of_library
        assert text is not None
        with self._kept_error():
            piece, ids, log_probabilities = text.poll()
            self.pieces.append(piece)
            self.ids += ids
            self.log_probabilities += log_probabilities
            self.prompt_tokens = text.prompt_tokens
            self.finish_reason = c.FINISH_REASONS.get(text.finish, "")
            if self.finish_reason and text.answer is not None:
                self.message = _message_of(text.answer.push(self.text, last=True))
        if self.ended:
            self.release()
        return self.ended

    @contextlib.contextmanager
    def _kept_error(self) -> Iterator[None]:
        try:
            yield
        except (TypeError, ValueError) as error:
            if not self.keep_error:
                raise
            self.error = str(error)

    def release(self) -> None:
        text, self.text_of_library = self.text_of_library, None
        if text is not None:
            text.release()

    @property
    def ended(self) -> bool:
        return bool(self.finish_reason or self.error)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def completion(self, logprobs: bool) -> Completion:
        scores = np.array(self.log_probabilities, np.float64) if logprobs else None
        return Completion(np.array(self.ids, np.int32), scores, self.finish_reason)

    def result(self) -> Dict[str, Any]:
        """As Model.batch yields it."""
        if self.error:
            return {"error": self.error}
        written: Dict[str, Any] = {"text": self.text} if self.message is None else {"message": self.message}
        return {
            **written, "finish_reason": self.finish_reason, "prompt_tokens": self.prompt_tokens, "tokens": len(self.ids),
        }  # fmt: skip


class _Text:
    """A generation of the library."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.pointer = ctypes.c_void_p()
        self.finish = c.RUNNING
        self.prompt_tokens = 0
        self.answer: Union[_Answer, _PlainAnswer, None] = None  # of a chat
        self.told = False

    def poll(self) -> Any:
        output = c.Output()
        with self.model._use():
            status = c.library.minimind_poll(self.pointer, ctypes.byref(output))
            if status != c.OK:
                raise c.exception_of(status, c.library.minimind_generation_error(self.pointer))
            self._log_notes(output)
            self.finish, self.prompt_tokens = output.finish, output.prompt_tokens
            text = ctypes.string_at(output.text, output.text_size).decode() if output.text_size else ""
            scores = output.log_probabilities[: output.id_count] if output.log_probabilities else []
            return text, output.ids[: output.id_count], scores

    def _log_notes(self, output: c.Output) -> None:
        if not self.told and output.notes:
            logger.warning("%s", output.notes.decode("utf-8", "replace"))
        self.told = True

    def release(self) -> None:
        pointer, self.pointer = self.pointer, ctypes.c_void_p()
        if pointer and self.model._process == os.getpid():
            c.library.minimind_release(pointer)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            self.release()


class _Answer:
    """The reader of a chat's answer."""

    def __init__(self, prompt: str) -> None:
        self.pointer = ctypes.c_void_p()
        text, error = prompt.encode(), c.Error()
        status = c.library.minimind_answer_open(text, len(text), ctypes.byref(self.pointer), ctypes.byref(error))
        if status != c.OK:
            raise c.exception_of(status, error.message)

    def push(self, piece: str, last: bool = False) -> List[Dict[str, Any]]:
        text, deltas, size = piece.encode(), ctypes.c_char_p(), ctypes.c_size_t()
        status = c.library.minimind_answer_push(
            self.pointer, text, len(text), last, ctypes.byref(deltas), ctypes.byref(size)
        )
        if status != c.OK:
            raise c.exception_of(status, c.library.minimind_answer_error(self.pointer))
        read: List[Dict[str, Any]] = json.loads(deltas.value or b"[]")
        return read

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            c.library.minimind_answer_close(self.pointer)


class _PlainAnswer:
    """The reader of an answer that conforms to a grammar, which has no thoughts and calls."""

    def push(self, piece: str, last: bool = False) -> List[Dict[str, Any]]:
        return [{"content": piece}] if piece else []


def _with_seed(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The options with a seed, from which those of several texts are counted."""
    return {**options, "seed": secrets.randbits(63)} if options.get("seed") is None else dict(options)


def _message_of(deltas: Iterable[Mapping[str, Any]]) -> Dict[str, Any]:
    """The message that OpenAI's deltas add up to."""
    texts: Dict[str, List[str]] = {"content": [], "reasoning_content": []}
    calls: List[Dict[str, Any]] = []
    for delta in deltas:
        for name, pieces in texts.items():
            pieces.append(delta.get(name, ""))
        calls += [{key: value for key, value in call.items() if key != "index"} for call in delta.get("tool_calls", ())]
    message: Dict[str, Any] = {"role": "assistant", "content": "".join(texts["content"])}
    if any(texts["reasoning_content"]):
        message["reasoning_content"] = "".join(texts["reasoning_content"])
    if calls:
        message["tool_calls"] = calls
    return message
