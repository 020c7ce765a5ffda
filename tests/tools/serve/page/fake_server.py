#!/usr/bin/env python3
"""A server that sends the chat page and answers its requests as a script says, also with what no model should send.

    fake_server.py [PORT]     serves until interrupted, to look at the page

The last message of a chat chooses the answer: see ANSWERS and Handler.chat.
"""

import http.server
import itertools
import json
import math
import pathlib
import sys
import threading
import time

PAGE = pathlib.Path(__file__).resolve().parents[4] / 'tools/serve/page'
TYPES = {'.html': 'text/html; charset=utf-8', '.css': 'text/css; charset=utf-8', '.js': 'text/javascript; charset=utf-8',
         '.svg': 'image/svg+xml'}

HOSTILE = '''<script>window.hacked = 1</script>
<img src="x" onerror="window.hacked = 2">

<svg onload="window.hacked = 3"></svg> <iframe srcdoc="<script>parent.hacked = 4</script>"></iframe>

[script](javascript:window.hacked=5) [data](data:text/html,<script>1</script>) [file](file:///etc/passwd)
![image](http://other.example/pixel.png) [good](https://good.example/a?b=c) https://bare.example/x.
[break" onmouseover="window.hacked=6](https://quote.example/"onmouseover="window.hacked=7)
[user](https://bank.example@evil.example/)

```html" onload="window.hacked=8
<script>window.hacked = 9</script>
```

| <b>head</b> | two |
|---|---|
| <style>body { display: none }</style> | <a href="javascript:window.hacked=10">x</a> |

&lt;b&gt; \u202egnirts desrever\u202c \x00 \x1b[31m
<base href="http://other.example/"><meta http-equiv="refresh" content="0;url=http://other.example/">
'''

MARKDOWN = '''## 秋夜的写法

写绝句时，先定**意境**，再求*声律*。要点如下：

1. 起句点题，例如“月落”；
2. 承句写景，用 `平仄` 检查；
   - 忌重复
   - 忌直白
3. 转合见情。

> 月落乌啼霜满天，江枫渔火对愁眠。

| 位置 | 作用 | 字数 |
|:--|:-:|--:|
| 起 | 点题 | 7 |
| 转 | 生变 | 7 |

```python
def rhyme(line: str) -> str:
    """Returns the final syllable."""
    return line.rstrip("，。")[-1]
```

更多见 [古诗文网](https://example.com/poems)。
'''

FORMULAS = r'''A root of \( ax^2 + bx + c = 0 \) is $x_1 = \frac{-b + \sqrt{b^2 - 4ac}}{2a}$:

\[
  x_{1,2} = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}
\]

- [x] divide by $a$
- [ ] complete the *square*
  - [ ] take roots

```cpp
#include <cmath>
// The larger root; NaN if there is none.
double root(double a, double b, double c) { return (-b + std::sqrt(b * b - 4.0 * a * c)) / (2 * a); }
const char* name = "root";
```

```bash
for i in 1 2; do echo "root $i"; done  # both
```

```json
{"a": 1.5, "real": true}
```
'''

POEM = '秋夜\n\n月冷霜清夜未央，\n一灯如豆照书窗。\n梧桐叶落无人扫，\n独听寒蛩到晓凉。'

# Question -> (thoughts, answer).
ANSWERS = {
    'hostile': (HOSTILE, HOSTILE),
    'markdown': ('', MARKDOWN),
    'formulas': ('', FORMULAS),
    '写一首七言绝句，题目：秋夜': ('用户要一首七言绝句。先定韵脚：央、窗、凉，平水韵阳部。\n再写景，后抒情。', POEM),
    'think': ('First a thought.', 'Then the answer 😀.'),
}
# Two calls, whose arguments arrive in pieces.
CALLS = [{'tool_calls': [{'index': i, 'id': f'call_{i}', 'type': 'function', 'function': {'name': 'get_weather', 'arguments': ''}}]}
         for i in range(2)] + [{'tool_calls': [{'index': i, 'function': {'arguments': piece}}]}
                               for i, city in enumerate(['北京', '上海']) for piece in ['{"city":', f' "{city}"', '}']]
LONG = ' '.join(f'word{i}' for i in range(400))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.paths.append(self.path)
        if self.path == '/v1/models':
            if self.authorised():
                self.send_json(200, {'object': 'list', 'data': self.server.models})
            return
        path = PAGE / (self.path.split('?')[0].lstrip('/') or 'index.html')
        if path.suffix not in TYPES or not path.is_file():
            self.send_json(404, {'error': {'message': 'there is no such page', 'type': 'not_found', 'param': None, 'code': None}})
            return
        self.send_bytes(200, path.read_bytes(), {
            'Content-Type': TYPES[path.suffix], 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-cache',
            'Content-Security-Policy': (PAGE / 'content_security_policy.txt').read_text().strip()})

    def do_POST(self):
        if self.server.gone:
            self.close_connection = True
            return
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        if not self.authorised():
            return
        self.server.requests.append(body)
        try:
            answer = {'/v1/chat/completions': self.chat, '/v1/inside': self.inside}.get(self.path, self.completion)
            answer(body)
        except (BrokenPipeError, ConnectionResetError):
            self.server.disconnects += 1
            self.close_connection = True

    def authorised(self):
        if self.server.key is None or self.headers['Authorization'] == f'Bearer {self.server.key}':
            return True
        self.send_json(401, {'error': {'message': 'no key', 'type': 'invalid_request_error', 'param': None, 'code': 'invalid_api_key'}})
        return False

    # -- answers

    def chat(self, body):
        last = body['messages'][-1]
        text = last.get('content') or ''
        if text == 'reject':
            self.send_json(400, {'error': {'message': 'temperature is 9, <b>expected</b> 0 to 2', 'type': 'invalid_request_error',
                                           'param': 'temperature', 'code': None}})
        elif text == 'busy':
            self.send_json(503, {'error': {'message': 'busy'}}, {'Retry-After': '7'})
        elif last['role'] == 'user' and text.startswith('weather'):
            self.stream(self.chat_chunks(body, CALLS, 'tool_calls'))
        elif text == 'broken call':
            self.stream(self.chat_chunks(body, [CALLS[0], CALLS[2], {'content': '{"city": oops}'}], 'stop'))
        elif last['role'] == 'tool':
            results = [message['content'] for message in body['messages'] if message['role'] == 'tool']
            self.stream(self.chat_chunks(body, [{'content': 'It is ' + ', '.join(results)}], 'stop'))
        elif last['role'] == 'assistant':
            self.stream(self.chat_chunks(body, [{'content': ' and its end.'}], 'stop'))
        elif text == 'cut':
            self.stream(self.chat_chunks(body, [{'content': 'A start'}], 'length'))
        elif text == 'break':
            self.stream(self.chat_chunks(body, [{'content': 'half an answer'}], None), done=False)
        elif text == 'fail':
            self.stream(itertools.chain(self.chat_chunks(body, [{'content': 'half'}], None),
                                        [{'error': {'message': 'out of memory', 'type': 'server_error'}}]))
        else:
            thoughts, answer = ANSWERS.get(text, ('', LONG if text == 'long' else f'{body.get("model")}: {text}'))
            deltas = [{'reasoning_content': piece} for piece in pieces(thoughts) if body['chat_template_kwargs']['open_thinking']
                      or text == 'hostile'] + [{'content': piece} for piece in pieces(answer)]
            self.stream(self.chat_chunks(body, deltas, 'stop'))

    def chat_chunks(self, body, deltas, reason):
        head = {'id': 'chatcmpl-1', 'object': 'chat.completion.chunk', 'created': 1, 'model': body.get('model')}
        yield {**head, 'choices': [{'index': 0, 'delta': {'role': 'assistant', 'content': ''}, 'finish_reason': None}]}
        for delta in deltas:
            yield {**head, 'choices': [{'index': 0, 'delta': delta, 'finish_reason': None}]}
        if reason:
            yield {**head, 'choices': [{'index': 0, 'delta': {}, 'finish_reason': reason}]}
            yield {**head, 'choices': [], 'usage': {'prompt_tokens': 20, 'completion_tokens': len(deltas),
                                                    'total_tokens': 20 + len(deltas)}}

    def completion(self, body):
        head = {'id': 'cmpl-1', 'object': 'text_completion', 'created': 1, 'model': body.get('model')}
        tokens = ['月', '落', 'bytes:\\xe4\\xb9', 'bytes:\\x8c', '啼', '，\n', ' <b>', '霜', '满', '天', '。', '<|im_end|>']
        if body['prompt'] == 'hostile':
            tokens = ['<img src=x onerror="window.hacked=1">', '</span><script>window.hacked=2</script>']
        chances = [0.62, 0.97, 0.91, 0.99, 0.34, 0.5, 0.03, 0.71, 0.88, 0.95, 0.57, 0.8]
        chunks = []
        for i, (token, chance) in enumerate(zip(tokens, chances)):
            others = ['江', '人', '<i>', ' ']
            top = {token: math.log(chance), **{other: math.log((1 - chance) * part)
                                               for other, part in zip(others, (0.5, 0.2, 0.1, 0.05))}}
            text = {2: '', 3: '乌', 11: ''}.get(i, token)
            chunks.append({**head, 'choices': [{'index': 0, 'text': text, 'finish_reason': None, 'logprobs': {
                'tokens': [token], 'token_logprobs': [math.log(chance)], 'top_logprobs': [top], 'text_offset': [i]}}]})
        chunks.append({**head, 'choices': [{'index': 0, 'text': '', 'finish_reason': 'length', 'logprobs': None}]})
        chunks.append({**head, 'choices': [], 'usage': {'prompt_tokens': 5, 'completion_tokens': len(tokens), 'total_tokens': 5 + len(tokens)}})
        self.stream(chunks)

    # A model of two layers with two heads, of which the second layer has experts. Another model computes something else.
    def inside(self, body):
        other = body.get('model') == 'grpo_768'
        text = body['prompt'] if 'prompt' in body else body['messages'][0]['content']
        if text == 'long':
            self.send_json(400, {'error': {'message': 'the text has 999 tokens, <b>expected</b> at most 256', 'param': 'prompt'}})
            return
        pieces = ['月', [0xe6, 0xb1], ' <b>', '\n'] if text != 'hostile' else [HOSTILE, '</svg><script>window.hacked = 11</script>']
        if len(body.get('without', [])) > 3:
            self.send_json(400, {'error': {'message': 'without is a list, expected a list of at most 3 objects', 'param': 'without'}})
            return
        if text == 'split' and other:
            pieces = pieces[:3]
        position = body.get('positions', [len(pieces) - 1])[0]
        less = 0.1 * len(body.get('without', [])) + 0.05 * other
        token = lambda i, **facts: {'id': i, 'piece': pieces[i % len(pieces)], **facts}
        def layer(experts):
            facts = {'attention': {'logit': 0.5, 'norm': 1.0, 'residual': 2.0}, 'feed_forward': {'logit': -0.25, 'norm': 2.0, 'residual': 3.0},
                     'lens': token(int(other), probability=0.4),
                     'neurons': [{'neuron': 7, **({'expert': 1} if experts else {}), 'activation': -1.5, 'norm': 0.5,
                                  'raises': [token(0, logit=0.75), token(1, logit=-0.5)]}]}
            return {**facts, **({'router': [0.1, 0.9], 'experts': [{'expert': 1, 'weight': 1.0}]} if experts else {})}
        self.send_json(200, {
            'object': 'inside', 'model': body.get('model'), 'tokens': [token(i, probability=None if i == 0 else 0.25) for i in range(len(pieces))],
            'equations': [{'point': point, 'formula': formula} for point, formula in (
                ('model.embed_tokens', 'x = embed_tokens[token]'), ('model.layers.*.input_layernorm', 'n = norm'),
                ('model.layers.*.self_attn.q_proj', 'q = W_q n'), ('model.layers.*.mlp.up_proj', 'u = W_up n'),
                ('model.layers.*', 'x = x + mlp'), ('model.norm', 'n = norm'), ('lm_head', 'logits = W_lm_head n'))],
            'positions': [{'position': position, 'target': token(2, probability=0.5 - less, logit=3.25), 'kept': 2,
                           'candidates': [token(2, probability=0.5 - less, logit=3.25, sampled=0.75), token(0, probability=0.2, logit=2.0, sampled=0.25),
                                          {'id': 9, 'piece': '', 'probability': 0.1, 'logit': 1.0, 'sampled': 0}],
                           'embedding': {'logit': 2.75, 'norm': 1.0}, 'rest': 0.0, 'layers': [layer(False), layer(True)]}],
            'attention': [[[[1] + [0] * row if other else [1 / (row + 1)] * (row + 1) for row in range(len(pieces))]
                           for _ in range(2)] for _ in range(2)]})

    # -- sending

    def stream(self, chunks, done=True):
        """Sends each event in two pieces that cut characters and lines."""
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        for chunk in itertools.chain(chunks, ['[DONE]'] if done else []):
            text = chunk if isinstance(chunk, str) else json.dumps(chunk, ensure_ascii=False)
            data = f'data: {text}\n\n'.encode()
            # A cut in the middle of the first character that has several bytes, if there is one.
            cut = next((i for i, byte in enumerate(data) if byte & 0xC0 == 0x80), len(data) // 2)
            for piece in (data[:cut], data[cut:]):
                self.wfile.write(b'%x\r\n%s\r\n' % (len(piece), piece))
                self.wfile.flush()
            time.sleep(self.server.delay)
        if done:
            self.wfile.write(b'0\r\n\r\n')
        else:
            time.sleep(0.3)  # a browser drops what it has not handed out when the connection breaks
            self.close_connection = True

    def send_json(self, status, value, headers=None):
        self.send_bytes(status, json.dumps(value).encode(), {'Content-Type': 'application/json', **(headers or {})})

    def send_bytes(self, status, content, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def pieces(text, size=3):
    return [text[i:i + size] for i in range(0, len(text), size)]


def model(name, **details):
    return {'id': name, 'object': 'model', 'created': 1, 'owned_by': 'minimind', 'minimind': details}


class FakeServer(http.server.ThreadingHTTPServer):
    """Listens on a free port of 127.0.0.1. `requests` has the bodies, `paths` the pages that were
    requested. A server that is `gone` closes connections without an answer."""

    daemon_threads = True

    def __init__(self, port=0):
        super().__init__(('127.0.0.1', port), Handler)
        self.requests, self.paths, self.disconnects, self.key, self.delay, self.gone = [], [], 0, None, 0.002, False
        self.models = [model('full_sft_768', context_length=8192, loras=['medical', 'identity'], defaults={'temperature': 0.7},
                             inside=True),
                       model('grpo_768', context_length=8192), model('pretrain_768', context_length=2048)]
        self.address = f'http://127.0.0.1:{self.server_address[1]}/'

    # A browser closes connections when it likes.
    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self


if __name__ == '__main__':
    server = FakeServer(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    server.delay = 0.02
    print(server.address, flush=True)
    server.serve_forever()
