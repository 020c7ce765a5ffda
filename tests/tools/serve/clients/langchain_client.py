"""LangChain's packages for OpenAI's APIs and for Ollama's."""

import functools
import operator

from answer import Answer
from langchain_core.messages import HumanMessage
from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings

from features import ADDRESS, BASE_URL, CALL_AND_RESULT, ENOUGH, MODEL, PROMPT, STOP, TEXT, TOKENS, TOOLS, Client, run

OPENAI = {'model': MODEL, 'base_url': BASE_URL, 'api_key': 'none', 'max_retries': 0}


class Chat(Client):
    def model(self, tokens=TOKENS, **fields):
        raise NotImplementedError

    def chat(self):
        return self.model().invoke(TEXT).text

    def stream(self):
        return [chunk.text for chunk in self.model().stream(TEXT) if chunk.text]

    async def asynchronous(self):
        return (await self.model().ainvoke(TEXT)).text

    def tool_result(self):
        messages = [{**message, 'content': message['content'] or ''} for message in CALL_AND_RESULT]
        return self.model().bind_tools(TOOLS).invoke(messages).text

    def json_schema(self):
        return self.model(ENOUGH).with_structured_output(Answer, method='json_schema').invoke(TEXT).model_dump()

    def usage(self):
        usage = self.model().invoke(TEXT).usage_metadata
        return usage['input_tokens'], usage['output_tokens']

    def error(self):
        return self.model(temperature=-1).invoke(TEXT)


class OpenAiChat(Chat):
    title = 'ChatOpenAI'

    def model(self, tokens=TOKENS, **fields):
        return ChatOpenAI(**{**OPENAI, 'max_tokens': tokens, 'temperature': 0, **fields})

    def with_tools(self):
        return self.model(ENOUGH).bind_tools(TOOLS, tool_choice='any', parallel_tool_calls=False)

    def tools(self):
        call = self.with_tools().invoke(TEXT).tool_calls[0]
        return call['name'], call['args']

    def tool_stream(self):
        call = functools.reduce(operator.add, self.with_tools().stream(TEXT)).tool_calls[0]
        return call['name'], call['args']

    def json_object(self):
        return self.model(ENOUGH).bind(response_format={'type': 'json_object'}).invoke(TEXT).text

    def logprobs(self):
        answer = self.model(logprobs=True, top_logprobs=2).invoke(TEXT)
        return [token['logprob'] for token in answer.response_metadata['logprobs']['content']]

    def stop(self):
        return self.model().invoke(TEXT, stop=[STOP]).text

    def seed(self):
        return [self.model(seed=seed, temperature=1).invoke(TEXT).text for seed in (1, 1, 2)]

    def several(self):
        return [one.text for one in self.model(n=2).generate([[HumanMessage(TEXT)]]).generations[0]]

    def embeddings(self):
        return OpenAIEmbeddings(**OPENAI, check_embedding_ctx_length=False).embed_query(TEXT)


class Responses(Chat):
    title = 'ChatOpenAI, responses'
    model = functools.partialmethod(OpenAiChat.model, use_responses_api=True)
    with_tools, tools, tool_stream = OpenAiChat.with_tools, OpenAiChat.tools, OpenAiChat.tool_stream


class Completion(Client):
    title = 'OpenAI'

    def model(self, **fields):
        return OpenAI(**{**OPENAI, 'max_tokens': TOKENS, 'temperature': 0, **fields})

    def chat(self):
        return self.model().invoke(PROMPT)

    completion = chat

    def stream(self):
        return [piece for piece in self.model().stream(PROMPT) if piece]

    async def asynchronous(self):
        return await self.model().ainvoke(PROMPT)

    def stop(self):
        return self.model().invoke(PROMPT, stop=[STOP])

    def seed(self):
        return [self.model(seed=seed, temperature=1).invoke(PROMPT) for seed in (1, 1, 2)]

    def several(self):
        return [one.text for one in self.model(n=2, best_of=2).generate([PROMPT]).generations[0]]

    def error(self):
        return self.model(temperature=-1).invoke(PROMPT)


class OllamaChat(Chat):
    package = 'langchain-ollama'
    title = 'ChatOllama'

    def model(self, tokens=TOKENS, **fields):
        return ChatOllama(**{'model': MODEL, 'base_url': ADDRESS, 'num_predict': tokens, 'temperature': 0, **fields})

    def json_object(self):
        return self.model(ENOUGH, format='json').invoke(TEXT).text

    def stop(self):
        return self.model(stop=[STOP]).invoke(TEXT).text

    def seed(self):
        return [self.model(seed=seed, temperature=1).invoke(TEXT).text for seed in (1, 1, 2)]

    def embeddings(self):
        return OllamaEmbeddings(model=MODEL, base_url=ADDRESS).embed_query(TEXT)


class OllamaText(Client):
    package = 'langchain-ollama'
    title = 'OllamaLLM'

    def model(self, **fields):
        return OllamaLLM(**{'model': MODEL, 'base_url': ADDRESS, 'num_predict': TOKENS, 'temperature': 0, **fields})

    def chat(self):
        return self.model().invoke(TEXT)

    def stream(self):
        return [piece for piece in self.model().stream(TEXT) if piece]

    async def asynchronous(self):
        return await self.model().ainvoke(TEXT)

    def stop(self):
        return self.model(stop=[STOP]).invoke(TEXT)

    def seed(self):
        return [self.model(seed=seed, temperature=1).invoke(TEXT) for seed in (1, 1, 2)]

    def error(self):
        return self.model(temperature=-1).invoke(TEXT)


run(OpenAiChat, Responses, Completion, OllamaChat, OllamaText)
