"""Haystack's generators for either API of OpenAI, and its embedder."""

import os

os.environ['HAYSTACK_TELEMETRY_ENABLED'] = 'False'

from haystack.components.embedders import OpenAITextEmbedder  # noqa: E402
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator  # noqa: E402
from haystack.dataclasses import ChatMessage, ToolCall  # noqa: E402
from haystack.tools import Tool  # noqa: E402
from haystack.utils import Secret  # noqa: E402

from answer import Answer  # noqa: E402
from features import BASE_URL, ENOUGH, MODEL, STOP, TEXT, TOKENS, WEATHER, Client, run  # noqa: E402

SETTINGS = {'api_key': Secret.from_token('none'), 'api_base_url': BASE_URL, 'model': MODEL, 'max_retries': 0}
ASKED = [ChatMessage.from_user(TEXT)]
CALL = ToolCall(tool_name='weather', arguments={'city': '北京'}, id='call_1')
CALL_AND_RESULT = [*ASKED, ChatMessage.from_assistant(tool_calls=[CALL]), ChatMessage.from_tool('晴', origin=CALL)]
TOOL = Tool(name='weather', description=WEATHER['description'], parameters=WEATHER['parameters'], function=lambda city: '晴')
FORCED = {'tool_choice': 'required', 'parallel_tool_calls': False}


class Generator(Client):
    kind, limit = None, ''

    def fields(self, **others):
        return {'temperature': 0, self.limit: TOKENS, **others}

    def ask(self, messages=ASKED, tools=None, streaming_callback=None, **fields):
        generator = self.kind(**SETTINGS, tools=tools, streaming_callback=streaming_callback,
                              generation_kwargs=self.fields(**fields))
        return generator.run(messages)['replies']

    def chat(self):
        return self.ask()[0].text

    def stream(self):
        pieces = []
        self.ask(streaming_callback=lambda chunk: pieces.append(chunk.content))
        return [piece for piece in pieces if piece]

    async def asynchronous(self):
        return (await self.kind(**SETTINGS, generation_kwargs=self.fields()).run_async(ASKED))['replies'][0].text

    def tools(self):
        call = self.ask(tools=[TOOL], **FORCED, **{self.limit: ENOUGH})[0].tool_calls[0]
        return call.tool_name, call.arguments

    def tool_stream(self):
        call = self.ask(tools=[TOOL], streaming_callback=lambda chunk: None, **FORCED, **{self.limit: ENOUGH})[0].tool_calls[0]
        return call.tool_name, call.arguments

    def tool_result(self):
        return self.ask(CALL_AND_RESULT, tools=[TOOL])[0].text

    def error(self):
        return self.ask(temperature=-1)


class Chat(Generator):
    title = 'OpenAIChatGenerator'
    kind, limit = OpenAIChatGenerator, 'max_completion_tokens'

    def json_schema(self):
        return self.ask(response_format=Answer, max_completion_tokens=ENOUGH)[0].text

    def json_object(self):
        return self.ask(response_format={'type': 'json_object'}, max_completion_tokens=ENOUGH)[0].text

    def logprobs(self):
        return [token['logprob'] for token in self.ask(logprobs=True)[0].meta['logprobs']['content']]

    def stop(self):
        return self.ask(stop=[STOP])[0].text

    def seed(self):
        return [self.ask(seed=seed, temperature=1)[0].text for seed in (1, 1, 2)]

    def several(self):
        return [reply.text for reply in self.ask(n=2)]

    def usage(self):
        usage = self.ask()[0].meta['usage']
        return usage['prompt_tokens'], usage['completion_tokens']

    def embeddings(self):
        return OpenAITextEmbedder(**SETTINGS).run(TEXT)


class Responses(Generator):
    title = 'OpenAIResponsesChatGenerator'
    kind, limit = OpenAIResponsesChatGenerator, 'max_output_tokens'

    def json_schema(self):
        return self.ask(text_format=Answer, max_output_tokens=ENOUGH)[0].text


run(Chat, Responses)
