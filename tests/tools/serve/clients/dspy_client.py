"""DSPy, whose language model uses LiteLLM. Its adapter asks for a schema if LiteLLM's list says that the model takes one."""

import dspy
import litellm
from answer import Answer

from features import BASE_URL, ENOUGH, MODEL, PROMPT, STOP, TEXT, TOKENS, Client, run

NAME = f'openai/{MODEL}'
litellm.register_model({NAME: {'litellm_provider': 'openai', 'mode': 'chat', 'max_tokens': 1024, 'supports_response_schema': True}})


def model(**fields):
    return dspy.LM(NAME, **{'api_base': BASE_URL, 'api_key': 'none', 'cache': False, 'num_retries': 0, 'temperature': 0,
                            'max_tokens': TOKENS, **fields})


class Question(dspy.Signature):
    question: str = dspy.InputField()
    answer: Answer = dspy.OutputField()


class Lm(Client):
    title = 'LM'

    def chat(self):
        return model()(TEXT)[0]

    async def asynchronous(self):
        return (await model().acall(TEXT))[0]

    def json_object(self):
        return model(max_tokens=ENOUGH)(TEXT, response_format={'type': 'json_object'})[0]

    def logprobs(self):
        answer = model()(TEXT, logprobs=True, top_logprobs=2)[0]
        return [token.logprob for token in answer['logprobs'].content]

    def stop(self):
        return model()(TEXT, stop=[STOP])[0]

    def seed(self):
        return [model(temperature=1)(TEXT, seed=seed)[0] for seed in (1, 1, 2)]

    def several(self):
        return model()(TEXT, n=2)

    def usage(self):
        asked = model()
        asked(TEXT)
        usage = asked.history[-1]['usage']
        return usage['prompt_tokens'], usage['completion_tokens']

    def completion(self):
        return dspy.LM(f'text-completion-openai/{MODEL}', model_type='text', api_base=BASE_URL, api_key='none', cache=False,
                       max_tokens=TOKENS)(PROMPT)[0]

    def error(self):
        return model(temperature=-1)(TEXT)


class Predict(Client):
    title = 'Predict, JSONAdapter'

    def json_schema(self):
        with dspy.context(lm=model(max_tokens=ENOUGH, engine='litellm'), adapter=dspy.JSONAdapter()):
            return dspy.Predict(Question)(question=TEXT).answer.model_dump()


run(Lm, Predict)
