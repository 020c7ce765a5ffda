"""The features of chats and responses, for the packages whose answers have the form of OpenAI's."""

from features import CALL, CALL_AND_RESULT, ENOUGH, MODEL, QUESTION, SCHEMA, STOP, TEXT, TOKENS, TOOLS, WEATHER, Client

GREEDY = {'model': MODEL, 'messages': QUESTION, 'max_tokens': TOKENS, 'temperature': 0}
GREEDY_RESPONSE = {'model': MODEL, 'input': TEXT, 'max_output_tokens': TOKENS, 'temperature': 0}
FORCED = {'tools': TOOLS, 'tool_choice': 'required', 'max_tokens': ENOUGH}


def text_of(answer):
    return answer.choices[0].message.content


class ChatForm(Client):
    """ask() gives the answer to GREEDY with other fields."""

    forced = FORCED
    seed_name = 'seed'

    def chat(self):
        return text_of(self.ask())

    def stream(self):
        return [chunk.choices[0].delta.content for chunk in self.ask(stream=True) if chunk.choices[0].delta.content]

    def tools(self):
        function = self.ask(**self.forced).choices[0].message.tool_calls[0].function
        return function.name, function.arguments

    def tool_result(self):
        return text_of(self.ask(messages=CALL_AND_RESULT, tools=TOOLS))

    def json_object(self):
        return text_of(self.ask(response_format={'type': 'json_object'}, max_tokens=ENOUGH))

    def json_schema(self):
        form = {'type': 'json_schema', 'json_schema': {'name': 'answer', 'schema': SCHEMA, 'strict': True}}
        return text_of(self.ask(response_format=form, max_tokens=ENOUGH))

    def logprobs(self):
        tokens = self.ask(logprobs=True, top_logprobs=2).choices[0].logprobs.content
        return [one.logprob for token in tokens for one in (token, *token.top_logprobs)]

    def stop(self):
        return text_of(self.ask(stop=[STOP]))

    def seed(self):
        return [text_of(self.ask(**{self.seed_name: seed}, temperature=1)) for seed in (1, 1, 2)]

    def several(self):
        return [choice.message.content for choice in self.ask(n=2).choices]

    def usage(self):
        *_, last = self.ask(stream=True, stream_options={'include_usage': True})
        return last.usage.prompt_tokens, last.usage.completion_tokens

    def error(self):
        return self.ask(temperature=-1)


def call_of(response):
    return next((item.name, item.arguments) for item in response.output if item.type == 'function_call')


class ResponseForm(Client):
    """ask() gives the response to GREEDY_RESPONSE with other fields, text_of() the text of one."""

    forced = {'tools': [{'type': 'function', **WEATHER, 'strict': True}], 'tool_choice': 'required',
              'parallel_tool_calls': False, 'max_output_tokens': ENOUGH}

    def chat(self):
        return self.text_of(self.ask())

    def tools(self):
        return call_of(self.ask(**self.forced))

    def tool_result(self):
        call = CALL['tool_calls'][0]
        return self.text_of(self.ask(input=[
            *QUESTION, {'type': 'function_call', 'call_id': call['id'], **call['function']},
            {'type': 'function_call_output', 'call_id': call['id'], 'output': '晴'}]))

    def usage(self):
        usage = self.ask().usage
        return usage.input_tokens, usage.output_tokens

    def error(self):
        return self.ask(temperature=-1)
