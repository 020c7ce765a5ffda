"""guidance with its model for OpenAI's API, which constrains texts by schemas, and has neither seeds nor stops."""

import guidance
from answer import Answer

from features import BASE_URL, ENOUGH, MODEL, TEXT, TOKENS, Client, run


def asked():
    model = guidance.models.OpenAI(MODEL, base_url=BASE_URL, api_key='none', echo=False, max_retries=0)
    with guidance.user():
        return model + TEXT


class Chat(Client):
    title = 'OpenAI'

    def ask(self, part):
        model = asked()
        with guidance.assistant():
            return (model + part)['answer']

    def text(self, **fields):
        return guidance.gen('answer', **{'max_tokens': TOKENS, 'temperature': 0, **fields})

    def chat(self):
        return self.ask(self.text())

    def json_schema(self):
        return self.ask(guidance.json('answer', schema=Answer, max_tokens=ENOUGH))

    def error(self):
        return self.ask(self.text(temperature=-1))


run(Chat)
