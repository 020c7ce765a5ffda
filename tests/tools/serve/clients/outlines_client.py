"""Outlines with its models for OpenAI's API, for vLLM's and for Ollama's."""

import ollama
import openai
import outlines
from answer import Answer

from features import ADDRESS, BASE_URL, ENOUGH, MODEL, STOP, TEXT, TOKENS, Client, run

SETTINGS = {'base_url': BASE_URL, 'api_key': 'none', 'max_retries': 0}


class OfOpenAi(Client):
    """What Outlines does through OpenAI's API with either way to ask for a type."""

    def ask(self, output_type=None, **fields):
        return self.model(TEXT, output_type, **{'max_tokens': TOKENS, 'temperature': 0, **fields})

    def chat(self):
        return self.ask()

    def stream(self):
        return [piece for piece in self.model.stream(TEXT, max_tokens=TOKENS, temperature=0) if piece]

    def json_schema(self):
        return self.ask(Answer, max_tokens=ENOUGH)

    def error(self):
        return self.ask(temperature=-1)


class OpenAi(OfOpenAi):
    title = 'from_openai'
    model = outlines.from_openai(openai.OpenAI(**SETTINGS), MODEL)

    async def asynchronous(self):
        model = outlines.from_openai(openai.AsyncOpenAI(**SETTINGS), MODEL)
        return await model(TEXT, max_tokens=TOKENS, temperature=0)

    def json_object(self):
        return self.ask(dict, max_tokens=ENOUGH)

    def stop(self):
        return self.ask(stop=[STOP])

    def seed(self):
        return [self.ask(seed=seed, temperature=1) for seed in (1, 1, 2)]

    def several(self):
        return self.ask(n=2)


class Vllm(OfOpenAi):
    """With vLLM's field for the type."""

    title = 'from_vllm'
    model = outlines.from_vllm(openai.OpenAI(**SETTINGS), MODEL)


class Ollama(Client):
    title = 'from_ollama'
    model = outlines.from_ollama(ollama.Client(ADDRESS), MODEL)

    def ask(self, output_type=None, **options):
        return self.model(TEXT, output_type, options={'num_predict': TOKENS, 'temperature': 0, **options})

    def chat(self):
        return self.ask()

    def stream(self):
        return [piece for piece in self.model.stream(TEXT, options={'num_predict': TOKENS, 'temperature': 0}) if piece]

    async def asynchronous(self):
        model = outlines.from_ollama(ollama.AsyncClient(ADDRESS), MODEL)
        return await model(TEXT, options={'num_predict': TOKENS, 'temperature': 0})

    def json_schema(self):
        return self.ask(Answer, num_predict=ENOUGH)

    def stop(self):
        return self.ask(stop=[STOP])

    def seed(self):
        return [self.ask(seed=seed, temperature=1) for seed in (1, 1, 2)]

    def error(self):
        return self.ask(temperature=-1)


run(OpenAi, Vllm, Ollama)
