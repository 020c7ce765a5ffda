"""OpenAI's package for agents, whose runner executes the functions, with either API."""

from typing import Literal

import agents
import openai
from answer import Answer

from features import BASE_URL, ENOUGH, MODEL, TEXT, TOKENS, Client, run

agents.set_tracing_disabled(True)
client = openai.AsyncOpenAI(base_url=BASE_URL, api_key='none', max_retries=0)


def agent(model, **others):
    settings = {'temperature': 0, 'max_tokens': TOKENS, **others.pop('settings', {})}
    return agents.Agent(name='poet', model=model, model_settings=agents.ModelSettings(**settings), **others)


class Agent(Client):
    model = None

    async def text(self, **settings):
        return (await agents.Runner.run(agent(self.model, settings=settings), TEXT)).final_output

    async def chat(self):
        return await self.text()

    asynchronous = chat

    async def stream(self):
        result = agents.Runner.run_streamed(agent(self.model), TEXT)
        return [event.data.delta async for event in result.stream_events()
                if event.type == 'raw_response_event' and event.data.type == 'response.output_text.delta']

    async def called(self, run_agent):
        """What the function was called with; the model answers its result."""
        calls = []

        @agents.function_tool
        def weather(city: Literal['北京', '上海']) -> str:
            """Weather of a city"""
            calls.append(('weather', {'city': city}))
            return '晴'

        settings = {'tool_choice': 'required', 'parallel_tool_calls': False, 'max_tokens': ENOUGH}
        text = await run_agent(agent(self.model, tools=[weather], settings=settings))
        return calls[0], text

    async def once(self, one):
        return (await agents.Runner.run(one, TEXT)).final_output

    async def streamed(self, one):
        result = agents.Runner.run_streamed(one, TEXT)
        async for _ in result.stream_events():
            pass
        return result.final_output

    async def tools(self):
        return (await self.called(self.once))[0]

    async def tool_stream(self):
        return (await self.called(self.streamed))[0]

    async def tool_result(self):
        return (await self.called(self.once))[1]

    async def json_schema(self):
        one = agent(self.model, output_type=Answer, settings={'max_tokens': ENOUGH})
        return (await agents.Runner.run(one, TEXT)).final_output.model_dump()

    async def usage(self):
        usage = (await agents.Runner.run(agent(self.model), TEXT)).context_wrapper.usage
        return usage.input_tokens, usage.output_tokens

    async def error(self):
        return await self.text(temperature=-1)


class Chat(Agent):
    title = 'chat'
    model = agents.OpenAIChatCompletionsModel(MODEL, client)


class Responses(Agent):
    title = 'responses'
    model = agents.OpenAIResponsesModel(MODEL, client)


run(Chat, Responses)
