"""Hugging Face's InferenceClient: text_generation, which has routes of its own, and chat_completion, which has OpenAI's."""

import huggingface_hub
from huggingface_hub import constants
from openai_form import GREEDY, ChatForm

from features import ADDRESS, BASE_URL, ENOUGH, PROMPT, SCHEMA, STOP, TEXT, TOKENS, Client, run

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


class Chat(ChatForm):
    title = 'chat_completion'
    client = huggingface_hub.InferenceClient(base_url=BASE_URL)

    def ask(self, **fields):
        return self.client.chat_completion(**{**GREEDY, **fields})

    async def asynchronous(self):
        async with huggingface_hub.AsyncInferenceClient(base_url=BASE_URL) as other:
            stream = await other.chat_completion(**GREEDY, stream=True)
            return ''.join([chunk.choices[0].delta.content or '' async for chunk in stream])

    def tool_stream(self):
        deltas = [chunk.choices[0].delta for chunk in self.ask(**self.forced, stream=True)]
        parts = [call.function for delta in deltas for call in delta.tool_calls or () if call.index in (0, None)]
        return ''.join(part.name or '' for part in parts), ''.join(part.arguments or '' for part in parts)


run(TextGeneration, Details, Chat)
