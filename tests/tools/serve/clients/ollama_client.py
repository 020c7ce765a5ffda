"""Ollama's own package. Its API has no choice of tools, so that no call can be required of a model that writes poems."""

import json

import ollama

from features import ADDRESS, CALL_AND_RESULT, ENOUGH, MODEL, PROMPT, QUESTION, SCHEMA, STOP, TEXT, TOKENS, TOOLS, Client, run

client = ollama.Client(host=ADDRESS)


def options(**others):
    return {'temperature': 0, 'num_predict': TOKENS, **others}


def chat(stream=False, messages=QUESTION, tools=None, form=None, **others):
    return client.chat(model=MODEL, messages=messages, stream=stream, tools=tools, format=form, options=options(**others))


def with_arguments_as_objects(messages):
    """Ollama's calls have no id, and their arguments are no text."""
    question, call, result = messages
    function = call['tool_calls'][0]['function']
    arguments = json.loads(function['arguments'])
    return [question, {'role': 'assistant', 'content': '', 'tool_calls': [{'function': {**function, 'arguments': arguments}}]},
            {'role': 'tool', 'tool_name': 'weather', 'content': result['content']}]


class Chat(Client):
    title = 'chat'

    def chat(self):
        return chat().message.content

    def stream(self):
        return [part.message.content for part in chat(stream=True) if part.message.content]

    async def asynchronous(self):
        answer = await ollama.AsyncClient(host=ADDRESS).chat(model=MODEL, messages=QUESTION, options=options())
        return answer.message.content

    def tool_result(self):
        return chat(messages=with_arguments_as_objects(CALL_AND_RESULT), tools=TOOLS).message.content

    def json_object(self):
        return chat(form='json', num_predict=ENOUGH).message.content

    def json_schema(self):
        return chat(form=SCHEMA, num_predict=ENOUGH).message.content

    def logprobs(self):
        answer = client.chat(model=MODEL, messages=QUESTION, logprobs=True, top_logprobs=2, options=options())
        return [token.logprob for token in answer.logprobs]

    def stop(self):
        return chat(stop=[STOP]).message.content

    def seed(self):
        return [chat(seed=seed, temperature=1).message.content for seed in (1, 1, 2)]

    def usage(self):
        answer = chat()
        return answer.prompt_eval_count, answer.eval_count

    def models(self):
        return [model.model for model in client.list().models]

    def embeddings(self):
        return client.embed(model=MODEL, input=TEXT)

    def error(self):
        return chat(temperature=-1)


def generate(**others):
    return client.generate(model=MODEL, prompt=TEXT, options=options(**others))


class Generate(Client):
    title = 'generate'

    def chat(self):
        return generate().response

    def stream(self):
        parts = client.generate(model=MODEL, prompt=TEXT, options=options(), stream=True)
        return [part.response for part in parts if part.response]

    async def asynchronous(self):
        return (await ollama.AsyncClient(host=ADDRESS).generate(model=MODEL, prompt=TEXT, options=options())).response

    def json_schema(self):
        return client.generate(model=MODEL, prompt=TEXT, format=SCHEMA, options=options(num_predict=ENOUGH)).response

    def stop(self):
        return generate(stop=[STOP]).response

    def seed(self):
        return [generate(seed=seed, temperature=1).response for seed in (1, 1, 2)]

    def completion(self):
        return client.generate(model=MODEL, prompt=PROMPT, raw=True, options=options()).response

    def error(self):
        return generate(temperature=-1)


run(Chat, Generate)
