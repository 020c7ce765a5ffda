"""aider, which uses LiteLLM: a question in its ask mode, and a text of its model alone."""

import os
import tempfile

from features import BASE_URL, MODEL, TEXT, TOKENS, Client, run

os.environ.update({'OPENAI_API_BASE': BASE_URL, 'OPENAI_API_KEY': 'none', 'AIDER_ANALYTICS': 'false'})
os.chdir(tempfile.mkdtemp())

from aider.coders import Coder  # noqa: E402
from aider.io import InputOutput  # noqa: E402
from aider.models import Model  # noqa: E402


def model():
    made = Model(f'openai/{MODEL}')
    made.extra_params = {'max_tokens': TOKENS}
    return made


class Ask(Client):
    title = 'ask'

    def coder(self, stream):
        return Coder.create(main_model=model(), edit_format='ask', io=InputOutput(yes=True, pretty=False), stream=stream,
                            use_git=False, map_tokens=0, suggest_shell_commands=False)

    def chat(self):
        return self.coder(False).run(with_message=TEXT)

    def stream(self):
        return list(self.coder(True).run_stream(TEXT))

    def usage(self):
        coder = self.coder(False)
        coder.run(with_message=TEXT)
        return coder.total_tokens_sent, coder.total_tokens_received


class Text(Client):
    title = 'Model'

    def chat(self):
        return model().simple_send_with_retries([{'role': 'user', 'content': TEXT}])


run(Ask, Text)
