"""Tests `minimind serve` with OpenAI's own client, which checks every answer against its types."""

import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import openai

ROOT = pathlib.Path(__file__).resolve().parents[4]
PROGRAM = os.environ.get('MINIMIND_PROGRAM', str(ROOT / 'minimind'))
DEMO = str(ROOT / 'weights' / 'demo' / 'model.pth')
QUESTION = [{'role': 'user', 'content': '写一首五言绝句，题目：江上'}]
PROMPT = '床前明月光，'
TOOLS = [{'type': 'function', 'function': {
    'name': 'weather', 'description': 'Weather of a city',
    'parameters': {'type': 'object', 'properties': {'city': {'type': 'string', 'enum': ['北京', '上海']}},
                   'required': ['city'], 'additionalProperties': False}}}]


def fetch(url, body=None):
    """The text at the URL, or the answer to the body as JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {'Content-Type': 'application/json'} if data else {})
    with urllib.request.urlopen(request) as answer:
        return answer.read().decode()


class Server:
    """A running server; `address` is where it is."""

    def __init__(self, *options, model=DEMO):
        self.process = subprocess.Popen([PROGRAM, 'serve', '-m', model, '--port', '0', *options],
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, 'LC_ALL': 'C.UTF-8'})
        self.address = None
        for line in self.process.stderr:
            found = re.search(r'http://\S+', line)
            if found:
                self.address = found.group()
                break
        # The access log, so that the pipe never fills.
        self.log = concurrent.futures.ThreadPoolExecutor(1).submit(self.process.stderr.read)

    def client(self, strict=True):
        return openai.OpenAI(base_url=self.address + '/v1', api_key='none', max_retries=0,
                             _strict_response_validation=strict)

    def post(self, path, body=None):
        """The status and the text of the answer to a JSON body, or to none."""
        data = b'' if body is None else json.dumps(body).encode()
        fields = {'Content-Type': 'application/json'} if data else {}
        request = urllib.request.Request(self.address + path, data, fields, method='POST')
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        return self.process.wait(timeout=60)


class OpenAiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.client = cls.server.client()
        # The client's types have neither the null of a prompt's first token nor a completion's chunk before the last.
        cls.loose_client = cls.server.client(strict=False)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def chat(self, **fields):
        fields = {'model': 'minimind', 'messages': QUESTION, 'max_tokens': 40, 'seed': 1, **fields}
        return self.client.chat.completions.create(**fields)

    def complete(self, **fields):
        fields = {'model': 'minimind', 'prompt': PROMPT, 'max_tokens': 16, 'seed': 1, **fields}
        client = self.loose_client if 'echo' in fields or 'stream' in fields else self.client
        return client.completions.create(**fields)

    def test_streams_what_it_answers_whole(self):
        for fields in ({}, {'n': 3}, {'stop': ['，']}, {'temperature': 0, 'logprobs': True, 'top_logprobs': 2},
                       {'response_format': {'type': 'json_object'}}, {'max_tokens': 3}):
            with self.subTest(fields):
                whole = self.chat(**fields)
                texts, reasons, tokens = {}, {}, {}
                for chunk in self.chat(**fields, stream=True, stream_options={'include_usage': True}):
                    for choice in chunk.choices:
                        texts[choice.index] = texts.get(choice.index, '') + (choice.delta.content or '')
                        reasons[choice.index] = choice.finish_reason or reasons.get(choice.index)
                        if choice.logprobs:
                            tokens.setdefault(choice.index, []).extend(choice.logprobs.content)
                    usage = chunk.usage
                for choice in whole.choices:
                    self.assertEqual(texts[choice.index], choice.message.content)
                    self.assertEqual(reasons[choice.index], choice.finish_reason)
                    if choice.logprobs:
                        self.assertEqual(tokens[choice.index], choice.logprobs.content)
                self.assertEqual(usage.completion_tokens, whole.usage.completion_tokens)

    def test_accumulates_a_stream_with_the_clients_helper(self):
        with self.client.chat.completions.stream(model='minimind', messages=QUESTION, max_tokens=40, seed=1) as stream:
            final = stream.get_final_completion()
        self.assertEqual(final.choices[0].message.content, self.chat().choices[0].message.content)

    def test_forces_a_call_and_takes_its_result(self):
        for choice in ('required', {'type': 'function', 'function': {'name': 'weather'}}):
            for stream in (False, True):
                answer = self.chat(tools=TOOLS, tool_choice=choice, stream=stream, max_tokens=80)
                if stream:
                    deltas = [chunk.choices[0] for chunk in answer]
                    self.assertEqual(deltas[-1].finish_reason, 'tool_calls')
                    calls = [delta.delta.tool_calls[0] for delta in deltas if delta.delta.tool_calls]
                    self.assertEqual({call.index for call in calls}, {0})
                    arguments = ''.join(call.function.arguments for call in calls)
                else:
                    self.assertEqual(answer.choices[0].finish_reason, 'tool_calls')
                    arguments = answer.choices[0].message.tool_calls[0].function.arguments
                self.assertIn(json.loads(arguments)['city'], ('北京', '上海'))
        message = self.chat(tools=TOOLS, tool_choice='required', max_tokens=80).choices[0].message
        result = {'role': 'tool', 'tool_call_id': message.tool_calls[0].id, 'content': '晴'}
        again = self.chat(messages=[*QUESTION, message, result], tools=TOOLS)
        self.assertTrue(again.choices[0].message.content)

    def test_parses_into_a_schema(self):
        schema = {'type': 'object', 'properties': {'n': {'type': 'integer', 'minimum': 1, 'maximum': 9}},
                  'required': ['n'], 'additionalProperties': False}
        answer = self.chat(response_format={'type': 'json_schema',
                                            'json_schema': {'name': 'number', 'schema': schema, 'strict': True}})
        self.assertIn(json.loads(answer.choices[0].message.content)['n'], range(1, 10))

    def test_scores_a_prompt_as_perplexity_does(self):
        for text in ('江上多风雨，舟中见远山。', 'Bridges 123', '床前明月光，疑是地上霜。举头望明月，低头思故乡。'):
            answer = self.complete(prompt=text, echo=True, logprobs=1, max_tokens=0)
            logprobs = answer.choices[0].logprobs
            self.assertIsNone(logprobs.token_logprobs[0])
            scored = subprocess.run([PROGRAM, 'perplexity', '-m', DEMO, '-q', '--json', '-p', text],
                                    capture_output=True, text=True, check=True)
            found = json.loads(scored.stdout)
            self.assertEqual(len(logprobs.tokens) - 1, found['tokens'])
            self.assertAlmostEqual(-sum(logprobs.token_logprobs[1:]), found['nats_per_token'] * found['tokens'], places=9)

    def test_completes_prompts_of_every_kind(self):
        ids = json.loads(fetch(self.server.address + '/tokenize', {'content': PROMPT}))['tokens']
        alone = self.complete().choices[0].text
        self.assertEqual(self.complete(prompt=ids).choices[0].text, alone)
        self.assertEqual(self.complete(prompt=[PROMPT, '江']).choices[0].text, alone)
        self.assertEqual(self.complete(prompt=[ids, ids[:2]]).choices[0].text, alone)
        self.assertEqual(self.complete(echo=True).choices[0].text, PROMPT + alone)
        self.assertEqual(''.join(chunk.choices[0].text for chunk in self.complete(stream=True)), alone)

    def test_gives_the_bytes_of_generate_under_load(self):
        def ask(seed):
            return self.complete(seed=seed, max_tokens=30).choices[0].text
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            texts = list(pool.map(ask, range(32)))
        for seed in (0, 7, 31):
            alone = subprocess.run([PROGRAM, 'generate', '--raw', '-q', '-m', DEMO, '-n', '30', '--seed', str(seed), '-p', PROMPT],
                                   capture_output=True, text=True, check=True)
            self.assertEqual(texts[seed], alone.stdout)

    def test_raises_the_clients_own_errors(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.models.retrieve('gpt-4')
        self.assertEqual(caught.exception.code, 'model_not_found')
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(temperature='hot')
        self.assertEqual(caught.exception.param, 'temperature')
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(messages=[{'role': 'user', 'content': 'a' * 200000}])
        self.assertEqual(caught.exception.code, 'context_length_exceeded')

    def respond(self, **fields):
        fields = {'model': 'minimind', 'input': QUESTION[0]['content'], 'max_output_tokens': 40, 'seed': 1, **fields}
        seed = fields.pop('seed')
        return self.client.responses.create(**fields, extra_body={'seed': seed})

    def test_gives_responses(self):
        response = self.respond(include=['message.output_text.logprobs'])
        self.assertEqual(response.output_text, self.chat(messages=QUESTION[:1]).choices[0].message.content)
        self.assertGreater(len(response.output[0].content[0].logprobs), 0)
        events = list(self.respond(stream=True))
        self.assertEqual(''.join(event.delta for event in events if event.type == 'response.output_text.delta'),
                         response.output_text)
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        self.assertIn(events[-1].type, ('response.completed', 'response.incomplete'))
        self.assertEqual(events[-1].response.output_text, response.output_text)
        next_one = self.respond(input='再来', previous_response_id=response.id)
        self.assertEqual(next_one.previous_response_id, response.id)
        self.assertTrue(next_one.output_text)

    def test_keeps_responses_until_they_are_deleted(self):
        first = self.respond()
        second = self.respond(input='再来', previous_response_id=first.id)
        self.assertEqual(self.client.responses.retrieve(second.id), second)
        items = self.client.responses.input_items
        self.assertEqual([item.content[0].text for item in items.list(second.id, order='asc')],
                         [QUESTION[0]['content'], first.output_text, '再来'])
        self.assertEqual(len(list(items.list(second.id, limit=1))), 3)
        counted = self.client.responses.input_tokens.count(input='再来', previous_response_id=first.id)
        self.assertEqual(counted.input_tokens, second.usage.input_tokens)
        with self.assertRaises(openai.BadRequestError):
            self.client.responses.cancel(second.id)
        self.client.responses.delete(second.id)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(second.id)

    def test_responses_call_functions_and_keep_to_a_format(self):
        tool = {'type': 'function', 'name': 'weather', 'strict': True, 'description': 'w',
                'parameters': {'type': 'object', 'properties': {'city': {'enum': ['北京', '上海']}}, 'required': ['city'],
                               'additionalProperties': False}}
        response = self.respond(tools=[tool], tool_choice='required', parallel_tool_calls=False, max_output_tokens=80)
        call = response.output[0]
        self.assertIn(json.loads(call.arguments)['city'], ('北京', '上海'))
        result = {'type': 'function_call_output', 'call_id': call.call_id, 'output': '晴'}
        self.assertTrue(self.respond(input=[result], previous_response_id=response.id, tools=[tool]).output_text)
        schema = {'type': 'object', 'properties': {'n': {'type': 'integer'}}, 'required': ['n'], 'additionalProperties': False}
        answer = self.respond(text={'format': {'type': 'json_schema', 'name': 'number', 'schema': schema, 'strict': True}})
        self.assertIsInstance(json.loads(answer.output_text)['n'], int)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.respond(previous_response_id='resp_none')
        self.assertEqual(caught.exception.code, 'previous_response_not_found')

    def test_a_single_model_takes_every_name(self):
        self.assertEqual(self.chat(model='model-identifier').model, 'minimind-poet')

    def test_lists_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ['minimind-poet'])
        self.assertEqual(self.client.models.retrieve('minimind-poet').id, 'minimind-poet')

    def test_frees_the_place_of_a_client_that_disconnects(self):
        abandoned, tokens = self.metric('abandoned_texts_total'), self.metric('generated_tokens_total')
        stream = self.chat(stream=True, max_tokens=2000, logit_bias={'2': -100})
        next(iter(stream))
        self.assertEqual(self.metric('texts_running'), 1)
        stream.close()
        deadline = time.monotonic() + 5
        while self.metric('texts_running') > 0:
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual(self.metric('abandoned_texts_total'), abandoned + 1)
        self.assertLess(self.metric('generated_tokens_total') - tokens, 1000)

    def metric(self, name):
        text = fetch(self.server.address + '/metrics')
        return int(re.search(rf'^minimind_{name} (\d+)', text, re.M).group(1))


class ShutdownTest(unittest.TestCase):
    def test_finishes_running_answers(self):
        server = Server('--drain', '300')
        stream = server.client().chat.completions.create(model='minimind', messages=QUESTION, max_tokens=1000, seed=1,
                                                         logit_bias={'2': -100}, stream=True)
        first = next(iter(stream))
        server.process.send_signal(signal.SIGTERM)
        reasons = [choice.finish_reason for chunk in stream for choice in chunk.choices]
        self.assertEqual(reasons[-1], 'length')
        self.assertEqual(first.object, 'chat.completion.chunk')
        self.assertEqual(server.process.wait(timeout=60), 0)

    def test_rejects_more_than_the_queue_holds(self):
        server = Server('--parallel', '1', '--queue', '0')
        try:
            client = server.client()
            fields = {'model': 'minimind', 'messages': QUESTION, 'max_tokens': 1000, 'logit_bias': {'2': -100}}
            stream = client.chat.completions.create(**fields, stream=True)
            next(iter(stream))
            with self.assertRaises(openai.RateLimitError) as caught:
                client.chat.completions.create(**fields)
            self.assertEqual(caught.exception.response.headers['retry-after'], '1')
            stream.close()
        finally:
            server.stop()


if __name__ == '__main__':
    unittest.main()
