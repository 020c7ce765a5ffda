"""Tests `minimind serve` with Ollama's own client."""

import json
import unittest

import ollama

from test_openai import QUESTION, Server

MODEL = 'minimind-poet'
OPTIONS = {'num_predict': 20, 'seed': 3}


class OllamaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)
        cls.client = ollama.Client(host=cls.server.address)

    def rejected(self, **fields):
        with self.assertRaises(ollama.ResponseError) as caught:
            self.client.generate(**{'model': MODEL, 'prompt': '江上', **fields})
        return caught.exception

    def test_lists_the_model(self):
        models = self.client.list().models
        self.assertEqual([model.model for model in models], [MODEL])
        self.assertEqual(len(models[0].digest), 64)

    def test_shows_the_model(self):
        shown = self.client.show(MODEL)
        self.assertEqual(shown.modelinfo['general.architecture'], 'minimind')
        self.assertIn('completion', shown.capabilities)
        self.assertEqual(shown.details.families, ['minimind'])
        running = self.client.ps().models[0]
        self.assertEqual((running.model, running.context_length), (MODEL, shown.modelinfo['minimind.context_length']))

    def test_gives_log_probabilities(self):
        answer = self.client.generate(model=MODEL, prompt='江上', logprobs=True, top_logprobs=2, options=OPTIONS)
        self.assertEqual(''.join(token.token for token in answer.logprobs), answer.response)
        self.assertEqual({len(token.top_logprobs) for token in answer.logprobs}, {2})

    def test_streams_what_it_answers_whole(self):
        whole = self.client.chat(model=MODEL, messages=QUESTION, options=OPTIONS)
        parts = list(self.client.chat(model=MODEL + ':latest', messages=QUESTION, options=OPTIONS, stream=True))
        self.assertEqual(''.join(part.message.content for part in parts), whole.message.content)
        self.assertEqual([part.done for part in parts], [False] * (len(parts) - 1) + [True])
        for end in (whole, parts[-1]):
            self.assertEqual((end.done_reason, end.eval_count), ('length', 20))

    def test_generates_from_a_raw_prompt_what_the_template_makes(self):
        raw = '<|im_start|>user\n江上<|im_end|>\n<|im_start|>assistant\n'
        chatted = self.client.generate(model=MODEL, prompt='江上', options=OPTIONS).response
        self.assertEqual(self.client.generate(model=MODEL, prompt=raw, raw=True, options=OPTIONS).response, chatted)

    def test_keeps_to_a_format(self):
        schema = {'type': 'object', 'properties': {'lines': {'type': 'integer'}}, 'required': ['lines']}
        for form in ('json', schema):
            answer = self.client.chat(model=MODEL, messages=QUESTION, format=form, options={'num_predict': 60})
            value = json.loads(answer.message.content)
            self.assertIsInstance(value, dict)
            if form == schema:
                self.assertIsInstance(value['lines'], int)

    def test_takes_calls_and_their_results(self):
        call = {'function': {'name': 'weather', 'arguments': {'city': '北京'}}}
        messages = [*QUESTION, {'role': 'assistant', 'content': '', 'tool_calls': [call]},
                    {'role': 'tool', 'tool_name': 'weather', 'content': '晴'}]
        tool = {'type': 'function', 'function': {'name': 'weather', 'parameters': {'type': 'object', 'properties': {}}}}
        self.assertTrue(self.client.chat(model=MODEL, messages=messages, tools=[tool], options=OPTIONS).done)

    def test_an_empty_prompt_loads_the_model(self):
        self.assertEqual(self.client.generate(model=MODEL, prompt='', keep_alive='5m').done_reason, 'load')

    def test_a_smaller_context_ends_the_text(self):
        answer = self.client.generate(model=MODEL, prompt='江上', options={'num_predict': -1, 'num_ctx': 20, 'seed': 3})
        self.assertEqual((answer.done_reason, answer.prompt_eval_count + answer.eval_count), ('length', 20))

    def test_names_what_it_does_not_support(self):
        for fields, name in (({'suffix': 'x'}, 'suffix'), ({'template': 'x'}, 'template'), ({'images': ['aGk=']}, 'images'),
                             ({'options': {'mirostat': 1}}, 'options.mirostat'), ({'options': {'heat': 1}}, 'heat'),
                             ({'think': 'x'}, 'think'),
                             ({'options': {'repeat_last_n': -2}}, 'options.repeat_last_n')):
            error = self.rejected(**fields)
            self.assertEqual(error.status_code, 400)
            self.assertIn(name, error.error)


if __name__ == '__main__':
    unittest.main()
