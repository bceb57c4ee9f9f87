"""What the answer model gets to see of a Search: evidence within a budget, and whether the answer stands there. Pure functions.

The model reads the returned contents in their order, joined by newlines, cut at a budget. A turn counts as seen when its whole
content lies before the cut.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

JOINT = "\n"

CHARACTERS = 50_000
TOKENS = 117_760  # where the platform cuts what its answer model reads

BYTES_PER_TOKEN = 4
"""UTF-8 bytes a token: an estimate, so that no figure depends on a tokenizer. English chat has about 4 characters a token; a
Chinese character, 3 bytes, counts as .75 tokens."""

SHORT_ANSWER = 5
"""Words of the longest answer that can be expected to stand in a text as it is."""

_WORD = re.compile(r"\w+")
_ARTICLES = frozenset({"a", "an", "the"})
_SAYS_NOTHING = frozenset(  # words that stand in any long talk, whatever the question
    "yes no zero one two three four five six seven eight nine ten eleven twelve".split()
)


def within_characters(contents: Sequence[str], budget: int) -> int:
    """How many of the contents, from the first, lie wholly within ``budget`` characters."""
    return _within([len(content) for content in contents], budget)


def within_tokens(contents: Sequence[str], budget: int) -> int:
    """How many of the contents, from the first, lie wholly within ``budget`` estimated tokens."""
    return _within([len(_bytes(content)) for content in contents], budget * BYTES_PER_TOKEN)


def cut_tokens(contents: Sequence[str], budget: int) -> str:
    """The text that a model with room for ``budget`` estimated tokens gets to read; the last content may be cut short."""
    return _bytes(JOINT.join(contents))[: budget * BYTES_PER_TOKEN].decode("utf-8", "ignore")


def words(text: str) -> list[str]:
    """The normalised words of a text: lower-case, without punctuation, apostrophes and articles.

    After SQuAD's scorer (Rajpurkar et al. 2016), but punctuation parts words instead of joining them: ``2023-05-08`` is three.
    """
    plain = unicodedata.normalize("NFKC", text).casefold().replace("'", "").replace("’", "")
    return [word for word in _WORD.findall(plain) if word not in _ARTICLES]


def containment(answer: str, text: str) -> float | None:
    """1 if the normalised answer stands in the normalised text as whole words in a row, else 0: a proxy for what can be answered.

    None where it would say nothing: an empty answer, one of more than ``SHORT_ANSWER`` words, a bare yes, no or number.
    """
    wanted = words(answer)
    if not 1 <= len(wanted) <= SHORT_ANSWER or all(word.isnumeric() or word in _SAYS_NOTHING for word in wanted):
        return None
    return float(f" {' '.join(wanted)} " in f" {' '.join(words(text))} ")


def exact_match(answer: str, gold: str) -> float:
    """1 if both have the same normalised words in the same order, else 0."""
    return float(words(answer) == words(gold))


def token_f1(answer: str, gold: str) -> float:
    """Harmonic mean of precision and recall over normalised words, repeated ones counted as often as both have them; 0 to 1."""
    given, wanted = words(answer), words(gold)
    common = (Counter(given) & Counter(wanted)).total()
    return 2 * common / (len(given) + len(wanted)) if common else 0.0


def _within(lengths: Sequence[int], budget: int) -> int:
    used = 0
    for count, length in enumerate(lengths):
        used += length + (len(JOINT) if count else 0)
        if used > budget:
            return count
    return len(lengths)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # a lone surrogate counts as one byte
