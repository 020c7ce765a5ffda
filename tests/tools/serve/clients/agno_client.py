"""Agno's agents with its models for OpenAI's API and for Ollama's.

No calls are required: an agent would ask for the next one after each result.
"""

import os

os.environ['AGNO_TELEMETRY'] = 'false'

from agno.agent import Agent  # noqa: E402
from agno.models.ollama import Ollama  # noqa: E402
from agno.models.openai import OpenAIResponses  # noqa: E402
from agno.models.openai.like import OpenAILike  # noqa: E402

from answer import Answer  # noqa: E402
from features import ADDRESS, BASE_URL, ENOUGH, MODEL, TEXT, TOKENS, Client, run  # noqa: E402


class Model(Client):
    def model(self, tokens=TOKENS, **fields):
        raise NotImplementedError

    def agent(self, model, **fields):
        return Agent(model=model, telemetry=False, **fields)

    def chat(self):
        return self.agent(self.model()).run(TEXT).content

    def stream(self):
        events = self.agent(self.model()).run(TEXT, stream=True)
        return [event.content for event in events if event.event == 'RunContent' and event.content]

    async def asynchronous(self):
        return (await self.agent(self.model()).arun(TEXT)).content

    def json_schema(self):
        return self.agent(self.model(ENOUGH), output_schema=Answer).run(TEXT).content.model_dump()

    def usage(self):
        metrics = self.agent(self.model()).run(TEXT).metrics
        return metrics.input_tokens, metrics.output_tokens


class OpenAi(Model):
    title = 'OpenAILike'

    def model(self, tokens=TOKENS, **fields):
        return OpenAILike(**{'id': MODEL, 'base_url': BASE_URL, 'api_key': 'none', 'temperature': 0,
                             'max_tokens': tokens, **fields})

    def seed(self):
        return [self.agent(self.model(seed=seed, temperature=1)).run(TEXT).content for seed in (1, 1, 2)]


class Responses(Model):
    title = 'OpenAIResponses'

    def model(self, tokens=TOKENS, **fields):
        return OpenAIResponses(**{'id': MODEL, 'base_url': BASE_URL, 'api_key': 'none', 'temperature': 0,
                                  'max_output_tokens': tokens, **fields})


class OllamaModel(Model):
    title = 'Ollama'

    def model(self, tokens=TOKENS, **fields):
        return Ollama(id=MODEL, host=ADDRESS, options={'temperature': 0, 'num_predict': tokens, **fields})


run(OpenAi, Responses, OllamaModel)
