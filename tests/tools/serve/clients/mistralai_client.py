"""Mistral's own package, which checks each answer against its types."""

from answer import Answer
from mistralai.client import Mistral
from openai_form import FORCED, GREEDY, GREEDY_RESPONSE, ChatForm, ResponseForm, call_of, text_of

from features import ADDRESS, ENOUGH, MODEL, SCHEMA, TEXT, Client, run

client = Mistral(api_key='none', server_url=ADDRESS)
GREEDY_CHAT = {**GREEDY, 'safe_prompt': False}


class Chat(ChatForm):
    title = 'chat'
    explained = {'tool_stream': (
        "each part of a call must have the function's name, which streams of OpenAI's form have in the first part alone",
        '它要求调用的每一部分都有函数名，而 OpenAI 形式的流只在第一部分中有')}
    forced = {**FORCED, 'tool_choice': 'any', 'parallel_tool_calls': False}
    seed_name = 'random_seed'

    def ask(self, **fields):
        return client.chat.complete(**{**GREEDY_CHAT, **fields})

    def deltas(self, **fields):
        with client.chat.stream(**{**GREEDY_CHAT, **fields}) as stream:
            return [event.data.choices[0].delta for event in stream]

    def stream(self):
        return [delta.content for delta in self.deltas() if delta.content]

    async def asynchronous(self):
        async with Mistral(api_key='none', server_url=ADDRESS) as other:
            return text_of(await other.chat.complete_async(**GREEDY_CHAT))

    def tool_stream(self):
        parts = [call.function for delta in self.deltas(**self.forced) for call in delta.tool_calls or ()]
        return ''.join(part.name for part in parts), ''.join(part.arguments for part in parts)

    def usage(self):
        usage = self.ask().usage
        return usage.prompt_tokens, usage.completion_tokens

    def models(self):
        return [model.id for model in client.models.list().data]

    def embeddings(self):
        return client.embeddings.create(model=MODEL, inputs=[TEXT])


class Parsed(Client):
    """Types of pydantic, which the package turns into strict schemas."""

    title = 'parse'

    def json_schema(self):
        return client.chat.parse(Answer, **{**GREEDY_CHAT, 'max_tokens': ENOUGH}).choices[0].message.parsed.model_dump()


class Responses(ResponseForm):
    title = 'responses'
    explained = {'json_schema': ('it does not send `text`, which has the schema', '它不发送含有 schema 的 `text`')}

    def ask(self, **fields):
        return client.responses.create(**{**GREEDY_RESPONSE, **fields})

    def text_of(self, response):
        return ''.join(part.text for item in response.output for part in item.content)

    def stream(self):
        with self.ask(stream=True) as stream:
            return [event.data.delta for event in stream if event.event == 'response.output_text.delta']

    async def asynchronous(self):
        async with Mistral(api_key='none', server_url=ADDRESS) as other:
            return self.text_of(await other.responses.create_async(**GREEDY_RESPONSE))

    def tool_stream(self):
        with self.ask(stream=True, **self.forced) as stream:
            *_, last = stream
        return call_of(last.data.response)

    def json_schema(self):
        form = {'type': 'json_schema', 'name': 'answer', 'schema': SCHEMA, 'strict': True}
        return self.text_of(self.ask(text={'format': form}, max_output_tokens=ENOUGH))


run(Chat, Parsed, Responses)
