"""What ``/docs`` shows of the contract. Documentation only: requests are read by ``contract``, which takes far more."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema

REF = "#/components/schemas/{model}"

ADD_EXAMPLE: dict[str, Any] = {
    "request_id": "eval:run-7:conv-0:chunk-0",
    "user_id": "eval:run-7:conv-0",
    "session_id": "eval:run-7:conv-0:session-3",
    "messages": [
        {"role": "user", "content": "I moved to Lisbon in May.", "timestamp": 1704067200000},
        {"role": "assistant", "content": "How do you like the city?"},
    ],
}
ADDED_EXAMPLE: dict[str, Any] = {"success": True} | {name: ADD_EXAMPLE[name] for name in ("request_id", "user_id", "session_id")}
IMAGE_ADD_EXAMPLE: dict[str, Any] = ADD_EXAMPLE | {
    "request_id": "eval:run-7:conv-0:chunk-1",
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "The view from my window:"},
                {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/4AAQSkZJRg=="}},
            ],
        }
    ],
}
SEARCH_EXAMPLE: dict[str, Any] = {"user_id": "eval:run-7:conv-0", "query": "Where does the user live?", "top_k": 100}
CHOICE_EXAMPLE: dict[str, Any] = SEARCH_EXAMPLE | {"options": ["A. Lisbon", "B. Madrid"]}
FOUND_EXAMPLE: dict[str, Any] = {
    "data": [
        {
            "id": "3f9c2a5be1d04c77",
            "content": "[2024-01-01] user: I moved to Lisbon in May.",
            "score": 0.87,
            "created_at": "2024-01-01T00:00:00Z",
        }
    ]
}


class TextPart(BaseModel):
    type: Literal["text"]
    text: str


class ImageUrl(BaseModel):
    url: str = Field(description="data:image/jpeg|png|webp;base64,... of at most 10 MiB decoded")


class ImagePart(BaseModel):
    type: Literal["image_url"]
    image_url: ImageUrl


Content = str | list[TextPart | ImagePart]


class AddMessage(BaseModel):
    role: str = "user"
    content: Content
    timestamp: int | None = Field(None, description="Unix milliseconds; what can't be read counts as absent")


class AddBody(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [ADD_EXAMPLE, IMAGE_ADD_EXAMPLE]})

    request_id: str = Field(min_length=1, description="The same id with the same body again writes nothing and answers 200")
    user_id: str = Field(min_length=1, description="The only boundary of a Search")
    session_id: str | None = Field(None, description="Groups messages, never filters")
    messages: list[AddMessage]


class Added(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [ADDED_EXAMPLE]})

    success: Literal[True]
    request_id: str
    user_id: str
    session_id: str | None


class SearchBody(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [SEARCH_EXAMPLE, CHOICE_EXAMPLE]})

    user_id: str = Field(min_length=1)
    query: Content
    top_k: int = Field(100, ge=0)
    options: list[str] = Field([], description="The choices of a choice question")


class Found(BaseModel):
    id: str
    content: Content
    score: float = Field(description="Higher is more relevant")
    created_at: str | None = Field(None, description="ISO 8601, UTC; left out where the message has no timestamp")


class SearchAnswer(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [FOUND_EXAMPLE]})

    data: list[Found] = Field(description="By relevance, at most top_k")


class UserDeleted(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"deleted": 42, "wiped": True}]})

    deleted: int = Field(description="Messages; 0 for an unknown user")
    wiped: bool = Field(description="False where readers kept the log busy: its old bytes go with the hourly round")


class Health(BaseModel):
    model_config = ConfigDict(extra="allow")

    status: Literal["ok"]
    auth: Literal["open", "keys"]


class Detail(BaseModel):
    reason: str = Field(description="What to do; never carries content or keys")
    field: str | None = Field(None, description="Of the request, where one is at fault")


class Problem(BaseModel):
    detail: Detail


def request_schemas() -> dict[str, Any]:
    """The schemas of the request bodies by name; FastAPI finds only those of the responses."""
    _, schemas = models_json_schema([(AddBody, "validation"), (SearchBody, "validation")], ref_template=REF)
    definitions: dict[str, Any] = schemas["$defs"]
    return definitions


def _request(model: type[BaseModel]) -> dict[str, Any]:
    schema = {"$ref": REF.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _problem(description: str, **detail: str) -> dict[str, Any]:
    example = {"application/json": {"example": {"detail": detail}}}
    return {"model": Problem, "description": description, "content": example}


CONFLICT = _problem("The request_id was used before with another body; nothing was written", reason="use a new request_id")
PROBLEMS = {
    401: _problem("Key missing or wrong", reason="the key is missing or wrong, send it as Authorization: Bearer, ..."),
    413: _problem("Body over the limit", reason="the body is over 44040192 bytes, split it or raise MEMSERVER_MAX_BODY_MB"),
    422: _problem("Not readable", reason="user_id: is missing or no string, send a non-empty string", field="user_id"),
    429: _problem("Too many in flight, see Retry-After", reason="too many requests in flight, send it again later"),
    503: _problem("Not possible for now, see Retry-After; nothing was written", reason="the embedder does not answer"),
}

ADD: dict[str, Any] = {"responses": {200: {"model": Added}, 409: CONFLICT, **PROBLEMS}, "openapi_extra": _request(AddBody)}
SEARCH: dict[str, Any] = {"responses": {200: {"model": SearchAnswer}, **PROBLEMS}, "openapi_extra": _request(SearchBody)}
USER_ID = {
    "name": "user_id",
    "in": "path",
    "required": True,
    "description": "Percent-encoded; any characters",
    "schema": {"type": "string", "minLength": 1},
}
DELETE: dict[str, Any] = {
    "responses": {200: {"model": UserDeleted}, **{status: PROBLEMS[status] for status in (401, 429, 503)}},
    "openapi_extra": {"parameters": [USER_ID]},
}
HEALTH: dict[str, Any] = {"responses": {200: {"model": Health}}}
