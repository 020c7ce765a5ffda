"""Hugging Face's InferenceClient: text_generation, which has routes of its own, and chat_completion, which has OpenAI's."""

import huggingface_hub
from huggingface_hub import constants

from features import (ADDRESS, BASE_URL, CALL_AND_RESULT, ENOUGH, MODEL, PROMPT, QUESTION, SCHEMA, STOP, TEXT, TOKENS, TOOLS, Client,
                      run)

# Offline, the package asks no server at all.
constants.HF_HUB_OFFLINE = False

client = huggingface_hub.InferenceClient(ADDRESS)


def generate(prompt=TEXT, **parameters):
    return client.text_generation(prompt, **{'max_new_tokens': TOKENS, **parameters})


class TextGeneration(Client):
    """Without a step of sampling, a text has the top-1 tokens."""

    title = 'text_generation'

    def chat(self):
        return generate()

    def stream(self):
        return [piece for piece in generate(stream=True) if piece]

    async def asynchronous(self):
        async with huggingface_hub.AsyncInferenceClient(ADDRESS) as other:
            stream = await other.text_generation(TEXT, max_new_tokens=TOKENS, stream=True)
            return ''.join([piece async for piece in stream])

    def json_schema(self):
        return generate(grammar={'type': 'json', 'value': SCHEMA}, max_new_tokens=ENOUGH)

    def stop(self):
        return generate(stop=[STOP])

    def seed(self):
        return [generate(do_sample=True, seed=seed) for seed in (1, 1, 2)]

    def completion(self):
        return generate(PROMPT)

    def error(self):
        return generate(temperature=-1)


class Details(Client):
    """With the tokens of a text, and how many there are."""

    title = 'text_generation, details'

    def chat(self):
        return generate(details=True).generated_text

    def stream(self):
        *events, last = generate(details=True, stream=True)
        pieces = [event.token.text for event in (*events, last) if event.token.text]
        assert ''.join(pieces) == last.generated_text, f'the pieces are {pieces!r}, the text {last.generated_text!r}'
        return pieces

    def logprobs(self):
        details = generate(details=True, top_n_tokens=2).details
        # The package leaves the lists of top tokens as they come.
        return [token.logprob for token in details.tokens] + [token['logprob'] for top in details.top_tokens for token in top]

    def stop(self):
        answer = generate(details=True, stop=[STOP])
        assert answer.details.finish_reason == 'stop_sequence', f'the text ended by {answer.details.finish_reason}'
        return answer.generated_text

    def usage(self):
        details = generate(details=True, decoder_input_details=True).details
        return len(details.prefill), details.generated_tokens


GREEDY = {'model': MODEL, 'max_tokens': TOKENS, 'temperature': 0}
FORCED = {'tools': TOOLS, 'tool_choice': 'required', 'max_tokens': ENOUGH}
chat_client = huggingface_hub.InferenceClient(base_url=BASE_URL)


def chat(messages=QUESTION, **fields):
    return chat_client.chat_completion(messages, **{**GREEDY, **fields})


def text_of(answer):
    return answer.choices[0].message.content


class Chat(Client):
    title = 'chat_completion'

    def chat(self):
        return text_of(chat())

    def stream(self):
        return [chunk.choices[0].delta.content for chunk in chat(stream=True) if chunk.choices[0].delta.content]

    async def asynchronous(self):
        async with huggingface_hub.AsyncInferenceClient(base_url=BASE_URL) as other:
            stream = await other.chat_completion(QUESTION, **GREEDY, stream=True)
            return ''.join([chunk.choices[0].delta.content or '' async for chunk in stream])

    def tools(self):
        function = chat(**FORCED).choices[0].message.tool_calls[0].function
        return function.name, function.arguments

    def tool_stream(self):
        deltas = [chunk.choices[0].delta for chunk in chat(**FORCED, stream=True)]
        parts = [call.function for delta in deltas for call in delta.tool_calls or () if call.index in (0, None)]
        return ''.join(part.name or '' for part in parts), ''.join(part.arguments or '' for part in parts)

    def tool_result(self):
        return text_of(chat(CALL_AND_RESULT, tools=TOOLS))

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
        return [text_of(chat(seed=seed, temperature=1)) for seed in (1, 1, 2)]

    def several(self):
        return [choice.message.content for choice in chat(n=2).choices]

    def usage(self):
        *_, last = chat(stream=True, stream_options={'include_usage': True})
        return last.usage.prompt_tokens, last.usage.completion_tokens

    def error(self):
        return chat(temperature=-1)


run(TextGeneration, Details, Chat)
