"""The types of answers for clients that take pydantic's: those of features.SCHEMA and features.WEATHER."""

from typing import Literal

import pydantic


class Answer(pydantic.BaseModel):
    count: int = pydantic.Field(ge=1, le=9)
    kind: Literal['a', 'b']


class Weather(pydantic.BaseModel):
    """Weather of a city"""

    city: Literal['北京', '上海']
