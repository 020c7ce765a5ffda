"""What hostile clients send to `minimind serve`: each attack is a function of a Target, named as it is printed.

An attack ends by itself within about ten seconds of the server's answer: no attack waits for ever, and none sends to another
address than 127.0.0.1.
"""

import contextlib
import functools
import http.client
import json
import os
import random
import socket
import struct
import time

# A file that clients may not see holds this, and so does one that is no checkpoint: no answer may.
SECRET = 'soak-secret-7f3a'
ANSWER_SECONDS = 60


class Target:
    """The server, the files below its model's folder, and the dice of one client."""

    def __init__(self, port, folder, outside, seed):
        self.port = port
        self.folder = folder
        self.outside = outside
        self.random = random.Random(seed)

    def connect(self, receive_buffer=None):
        connection = socket.socket()
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(('127.0.0.1', self.port))
        return connection

    def post(self, path, body):
        """Returns status and body of the answer."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=ANSWER_SECONDS)
        try:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request('POST', path, data, {'Content-Type': 'application/json'})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def chat(**fields):
    return {'messages': [{'role': 'user', 'content': '写一首诗'}], 'max_tokens': 8, **fields}


def raw_post(path, body, **fields):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f'POST {path} HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', f'Content-Length: {len(data)}']
    lines += [f'{name.replace("_", "-")}: {value}' for name, value in fields.items()]
    return '\r\n'.join(lines + ['', '']).encode() + data


def read_some(connection, most=1 << 20):
    """Reads until the end, and returns the status of the first answer."""
    received = b''
    while len(received) < most and (piece := connection.recv(65536)):
        received += piece
    return status_of(received), received


def status_of(received):
    return int(received[9:12]) if received.startswith(b'HTTP/1.1 ') else 0


def close_with_reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    connection.close()


# ---- Bodies that are much to read ----

@functools.cache
def objects_body():
    objects = ','.join(f'{{"k{i}":{{}}}}' for i in range(90_000))
    return f'{{"messages":[{{"role":"user","content":"a"}}],"max_tokens":4,"metadata":[{objects}]}}'.encode()


def metadata_of_90000_objects(target):
    return target.post('/v1/chat/completions', objects_body())


def nested_arrays(target):
    depth = target.random.choice([1_000, 100_000, 500_000])
    return target.post('/v1/chat/completions', b'{"messages":' + b'[' * depth + b']' * depth + b'}')


def enum_of_20000_integers(target):
    first = target.random.randrange(1 << 40)  # another schema each time, so that none is remembered
    schema = {'enum': [first + 3 * i for i in range(20_000)]}
    return target.post('/v1/chat/completions', chat(response_format=json_schema(schema)))


def json_schema(schema):
    return {'type': 'json_schema', 'json_schema': {'name': 's', 'schema': schema}}


def schema_with_slow_masks(target):
    n = target.random.randrange(20, 200)
    pattern = f'^([a-z]{{0,{n}}}[0-9]{{0,{n}}}|[a-f0-9]{{1,{n}}}){{1,32}}$'
    names = {f'p{i}': {'type': 'string', 'pattern': pattern} for i in range(20)}
    schema = target.random.choice([
        {'type': 'object', 'patternProperties': {f'^{a}.*{a}$': {} for a in 'abcdefghij'}, 'additionalProperties': names['p0']},
        {'anyOf': [{'type': 'object', 'properties': names, 'required': [f'p{i}']} for i in range(20)]},
        {'type': 'array', 'items': {'type': 'string', 'pattern': pattern}, 'minItems': n, 'maxItems': 50 * n},
        {'type': 'string', 'minLength': 1000 + n, 'maxLength': 200_000},
        {'type': 'integer', 'multipleOf': 7919 + n, 'minimum': 1, 'maximum': 10 ** 15},
    ])
    return target.post('/v1/chat/completions', chat(max_tokens=64, response_format=json_schema(schema)))


def grammar_that_repeats(target):
    n = target.random.choice([50, 200, 1000])
    grammar = f'root ::= (("a"? "b"?){{{n}}} "c"?){{{n}}} | x\nx ::= "x" x "y" | "z"\n'
    return target.post('/v1/completions', {'prompt': 'a', 'max_tokens': 32, 'grammar': grammar})


@functools.cache
def tokenize_body(kind):
    size = 14 << 20
    content = {'letters': 'a' * size, 'characters': '江' * (size // 3), 'spaces': ' ' * size,
               'random': ''.join(random.Random(1).choices('abcdefgh 江月 0123', k=size // 2))}[kind]
    return json.dumps({'content': content}, ensure_ascii=False).encode()


def huge_tokenize(target):
    return target.post('/tokenize', tokenize_body(target.random.choice(['letters', 'characters', 'spaces', 'random'])))


def huge_prompt(target):
    body = target.random.choice([
        {'prompt': 'a b ' * 500_000, 'max_tokens': 1},
        {'prompt': [7] * 400_000, 'max_tokens': 1},
        {'prompt': ['a'] * 100_000, 'max_tokens': 1},
        {'prompt': 'a', 'n': 100_000, 'best_of': 100_000},
        {'prompt': 'a', 'stop': ['x' * 1000] * 1000},
        {'prompt': 'a', 'max_tokens': 1, 'logit_bias': {str(i): -1 for i in range(6000)}},
    ])
    return target.post('/v1/completions', body)


def prompt_that_fills_the_context(target):
    """Accepted, and computed for seconds: other prompts must not wait for it."""
    word = target.random.choice(['a', 'b', 'c'])  # of which some have a prefix in the cache
    return target.post('/v1/completions', {'prompt': f'{word}\n' * 9_000, 'max_tokens': 1})


def many_texts_in_a_request(target):
    """Other requests take turns with its texts."""
    return target.post('/generate', {'input_ids': [[target.random.randrange(100, 6000)] for _ in range(2_000)],
                                     'sampling_params': {'max_new_tokens': 1}})


def many_messages(target):
    count = target.random.choice([100, 10_000])
    tools = [{'type': 'function', 'function': {'name': f'f{i}', 'parameters': {'type': 'object'}}} for i in range(count // 10)]
    messages = [{'role': 'user', 'content': 'a' * 20}, {'role': 'assistant', 'content': 'b'}] * count
    return target.post('/v1/chat/completions', chat(messages=messages[:-1], tools=tools, tool_choice='required'))


def odd_values(target):
    body = target.random.choice([
        b'{"prompt": "\\ud800", "max_tokens": 1}', b'{"prompt": "\xff\xfe", "max_tokens": 1}', b'\xef\xbb\xbf{}', b'null', b'',
        b'{"prompt": "a", "temperature": 1e999}', b'{"prompt": "a", "seed": 1e400}', b'{"prompt": "a", "prompt": ["a", 1]}',
        b'{"prompt": "a\\u0000b", "max_tokens": 2}', b'{"prompt": "a", "max_tokens": 99999999999999999999}',
        b'{"prompt": "a", "model": "\\u001b]0;owned\\u0007\\u001b[2J"}', b'[' + b'1,' * 400_000 + b'1]',
        b'{"a":' * 50_000 + b'1' + b'}' * 50_000,
    ])
    return target.post(target.random.choice(['/v1/completions', '/v1/chat/completions', '/generate', '/api/chat', '/detokenize']),
                       body)


# ---- Files ----

def name_a_file(target):
    inside, outside = target.folder, target.outside
    path = target.random.choice([
        f'{inside}/pipe.pth', f'{inside}/shards', f'{inside}/secret.pth', f'{inside}/link.pth', f'{inside}/sparse.pth',
        f'{inside}/zeros-behind.pth', f'{inside}/empty.pth', f'{inside}/no-such.pth', f'{inside}/\x1b[2Jname.pth', inside,
        f'{outside}/secret', f'{outside}/pipe', f'{inside}/../{os.path.basename(outside)}/secret', '/etc/passwd', '/dev/zero',
        '/dev/stdin', '/proc/self/environ', '/proc/self/mem', '/', '', 'a' * 5000, '\x00',
    ])
    return target.post('/update_weights_from_disk', {'model_path': path})


def load_what_is_being_written(target):
    return target.post('/update_weights_from_disk', {'model_path': f'{target.folder}/next.pth'})


# ---- Connections ----

def slow_body(target):
    request = raw_post('/v1/chat/completions', chat())
    with target.connect() as connection:
        connection.sendall(request[:-40])
        for byte in request[-40:-20]:
            time.sleep(0.2)
            connection.sendall(bytes([byte]))
    return 0, b''


def slow_header(target):
    with target.connect() as connection:
        for byte in b'POST /v1/chat/completions HTTP/1.1\r\nHost: loc'[:30]:
            connection.sendall(bytes([byte]))
            time.sleep(0.1)
    return 0, b''


def half_closed(target):
    request = raw_post('/v1/chat/completions', chat(stream=target.random.random() < 0.5))
    cut = target.random.choice([len(request), len(request) - 5, 20])
    with target.connect() as connection:
        connection.sendall(request[:cut])
        connection.shutdown(socket.SHUT_WR)
        return read_some(connection)


def disconnect_in_a_stream(target):
    body = chat(stream=True, max_tokens=1000, ignore_eos=True, n=target.random.choice([1, 8]))
    connection = target.connect()
    connection.sendall(raw_post('/v1/chat/completions', body))
    if target.random.random() < 0.7:
        connection.recv(100)
    if target.random.random() < 0.5:
        close_with_reset(connection)
    connection.close()
    return 0, b''


def disconnect_in_a_prompt(target):
    connection = target.connect()
    connection.sendall(raw_post('/v1/completions', {'prompt': '江月' * 1500, 'max_tokens': 500}))
    time.sleep(target.random.random() * 0.1)
    close_with_reset(connection)
    return 0, b''


def unread_stream(target):
    with target.connect(receive_buffer=4096) as connection:
        connection.sendall(raw_post('/v1/chat/completions', chat(
            stream=True, max_tokens=300, ignore_eos=True, logprobs=True, top_logprobs=20)))
        time.sleep(2)
    return 0, b''


def random_bytes(target):
    with target.connect() as connection:
        connection.sendall(target.random.randbytes(target.random.choice([1, 100, 60_000])))
        connection.shutdown(socket.SHUT_WR)
        return read_some(connection)


def pipelined_garbage(target):
    requests = b'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n' * target.random.choice([1, 100, 2000])
    requests += target.random.choice([
        target.random.randbytes(3000), b'GET / HTTP/9.9\r\n\r\n', b'\r\n' * 3000,
        raw_post('/v1/completions', {'prompt': 'a', 'max_tokens': 2}) * 20 + b'\x00',
        b'POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP',
        b'POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n',
        b'GET /' + b'a' * 60_000 + b' HTTP/1.1\r\n', b'GET / HTTP/1.1\r\n' + b'a: b\r\n' * 5000 + b'\r\n',
    ])
    with target.connect() as connection:
        connection.sendall(requests)
        connection.shutdown(socket.SHUT_WR)
        return read_some(connection, 8 << 20)


def many_connections(target):
    connections = []
    with contextlib.ExitStack() as all_of_them:
        for _ in range(50):
            connections.append(all_of_them.enter_context(target.connect()))
        for connection in connections[::2]:
            connection.sendall(b'GET /health HTTP/1.1\r\nHost:')
        time.sleep(0.2)
    return 0, b''


GROUPS = {
    'bodies': [metadata_of_90000_objects, nested_arrays, enum_of_20000_integers, schema_with_slow_masks, grammar_that_repeats,
               huge_tokenize, huge_prompt, many_messages, odd_values],
    'files': [name_a_file, load_what_is_being_written],
    'connections': [slow_body, slow_header, half_closed, disconnect_in_a_stream, disconnect_in_a_prompt, unread_stream,
                    random_bytes, pipelined_garbage, many_connections],
}


# Only if they are named: requests that the server accepts and that take all its places, if enough clients send them. Fairness by
# client is not promised: .github/SECURITY.md.
NAMED_GROUPS = {'places': [prompt_that_fills_the_context, many_texts_in_a_request]}


def chosen(names):
    """Returns the attacks of a list of groups and names, as 'connections,huge_tokenize'; those of GROUPS for ''."""
    groups = {**GROUPS, **NAMED_GROUPS}
    known = {**groups, **{attack.__name__: [attack] for attacks in groups.values() for attack in attacks}}
    unknown = [name for name in names.split(',') if name and name not in known]
    if unknown:
        raise SystemExit(f'soak: there is no attack {unknown[0]}, expected one of {", ".join(known)}')
    return [attack for name in (names or ','.join(GROUPS)).split(',') for attack in known[name]]
