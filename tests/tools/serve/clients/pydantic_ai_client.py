"""PydanticAI with either API of OpenAI, and with its model for Ollama's server, which has OpenAI's API, too."""

from answer import Answer, Weather
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider

from features import BASE_URL, ENOUGH, MODEL, STOP, TEXT, TOKENS, Client, run

PROVIDER = OpenAIProvider(base_url=BASE_URL, api_key='none')
CALL_AND_RESULT = [ModelRequest(parts=[UserPromptPart(TEXT)]),
                   ModelResponse(parts=[ToolCallPart('weather', {'city': '北京'}, 'call_1')]),
                   ModelRequest(parts=[ToolReturnPart('weather', '晴', 'call_1')])]


class Model(Client):
    model = None

    async def ask(self, prompt=TEXT, output_type=str, history=None, **settings):
        settings = {'temperature': 0, 'max_tokens': TOKENS, **settings}
        return await Agent(self.model, output_type=output_type).run(prompt, message_history=history, model_settings=settings)

    async def chat(self):
        return (await self.ask()).output

    asynchronous = chat

    async def stream(self):
        settings = {'temperature': 0, 'max_tokens': TOKENS}
        async with Agent(self.model).run_stream(TEXT, model_settings=settings) as result:
            return [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

    async def tools(self):
        result = await self.ask(output_type=ToolOutput(Weather, name='weather'), max_tokens=ENOUGH)
        return 'weather', result.output.model_dump()

    async def tool_stream(self):
        agent = Agent(self.model, output_type=ToolOutput(Weather, name='weather'))
        async with agent.run_stream(TEXT, model_settings={'temperature': 0, 'max_tokens': ENOUGH}) as result:
            return 'weather', (await result.get_output()).model_dump()

    async def tool_result(self):
        return (await self.ask(None, history=CALL_AND_RESULT)).output

    async def json_schema(self):
        return (await self.ask(output_type=NativeOutput(Answer), max_tokens=ENOUGH)).output.model_dump()

    async def usage(self):
        usage = (await self.ask()).usage
        usage = usage() if callable(usage) else usage
        return usage.input_tokens, usage.output_tokens

    async def error(self):
        return await self.ask(temperature=-1)


class Chat(Model):
    title = 'chat'
    model = OpenAIChatModel(MODEL, provider=PROVIDER)

    async def stop(self):
        return (await self.ask(stop_sequences=[STOP])).output

    async def seed(self):
        return [(await self.ask(seed=seed, temperature=1)).output for seed in (1, 1, 2)]

    async def logprobs(self):
        result = await self.ask(openai_logprobs=True, openai_top_logprobs=2)
        return [token['logprob'] for token in result.all_messages()[-1].provider_details['logprobs']]


class Responses(Model):
    title = 'responses'
    model = OpenAIResponsesModel(MODEL, provider=PROVIDER)


class Ollama(Model):
    title = 'Ollama'
    model = OllamaModel(MODEL, provider=OllamaProvider(base_url=BASE_URL, api_key='none'))


run(Chat, Responses, Ollama)
