"""Runs the steps of tools/commands/DEPLOY.md on the demo: python -m unittest discover -s tests/tools/commands

Needs transformers and PyTorch; llama-server and go, if they are on PATH. `make test-deploy` installs what Debian and PyPI have.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "tools/commands/DEPLOY.md").read_text("utf-8").split("\n# ")[0]
QUESTIONS = [[{"role": "user", "content": "山居"}],
             [{"role": "system", "content": "请写诗。"}, {"role": "user", "content": "1998 年的雪"},
              {"role": "assistant", "content": "雪满山中。"}, {"role": "user", "content": "再写一首 poem"}]]
TOKENS = 24


def command(start: str) -> list[str]:
    """Returns the words of the page's command that starts so."""
    return re.search(rf"^    ({re.escape(start)}.*)$", PAGE, re.M)[1].split()


def templates() -> list[str]:
    return re.findall(r'^TEMPLATE """(.*?)"""', PAGE, re.M | re.S)


class Deploy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        (cls.folder / "out").mkdir()
        (cls.folder / "model").mkdir()
        shutil.copy(ROOT / "weights/demo/model.pth", cls.folder / "out/full_sft_768.pth")
        for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
            shutil.copy(ROOT / "weights/demo" / name, cls.folder / "model")

    def run_words(self, words: list[str], text: str = "") -> str:
        program = [str(ROOT / "minimind"), *words[1:]] if words[0] == "minimind" else words
        done = subprocess.run(program, cwd=self.folder, input=text, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def convert(self, out: str, replaced: str = "", replacement: str = "") -> None:
        words = command("minimind convert out/full_sft_768.pth " + out)
        self.run_words([replacement if word == replaced else word for word in words])

    def prompt(self, messages: list[dict]) -> str:
        conversation = {"messages": messages, "add_generation_prompt": True}
        return self.run_words(["minimind", "render", "out/full_sft_768.pth"], json.dumps(conversation))

    def tokens(self, text: str) -> list[int]:
        return json.loads("[" + self.run_words(["minimind", "tokenize", "out/full_sft_768.pth", "-p", text]) + "]")

    def continuation(self, prompt: list[int]) -> list[int]:
        words = ["minimind", "generate", "-q", "--greedy", "-n", str(TOKENS), "--json", "out/full_sft_768.pth", "--type", "f32"]
        return json.loads(self.run_words([*words, "--tokens", ",".join(map(str, prompt))]))["tokens"]

    def test_transformers_runs_the_code_of_the_page(self):
        self.convert("minimind-hf/")
        code = re.search(r"```python\n(.*?)```", PAGE, re.S)[1]
        question = re.search(r'"content": "(.*?)"', code)[1]
        self.assertIn("max_new_tokens=64", code)
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=self.folder, env=environment, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = self.run_words(["minimind", "chat", "-q", "--greedy", "-n", "64", "--json", "--type", "f32", "out/full_sft_768.pth"],
                              question)
        self.assertEqual(done.stdout.strip(), json.loads(ours)["content"].strip())

    @unittest.skipUnless(shutil.which("llama-server"), "llama-server is not on PATH")
    def test_llama_cpp_has_the_prompt_the_ids_and_the_answer(self):
        self.convert("minimind.gguf", "q8_0", "f32")  # whose answers are to be equal
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = [*command("llama-server"), "--port", str(port)]
        server = subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)

        def post(route: str, **body) -> dict:
            data = json.dumps(body).encode()
            return json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}{route}", data, timeout=60))

        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health").read()
                break
            except (urllib.error.URLError, ConnectionError):
                self.assertIsNone(server.poll())
                time.sleep(0.1)
        for messages in QUESTIONS:
            prompt = self.prompt(messages)
            self.assertEqual(post("/apply-template", messages=messages)["prompt"], prompt)
            ids = self.tokens(prompt)
            self.assertEqual(post("/tokenize", content=prompt, parse_special=True)["tokens"], ids)
            answer = post("/completion", prompt=ids, n_predict=TOKENS, temperature=0, return_tokens=True)
            self.assertEqual(answer["tokens"], [id for id in self.continuation(ids) if id != 2][:len(answer["tokens"])])
            self.assertGreater(len(answer["tokens"]), 0)

    @unittest.skipUnless(shutil.which("go"), "go is not on PATH")
    def test_the_template_for_ollama_makes_the_prompts_of_minimind(self):
        program = self.folder / "modelfile"
        subprocess.run(["go", "build", "-o", program, Path(__file__).with_name("modelfile.go")], check=True)
        tried = 0
        for line in (ROOT / "tests/golden_jinja/families.jsonl").read_text("utf-8").splitlines():
            golden = json.loads(line)
            messages = golden["input"]["messages"]
            plain = all(set(one) == {"role", "content"} and one["content"] and "think>" not in one["content"] for one in messages)
            answers = golden["input"].keys() == {"messages", "add_generation_prompt"} and messages[0]["role"] != "assistant"
            late_system = any(one["role"] == "system" for one in messages[1:])  # has a default system prompt as well
            if golden["family"] not in ("v2", "v3") or not plain or not answers or late_system:
                continue
            template = templates()[0 if golden["family"] == "v3" else 1]
            rendered = subprocess.run([program, template], input=json.dumps(messages), capture_output=True, text=True, check=True)
            self.assertEqual(rendered.stdout, golden["rendered"], messages)
            tried += 1
        self.assertGreaterEqual(tried, 4)


if __name__ == "__main__":
    unittest.main()
