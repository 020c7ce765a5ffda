"""OpenAI's own package, which checks each answer against its types, also as a client of Azure, whose paths and key differ."""

import openai
from answer import Answer, Weather
from openai_form import FORCED, GREEDY, GREEDY_RESPONSE, ChatForm, ResponseForm, call_of

from features import ADDRESS, BASE_URL, ENOUGH, MODEL, PROMPT, TEXT, TOKENS, WEATHER, Client, run

SETTINGS = {'base_url': BASE_URL, 'api_key': 'none', 'max_retries': 0}
AZURE = {'azure_endpoint': ADDRESS, 'api_version': '2025-04-01-preview', 'api_key': 'none', 'max_retries': 0}
ONE_CALL = {**FORCED, 'parallel_tool_calls': False}
STRICT_TOOLS = [{'type': 'function', 'function': {**WEATHER, 'strict': True}}]


class OfOpenAi(Client):
    client = openai.OpenAI(**SETTINGS, _strict_response_validation=True)

    def asynchronous_client(self):
        return openai.AsyncOpenAI(**SETTINGS)


class OfAzure(OfOpenAi):
    client = openai.AzureOpenAI(**AZURE, _strict_response_validation=True)

    def asynchronous_client(self):
        return openai.AsyncAzureOpenAI(**AZURE)


class Chat(OfOpenAi, ChatForm):
    title = 'chat'
    forced = ONE_CALL

    def ask(self, **fields):
        return self.client.chat.completions.create(**{**GREEDY, **fields})

    async def asynchronous(self):
        async with self.asynchronous_client() as other:
            stream = await other.chat.completions.create(**GREEDY, stream=True)
            return ''.join([chunk.choices[0].delta.content or '' async for chunk in stream])

    def tool_stream(self):
        with self.client.chat.completions.stream(**{**GREEDY, **ONE_CALL, 'tools': STRICT_TOOLS}) as stream:
            function = stream.get_final_completion().choices[0].message.tool_calls[0].function
        return function.name, function.arguments

    def completion(self):
        return self.client.completions.create(model=MODEL, prompt=PROMPT, max_tokens=TOKENS).choices[0].text

    def models(self):
        return [model.id for model in self.client.models.list()]

    def embeddings(self):
        return self.client.embeddings.create(model=MODEL, input=TEXT)


class Parsed(OfOpenAi):
    """Types of pydantic, which the package turns into strict schemas."""

    title = 'parse'

    def json_schema(self):
        answer = self.client.chat.completions.parse(**{**GREEDY, 'max_tokens': ENOUGH}, response_format=Answer)
        return answer.choices[0].message.parsed.model_dump()

    def tools(self):
        tool = openai.pydantic_function_tool(Weather, name='weather')
        answer = self.client.chat.completions.parse(**{**GREEDY, **ONE_CALL, 'tools': [tool]})
        function = answer.choices[0].message.tool_calls[0].function
        return function.name, function.parsed_arguments.model_dump()


class Responses(OfOpenAi, ResponseForm):
    title = 'responses'

    def ask(self, **fields):
        return self.client.responses.create(**{**GREEDY_RESPONSE, **fields})

    def text_of(self, response):
        return response.output_text

    def stream(self):
        return [event.delta for event in self.ask(stream=True) if event.type == 'response.output_text.delta']

    async def asynchronous(self):
        async with self.asynchronous_client() as other:
            return self.text_of(await other.responses.create(**GREEDY_RESPONSE))

    def tool_stream(self):
        *_, last = self.ask(stream=True, **self.forced)
        return call_of(last.response)

    def json_object(self):
        return self.text_of(self.ask(text={'format': {'type': 'json_object'}}, max_output_tokens=ENOUGH))

    def json_schema(self):
        response = self.client.responses.parse(**{**GREEDY_RESPONSE, 'max_output_tokens': ENOUGH}, text_format=Answer)
        return response.output_parsed.model_dump()

    def logprobs(self):
        response = self.ask(include=['message.output_text.logprobs'], top_logprobs=2)
        return [token.logprob for token in response.output[0].content[0].logprobs]


class AzureChat(OfAzure, Chat):
    title = 'AzureOpenAI, chat'


class AzureResponses(OfAzure, Responses):
    title = 'AzureOpenAI, responses'


run(Chat, Parsed, Responses, AzureChat, AzureResponses)
