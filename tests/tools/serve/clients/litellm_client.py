"""LiteLLM with each of its providers that speaks an API of the server."""

import litellm
from answer import Answer
from openai_form import text_of

from features import (ADDRESS, BASE_URL, CALL_AND_RESULT, ENOUGH, MODEL, PROMPT, QUESTION, STOP, TEXT, TOKENS, TOOLS, Client, run)

litellm.telemetry = False
litellm.suppress_debug_info = True


class Provider(Client):
    base_url = BASE_URL

    def fields(self, **others):
        return {'model': f'{self.title}/{MODEL}', 'messages': QUESTION, 'api_base': self.base_url, 'api_key': 'none',
                'temperature': 0, 'max_tokens': TOKENS, 'num_retries': 0, **others}

    def ask(self, **others):
        return litellm.completion(**self.fields(**others))

    def chat(self):
        return text_of(self.ask())

    def stream(self):
        return [chunk.choices[0].delta.content for chunk in self.ask(stream=True) if chunk.choices[0].delta.content]

    async def asynchronous(self):
        return text_of(await litellm.acompletion(**self.fields()))

    def stop(self):
        return text_of(self.ask(stop=[STOP]))

    def seed(self):
        return [text_of(self.ask(seed=seed, temperature=1)) for seed in (1, 1, 2)]

    def usage(self):
        usage = self.ask().usage
        return usage.prompt_tokens, usage.completion_tokens

    def error(self):
        return self.ask(temperature=-1)


class Chat(Provider):
    """What providers of chats have more than others."""

    def tool_result(self):
        return text_of(self.ask(messages=CALL_AND_RESULT, tools=TOOLS))

    def json_object(self):
        return text_of(self.ask(response_format={'type': 'json_object'}, max_tokens=ENOUGH))

    def json_schema(self):
        return text_of(self.ask(response_format=Answer, max_tokens=ENOUGH))


class OpenAi(Chat):
    title = 'openai'

    def ask_for_a_call(self, **others):
        return self.ask(tools=TOOLS, tool_choice='required', parallel_tool_calls=False, max_tokens=ENOUGH, **others)

    def tools(self):
        call = self.ask_for_a_call().choices[0].message.tool_calls[0]
        return call.function.name, call.function.arguments

    def tool_stream(self):
        call = litellm.stream_chunk_builder(list(self.ask_for_a_call(stream=True))).choices[0].message.tool_calls[0]
        return call.function.name, call.function.arguments

    def logprobs(self):
        tokens = self.ask(logprobs=True, top_logprobs=2).choices[0].logprobs.content
        return [token.logprob for token in tokens]

    def several(self):
        return [choice.message.content for choice in self.ask(n=2).choices]

    def embeddings(self):
        return litellm.embedding(model=f'{self.title}/{MODEL}', input=[TEXT], api_base=self.base_url, api_key='none')


class HostedVllm(OpenAi):
    title = 'hosted_vllm'


class Ollama(Chat):
    title = 'ollama'
    base_url = ADDRESS


class OllamaChat(Chat):
    title = 'ollama_chat'
    base_url = ADDRESS


class TextCompletion(Provider):
    title = 'text-completion-openai'

    def completion(self):
        answer = litellm.text_completion(model=f'{self.title}/{MODEL}', prompt=PROMPT, api_base=self.base_url, api_key='none',
                                         max_tokens=TOKENS)
        return answer.choices[0].text

    def several(self):
        return [choice.message.content for choice in self.ask(n=2).choices]


run(OpenAi, HostedVllm, Ollama, OllamaChat, TextCompletion)
