"""Mistral's own package, which checks each answer against its types."""

from answer import Answer
from mistralai.client import Mistral

from features import (ADDRESS, CALL, CALL_AND_RESULT, ENOUGH, MODEL, QUESTION, SCHEMA, STOP, TEXT, TOKENS, TOOLS, WEATHER, Client,
                      run)

client = Mistral(api_key='none', server_url=ADDRESS)
GREEDY = {'model': MODEL, 'messages': QUESTION, 'max_tokens': TOKENS, 'temperature': 0, 'safe_prompt': False}
FORCED = {'tools': TOOLS, 'tool_choice': 'any', 'parallel_tool_calls': False, 'max_tokens': ENOUGH}


def chat(**fields):
    return client.chat.complete(**{**GREEDY, **fields})


def deltas(**fields):
    with client.chat.stream(**{**GREEDY, **fields}) as stream:
        return [event.data.choices[0].delta for event in stream]


def text_of(answer):
    return answer.choices[0].message.content


class Chat(Client):
    title = 'chat'
    explained = {'tool_stream': (
        "each part of a call must have the function's name, which streams of OpenAI's form have in the first part alone",
        '它要求调用的每一部分都有函数名，而 OpenAI 形式的流只在第一部分中有')}

    def chat(self):
        return text_of(chat())

    def stream(self):
        return [delta.content for delta in deltas() if delta.content]

    async def asynchronous(self):
        async with Mistral(api_key='none', server_url=ADDRESS) as other:
            return text_of(await other.chat.complete_async(**GREEDY))

    def tools(self):
        function = chat(**FORCED).choices[0].message.tool_calls[0].function
        return function.name, function.arguments

    def tool_stream(self):
        parts = [call.function for delta in deltas(**FORCED) for call in delta.tool_calls or ()]
        return ''.join(part.name for part in parts), ''.join(part.arguments for part in parts)

    def tool_result(self):
        return text_of(chat(messages=CALL_AND_RESULT, tools=TOOLS))

    def json_object(self):
        return text_of(chat(response_format={'type': 'json_object'}, max_tokens=ENOUGH))

    def json_schema(self):
        form = {'type': 'json_schema', 'json_schema': {'name': 'answer', 'schema': SCHEMA, 'strict': True}}
        return text_of(chat(response_format=form, max_tokens=ENOUGH))

    def logprobs(self):
        tokens = chat(logprobs=True, top_logprobs=2).choices[0].logprobs.content
        return [one.logprob for token in tokens for one in (token, *token.top_logprobs)]

    def stop(self):
        return text_of(chat(stop=[STOP]))

    def seed(self):
        return [text_of(chat(random_seed=seed, temperature=1)) for seed in (1, 1, 2)]

    def several(self):
        return [choice.message.content for choice in chat(n=2).choices]

    def usage(self):
        usage = chat().usage
        return usage.prompt_tokens, usage.completion_tokens

    def models(self):
        return [model.id for model in client.models.list().data]

    def embeddings(self):
        return client.embeddings.create(model=MODEL, inputs=[TEXT])

    def error(self):
        return chat(temperature=-1)


class Parsed(Client):
    """Types of pydantic, which the package turns into strict schemas."""

    title = 'parse'

    def json_schema(self):
        return client.chat.parse(Answer, **{**GREEDY, 'max_tokens': ENOUGH}).choices[0].message.parsed.model_dump()


GREEDY_RESPONSE = {'model': MODEL, 'input': TEXT, 'max_output_tokens': TOKENS, 'temperature': 0}


def respond(**fields):
    return client.responses.create(**{**GREEDY_RESPONSE, **fields})


def text_of_response(response):
    return ''.join(part.text for item in response.output for part in item.content)


def call_of(response):
    return next((item.name, item.arguments) for item in response.output if item.type == 'function_call')


class Responses(Client):
    title = 'responses'
    explained = {'json_schema': ('it does not send `text`, which has the schema', '它不发送含有 schema 的 `text`')}
    forced = {'tools': [{'type': 'function', **WEATHER, 'strict': True}], 'tool_choice': 'required',
              'parallel_tool_calls': False, 'max_output_tokens': ENOUGH}

    def chat(self):
        return text_of_response(respond())

    def stream(self):
        with respond(stream=True) as stream:
            return [event.data.delta for event in stream if event.event == 'response.output_text.delta']

    async def asynchronous(self):
        async with Mistral(api_key='none', server_url=ADDRESS) as other:
            return text_of_response(await other.responses.create_async(**GREEDY_RESPONSE))

    def tools(self):
        return call_of(respond(**self.forced))

    def tool_stream(self):
        with respond(stream=True, **self.forced) as stream:
            *_, last = stream
        return call_of(last.data.response)

    def tool_result(self):
        call = CALL['tool_calls'][0]
        return text_of_response(respond(input=[
            *QUESTION, {'type': 'function_call', 'call_id': call['id'], **call['function']},
            {'type': 'function_call_output', 'call_id': call['id'], 'output': '晴'}]))

    def json_schema(self):
        form = {'type': 'json_schema', 'name': 'answer', 'schema': SCHEMA, 'strict': True}
        return text_of_response(respond(text={'format': form}, max_output_tokens=ENOUGH))

    def usage(self):
        usage = respond().usage
        return usage.input_tokens, usage.output_tokens

    def error(self):
        return respond(temperature=-1)


run(Chat, Parsed, Responses)
