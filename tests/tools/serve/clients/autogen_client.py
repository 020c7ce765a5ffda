"""AutoGen: its client for OpenAI's API, and an agent that uses it."""

from typing import Literal

from answer import Answer
from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import AssistantMessage, FunctionExecutionResult, FunctionExecutionResultMessage, UserMessage
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

from features import BASE_URL, ENOUGH, MODEL, STOP, TEXT, TOKENS, Client, run

INFO = {'vision': False, 'function_calling': True, 'json_output': True, 'structured_output': True, 'family': 'unknown'}
ASKED = [UserMessage(content=TEXT, source='user')]
CALL = FunctionCall(id='call_1', name='weather', arguments='{"city": "北京"}')
RESULT = FunctionExecutionResult(content='晴', name='weather', call_id='call_1', is_error=False)
CALL_AND_RESULT = [*ASKED, AssistantMessage(content=[CALL], source='poet'), FunctionExecutionResultMessage(content=[RESULT])]


def client(tokens=TOKENS, **fields):
    return OpenAIChatCompletionClient(**{'model': MODEL, 'base_url': BASE_URL, 'api_key': 'none', 'model_info': INFO,
                                         'max_retries': 0, 'max_tokens': tokens, 'temperature': 0, **fields})


async def weather(city: Literal['北京', '上海']) -> str:
    return f'{city}：晴'


TOOL = FunctionTool(weather, description='Weather of a city')


class ChatCompletion(Client):
    title = 'OpenAIChatCompletionClient'

    async def chat(self):
        return (await client().create(ASKED)).content

    asynchronous = chat

    async def stream(self):
        return [piece async for piece in client().create_stream(ASKED) if isinstance(piece, str)]

    async def tools(self):
        call = (await client(ENOUGH).create(ASKED, tools=[TOOL], tool_choice='required')).content[0]
        return call.name, call.arguments

    async def tool_stream(self):
        *_, last = [piece async for piece in client(ENOUGH).create_stream(ASKED, tools=[TOOL], tool_choice='required')]
        return last.content[0].name, last.content[0].arguments

    async def tool_result(self):
        return (await client().create(CALL_AND_RESULT, tools=[TOOL])).content

    async def json_object(self):
        return (await client(ENOUGH).create(ASKED, json_output=True)).content

    async def json_schema(self):
        return (await client(ENOUGH).create(ASKED, json_output=Answer)).content

    async def logprobs(self):
        answer = await client().create(ASKED, extra_create_args={'logprobs': True, 'top_logprobs': 2})
        return [token.logprob for token in answer.logprobs]

    async def stop(self):
        return (await client(stop=[STOP]).create(ASKED)).content

    async def seed(self):
        return [(await client(seed=seed, temperature=1).create(ASKED)).content for seed in (1, 1, 2)]

    async def usage(self):
        usage = (await client().create(ASKED)).usage
        return usage.prompt_tokens, usage.completion_tokens

    async def error(self):
        return await client(temperature=-1).create(ASKED)


class Agent(Client):
    package = 'autogen-agentchat'
    title = 'AssistantAgent'

    def agent(self, **fields):
        return AssistantAgent('poet', client(), **fields)

    async def chat(self):
        return (await self.agent().run(task=TEXT)).messages[-1].content

    asynchronous = chat

    async def stream(self):
        events = self.agent(model_client_stream=True).run_stream(task=TEXT)
        return [event.content async for event in events if getattr(event, 'type', '') == 'ModelClientStreamingChunkEvent']

    async def json_schema(self):
        answer = await AssistantAgent('poet', client(ENOUGH), output_content_type=Answer).run(task=TEXT)
        return answer.messages[-1].content.model_dump()


run(ChatCompletion, Agent)
