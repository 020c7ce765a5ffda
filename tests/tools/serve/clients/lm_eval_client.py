"""lm-evaluation-harness; test_lm_eval.py runs tasks with it, and compares sums of log-probabilities with `minimind perplexity`."""

import json

from lm_eval.api.instance import Instance
from lm_eval.models.api_models import JsonChatStr
from lm_eval.models.openai_completions import LocalChatCompletion, LocalCompletionsAPI

from features import BASE_URL, DEMO, MODEL, PROMPT, QUESTION, STOP, TOKENS, Client, run


def generated(model, prompt, **fields):
    settings = {'max_gen_toks': TOKENS, 'temperature': 0, 'until': ['\0'], **fields}
    return model.generate_until([Instance('generate_until', {}, (prompt, settings), 0)], disable_tqdm=True)[0]


class Chat(Client):
    title = 'local-chat-completions'

    def ask(self, seed=0, num_concurrent=1, **fields):
        model = LocalChatCompletion(model=MODEL, base_url=BASE_URL + '/chat/completions', tokenizer_backend=None, seed=seed,
                                    num_concurrent=num_concurrent)
        return generated(model, JsonChatStr(json.dumps(QUESTION)), **fields)

    def chat(self):
        return self.ask()

    def asynchronous(self):
        return self.ask(num_concurrent=2)

    def stop(self):
        return self.ask(until=[STOP])

    def seed(self):
        return [self.ask(seed, temperature=1) for seed in (1, 1, 2)]


class Completion(Client):
    title = 'local-completions'

    def model(self, seed=0):
        return LocalCompletionsAPI(model=MODEL, base_url=BASE_URL + '/completions', tokenizer_backend='huggingface', tokenizer=DEMO,
                                   max_length=1024, seed=seed)

    def chat(self):
        return generated(self.model(), PROMPT)

    completion = chat

    def stop(self):
        return generated(self.model(), PROMPT, until=[STOP])

    def seed(self):
        return [generated(self.model(seed), PROMPT, temperature=1) for seed in (1, 1, 2)]

    def logprobs(self):
        scored = self.model().loglikelihood([Instance('loglikelihood', {}, (PROMPT, '疑是地上霜。'), 0)], disable_tqdm=True)
        return [scored[0][0]]


run(Chat, Completion)
