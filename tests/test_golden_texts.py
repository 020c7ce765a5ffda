"""Tests that seeded texts have the same bytes through every door, and that these and calibrated files are golden.

golden_texts/README.md says what is compared. `python3 tests/test_golden_texts.py` writes the golden bytes.

MINIMIND_PROGRAM and MINIMIND_LIBRARY name a program and a library other than ./minimind and
build/release/libminimind.so.1.
"""

import concurrent.futures
import ctypes
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden_texts"
DEMO = ROOT / "weights" / "demo" / "model.pth"
PROGRAM = os.environ.get("MINIMIND_PROGRAM", str(ROOT / "minimind"))
os.environ.setdefault("MINIMIND_LIBRARY", str(ROOT / "build" / "release" / "libminimind.so.1"))

CASES = json.loads((GOLDEN / "cases.json").read_text())
BLOCK_TYPES = ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k", "iq4_nl"]
# Checkpoints of tests/golden and the options of their conversion: each kind of FFN, of RoPE and of routing.
CALIBRATED = {
    "v3-dense": ["--bits", "5"],
    "v3-moe": ["--type", "iq4_nl"],
    "v1-moe": ["--type", "q8_0"],
    "v3-yarn": ["--type", "q5_1"],
    "v3-glu-gelu": ["--type", "q4_0"],
    "v3-glu-gelu-tanh": ["--type", "q4_1"],
    "v3-plain-gelu-bias": ["--type", "q5_0"],
}


def run(*arguments):
    """The standard output of the program."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          encoding="utf-8", env=environment)
    if done.returncode != 0:
        raise AssertionError(f"{arguments} ended with status {done.returncode}: {done.stderr}")
    return done.stdout


def openai_body(case):
    """The body of an OpenAI request for a case."""
    same = ("prompt", "messages", "seed", "max_tokens", "stop", "ignore_eos", "grammar")
    body = {name: case[name] for name in same if name in case}
    if "schema" in case:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "it", "schema": case["schema"]}}
    if "tools" in case:
        body |= {"tools": case["tools"], "tool_choice": "required", "parallel_tool_calls": False}
    return body | case["sampling"]


def openai_path(case):
    return "/v1/chat/completions" if "messages" in case else "/v1/completions"


def result_of(text, finish_reason, tokens, calls=None):
    result = {"text": text, "finish_reason": finish_reason, "tokens": tokens}
    if calls:
        result["calls"] = [[call["function"]["name"], call["function"]["arguments"]] for call in calls]
    return result


def openai_result(body):
    choice = body["choices"][0]
    message = choice.get("message", {"content": choice.get("text")})
    return result_of(message["content"] or "", choice["finish_reason"], body["usage"]["completion_tokens"],
                     message.get("tool_calls"))


class Server:
    """`minimind serve`, and the routes that write texts. A route gives None for a case that it cannot express."""

    def __init__(self):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--port", "0", "-m", str(DEMO)], stderr=subprocess.PIPE, encoding="utf-8",
            env={**os.environ, "LC_ALL": "C.UTF-8"})
        for line in self.process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                self.address = found[0]
                return
        raise AssertionError("the server ended")

    def close(self):
        self.process.terminate()
        self.process.communicate()

    def post(self, path, body):
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read().decode()

    def openai(self, case):
        return openai_result(json.loads(self.post(openai_path(case), openai_body(case))))

    def openai_stream(self, case):
        streaming = {"stream": True, "stream_options": {"include_usage": True}}
        answer = self.post(openai_path(case), openai_body(case) | streaming)
        events = [line.removeprefix("data: ") for line in answer.splitlines() if line]
        assert events.pop() == "[DONE]"
        text, finish, calls, tokens = "", None, [], None
        for event in map(json.loads, events):
            for choice in event["choices"]:
                delta = choice.get("delta", {"content": choice.get("text")})
                text += delta.get("content") or ""
                for call in delta.get("tool_calls", []):
                    if call["index"] == len(calls):
                        calls.append({"function": {"name": "", "arguments": ""}})
                    for name, part in call["function"].items():
                        calls[call["index"]]["function"][name] += part
                finish = choice["finish_reason"] or finish
            tokens = event["usage"]["completion_tokens"] if event.get("usage") else tokens
        return result_of(text, finish, tokens, calls)

    def ollama(self, case, stream=False):
        if "grammar" in case or "tools" in case or case.get("ignore_eos") or isinstance(case.get("prompt"), list):
            return None
        options = case["sampling"] | {"num_predict": case["max_tokens"], "seed": case["seed"],
                                      "stop": case.get("stop", [])}
        body = {"stream": stream, "options": options}
        body |= {"messages": case["messages"]} if "messages" in case else {"prompt": case["prompt"], "raw": True}
        if "schema" in case:
            body["format"] = case["schema"]
        with urllib.request.urlopen(self.address + "/api/tags") as tags:
            body["model"] = json.loads(tags.read())["models"][0]["name"]
        lines = self.post("/api/chat" if "messages" in case else "/api/generate", body).splitlines()
        answers = [json.loads(line) for line in lines]
        text = "".join(a["message"]["content"] if "message" in a else a["response"] for a in answers)
        return result_of(text, answers[-1]["done_reason"], answers[-1]["eval_count"])

    def ollama_stream(self, case):
        return self.ollama(case, stream=True)

    def rollout(self, case):
        if "messages" in case or "grammar" in case:
            return None
        params = case["sampling"] | {"sampling_seed": case["seed"], "max_new_tokens": case["max_tokens"],
                                     "stop": case.get("stop", []), "ignore_eos": case.get("ignore_eos", False)}
        name = "input_ids" if isinstance(case["prompt"], list) else "text"
        answer = json.loads(self.post("/generate", {name: case["prompt"], "sampling_params": params}))
        meta = answer["meta_info"]
        return result_of(answer["text"], meta["finish_reason"]["type"], meta["completion_tokens"])


class CommandLine:
    """`generate` and `chat`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def options(self, case):
        options = ["-q", "-m", DEMO, "--seed", case["seed"], "-n", case["max_tokens"]]
        for name, value in case["sampling"].items():
            options += ["--" + name.replace("_", "-"), value]
        for stop in case.get("stop", []):
            options += ["--stop", stop]
        for name, option, text in (("grammar", "--grammar", str), ("schema", "--json-schema", json.dumps)):
            if name in case:
                file = self.folder / f"{case['seed']}.{name}"
                file.write_text(text(case[name]))
                options += [option, file]
        return options + (["--ignore-eos"] if case.get("ignore_eos") else [])

    def generate(self, case):
        if "messages" in case:
            return None
        prompt = case["prompt"]
        given = ["--tokens", ",".join(map(str, prompt))] if isinstance(prompt, list) else ["--raw", "-p", prompt]
        answer = json.loads(run("generate", *given, *self.options(case), "--json"))
        plain = run("generate", *given, *self.options(case))
        assert plain in (answer["text"], answer["text"] + "\n"), (plain, answer["text"])
        return result_of(answer["text"], answer["finish_reason"], len(answer["tokens"]))

    def chat(self, case):
        if "messages" not in case or "tools" in case:
            return None
        *before, last = case["messages"]
        options = self.options(case)
        if before:
            file = self.folder / f"{case['seed']}.messages"
            file.write_text(json.dumps({"messages": before}))
            options += ["--load", file]
        answer = json.loads(run("chat", *options, "-p", last["content"], "--json"))
        return result_of(answer["content"], answer["finish_reason"], answer["usage"]["completion_tokens"])


def batch(cases, folder):
    """The results of all cases, answered at once."""
    lines = [{"custom_id": case["name"], "method": "POST", "url": openai_path(case), "body": openai_body(case)}
             for case in cases]
    requests, results = pathlib.Path(folder) / "requests.jsonl", pathlib.Path(folder) / "results.jsonl"
    requests.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run("batch", requests, "-o", results, "-q", "-m", DEMO)
    return [openai_result(json.loads(line)["response"]["body"]) for line in results.read_text().splitlines()]


class Library:
    """The C interface: all texts are written together."""

    FINISH = {1: "stop", 2: "length"}

    def __init__(self):
        file = ROOT / "tools" / "python" / "minimind_cpp" / "_library.py"
        spec = importlib.util.spec_from_file_location("golden_library", file)
        self.c = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.c)
        self.library = self.c.library
        self.model = ctypes.c_void_p()
        error = self.c.Error()
        if self.library.minimind_open(str(DEMO).encode(), None, self.model, error) != 0:
            raise AssertionError(error.message.decode())

    def close(self):
        self.library.minimind_close(self.model)

    def check(self, status):
        if status != 0:
            raise AssertionError(self.library.minimind_model_error(self.model).decode())

    def ids(self, case):
        ids, count = (ctypes.c_int32 * 256)(), ctypes.c_size_t()
        if "messages" in case:
            messages = json.dumps(case["messages"]).encode()
            self.check(self.library.minimind_chat_ids(self.model, messages, len(messages), None, 0, -1, 0, ids, 256,
                                                      count))
        elif isinstance(case["prompt"], list):
            return (ctypes.c_int32 * len(case["prompt"]))(*case["prompt"])
        else:
            text = case["prompt"].encode()
            self.check(self.library.minimind_encode(self.model, text, len(text), self.c.ENCODE_TEXT, ids, 256, count))
        return (ctypes.c_int32 * count.value)(*ids[: count.value])

    def submit(self, case):
        request, generation = self.c.Request(), ctypes.c_void_p()
        self.library.minimind_default_request(request, request.size)
        ids = self.ids(case)
        request.ids, request.id_count = ids, len(ids)
        request.max_tokens, request.seed = case["max_tokens"], case["seed"]
        request.ignore_eos = case.get("ignore_eos", False)
        for name, value in case["sampling"].items():
            setattr(request, name, value)
        stop = [text.encode() for text in case.get("stop", [])]
        request.stop, request.stop_count = (ctypes.c_char_p * len(stop))(*stop), len(stop)
        schema = json.dumps(case["schema"]) if "schema" in case else ""
        constraints = {"grammar": case.get("grammar", ""), "json_schema": schema}
        for name, text in constraints.items():
            if text:
                setattr(request, name, text.encode())
                setattr(request, name + "_size", len(text.encode()))
        self.check(self.library.minimind_submit(self.model, request, generation))
        return generation

    def texts(self, cases):
        """The results of the cases that the interface can express; None for others."""
        generations = [None if "tools" in case else self.submit(case) for case in cases]
        results = [None if generation is None else result_of("", None, 0) for generation in generations]
        left = ctypes.c_size_t(1)
        while left.value > 0:
            self.check(self.library.minimind_step(self.model, left))
            for generation, result in zip(generations, results):
                if generation is None:
                    continue
                output = self.c.Output()
                self.check(self.library.minimind_poll(generation, output))
                result["text"] += ctypes.string_at(output.text, output.text_size).decode() if output.text_size else ""
                result["tokens"] += output.id_count
                result["finish_reason"] = self.FINISH.get(output.finish, result["finish_reason"])
        for generation in filter(None, generations):
            self.library.minimind_release(generation)
        return results


def texts_of_all_doors():
    """The results of each case, by door."""
    results = {case["name"]: {} for case in CASES}

    def add(door, of_cases):
        for case, result in zip(CASES, of_cases):
            if result is not None:
                results[case["name"]][door] = result

    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(16) as pool:
        server = Server()
        try:
            routes = [server.openai, server.openai_stream, server.ollama, server.ollama_stream, server.rollout]
            running = [(route.__name__, [pool.submit(route, case) for case in CASES]) for route in routes]
            for name, futures in running:
                add(f"serve: {name}", [future.result() for future in futures])
        finally:
            server.close()
        add("batch", batch(CASES, folder))
        line = CommandLine(folder)
        add("generate", map(line.generate, CASES))
        add("chat", map(line.chat, CASES))
    library = Library()
    add("C interface", library.texts(CASES))
    library.close()
    return results


def texts_of_types():
    """A greedy text of the demo with its weights in each block type."""
    return {type: run("generate", "-q", "-m", DEMO, "-p", "秋", "-n", "12", "--greedy", "--type", type)
            for type in BLOCK_TYPES}


def calibrated_files():
    """The sha256 of a GGUF of each checkpoint in CALIBRATED."""
    hashes = {}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "model.gguf"  # its name is in the file
        for name, options in CALIBRATED.items():
            model = ROOT / "tests" / "golden" / name
            run("convert", model / "model.pth" if (model / "model.pth").exists() else model, file, "-q", "--force",
                *options, "--tokenizer", GOLDEN / "tokenizer.json", "--calibrate", GOLDEN / "text.txt")
            hashes[name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return hashes


def instruction_sets():
    """The instruction sets that the program can run here, best first: it lists them if it is given another one."""
    refused = subprocess.run([PROGRAM, "generate", "-p", "a", "-m", str(DEMO)], capture_output=True, encoding="utf-8",
                             env={**os.environ, "MINIMIND_ISA": "none"})
    return refused.stderr.strip().rsplit(": ", 1)[1].split(", ")


def f32_arithmetic(instruction_set):
    """The instruction set by which this one multiplies f32: those above AVX-512 add products of integers."""
    return "avx512" if instruction_set.startswith(("avx512", "amx")) else instruction_set


def toolchain():
    """The compiler of the program and the C library, on which roundings depend as well."""
    compiler = re.search(rb"GCC: \([^)]*\) [\d.]+|clang version [\d.]+", pathlib.Path(PROGRAM).read_bytes())
    return f"{compiler[0].decode() if compiler else 'unknown'}, {os.confstr('CS_GNU_LIBC_VERSION')}"


class GoldenTextsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.golden = json.loads((GOLDEN / "golden.json").read_text())
        cls.texts = texts_of_all_doors()

    def rounded_here(self, part):
        """The golden bytes of what depends on roundings, if they are known for this program on this machine."""
        arithmetic = f32_arithmetic(os.environ.get("MINIMIND_ISA") or instruction_sets()[0])
        if self.golden["toolchain"] != toolchain() or arithmetic not in self.golden[part]:
            self.skipTest(f"known for {self.golden['toolchain']} with {', '.join(self.golden[part])}, "
                          f"not for {toolchain()} with {arithmetic}")
        return self.golden[part][arithmetic]

    def test_every_door_writes_the_same_text(self):
        for name, of_doors in self.texts.items():
            for door, result in of_doors.items():
                with self.subTest(text=name, door=door):
                    self.assertEqual(result, of_doors["batch"])

    def test_texts_are_golden(self):
        self.assertEqual({name: of_doors["batch"] for name, of_doors in self.texts.items()}, self.golden["texts"])

    def test_texts_of_quantised_weights_are_golden(self):
        self.assertEqual(texts_of_types(), self.rounded_here("types"))

    def test_calibrated_files_are_golden(self):
        self.assertEqual(calibrated_files(), self.rounded_here("calibrated"))


def write():
    """Writes golden.json, if the doors agree, and the instruction sets of this machine about texts of f16 weights."""
    golden = {"toolchain": toolchain(), "texts": None, "types": {}, "calibrated": {}}
    for name in instruction_sets():
        os.environ["MINIMIND_ISA"] = name
        texts = texts_of_all_doors()
        for of_doors in texts.values():
            assert all(result == of_doors["batch"] for result in of_doors.values()), of_doors
        texts = {text: of_doors["batch"] for text, of_doors in texts.items()}
        assert golden["texts"] in (None, texts), f"{name}: {texts}, expected {golden['texts']}"
        golden["texts"] = texts
        if name == "sse2":
            continue  # a processor without more has another exp() in its C library
        for part, found in (("types", texts_of_types()), ("calibrated", calibrated_files())):
            known = golden[part].setdefault(f32_arithmetic(name), found)
            assert found == known, f"{name}: {found}, expected {known}"
    (GOLDEN / "golden.json").write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    write()
