"""Text -> index terms, the same for index and query; and the date and speaker that belong to a message's text.

Terms of the analyzer ``words``:
- Porter stems of words (nltk, mode ``NLTK_EXTENSIONS``), lower-cased, accents folded, possessives removed;
- character bigrams of scripts written without blanks (Chinese, Japanese, Thai, ...): they beat a dictionary segmenter; of Chinese
  the single characters too, as words of two often share just one with their synonym, but no question words and particles;
- identifiers, paths, versions and error codes whole, and their parts beside them (``getUser_id``: getuser_id, get, user, id).

The analyzer ``ascii`` is there to rebuild agentmemory's published results: it knows no other alphabet and no stop words.
Every pattern is linear in the length of its input.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from nltk.stem.porter import PorterStemmer

Analyzer = Callable[[str], list[str]]
"""Text -> its terms in order, repeated as they occur."""

MAX_TERM = 128
"""Characters; longer runs (base64, minified code) are indexed by their beginning."""

PIECE = 1 << 16
"""Characters analysed at a time."""

MAX_ROLE = 64
"""Characters of a role that are indexed and shown; with the date in front it leaves most of an embedder's window free."""

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_BIGRAM_SCRIPTS = (
    "\u0900-\u0dff"  # the Indic scripts: their vowel signs are no word characters, which would tear words apart
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u3040-\u30ff\u31f0-\u31ff"  # kana
    f"{_HAN}"
    "\u1100-\u11ff\uac00-\ud7af"  # Hangul
)
_WORD = rf"[^\W_{_BIGRAM_SCRIPTS}]"
_TOKEN = re.compile(rf"([{_BIGRAM_SCRIPTS}]+)|{_WORD}++(?:[_./\\:@#+'’-]++{_WORD}++)*")
_HAN_CHARACTER = re.compile(f"[{_HAN}]")
_HAN_FUNCTION_WORDS = re.compile(
    "什么时候|什么|怎么样|怎么|怎样|多少|哪里|哪儿|哪个|哪些|哪天|哪|几点|谁|为什么|为何|如何|是否|有没有|请问|[吗呢吧啊的了]"
)
_JOINED = re.compile(r"[_./\\:@#+-]+")
_APOSTROPHE = re.compile(r"['’](?:s\b)?")
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_MIXED = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
_NOT_ASCII_WORD = re.compile(r"[^a-z0-9_\s/.-]")
_LONG_MARKS = re.compile(r"([^\w\s!-~]{30})[^\w\s!-~]++")  # normalising a long run of combining marks takes quadratic time
_MARKS = re.compile("[\u0300-\u036f]")
_NAME = r"[^\W\d_a-z][\w.'’-]{0,30}"
_LABEL = re.compile(
    rf"\s*+(?:(?:user|assistant|system|human|ai|source|document):\s|{_NAME}(?: {_NAME}){{0,2}}:\s|[^\W\d_]{{1,12}}：)"
)

_STOP = frozenset(
    # English function words (after Snowball's list): without them MRR on LoCoMo turns drops by five points.
    "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its "
    "itself they them their theirs themselves what which who whom this that these those am is are was were be been being "
    "have has had having do does did doing a an the and but if or because as until while of at by for with about against "
    "between into through during before after above below to from up down in out on off over under again further then once "
    "here there when where why how all any both each few more most other some such no nor not only own same so than too "
    "very can will just should now".split()
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

_stemmer = PorterStemmer(mode=PorterStemmer.NLTK_EXTENSIONS)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stems(text: str) -> list[str]:
    """The analyzer ``words``."""
    terms: list[str] = []
    for piece in _pieces(text):
        for match in _TOKEN.finditer(unicodedata.normalize("NFKC", _LONG_MARKS.sub(r"\1", piece))):
            token = match.group()
            if match.group(1):
                terms.extend(_bigrams(token))
            elif len(token) <= MAX_TERM:
                terms.extend(_cached_terms(token))
            else:
                terms.extend(_token_terms(token))
    return terms


def _pieces(text: str) -> Iterator[str]:
    """``text`` in pieces that end at a blank where there is one near: a regex over all of it would hold the interpreter lock."""
    start = 0
    while start < len(text):
        end = start + PIECE
        if end < len(text):
            blank = max(text.rfind(" ", end - MAX_TERM, end), text.rfind("\n", end - MAX_TERM, end))
            end = blank + 1 if blank >= 0 else end
        yield text[start:end]
        start = end


def _bigrams(run: str) -> Iterator[str]:
    for part in _HAN_FUNCTION_WORDS.split(run):
        yield from (part[i : i + 2] for i in range(len(part) - 1))
        yield from _HAN_CHARACTER.findall(part) if len(part) > 1 else part


def _token_terms(token: str) -> tuple[str, ...]:
    token = _APOSTROPHE.sub("", token)
    words = [word[:MAX_TERM] for word in _JOINED.split(token)]
    terms: list[str] = []
    if len(words) > 1:
        terms.append(token.lower()[:MAX_TERM])
    for word in words:
        lower = _MARKS.sub("", unicodedata.normalize("NFKD", word)).lower() if not word.isascii() else word.lower()
        if lower and lower not in _STOP:
            terms.append(_stem(lower))
        if _MIXED.search(word):
            terms.extend(_stem(part.lower()) for part in _CAMEL.findall(word) if len(part) > 1 or part.isdigit())
    return tuple(terms)


_cached_terms = lru_cache(maxsize=1 << 16)(_token_terms)


def _stem(word: str) -> str:
    return _stemmer.stem(word, to_lowercase=False) if word.isalpha() else word


def ascii_stems(text: str) -> list[str]:
    """The analyzer ``ascii``: lower-cased runs of ASCII word characters, ``/``, ``.`` and ``-``, two or more, Porter-stemmed."""
    return [_ascii_stem(token[:MAX_TERM]) for token in _NOT_ASCII_WORD.sub(" ", text.lower()).split() if len(token) > 1]


@lru_cache(maxsize=1 << 16)
def _ascii_stem(token: str) -> str:
    return str(_stemmer.stem(token, to_lowercase=False))


ANALYZERS: dict[str, Analyzer] = {"words": stems, "ascii": ascii_stems}
ANALYZER_VERSION = 2
"""Terms are stored: one that changes what an analyzer makes of a text must count this up, and old stores are refused."""


def moment(timestamp: int | None) -> datetime | None:
    """``timestamp`` (Unix ms) in UTC; None where there is none or the calendar ends (before year 1, beyond 9999)."""
    if timestamp is None:
        return None
    try:
        return _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return None


def day(timestamp: int | None) -> date | None:
    """The UTC date of ``timestamp``, None as above."""
    found = moment(timestamp)
    return found.date() if found else None


def label_of(text: str) -> str:
    """The label in front of ``text``, empty for none: a role or kind (``user: ``), up to three capitalised words, ``医生：``."""
    match = _LABEL.match(text)
    return match.group() if match else ""


def label(role: str, text: str) -> str:
    """``user: ``, or nothing where ``text`` brings a label of its own."""
    return "" if label_of(text) else f"{role[:MAX_ROLE]}: "


def index_prefix(role: str, timestamp: int | None, text: str) -> str:
    """What is indexed in front of a message's text: ``[Monday, 8 May 2023] user: ``; the date in words, as questions name it."""
    stamp = day(timestamp)
    spelled = f"[{_WEEKDAYS[stamp.weekday()]}, {stamp.day} {_MONTHS[stamp.month - 1]} {stamp.year}] " if stamp else ""
    return spelled + label(role, text)
