"""The requests of MiniMind's own scripts, chat_api.py and eval_toolcall.py of commits 101d7df and 04f5fd0, which use OpenAI's
package: the fields that they send, and the parts of an answer that they read."""

import openai

from features import BASE_URL, CALL, CALL_AND_RESULT, QUESTION, TOOLS, Client, run

client = openai.OpenAI(base_url=BASE_URL, api_key='sk-123')


def pieces_of(stream):
    """The content, and all calls by their index."""
    content, calls = [], {}
    for chunk in stream:
        delta = chunk.choices[0].delta
        if delta.content:
            content.append(delta.content)
        for part in delta.tool_calls or ():
            name, arguments = calls.get(part.index, ('', ''))
            calls[part.index] = (name + (part.function.name or ''), arguments + (part.function.arguments or ''))
    return content, calls


class ChatApi(Client):
    title = 'chat_api.py'

    def ask(self, stream):
        return client.chat.completions.create(
            model='minimind-local:latest', messages=QUESTION, stream=stream, temperature=0, max_tokens=2048, top_p=0.8,
            extra_body={'chat_template_kwargs': {'open_thinking': True}, 'reasoning_effort': 'medium'})

    def chat(self):
        return self.ask(False).choices[0].message.content

    def stream(self):
        return pieces_of(self.ask(True))[0]


class EvalToolcall(Client):
    title = 'eval_toolcall.py'

    def ask(self, stream=False, messages=QUESTION, **fields):
        return client.chat.completions.create(model='jingyaogong/minimind-3:latest', messages=messages, tools=TOOLS, stream=stream,
                                              temperature=0, max_tokens=1024, top_p=0.9, **fields)

    def chat(self):
        return self.ask().choices[0].message.content

    def stream(self):
        return pieces_of(self.ask(True))[0]

    def tools(self):
        function = self.ask(tool_choice='required', parallel_tool_calls=False).choices[0].message.tool_calls[0].function
        return function.name, function.arguments

    def tool_stream(self):
        return pieces_of(self.ask(True, tool_choice='required', parallel_tool_calls=False))[1][0]

    def tool_result(self):
        return self.ask(messages=[QUESTION[0], {**CALL, 'content': ''}, CALL_AND_RESULT[-1]]).choices[0].message.content


run(ChatApi, EvalToolcall)
