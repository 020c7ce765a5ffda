"""Validates answers, chunks and errors against the schema that OpenAI publishes.

OPENAI_OPENAPI is the schema: the file, or the URL, of openapi.json in github.com/openai/openai-openapi. Without it, the
types of OpenAI's client are the schema: they are generated from the published one.
"""

import json
import os
import pathlib
import re
import unittest
import urllib.request

import jsonschema
import openai.types.chat
import openai.types.responses
import openai.types.shared
import pydantic

from test_openai import PROMPT, QUESTION, TOOLS, Server

SOURCE = os.environ.get('OPENAI_OPENAPI', '')
CLIENT_TYPES = {
    'CreateChatCompletionResponse': openai.types.chat.ChatCompletion,
    'CreateChatCompletionStreamResponse': openai.types.chat.ChatCompletionChunk,
    'CreateCompletionResponse': openai.types.Completion,
    'Model': openai.types.Model,
    'Error': openai.types.shared.ErrorObject,
}
SCHEMA = {'type': 'object', 'properties': {'n': {'type': 'integer', 'minimum': 1, 'maximum': 9}, 's': {'enum': ['a', 'b']}},
          'required': ['n', 's'], 'additionalProperties': False}
FORMAT = {'type': 'json_schema', 'json_schema': {'name': 'number', 'schema': SCHEMA, 'strict': True}}
STRICT_TOOLS = [{'type': 'function', 'function': {**TOOLS[0]['function'], 'strict': True}}]
BY_NAME = {'type': 'function', 'function': {'name': 'weather'}}
FUNCTIONS = [TOOLS[0]['function']]
CALL = {'role': 'assistant', 'content': None, 'tool_calls': [
    {'id': 'call_1', 'type': 'function', 'function': {'name': 'weather', 'arguments': '{"city": "北京"}'}}]}
RESULT = {'role': 'tool', 'tool_call_id': 'call_1', 'content': [{'type': 'text', 'text': '晴'}]}
CHATS = [
    {},
    {'n': 3, 'temperature': 1.5, 'seed': -5},
    {'logprobs': True},
    {'logprobs': True, 'top_logprobs': 20, 'n': 2},
    {'stop': ['，', '。'], 'logprobs': True},
    {'stop': '，'},
    {'max_completion_tokens': 1},
    {'max_tokens': 1, 'logprobs': True, 'top_logprobs': 3},
    {'logit_bias': {'300': -100, '301': 5}, 'presence_penalty': 1, 'frequency_penalty': -1, 'top_p': 0.5},
    {'response_format': {'type': 'text'}},
    {'response_format': {'type': 'json_object'}},
    {'response_format': FORMAT},
    {'response_format': FORMAT, 'logprobs': True, 'top_logprobs': 2},
    {'grammar': 'root ::= "yes" | "no"'},
    {'tools': TOOLS},
    {'tools': TOOLS, 'tool_choice': 'none'},
    {'tools': TOOLS, 'tool_choice': 'auto', 'parallel_tool_calls': False},
    {'tools': TOOLS, 'tool_choice': 'required', 'max_tokens': 120},
    {'tools': TOOLS, 'tool_choice': 'required', 'parallel_tool_calls': False, 'n': 2, 'max_tokens': 80},
    {'tools': TOOLS, 'tool_choice': BY_NAME, 'logprobs': True, 'top_logprobs': 1, 'max_tokens': 80},
    {'tools': TOOLS, 'tool_choice': BY_NAME, 'max_tokens': 3},
    {'tools': STRICT_TOOLS},
    {'functions': FUNCTIONS},
    {'functions': FUNCTIONS, 'function_call': 'none'},
    {'functions': FUNCTIONS, 'function_call': {'name': 'weather'}, 'max_tokens': 80, 'logprobs': True},
    {'functions': FUNCTIONS, 'function_call': {'name': 'weather'}, 'max_tokens': 3, 'n': 2},
    {'messages': [*QUESTION, {'role': 'assistant', 'content': None, 'function_call': CALL['tool_calls'][0]['function']},
                  {'role': 'function', 'name': 'weather', 'content': '晴'}], 'functions': FUNCTIONS},
    {'messages': [{'role': 'system', 'content': [{'type': 'text', 'text': '你是诗人'}]}, *QUESTION, CALL, RESULT], 'tools': TOOLS},
    {'messages': [{'role': 'developer', 'content': '你是诗人'}, {'role': 'user', 'content': '江', 'name': 'a'}]},
    {'reasoning_effort': 'none'},
    {'ignore_eos': True, 'top_k': 5, 'min_p': 0.1, 'typical_p': 0.9, 'repeat_penalty': 1.1, 'dry_multiplier': 0.8},
    {'user': 'u', 'store': True, 'metadata': {'a': 'b'}, 'service_tier': 'auto', 'safety_identifier': 's',
     'prompt_cache_key': 'k', 'prompt_cache_options': {'ttl': '1h'}, 'modalities': ['text'], 'verbosity': 'medium',
     'prediction': {'type': 'content', 'content': 'a'}},
]
COMPLETIONS = [
    {},
    {'prompt': [PROMPT, '江'], 'n': 2},
    {'prompt': [300, 301]},
    {'prompt': [[300, 301], [302]], 'logprobs': 5},
    {'logprobs': 0},
    {'stop': ['，'], 'logprobs': 2},
    {'max_tokens': 0, 'echo': True},
    {'echo': True, 'logprobs': 1},
    {'echo': True, 'logprobs': 1, 'max_tokens': 0},
    {'n': 2, 'best_of': 4},
    {'grammar': 'root ::= "yes" | "no"', 'logprobs': 1},
    {'temperature': 0, 'top_p': 0, 'presence_penalty': -2, 'frequency_penalty': 2, 'logit_bias': {'300': 100}, 'user': 'u'},
]


def with_null(schema):
    """The schema with the null that OpenAPI 3.0 writes as nullable, as the published schema still does in places."""
    if isinstance(schema, list):
        return [with_null(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: with_null(value) for key, value in schema.items()}
    return {'anyOf': [plain, {'type': 'null'}]} if plain.pop('nullable', None) is True else plain


def published_schemas():
    """A validator for each name."""
    if not SOURCE:
        return {name: jsonschema.Draft202012Validator(pydantic.TypeAdapter(its).json_schema())
                for name, its in CLIENT_TYPES.items()}
    if '://' in SOURCE:
        with urllib.request.urlopen(SOURCE) as answer:
            document = json.load(answer)
    else:
        document = json.loads(pathlib.Path(SOURCE).read_text())
    components = with_null(document['components'])
    return {name: jsonschema.Draft202012Validator({'$ref': f'#/components/schemas/{name}', 'components': components})
            for name in CLIENT_TYPES}


def with_published_nulls(answer):
    """A completion without the nulls that OpenAI's server sends, too, but the schema lacks: of the reason before a stream's
    end, and of the first token of a prompt."""
    for choice in answer['choices']:
        choice['finish_reason'] = choice['finish_reason'] or 'stop'
        if choice['logprobs'] and choice['logprobs']['token_logprobs'][:1] == [None]:
            for name in ('token_logprobs', 'top_logprobs'):
                del choice['logprobs'][name][0]
    return answer


class SchemaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schemas = published_schemas()
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)

    def check(self, name, value):
        errors = [f'{error.json_path}: {error.message}' for error in self.schemas[name].iter_errors(value)]
        self.assertEqual(errors, [], f'{name}: {json.dumps(value, ensure_ascii=False)}')

    def answer_to(self, path, body):
        status, text = self.server.post(path, body)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def chunks_of(self, path, body):
        """The chunks of the stream, which all have the same id and time."""
        status, text = self.server.post(path, {**body, 'stream': True})
        self.assertEqual(status, 200, text)
        events = text.split('\n\n')
        self.assertEqual(events[-2:], ['data: [DONE]', ''])
        chunks = [json.loads(event.removeprefix('data: ')) for event in events[:-2]]
        self.assertEqual(len({(chunk['id'], chunk['created'], chunk['model']) for chunk in chunks}), 1)
        return chunks

    def test_chats_and_their_chunks_conform(self):
        for fields in CHATS:
            with self.subTest(fields):
                body = {'model': 'minimind', 'messages': QUESTION, 'max_tokens': 24, 'seed': 1, **fields}
                if 'max_completion_tokens' in fields:
                    del body['max_tokens']
                answer = self.answer_to('/v1/chat/completions', body)
                self.check('CreateChatCompletionResponse', answer)
                for options in ({}, {'stream_options': {'include_usage': True}}):
                    chunks = self.chunks_of('/v1/chat/completions', body | options)
                    for chunk in chunks:
                        self.check('CreateChatCompletionStreamResponse', chunk)
                    self.assertEqual([chunk['choices'] for chunk in chunks].count([]), len(options))
                    self.assertEqual(sum(1 for chunk in chunks for choice in chunk['choices'] if choice['finish_reason']),
                                     len(answer['choices']))
                self.assertEqual(chunks[-1]['usage']['total_tokens'], answer['usage']['total_tokens'])

    def test_completions_and_their_chunks_conform(self):
        for fields in COMPLETIONS:
            with self.subTest(fields):
                body = {'model': 'minimind', 'prompt': PROMPT, 'max_tokens': 8, 'seed': 1, **fields}
                self.check('CreateCompletionResponse', with_published_nulls(self.answer_to('/v1/completions', body)))
                if 'best_of' in fields:
                    continue
                for chunk in self.chunks_of('/v1/completions', body):
                    self.check('CreateCompletionResponse', with_published_nulls(chunk))

    def test_models_conform(self):
        with urllib.request.urlopen(self.server.address + '/v1/models') as answer:
            models = json.load(answer)
        self.assertEqual(models['object'], 'list')
        for model in models['data']:
            self.check('Model', model)
            with urllib.request.urlopen(f'{self.server.address}/v1/models/{model["id"]}') as answer:
                self.check('Model', json.load(answer))

    def test_errors_conform(self):
        for status, path, body in ((400, '/v1/chat/completions', {}), (404, '/v1/nothing', {}), (405, '/v1/models', {}),
                                   (400, '/v1/completions', []), (404, '/v1/embeddings', {})):
            found, text = self.server.post(path, body)
            self.assertEqual(found, status)
            self.check('Error', json.loads(text)['error'])

    def test_honours_or_rejects_every_field_with_any_type(self):
        """Every field of OpenAI's requests and of ours, with values of every type: an answer, or status 400 naming the field."""
        chat = {'messages': QUESTION, 'max_tokens': 1}
        text = {'prompt': PROMPT, 'max_tokens': 1}
        values = (True, False, 0, 1, -1, 2.5, 1e308, 1 << 70, '', 'a', [], ['a'], [1], [[]], [None], {}, {'a': 1}, {'type': 'a'})
        fields = {
            '/v1/chat/completions': (chat, set(openai.types.chat.completion_create_params.CompletionCreateParamsBase.__annotations__)),
            '/v1/completions': (text, set(openai.types.completion_create_params.CompletionCreateParamsBase.__annotations__)),
            '/v1/responses': ({'input': PROMPT, 'max_output_tokens': 1},
                              set(openai.types.responses.response_create_params.ResponseCreateParamsBase.__annotations__)),
        }
        ours = {'stream', 'grammar', 'top_k', 'min_p', 'typical_p', 'repeat_penalty', 'dry_multiplier', 'dry_base', 'ignore_eos',
                'repeat_last_n',
                'dry_allowed_length', 'dry_penalty_last_n', 'dry_sequence_breakers', 'open_thinking', 'enable_thinking',
                'chat_template_kwargs', 'continue_final_message', 'add_generation_prompt', 'n', 'stop_token_ids', 'min_tokens',
                'return_token_ids', 'return_tokens_as_token_ids', 'prompt_logprobs', 'cache_prompt', 'structured_outputs',
                'samplers', 'n_predict', 'no_such_field'}
        for path, (body, names) in fields.items():
            for name in names | ours:
                for value in values:
                    with self.subTest(path=path, name=name, value=value):
                        status, answer = self.server.post(path, {**body, name: value})
                        if status == 200:
                            continue
                        self.assertIn(status, (400, 404 if name == 'model' else 400), answer)
                        error = json.loads(answer)['error']
                        self.check('Error', error)
                        # Several names of one parameter with several values are an error about the first.
                        named = {name, 'max_tokens'} if name in ('max_completion_tokens', 'n_predict') else {name}
                        self.assertIn(re.split(r'[.\[]', error['param'])[0], named, answer)


if __name__ == '__main__':
    unittest.main()
