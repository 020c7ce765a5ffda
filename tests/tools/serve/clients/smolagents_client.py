"""smolagents: its model for OpenAI's API, and an agent that calls tools."""

from typing import Literal

import smolagents
from smolagents.models import agglomerate_stream_deltas

from features import BASE_URL, ENOUGH, MODEL, QUESTION, SCHEMA, STOP, TEXT, TOKENS, Client, run


@smolagents.tool
def weather(city: Literal['北京', '上海']) -> str:
    """Weather of a city

    Args:
        city: the city
    """
    return f'{city}：晴'


def model(tokens=TOKENS, **fields):
    return smolagents.OpenAIModel(model_id=MODEL, api_base=BASE_URL, api_key='none', max_tokens=tokens, retry=False,
                                  client_kwargs={'max_retries': 0}, **{'temperature': 0, **fields})


class Model(Client):
    title = 'OpenAIModel'

    def chat(self):
        return model().generate(QUESTION).content

    def stream(self):
        return [delta.content for delta in model().generate_stream(QUESTION) if delta.content]

    def tools(self):
        function = model(ENOUGH, parallel_tool_calls=False).generate(QUESTION, tools_to_call_from=[weather]).tool_calls[0].function
        return function.name, function.arguments

    def tool_stream(self):
        deltas = list(model(ENOUGH, parallel_tool_calls=False).generate_stream(QUESTION, tools_to_call_from=[weather]))
        function = agglomerate_stream_deltas(deltas).tool_calls[0].function
        return function.name, function.arguments

    def json_object(self):
        return model(ENOUGH).generate(QUESTION, response_format={'type': 'json_object'}).content

    def json_schema(self):
        form = {'type': 'json_schema', 'json_schema': {'name': 'answer', 'schema': SCHEMA, 'strict': True}}
        return model(ENOUGH).generate(QUESTION, response_format=form).content

    def stop(self):
        return model().generate(QUESTION, stop_sequences=[STOP]).content

    def seed(self):
        return [model(seed=seed, temperature=1).generate(QUESTION).content for seed in (1, 1, 2)]

    def logprobs(self):
        answer = model(logprobs=True).generate(QUESTION)
        return [token.logprob for token in answer.raw.choices[0].logprobs.content]

    def usage(self):
        usage = model().generate(QUESTION).token_usage
        return usage.input_tokens, usage.output_tokens

    def error(self):
        return model(temperature=-1).generate(QUESTION)


class Agent(Client):
    """Each step is a required call; after the last, the model answers without one."""

    title = 'ToolCallingAgent'

    def tool_result(self):
        agent = smolagents.ToolCallingAgent(tools=[weather], model=model(ENOUGH), max_steps=2, verbosity_level=0)
        return str(agent.run(TEXT))


run(Model, Agent)
