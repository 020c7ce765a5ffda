"""The features that clients of the server are tried for, and what each must give.

NAME_client.py uses the package of a client. Each of its classes is one way to use it: a Client with a method for each feature that
the package has. run.py starts the server and these files; MINIMIND_SERVER is the server's address.

The bundled model writes poems whatever it is asked, so that a feature is judged by the shape of its answer and by what must hold
for every model: a stream has the text of the whole answer, a required call has valid arguments.
"""

import asyncio
import inspect
import json
import os
import pathlib
import sys
import traceback

ADDRESS = os.environ.get('MINIMIND_SERVER', '')
BASE_URL = ADDRESS + '/v1'
MODEL = 'minimind-poet'
DEMO = str(pathlib.Path(__file__).resolve().parents[4] / 'weights' / 'demo')
TEXT = '写一首五言绝句，题目：江上'
QUESTION = [{'role': 'user', 'content': TEXT}]
PROMPT = '床前明月光，'
STOP = '。'
TOKENS = 40
# Enough for a call or an object, which ends by itself.
ENOUGH = 200
CITIES = ('北京', '上海')
WEATHER = {'name': 'weather', 'description': 'Weather of a city',
           'parameters': {'type': 'object', 'properties': {'city': {'type': 'string', 'enum': list(CITIES)}},
                          'required': ['city'], 'additionalProperties': False}}
TOOLS = [{'type': 'function', 'function': WEATHER}]
CALL = {'role': 'assistant', 'content': None, 'tool_calls': [
    {'id': 'call_1', 'type': 'function', 'function': {'name': 'weather', 'arguments': '{"city": "北京"}'}}]}
CALL_AND_RESULT = [*QUESTION, CALL, {'role': 'tool', 'tool_call_id': 'call_1', 'content': '晴'}]
SCHEMA = {'type': 'object', 'properties': {'count': {'type': 'integer', 'minimum': 1, 'maximum': 9}, 'kind': {'enum': ['a', 'b']}},
          'required': ['count', 'kind'], 'additionalProperties': False}


class Client:
    """One way to use a package. All texts are greedy and have at most TOKENS tokens, if nothing else is said.

    `package` is the package if it is not the first of those in versions.txt.

    A method is one of the features below and returns what its check takes. `explained` has the features that fail by the fault of
    the client, each with the reason in English and in Chinese.
    """

    title = ''
    package = ''
    explained = {}


# Packages keep their connections in the loop of the first request.
LOOP = asyncio.new_event_loop()


def finished(answer):
    """The answer, once it is there."""
    return LOOP.run_until_complete(answer) if inspect.isawaitable(answer) else answer


def check_text(text):
    assert isinstance(text, str) and text.strip(), f'the text is {text!r}'


def check_chat(client, answer):
    check_text(answer)


def check_stream(client, pieces):
    assert len(pieces) > 1, f'the stream has {len(pieces)} pieces of text'
    whole = finished(client.chat())
    assert ''.join(pieces) == whole, f'the stream is {"".join(pieces)!r}, the answer {whole!r}'


def parsed(value):
    return json.loads(value) if isinstance(value, str) else value


def check_object(client, value):
    assert isinstance(parsed(value), dict), f'the value is {value!r}'


def check_schema(client, value):
    value = parsed(value)
    assert value.get('count') in range(1, 10) and value.get('kind') in ('a', 'b') and len(value) == 2, f'the value is {value!r}'


def check_asynchronous(client, answer):
    """Of a client that only gives objects, the answer is one."""
    if not hasattr(client, 'chat'):
        return check_schema(client, answer)
    whole = finished(client.chat())
    assert answer == whole, f'the text is {answer!r}, the answer {whole!r}'


def check_call(client, call):
    name, arguments = call
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    assert name == 'weather', f'the function is {name!r}'
    assert arguments.get('city') in CITIES and len(arguments) == 1, f'the arguments are {arguments!r}'


def check_logprobs(client, values):
    assert values and all(isinstance(value, float) and value <= 0 for value in values), f'the log-probabilities are {values!r}'


def check_stop(client, text):
    whole = finished(client.chat())
    assert STOP in whole and text == whole.split(STOP)[0], f'the text is {text!r}, the answer {whole!r}'


def check_seed(client, texts):
    """The texts have the seeds 1, 1 and 2, at temperature 1."""
    assert texts[0] == texts[1] != texts[2], f'the texts are {texts!r}'


def check_several(client, texts):
    assert len(texts) == 2, f'the texts are {texts!r}'
    for text in texts:
        check_text(text)


def check_usage(client, usage):
    prompt, answer = usage
    assert prompt > 0 and 0 < answer <= ENOUGH, f'the usage is {usage!r}'


def check_models(client, names):
    assert list(names) == [MODEL], f'the models are {names!r}'


def check_refusal(reason):
    """The method must raise the server's error, which has the words."""
    def check(client, answer):
        raise AssertionError(f'no error, but {answer!r}')
    check.reason = reason
    return check


# The method, the headings of its column, and its check.
FEATURES = {
    'chat': ('chat', '对话', check_chat),
    'stream': ('stream', '流式', check_stream),
    'asynchronous': ('async', '异步', check_asynchronous),
    'tools': ('tools', '工具', check_call),
    'tool_stream': ('tool stream', '工具流', check_call),
    'tool_result': ('tool result', '工具结果', check_chat),
    'json_object': ('JSON object', 'JSON 对象', check_object),
    'json_schema': ('JSON schema', 'JSON schema', check_schema),
    'logprobs': ('log-probs', '对数概率', check_logprobs),
    'stop': ('stop', '停止', check_stop),
    'seed': ('seed', '种子', check_seed),
    'several': ('n', 'n', check_several),
    'usage': ('usage', '用量', check_usage),
    'completion': ('completion', '续写', check_chat),
    'models': ('models', '模型列表', check_models),
    'embeddings': ('no embeddings', '拒绝向量', check_refusal('no embeddings')),
    'error': ('error', '错误', check_refusal('temperature')),
}


def tried(client, feature):
    """None if the client has the feature, else the error."""
    check = FEATURES[feature][2]
    reason = getattr(check, 'reason', None)
    try:
        check(client, finished(getattr(client, feature)()))
    except Exception as error:
        # That of the check has the answer, which may have the words, too.
        if reason and reason in str(error) and not isinstance(error, AssertionError):
            return None
        traceback.print_exc()
        return f'{type(error).__name__}: {error}'
    return None


def run(*clients):
    """Tries the features of the classes and writes [{title, package, results, explained}] into the file that is the argument."""
    rows = []
    for kind in clients:
        client = kind()
        results = {feature: tried(client, feature) for feature in FEATURES if hasattr(client, feature)}
        rows.append({'title': client.title, 'package': client.package, 'results': results, 'explained': client.explained})
    with open(sys.argv[1], 'w', encoding='utf-8') as file:
        json.dump(rows, file, ensure_ascii=False, indent=1)
