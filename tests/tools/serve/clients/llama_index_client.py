"""LlamaIndex with its models for servers that have OpenAI's API, and for Ollama's."""

from typing import Literal

from answer import Answer
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.ollama import Ollama
from llama_index.llms.openai_like import OpenAILike

from features import ADDRESS, BASE_URL, CALL_AND_RESULT, ENOUGH, MODEL, PROMPT, STOP, TEXT, TOKENS, Client, run


def weather(city: Literal['北京', '上海']) -> str:
    """Weather of a city"""
    return f'{city}：晴'


TOOL = FunctionTool.from_defaults(weather)
MESSAGES = [ChatMessage(role=message['role'], content=message['content'] or '',
                        additional_kwargs={key: message[key] for key in ('tool_calls', 'tool_call_id') if key in message})
            for message in CALL_AND_RESULT]


class Model(Client):
    def model(self, tokens=TOKENS, **fields):
        raise NotImplementedError

    def chat(self):
        return self.model().complete(TEXT).text

    def stream(self):
        return [part.delta for part in self.model().stream_complete(TEXT) if part.delta]

    async def asynchronous(self):
        return (await self.model().acomplete(TEXT)).text

    def error(self):
        return self.model(temperature=-1).complete(TEXT)


class OpenAiLike(Model):
    title = 'OpenAILike'

    def model(self, tokens=TOKENS, **fields):
        return OpenAILike(**{'model': MODEL, 'api_base': BASE_URL, 'api_key': 'none', 'max_retries': 0, 'is_chat_model': True,
                             'is_function_calling_model': True, 'temperature': 0, 'max_tokens': tokens, **fields})

    def tools(self):
        model = self.model(ENOUGH)
        answer = model.chat_with_tools([TOOL], user_msg=TEXT, tool_required=True)
        call = model.get_tool_calls_from_response(answer)[0]
        return call.tool_name, call.tool_kwargs

    def tool_stream(self):
        model = self.model(ENOUGH)
        *_, last = model.stream_chat_with_tools([TOOL], user_msg=TEXT, tool_required=True)
        call = model.get_tool_calls_from_response(last)[0]
        return call.tool_name, call.tool_kwargs

    def tool_result(self):
        return self.model().chat(MESSAGES).message.content

    def json_object(self):
        return self.model(ENOUGH).complete(TEXT, response_format={'type': 'json_object'}).text

    def json_schema(self):
        model = self.model(ENOUGH, should_use_structured_outputs=True)
        return model.as_structured_llm(Answer).complete(TEXT).raw.model_dump()

    def logprobs(self):
        answer = self.model(logprobs=True, top_logprobs=2).chat(MESSAGES[:1])
        return [one.logprob for alternatives in answer.logprobs for one in alternatives]

    def stop(self):
        return self.model().complete(TEXT, stop=[STOP]).text

    def seed(self):
        return [self.model(temperature=1).complete(TEXT, seed=seed).text for seed in (1, 1, 2)]

    def usage(self):
        usage = self.model().complete(TEXT).raw.usage
        return usage.prompt_tokens, usage.completion_tokens

    def completion(self):
        return self.model(is_chat_model=False).complete(PROMPT).text


class OllamaModel(Model):
    package = 'llama-index-llms-ollama'
    title = 'Ollama'

    def model(self, tokens=TOKENS, **fields):
        temperature = fields.pop('temperature', 0)
        return Ollama(**{'model': MODEL, 'base_url': ADDRESS, 'temperature': temperature, 'context_window': 1024,
                         'additional_kwargs': {'num_predict': tokens, **fields}})

    def json_schema(self):
        return self.model(ENOUGH).as_structured_llm(Answer).complete(TEXT).raw.model_dump()

    def stop(self):
        return self.model(stop=[STOP]).complete(TEXT).text

    def seed(self):
        return [self.model(temperature=1, seed=seed).complete(TEXT).text for seed in (1, 1, 2)]

    def usage(self):
        raw = self.model().complete(TEXT).raw
        return raw['prompt_eval_count'], raw['eval_count']


run(OpenAiLike, OllamaModel)
