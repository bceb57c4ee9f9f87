"""An optional reader: a model behind an OpenAI-compatible endpoint answers from what Search returned. Answers stay on disk."""

from __future__ import annotations

import json
import sqlite3
from hashlib import blake2b
from pathlib import Path

import httpx

from benchmark.errors import BenchError

FILE = "answers.sqlite"
TIMEOUT = 600.0  # seconds; a small machine reads a long prompt slowly
MAX_ANSWER_TOKENS = 48  # the gold answers are phrases

PROMPT = """\
Below are memories of a conversation, each with its date, the most relevant ones first. Answer the question from them, \
in as few words as possible and without a sentence around them. Where they give no answer, reply: unknown

Memories:
{memories}

Question: {question}
Short answer:"""

SCHEMA = "CREATE TABLE IF NOT EXISTS answers (request BLOB PRIMARY KEY, answer TEXT) WITHOUT ROWID"


class Reader:
    """Asks ``url``/chat/completions at temperature 0. Not thread-safe.

    An answer is kept in ``directory``/answers.sqlite under the endpoint and the whole request, so that an interrupted run goes on
    where it stopped and a repeated one asks nothing. Raises ``BenchError`` where the folder can't be used.
    """

    def __init__(self, url: str, model: str, directory: Path, api_key: str = "") -> None:
        self._url = url.rstrip("/") + "/chat/completions"
        self.model = model
        self._client = httpx.Client(headers={"Authorization": f"Bearer {api_key}"} if api_key else {}, timeout=TIMEOUT)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(directory / FILE, timeout=60, isolation_level=None)
            self._database.execute(SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise BenchError(f"{directory}: answers can't be kept there ({error}); give another folder") from error

    def describe(self) -> dict[str, object]:
        """What a result must say of the reader; not where it runs."""
        return {"model": self.model, "prompt": PROMPT, "temperature": 0, "max_tokens": MAX_ANSWER_TOKENS}

    def answer(self, question: str, memories: str) -> str:
        """The model's answer, stripped. Raises ``BenchError`` where the endpoint can't be reached or gives no answer."""
        prompt = PROMPT.format(memories=memories, question=question)
        messages = [{"role": "user", "content": prompt}]
        body = {"model": self.model, "temperature": 0, "max_tokens": MAX_ANSWER_TOKENS, "messages": messages}
        request = json.dumps(body).encode()
        key = blake2b(self._url.encode() + b"\0" + request, digest_size=16).digest()
        known = self._database.execute("SELECT answer FROM answers WHERE request = ?", [key]).fetchone()
        if known:
            return str(known[0])
        answer = self._ask(request)
        self._database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", [key, answer])
        return answer

    def close(self) -> None:
        self._client.close()
        self._database.close()

    def _ask(self, request: bytes) -> str:
        try:
            response = self._client.post(self._url, content=request, headers={"Content-Type": "application/json"})
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise BenchError(f"--reader: no answer ({type(error).__name__}); run again, answers so far are kept") from error
        if not response.is_success:
            raise BenchError(f"--reader: answered {response.status_code} {response.text[:200]}; answers so far are kept")
        try:
            answer: str = response.json()["choices"][0]["message"]["content"].strip()
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise BenchError("--reader: not a chat completion; the URL should end in /v1 or what stands for it") from error
        return answer
