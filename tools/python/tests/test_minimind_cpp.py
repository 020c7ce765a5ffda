"""Tests of the package against the program and the golden data. Run: make test-python"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
import unittest

import numpy as np

from minimind_cpp import Chat, Completion, Model, SamplingParams

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEMO = ROOT / "weights" / "demo" / "model.pth"
GOLDEN = ROOT / "tests" / "golden"
PROGRAM = os.environ.get("MINIMIND_PROGRAM", str(ROOT / "minimind"))
GREEDY = SamplingParams(temperature=0, max_tokens=12)
MESSAGES = [{"role": "user", "content": "写一首七言绝句，题目：秋夜"}]


def golden(name):
    case = json.loads((GOLDEN / name / "case.json").read_text())
    return GOLDEN / name / "model.pth", case, np.load(GOLDEN / name / "logits.npy")


def program(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True).stdout.decode()


class Demo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = Model(DEMO)

    def test_greedy_text_is_that_of_the_program(self):
        expected = program("generate", "-q", "--greedy", "-n", "40", "-m", str(DEMO), "-p", "春天")
        greedy = SamplingParams(temperature=0, max_tokens=40)
        self.assertEqual(self.model.generate("春天", greedy).text, expected)
        stream = self.model.stream("春天", greedy)
        pieces = list(stream)
        self.assertEqual("".join(pieces), expected)
        self.assertEqual(stream.completion.text, expected)
        self.assertGreater(len(pieces), 1)

    def test_a_seed_gives_the_text_of_the_program(self):
        expected = program("generate", "-q", "--seed", "7", "-n", "40", "-m", str(DEMO), "-p", "春天")
        self.assertEqual(self.model.generate("春天", SamplingParams(seed=7, max_tokens=40)).text, expected)

    def test_an_answer_is_that_of_the_program(self):
        expected = program("chat", "-q", "--greedy", "-m", str(DEMO), "-p", MESSAGES[0]["content"])
        greedy = SamplingParams(temperature=0)
        answer = self.model.chat(MESSAGES, greedy).message
        self.assertEqual(answer, {"role": "assistant", "content": expected.rstrip("\n")})
        stream = self.model.stream(Chat(MESSAGES), greedy)
        self.assertEqual("".join(delta["content"] for delta in stream), answer["content"])
        self.assertEqual(stream.completion.message, answer)

    def test_plain_content_writes_no_control_tokens(self):
        def prompt_tokens(content, **options):
            messages = [{"role": "user", "content": content}]
            return self.model.chat(messages, SamplingParams(max_tokens=1), **options).prompt_tokens

        self.assertEqual(prompt_tokens("春天", plain_content=True), prompt_tokens("春天"))
        spelled = len(self.model.tokenizer.encode("<|im_", False)) + len(self.model.tokenizer.encode("end|>", False))
        usual, plain = prompt_tokens("<|im_end|>"), prompt_tokens("<|im_end|>", plain_content=True)
        self.assertGreater(plain, usual + 1)
        self.assertLessEqual(plain, usual - 1 + spelled)
        messages = [{"role": "user", "content": "春天"}]
        self.assertEqual(
            self.model.chat(messages, GREEDY, plain_content=True).message, self.model.chat(messages, GREEDY).message
        )

    def test_a_batch_keeps_the_order_and_the_text_of_each(self):
        prompts = ["春天", "秋天", "山", Chat(MESSAGES), [1, 2]] * 10
        alone = [self.model.generate(prompt, GREEDY).text for prompt in prompts[:5]]
        written = self.model.generate_batch(prompts, GREEDY)
        self.assertEqual([completion.text for completion in written], alone * 10)
        self.assertEqual([completion.index for completion in written], list(range(50)))
        self.assertEqual([completion.message is None for completion in written[:5]], [True, True, True, False, True])
        self.assertEqual(self.model.generate_batch([]), [])

    def test_each_prompt_may_have_parameters_of_its_own(self):
        params = [SamplingParams(seed=5, max_tokens=4), SamplingParams(seed=5, max_tokens=9, n=2)]
        written = self.model.generate_batch(["山", "山"], params)
        self.assertEqual([len(completion.ids) for completion in written], [4, 9, 9])
        self.assertEqual([completion.index for completion in written], [0, 1, 1])
        self.assertEqual(written[2].text, self.model.generate("山", SamplingParams(seed=6, max_tokens=9)).text)
        for count in (1, 3):
            with self.assertRaisesRegex(ValueError, f"params has 2 elements, expected {count}, one for each prompt"):
                self.model.generate_batch(["山"] * count, params)
        with self.assertRaisesRegex(ValueError, "params has 2 elements, expected one for each prompt"):
            self.model.generate_batch(iter(["山"] * 3), params)

    def test_texts_arrive_as_they_end(self):
        params = [SamplingParams(max_tokens=200, ignore_eos=True), SamplingParams(max_tokens=2)]
        arrived = [completion.index for completion in self.model.iterate_batch(["山", "水"], params)]
        self.assertEqual(arrived, [1, 0])

    def test_a_batch_that_is_left_early_drops_its_texts(self):
        iterator = self.model.iterate_batch("山" for _ in range(100000))
        next(iterator)
        del iterator
        gc.collect()
        self.model.reload(DEMO)

    def test_parameters_stay_as_they_are(self):
        ids, bias, schema = [5], {3: 1.0}, {"type": "object", "properties": {}}
        params = SamplingParams(stop_token_ids=ids, logit_bias=bias, stop=iter(["a"]))
        constrained = SamplingParams(json_schema=schema)
        same = SamplingParams(stop_token_ids=(5,), logit_bias={3: 1.0}, stop=["a"])
        ids.append(6)
        bias[4] = 2.0
        schema["properties"]["b"] = {"type": "integer"}
        self.assertEqual((params, hash(params)), (same, hash(same)))
        self.assertEqual(constrained.json_schema, {"type": "object", "properties": {}})

    def test_a_repetition_ends_at_its_breakers(self):
        def written(**params):
            params = SamplingParams(temperature=0, max_tokens=60, ignore_eos=True, **params)
            return self.model.generate("春", params).text

        free = written()
        self.assertNotEqual(written(dry_multiplier=100), free)
        self.assertEqual(written(dry_multiplier=100, dry_sequence_breakers=sorted(set(free))), free)

    def test_a_batch_file_is_answered_with_the_options_of_the_model(self):
        with tempfile.TemporaryDirectory() as folder, Model(DEMO, type="q8_0", context_length=64) as model:
            requests, written, expected = (pathlib.Path(folder, name) for name in ("in", "written", "expected"))
            requests.write_text('{"prompt": "春天", "max_tokens": 9}\n{"prompt": "秋", "n": 2, "model": "their"}\nno JSON\n')
            options = ("--seed", "3", "--model-name", "any")
            model.batch(requests, written, *options)
            program("batch", requests, "-m", DEMO, "--type", "q8_0", "-c", "64", "-o", expected, *options)
            for end in ("", ".errors"):
                self.assertEqual(pathlib.Path(f"{written}{end}").read_bytes(), pathlib.Path(f"{expected}{end}").read_bytes())
            model.batch(requests, pathlib.Path(folder, "strict"))
            self.assertEqual(len(pathlib.Path(folder, "strict.errors").read_text().splitlines()), 2)

    def test_text_is_constrained(self):
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        pydantic = type("Answer", (), {"model_json_schema": classmethod(lambda cls: schema)})
        for given in (schema, json.dumps(schema), pydantic):
            text = self.model.generate("n", SamplingParams(json_schema=given, max_tokens=40, seed=1)).text
            self.assertIsInstance(json.loads(text)["n"], int)
        either = SamplingParams(json_schema={"type": "object", "properties": {}}, open_schema=True, max_tokens=60, ignore_eos=True)
        texts = {self.model.generate("n", dataclasses.replace(either, seed=seed)).text for seed in range(8)}
        self.assertTrue(any('":' in text for text in texts), texts)
        self.assertRegex(self.model.generate("n", SamplingParams(regex="[0-9]{3}")).text, "^[0-9]{3}$")
        self.assertIn(self.model.generate("n", SamplingParams(choice=["春天", "秋天"])).text, ("春天", "秋天"))
        answer = self.model.chat(MESSAGES, SamplingParams(choice=["好"]), thinking=False)
        self.assertEqual(answer.message["content"], "好")

    def test_a_function_changes_the_logits(self):
        seen = []

        def without_repeats(ids, logits):
            seen.append(len(ids))
            logits[ids] = -np.inf
            return logits

        params = SamplingParams(temperature=0, max_tokens=20, ignore_eos=True, logits_processor=without_repeats, logprobs=0)
        ids = self.model.tokenizer.encode_prompt("春天")
        completion = self.model.generate(ids, params)
        self.assertEqual(seen, list(range(len(ids), len(ids) + 20)))
        self.assertEqual(len(set(completion.ids.tolist()) | set(ids)), 20 + len(ids))
        scores = self.model.score([*ids, *completion.ids.tolist()])[len(ids) :]
        np.testing.assert_allclose(completion.log_probabilities, scores, atol=1e-5)
        same = SamplingParams(seed=7, max_tokens=20, logits_processor=lambda ids, logits: logits)
        plain = SamplingParams(seed=7, max_tokens=20)
        texts = self.model.generate_batch(["春天", "秋夜", "春天"], [same, params, plain])
        self.assertEqual([texts[0].text, texts[1].ids.tolist() != []], [texts[2].text, True])

    def test_what_a_processor_raises_is_raised(self):
        def fail(ids, logits):
            raise LookupError("of mine")

        for processor, error, message in (
            (fail, LookupError, "of mine"),
            (lambda ids, logits: logits[1:], ValueError, r"returned shape \(6399,\), expected \(6400,\)"),
            (lambda ids, logits: logits * np.nan, ValueError, "wrote nan, expected numbers or minus infinity"),
        ):
            with self.assertRaisesRegex(error, message):
                self.model.generate("春天", SamplingParams(logits_processor=processor))
        with self.assertRaisesRegex(TypeError, "logits_processor is of type int, expected a function"):
            SamplingParams(logits_processor=3)
        self.assertNotEqual(self.model.generate("春天", GREEDY).text, "")

    def test_a_processor_that_uses_its_model_does_not_wait_for_itself(self):
        read, dropped = self.model.stream("春天"), [self.model.stream("春天")]
        next(dropped[0])
        for use in (lambda: self.model.generate("a"), lambda: self.model.score("a"), lambda: next(read)):
            with self.assertRaisesRegex(RuntimeError, "a logits_processor uses the model that calls it"):
                self.model.generate("春天", SamplingParams(logits_processor=lambda ids, logits: use()))

        def drop(ids, logits):
            dropped.clear()
            return logits

        self.assertEqual(len(self.model.generate("春天", SamplingParams(max_tokens=3, logits_processor=drop)).ids), 3)
        self.model.reload(DEMO)  # the text that was dropped is not in the way

    def test_handles_cannot_be_copied(self):
        for handle in (self.model, self.model.session()):
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                with self.assertRaisesRegex(TypeError, "cannot be pickled or copied"):
                    copied(handle)

    def test_threads_share_a_stream(self):
        stream, pieces = self.model.stream("春天", SamplingParams(max_tokens=300, ignore_eos=True)), []
        threads = [threading.Thread(target=lambda: pieces.extend(stream)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted("".join(pieces)), sorted(stream.completion.text))
        self.assertEqual(len(stream.completion.ids), 300)

    def test_the_completion_of_a_shared_stream_has_its_last_piece(self):
        stream, is_last = self.model.stream(Chat(MESSAGES), SamplingParams(max_tokens=3, ignore_eos=True)), threading.Event()
        reader = stream._text.reader

        class SlowReader:
            def push(self, piece, last):
                if last:
                    is_last.set()
                    time.sleep(0.2)
                return reader.push(piece, last)

        stream._text.reader, deltas = SlowReader(), []
        thread = threading.Thread(target=lambda: deltas.extend(stream))
        thread.start()
        is_last.wait()
        content = stream.completion.message["content"]
        thread.join()
        self.assertEqual(content, "".join(delta.get("content", "") for delta in deltas))

    def test_a_read_that_is_cancelled_loses_no_piece(self):
        async def read(stream):
            pieces = []
            while True:
                try:
                    pieces.append(await asyncio.wait_for(stream.__anext__(), 0.001))
                except asyncio.TimeoutError:
                    pass
                except StopAsyncIteration:
                    return "".join(pieces)

        stream = self.model.stream("春天", SamplingParams(max_tokens=100, ignore_eos=True))
        self.assertEqual(asyncio.run(read(stream)), stream.completion.text)

    def test_stop_tokens_end_a_text_that_has_its_least_tokens(self):
        free = self.model.generate("春天", GREEDY)
        stop = int(free.ids[3])
        stopped = self.model.generate("春天", SamplingParams(temperature=0, max_tokens=12, stop_token_ids=[stop]))
        self.assertEqual(stopped.ids.tolist(), free.ids[: free.ids.tolist().index(stop) + 1].tolist())
        self.assertEqual(stopped.finish_reason, "stop")
        least = SamplingParams(temperature=0, max_tokens=12, stop_token_ids=[stop], min_tokens=6)
        self.assertGreaterEqual(len(self.model.generate("春天", least).ids), 6)

    def test_a_stream_is_aborted(self):
        stream = self.model.stream("春天", SamplingParams(max_tokens=500, ignore_eos=True))
        next(stream)
        with self.assertRaisesRegex(ValueError, "has not ended"):
            print(stream.completion)
        stream.abort()
        self.assertLess(len(list(stream)), 500)
        self.assertEqual(stream.completion.finish_reason, "cancelled")

    def test_streams_are_read_beside_other_tasks(self):
        async def read(prompt):
            return "".join([piece async for piece in self.model.stream(prompt, GREEDY)])

        async def read_all():
            return await asyncio.gather(read("春天"), read("秋天"), read("山"))

        expected = [self.model.generate(prompt, GREEDY).text for prompt in ("春天", "秋天", "山")]
        self.assertEqual(asyncio.run(read_all()), expected)

    def test_a_session_is_continued(self):
        ids = self.model.tokenizer.encode_prompt("春天来了")
        session = self.model.session()
        np.testing.assert_array_equal(session.run(ids[:-1], rows=2), self.model.logits(ids[:-1])[-2:])
        written = self.model.generate(ids, GREEDY, session=session)
        self.assertEqual(written.text, self.model.generate(ids, GREEDY).text)
        self.assertEqual(session.ids[: len(ids) + 4], [*ids, *written.ids[:4]])
        session.rewind(2)
        self.assertEqual(session.ids, ids[:2])
        with tempfile.TemporaryDirectory() as folder, Model(DEMO, session_files=True) as model:
            first, second = model.session(20), model.session(20)
            first.run(ids)
            first.save(pathlib.Path(folder, "a.session"))
            second.load(pathlib.Path(folder, "a.session"))
            self.assertEqual(second.ids, ids)
            with self.assertRaisesRegex(ValueError, "room"):
                second.run(ids * 5)
        with self.assertRaisesRegex(ValueError, "session_files"):
            session.save("/nowhere")

    def test_the_tokenizer(self):
        tokenizer = self.model.tokenizer
        ids = tokenizer.encode("春天来了")
        self.assertEqual(",".join(map(str, ids)), program("tokenize", "-m", str(DEMO), "-p", "春天来了").strip())
        self.assertEqual(tokenizer.decode(ids), "春天来了")
        self.assertEqual(tokenizer.decode([]), "")
        self.assertEqual(tokenizer.batch_decode([ids, []]), ["春天来了", ""])
        self.assertEqual((len(tokenizer), tokenizer.eos_token_id), (6400, 2))
        text = tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True, tokenize=False)
        self.assertIn(MESSAGES[0]["content"], text)
        self.assertEqual(tokenizer.apply_chat_template(MESSAGES, add_generation_prompt=True), tokenizer.encode(text))

    def test_a_tokenizer_may_lengthen_a_text(self):
        with tempfile.TemporaryDirectory() as folder:
            file = json.loads((DEMO.parent / "tokenizer.json").read_text())
            pathlib.Path(folder, "tokenizer.json").write_text(json.dumps({**file, "normalizer": {"type": "NFKD"}}))
            with Model(DEMO, tokenizer=folder) as model:
                text = "\ufdfa" * 300  # 18 characters each
                ids = model.tokenizer.encode(text)
                self.assertEqual(model.tokenizer.decode(ids), unicodedata.normalize("NFKD", text))
                self.assertGreater(model.chat([{"role": "user", "content": text}], GREEDY).prompt_tokens, len(ids))

    def test_scores_are_those_of_the_logits(self):
        scores = self.model.score("春天来了")
        self.assertEqual(len(scores), len(self.model.tokenizer.encode("春天来了")))
        ids = self.model.tokenizer.encode_prompt("春天来了")
        logits = self.model.logits(ids).astype(np.float64)
        expected = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        np.testing.assert_allclose(scores, [expected[i, ids[i + 1]] for i in range(len(ids) - 1)][-len(scores) :], atol=1e-5)
        self.assertTrue(np.isnan(self.model.score(ids)[0]))
        both = self.model.score(["春天来了", "山"])
        np.testing.assert_array_equal(both[0], scores)
        np.testing.assert_array_equal(self.model.score((ids, np.array(ids[:2])))[1], self.model.score(ids[:2]))

    def test_a_trace_has_the_values_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "t.safetensors"
            program("trace", "-q", "-m", str(DEMO), "-p", "春天", "--points", "layers.*.self_attn.*", "--layers", "0,3", "-o", str(file))
            content = file.read_bytes()
        header_end = 8 + int.from_bytes(content[:8], "little")
        tensors = json.loads(content[8:header_end])
        del tensors["__metadata__"]
        model = Model(DEMO)
        arrays = model.trace("春天", "layers.*.self_attn.*", layers=[0, 3])
        del model
        gc.collect()
        self.assertEqual(set(arrays), set(tensors))
        for name, array in arrays.items():
            begin, end = tensors[name]["data_offsets"]
            self.assertEqual(list(array.shape), tensors[name]["shape"])
            self.assertEqual(array.tobytes(), content[header_end + begin : header_end + end], name)
        with self.assertRaisesRegex(ValueError, "did you mean lm_head?"):
            self.model.trace([1], "lm_hed")
        self.assertEqual(self.model.trace([1, 2], ["lm_head"])["lm_head"].tobytes(), self.model.logits([1, 2]).tobytes())

    def test_rollouts_have_the_log_probabilities_of_their_tokens(self):
        prompt = self.model.tokenizer.encode("春天")
        completions = self.model.generate_batch([prompt], SamplingParams(n=4, logprobs=2, max_tokens=10, seed=3))
        with self.assertRaisesRegex(ValueError, "logprobs is 6401, expected at most the vocabulary's 6400"):
            self.model.generate(prompt, SamplingParams(logprobs=6401))
        self.assertEqual(len({tuple(completion.ids) for completion in completions}), 4)
        for completion in completions:
            self.assertIsInstance(completion, Completion)
            scores = self.model.score([*prompt, *completion.ids])[len(prompt) :]
            np.testing.assert_array_equal(completion.log_probabilities, scores)
            logits = self.model.logits([*prompt, *completion.ids])[len(prompt) - 1 : -1]
            np.testing.assert_array_equal(completion.top_ids, np.argsort(-logits, kind="stable")[:, :2])
            self.assertTrue((completion.top_log_probabilities[:, 0] >= completion.log_probabilities).all())
        self.assertIsNone(self.model.generate(prompt, GREEDY).log_probabilities)

    def test_wrong_arguments_raise_what_they_are(self):
        model = self.model
        for error, call in [
            (TypeError, lambda: model.generate(3)),
            (TypeError, lambda: SamplingParams(max_token=3)),
            (TypeError, lambda: SamplingParams(max_tokens="3")),
            (TypeError, lambda: SamplingParams(temperature="warm")),
            (TypeError, lambda: model.logits([1.5])),
            (TypeError, lambda: model.logits("ab")),
            (TypeError, lambda: model.tokenizer.encode(b"bytes")),
            (TypeError, lambda: model.generate_batch("one text")),
            (TypeError, lambda: model.chat([{"role": "user", "content": object()}])),
            (TypeError, lambda: model.load_state_dict({"a": np.zeros(3, np.int64)})),
            (TypeError, lambda: model.load_state_dict([1])),
            (TypeError, lambda: model.load_state_dict({1: np.zeros(3, np.float32)})),
            (TypeError, lambda: model.generate("a", 3)),
            (TypeError, lambda: model.generate_batch(["a"], [3])),
            (TypeError, lambda: model.generate_batch([np.array(3)])),
            (TypeError, lambda: SamplingParams(stop=3)),
            (TypeError, lambda: SamplingParams(choice="a")),
            (TypeError, lambda: SamplingParams(json_schema=int)),
            (TypeError, lambda: SamplingParams(stop_token_ids=[0.5])),
            (TypeError, lambda: SamplingParams(ignore_eos=1)),
            (TypeError, lambda: SamplingParams(logit_bias=[1])),
            (TypeError, lambda: model.generate_batch(None)),
            (TypeError, lambda: model.chat("hello")),
            (TypeError, lambda: model.chat(["hello"])),
            (TypeError, lambda: model.tokenizer.apply_chat_template(None)),
            (TypeError, lambda: Model(DEMO, lora=3)),
            (TypeError, lambda: model.generate("a", session=0)),
            (ValueError, lambda: model.generate("\ud800")),
            (ValueError, lambda: model.generate([[1], [2, 3]])),
            (ValueError, lambda: model.generate("a", SamplingParams(stop=""))),
            (ValueError, lambda: model.chat([])),
            (ValueError, lambda: Model(DEMO, type="")),
            (ValueError, lambda: Model(DEMO, type="q8_0\0")),
            (ValueError, lambda: SamplingParams(max_tokens=-1)),
            (ValueError, lambda: model.generate("a", SamplingParams(top_p=2))),
            (ValueError, lambda: SamplingParams(regex="a", grammar="b")),
            (ValueError, lambda: model.generate("a", SamplingParams(grammar="root = "))),
            (ValueError, lambda: model.logits([])),
            (ValueError, lambda: model.logits([[1, 2]])),
            (ValueError, lambda: model.logits([1 << 40])),
            (ValueError, lambda: model.logits([model.vocab_size])),
            (ValueError, lambda: model.logits([-1])),
            (ValueError, lambda: model.chat([{"role": "nobody", "content": "a"}])),
            (ValueError, lambda: SamplingParams(n=0)),
            (ValueError, lambda: model.generate("a", SamplingParams(n=2))),
            (ValueError, lambda: model.generate("a", SamplingParams(min_tokens=3, max_tokens=2))),
            (ValueError, lambda: model.generate("a", SamplingParams(stop_token_ids=[model.vocab_size]))),
            (ValueError, lambda: SamplingParams(choice=[])),
            (ValueError, lambda: model.load_state_dict({"a": np.zeros(3, np.float32)})),
        ]:
            with self.subTest(error=error), self.assertRaises(error) as caught:
                call()
            self.assertRegex(str(caught.exception), r" (is|are|has|names|cannot|got) |expected")

    def test_threads_share_a_model(self):
        expected = self.model.generate("春天", GREEDY).text
        texts = []
        threads = [
            threading.Thread(target=lambda: texts.append(self.model.generate("春天", GREEDY).text)) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(texts, [expected] * 4)

    def test_an_iterator_left_early_drops_its_text(self):
        iterator = self.model.stream("春天", SamplingParams(ignore_eos=True))
        next(iterator)
        del iterator
        gc.collect()
        self.model.reload(DEMO)  # refused while texts are being written

    def test_a_stream_that_has_not_started_is_no_obstacle_to_new_weights(self):
        stream, cancelled = self.model.stream("春天", GREEDY), self.model.stream("春天", GREEDY)
        text = self.model.generate("春天", GREEDY).text  # writes all texts that have started
        cancelled.abort()
        self.model.reload(DEMO)
        self.assertEqual("".join(stream), text)
        self.assertEqual(set(stream.completion.weights.tolist()), {self.model.weights})
        self.assertEqual(("".join(cancelled), cancelled.completion.finish_reason), ("", "cancelled"))


class Weights(unittest.TestCase):
    def test_logits_are_those_of_pytorch(self):
        for name in ("v1-dense", "v2-dense", "v3-dense", "v3-moe"):
            path, case, logits = golden(name)
            with self.subTest(name), Model(path) as model:
                self.assertLess(np.abs(model.logits(case["tokens"]) - logits).max(), 2e-4)
                self.assertEqual(model.logits(case["tokens"]).dtype, np.float32)

    def test_a_lora_and_a_type(self):
        path, case, logits = golden("v3-lora")
        with Model(path, lora=[str(path.with_name("lora.pth"))]) as model:
            self.assertLess(np.abs(model.logits(case["tokens"]) - logits).max(), 2e-4)
        with Model(path, lora=[f"{path.with_name('lora.pth')}:0.5"], type="f32", threads=1) as model:
            self.assertGreater(np.abs(model.logits(case["tokens"]) - logits).max(), 1e-3)

    def test_a_lora_by_name(self):
        path, case, logits = golden("v3-lora")
        lora = str(path.with_name("lora.pth"))
        with Model(path, loras={"medical": lora, "half": f"{lora}:0.5"}, threads=1) as model:
            self.assertGreater(np.abs(model.logits(case["tokens"]) - logits).max(), 1e-3)
            self.assertLess(np.abs(model.with_lora("medical").logits(case["tokens"]) - logits).max(), 2e-4)
            self.assertIs(model.with_lora("medical"), model.with_lora("medical"))
            self.assertGreater(np.abs(model.with_lora("half").logits(case["tokens"]) - logits).max(), 1e-3)
            with self.assertRaisesRegex(ValueError, "lora 'medcal' is unknown, expected medical or half"):
                model.with_lora("medcal")
            before = model.with_lora("half")
            model.reload(path)
            self.assertIsNot(model.with_lora("half"), before)
            half = model.with_lora("half")
        self.assertEqual(half.logits([1]).tobytes(), before.logits([1]).tobytes())
        with self.assertRaisesRegex(ValueError, "the model is closed"):
            model.with_lora("half")

    def test_weights_are_replaced_from_a_file_and_from_memory(self):
        path, case, logits = golden("v3-dense")
        other, _, other_logits = golden("v3-fp32")
        with Model(path) as model:
            before = model.logits(case["tokens"])
            model.reload(other)
            after = model.logits(case["tokens"])
            self.assertGreater(np.abs(after - before).max(), 1e-3)
            model.reload(path)
            np.testing.assert_array_equal(model.logits(case["tokens"]), before)
            model.generate(case["tokens"][:3], GREEDY)  # a finished text is no obstacle
            with self.assertRaises(FileNotFoundError):
                model.reload("/nowhere/model.pth")
            with self.assertRaises(ValueError):
                model.load_state_dict({"model.norm.weight": np.ones(8, np.float32)})
            np.testing.assert_array_equal(model.logits(case["tokens"]), before)

    def test_a_file_without_hyper_parameters_has_those_of_the_model(self):
        path, case, _ = golden("v3-dense")
        with tempfile.TemporaryDirectory() as folder:
            policy, weights = pathlib.Path(folder, "policy", "model.pth"), pathlib.Path(folder, "model.pth")
            program("convert", "-q", path, f"{policy.parent}/")
            config = json.loads((policy.parent / "config.json").read_text())
            config |= {"rope_theta": 100.0}  # which no tensor shows
            (policy.parent / "config.json").write_text(json.dumps(config))
            weights.write_bytes(path.read_bytes())
            with Model(policy.parent) as model, Model(weights) as guessed:
                before = model.logits(case["tokens"])
                self.assertGreater(np.abs(guessed.logits(case["tokens"]) - before).max(), 1e-3)
                model.reload(weights)
                np.testing.assert_array_equal(model.logits(case["tokens"]), before)

    def test_texts_that_are_kept_tell_the_weights_of_their_tokens(self):
        path, case, _ = golden("v3-dense")
        other, _, _ = golden("v3-fp32")
        with Model(path) as model:
            first = model.weights
            params = [SamplingParams(max_tokens=count, temperature=0, ignore_eos=True) for count in (30, 2)]
            texts = model.iterate_batch([case["tokens"][:3]] * 2, params)
            self.assertEqual(next(texts).index, 1)
            with self.assertRaisesRegex(RuntimeError, "are being written"):
                model.reload(other)
            model.reload(other, keep_texts=True)
            (kept,) = texts
            self.assertEqual(sorted(set(kept.weights.tolist())), [first, first + 1])
            self.assertEqual(model.weights, first + 1)
            after = model.generate(case["tokens"][:3], GREEDY)
        with Model(other) as model:
            self.assertEqual(after.ids.tolist(), model.generate(case["tokens"][:3], GREEDY).ids.tolist())

    def test_tensors_that_cannot_be_used_are_named(self):
        with Model(DEMO) as model:
            for tensors, error, found in (
                ({"a\0b": np.zeros(3, np.float32)}, ValueError, "has a NUL character"),
                ({"a": np.zeros(3)}, TypeError, "a has values of type float64"),
                ({"q_proj.lora_A.default.weight": np.zeros(3, np.float32)}, ValueError, r"call merge_adapter\(\) first"),
            ):
                with self.assertRaisesRegex(error, found):
                    model.load_state_dict(tensors)

    def test_a_state_dict_of_pytorch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        path, case, logits = golden("v3-dense")
        other, _, _ = golden("v3-fp32")
        with Model(other) as model:
            model.load_state_dict(torch.load(path, map_location="cpu"))
            self.assertLess(np.abs(model.logits(case["tokens"]) - logits).max(), 2e-4)
            for tensor, found in (
                (torch.zeros(3, device="meta"), "a is on PyTorch's device meta"),
                (torch.zeros(3).to_sparse(), "a is of layout torch.sparse_coo"),
                (torch.zeros(3, dtype=torch.float64), "a has values of type float64"),
            ):
                with self.assertRaisesRegex((TypeError, ValueError), found):
                    model.load_state_dict({"a": tensor})

    def test_two_models_live_side_by_side(self):
        path, case, logits = golden("v3-dense")
        with Model(path) as first, Model(path) as second:
            first.close()
            self.assertLess(np.abs(second.logits(case["tokens"]) - logits).max(), 2e-4)

    def test_memory_is_freed(self):
        def resident():
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def use():
            model = Model(DEMO, type="f32")
            model.generate("春天", GREEDY)

        use()
        before = resident()
        for _ in range(5):
            use()
        self.assertLess(resident() - before, 40 << 20)


class Lifetime(unittest.TestCase):
    def test_missing_files(self):
        for call in (
            lambda: Model("/nowhere/model.pth"),
            lambda: Model(DEMO, lora="/nowhere/lora.pth"),
            lambda: Model(DEMO, tokenizer="/nowhere/tokenizer.json"),
        ):
            with self.assertRaisesRegex(FileNotFoundError, "/nowhere"):
                call()

    def test_wrong_options(self):
        with self.assertRaisesRegex(ValueError, "int3"):
            Model(DEMO, type="int3")
        with self.assertRaisesRegex(ValueError, "parallel"):
            Model(DEMO, parallel=0)
        with self.assertRaises(TypeError):
            Model(3)
        with self.assertRaises(TypeError):
            Model(DEMO, type=8)
        with tempfile.NamedTemporaryFile(suffix=".pth") as file:
            file.write(b"not a checkpoint" * 10)
            file.flush()
            with self.assertRaisesRegex(ValueError, file.name):
                Model(file.name)

    def test_a_model_without_a_tokenizer(self):
        path, case, _ = golden("v3-dense")
        with tempfile.TemporaryDirectory() as folder:
            alone = pathlib.Path(folder, "model.pth")
            alone.write_bytes(path.read_bytes())
            with Model(alone) as model:
                for call in (lambda: model.generate("a"), lambda: model.tokenizer.decode([1])):
                    with self.assertRaisesRegex(ValueError, "tokenizer"):
                        call()
                prompt = case["tokens"][: case["prompt_len"]]
                completion = model.generate(prompt, SamplingParams(temperature=0, max_tokens=len(case["greedy"]), ignore_eos=True))
                self.assertEqual(completion.ids.tolist(), case["greedy"])
                self.assertEqual(completion.finish_reason, "length")

    def test_a_closed_model(self):
        model = Model(DEMO)
        iterator = model.stream("春天")
        next(iterator)
        model.close()
        model.close()
        for call in (lambda: model.generate("a"), lambda: next(iterator), lambda: model.tokenizer.encode("a")):
            with self.assertRaisesRegex(ValueError, "closed"):
                call()

    def test_a_library_that_is_another_is_an_import_error(self):
        with tempfile.TemporaryDirectory() as folder:
            source, library = pathlib.Path(folder, "library.c"), pathlib.Path(folder, "library.so")
            source.write_text("int minimind_abi(void) { return 7; }\n")
            try:
                subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
            except FileNotFoundError:
                self.skipTest("there is no C compiler")
            old = pathlib.Path(folder, "old.so")
            source.write_text("int minimind_abi(void) { return 1; }\nvoid minimind_version(void) {}\n")
            subprocess.run(["cc", "-shared", "-fPIC", "-o", old, source], check=True)
            libraries = (library, "its ABI is 7, expected 1"), (old, "is older than this package")
            for path, word in (*libraries, (source, "cannot be used"), ("/nowhere.so", "cannot be used")):
                done = subprocess.run(
                    [sys.executable, "-c", "import minimind_cpp"], env={**os.environ, "MINIMIND_LIBRARY": str(path)},
                    capture_output=True, text=True,
                )  # fmt: skip
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, f"ImportError: {path}: .*{word}")

    def test_closing_a_model_in_use_ends_the_texts_of_other_threads(self):
        model, errors = Model(DEMO), []

        def write():
            try:
                model.generate_batch(["a"] * 500, SamplingParams(ignore_eos=True))
            except ValueError as error:
                errors.append(str(error))

        thread = threading.Thread(target=write)
        begun = time.process_time()
        thread.start()
        while time.process_time() < begun + 0.1:  # until it writes
            time.sleep(0.01)
        model.close()
        thread.join()
        self.assertIn("closed", errors[0])

    def run_script(self, script, **options):
        return subprocess.run(
            # Later versions of Python warn of every fork of a process with threads.
            [sys.executable, "-W", "ignore::DeprecationWarning", "-c",
             "from minimind_cpp import Chat, Model, SamplingParams\n"
             "short = SamplingParams(temperature=0, max_tokens=2)\n"
             f"model = Model({str(DEMO)!r})\n{script}"],
            capture_output=True, text=True, timeout=60, **options,
        )  # fmt: skip

    def test_a_fork_says_that_a_model_cannot_cross_it(self):
        done = self.run_script(
            "import os\nmodel.generate('a', short)\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    try:\n        model.generate('a')\n"
            "    except RuntimeError as error:\n        os._exit(7 if 'fork' in str(error) else 1)\n"
            "    os._exit(1)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), len(model.generate('a', short).ids) > 0)\n"
        )
        self.assertEqual((done.stdout.split(), done.stderr), (["7", "True"], ""))

    def test_a_fork_says_so_of_a_stream_that_a_thread_reads(self):
        done = self.run_script(
            "import os, signal, threading\n"
            "is_called, may_end = threading.Event(), threading.Event()\n"
            "def wait(ids, logits):\n    is_called.set()\n    may_end.wait()\n    return logits\n"
            "stream = model.stream('a', SamplingParams(max_tokens=2, logits_processor=wait))\n"
            "reader = threading.Thread(target=lambda: list(stream))\nreader.start()\nis_called.wait()\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    signal.alarm(20)\n"
            "    try:\n        next(stream)\n"
            "    except RuntimeError as error:\n        os._exit(7 if 'fork' in str(error) else 1)\n"
            "    os._exit(1)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\nmay_end.set()\nreader.join()\n"
        )
        self.assertEqual((done.stdout.split(), done.stderr), (["7"], ""))

    def test_a_processor_on_a_thread_of_the_library_does_not_wait_for_its_step(self):
        done = self.run_script(
            "import threading, time\n"
            f"model = Model({str(DEMO)!r}, threads=2)\n"
            "others = model.iterate_batch(['a', 'b', 'c'], SamplingParams(max_tokens=50))\n"
            "next(others)\n"
            "def use(ids, logits):\n"
            "    if threading.current_thread() is threading.main_thread():\n        time.sleep(0.2)\n        return logits\n"
            "    return next(others)\n"
            "try:\n    model.generate_batch(['a'] * 4, SamplingParams(max_tokens=5, logits_processor=use))\n"
            "except RuntimeError as error:\n    print(error)\n"
        )
        self.assertRegex(done.stdout, "^a logits_processor uses the model that calls it")
        self.assertEqual(done.stderr, "")

    @unittest.skipIf("libtsan" in os.environ.get("LD_PRELOAD", ""), "the sanitizer ends forked children that start threads")
    def test_the_workers_of_a_forking_pool_open_models_of_their_own(self):
        done = self.run_script(
            "import multiprocessing\n"
            f"def write(threads): return Model({str(DEMO)!r}, threads=threads).generate('a', short).text\n"
            "expected = write(2)\n"
            "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
            "    print(pool.map(write, [1, 2, 2]) == [expected] * 3)\n"
            "print(write(2) == expected)\n"
        )
        self.assertEqual((done.stdout.split(), done.stderr), (["True", "True"], ""))

    def used(self, process):
        """The seconds of processors that a process has used: man 5 proc has the fields."""
        fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def interrupted(self, call):
        # A shell that runs the tests in the background ignores SIGINT, and so would its children.
        script = (
            "import signal\nfrom minimind_cpp import Model, SamplingParams\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
            f"model = Model({str(DEMO)!r}, parallel=2)\nprint('ready', flush=True)\n"
            f"try:\n    {call}\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
            "print(len(model.generate('a', SamplingParams(max_tokens=2)).ids) > 0)"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        begun = self.used(process)
        while self.used(process) < begun + 0.2:  # until it is in the call
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((out, err), ("interrupted\nTrue\n", ""))

    def test_ctrl_c_interrupts_texts_and_logits(self):
        self.interrupted("model.generate_batch(['a'] * 100000, SamplingParams(ignore_eos=True))")
        self.interrupted("while True: model.logits([1] * model.context_length)")

    def test_the_interpreter_ends_while_daemon_threads_use_a_model(self):
        for call in ("model.logits([1] * 600)", "model.score([1] * 600)", "model.generate_batch([[1]], SamplingParams(n=4, max_tokens=50))",
                     "model.generate_batch([[1]], SamplingParams(n=4, max_tokens=50, logits_processor=lambda ids, logits: logits))"):
            script = (
                "import threading, time\n"
                f"def use():\n    while True: {call}\n"
                "for _ in range(2): threading.Thread(target=use, daemon=True).start()\n"
            )
            for seconds in (0.1, 0.13, 0.16, 0.2):
                with self.subTest(call):
                    done = self.run_script(f"{script}time.sleep({seconds})")
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_function_of_atexit_may_wait_for_a_thread_that_uses_a_model(self):
        done = subprocess.run(
            [sys.executable, "-c",
             "import atexit, threading\n"
             "atexit.register(lambda: (ending.set(), worker.join(20), print(worker.is_alive())))\n"
             "from minimind_cpp import Model, SamplingParams\n"
             "ending, is_called = threading.Event(), threading.Event()\n"
             "def call(ids, logits):\n    is_called.set()\n    return logits\n"
             "def use():\n"
             "    while not ending.is_set(): model.generate('a', SamplingParams(max_tokens=50, logits_processor=call))\n"
             f"model = Model({str(DEMO)!r})\n"
             "worker = threading.Thread(target=use, daemon=True)\nworker.start()\nis_called.wait()\n"],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "False\n", ""))

    def test_nothing_is_printed(self):
        for script in (
            "model.generate('a', short)",
            # All of these are dropped when modules are already empty.
            "import sys\nsys.kept = sys.modules['__main__']\n"
            "text, chat = model.stream('a'), model.stream(Chat([{'role': 'user', 'content': 'a'}]))",
        ):
            done = self.run_script(script)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
