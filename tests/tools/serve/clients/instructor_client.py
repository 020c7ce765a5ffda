"""instructor in its modes for OpenAI's APIs.

Not in MD_JSON and PARALLEL_TOOLS, which ask for JSON in words, and leave calls to the model, which knows only poems.
"""

import instructor
import openai
import pydantic
from answer import Answer, Weather

from features import BASE_URL, ENOUGH, MODEL, QUESTION, Client, run

SETTINGS = {'base_url': BASE_URL, 'api_key': 'none', 'max_retries': 0}


class Anything(pydantic.BaseModel, extra='allow'):
    """Any object."""


class Mode(Client):
    mode = None
    limit = {'max_tokens': ENOUGH}

    def fields(self, **others):
        return {'model': MODEL, 'messages': QUESTION, 'response_model': Answer, 'temperature': 0, 'max_retries': 0, **self.limit,
                **others}

    def client(self):
        return instructor.from_openai(openai.OpenAI(**SETTINGS), mode=self.mode)

    def ask(self, **others):
        return self.client().create(**self.fields(**others)).model_dump()

    def usage(self):
        _, answer = self.client().create_with_completion(**self.fields())
        return answer.usage.prompt_tokens, answer.usage.completion_tokens

    def error(self):
        return self.ask(temperature=-1)


class Json(Mode):
    title = 'JSON'
    mode = instructor.Mode.JSON

    def fields(self, **others):
        return super().fields(**{'response_model': Anything, **others})

    def json_object(self):
        return self.ask()


class Typed(Mode):
    """The modes whose answers have the type."""

    def json_schema(self):
        return self.ask()

    async def asynchronous(self):
        client = instructor.from_openai(openai.AsyncOpenAI(**SETTINGS), mode=self.mode)
        return (await client.create(**self.fields())).model_dump()


class JsonSchema(Typed):
    title = 'JSON_SCHEMA'
    mode = instructor.Mode.JSON_SCHEMA


class Tools(Typed):
    title = 'TOOLS'
    mode = instructor.Mode.TOOLS

    def tools(self):
        return 'weather', self.ask(response_model=Weather)

    def tool_stream(self):
        *_, last = self.client().create_partial(**self.fields(response_model=Weather))
        return 'weather', last.model_dump()


class ResponsesTools(Typed):
    title = 'RESPONSES_TOOLS'
    mode = instructor.Mode.RESPONSES_TOOLS

    def tools(self):
        return 'weather', self.ask(response_model=Weather)

    def usage(self):
        _, answer = self.client().create_with_completion(**self.fields())
        return answer.usage.input_tokens, answer.usage.output_tokens


run(Tools, Json, JsonSchema, ResponsesTools)
