"""llm, the program of the command line, as a library. It checks the options itself, so that the server has no error to tell."""

from answer import Answer
from llm.default_plugins.openai_models import AsyncChat, Chat

from features import BASE_URL, ENOUGH, MODEL, STOP, TEXT, TOKENS, Client, run

SETTINGS = {'model_id': 'poet', 'model_name': MODEL, 'api_base': BASE_URL, 'supports_schema': True}
GREEDY = {'key': 'none', 'temperature': 0, 'max_tokens': TOKENS}


class OpenAi(Client):
    title = 'Chat'

    def ask(self, **fields):
        return Chat(**SETTINGS).prompt(TEXT, **{**GREEDY, 'stream': False, **fields})

    def chat(self):
        return self.ask().text()

    def stream(self):
        return [piece for piece in self.ask(stream=True) if piece]

    async def asynchronous(self):
        return await AsyncChat(**SETTINGS).prompt(TEXT, **GREEDY).text()

    def json_object(self):
        return self.ask(json_object=True, max_tokens=ENOUGH).text()

    def json_schema(self):
        return self.ask(schema=Answer, max_tokens=ENOUGH).text()

    def stop(self):
        return self.ask(stop=STOP).text()

    def seed(self):
        return [self.ask(seed=seed, temperature=1).text() for seed in (1, 1, 2)]

    def usage(self):
        answer = self.ask()
        answer.text()
        usage = answer.usage()
        return usage.input, usage.output


run(OpenAi)
