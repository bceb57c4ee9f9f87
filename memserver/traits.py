"""What is seen of a message or a question once, by patterns, and used while ranking: who speaks, what is asked, what goes on.

Every pattern is linear in the length of its input.
"""

from __future__ import annotations

import re

from memserver.text import label_of, stems
from memserver.types import Message, Traits

ASKING_LENGTH = 500
"""Characters; a longer message says more than it asks."""

LONG_QUERY = 600
"""Characters; a longer query is taken apart into its question and what stands around it."""

OVERLAP = 400
"""Characters of the text before a cut that are read again with the text behind it: about half an embedder's window."""

_ROLES = frozenset("user assistant system human ai source document tool 用户 助手 系统".split())
_SENTENCE = re.compile(r"[^.!?。！？\n]++[.!?。！？\n]*+")
_ASIDE = re.compile(r"\[[^\]\n]{0,300}\]")  # what is shown beside the words: [shares a photo of ...]
_ADVICE = re.compile(
    r"\b(?:can|could|would) you (?:please )?(?:recommend|suggest|advise|give me|help me)\b"
    r"|\bwhat (?:do|would) you (?:recommend|suggest)\b"
    r"|\b(?:any|some) (?:\w{1,20} )?(?:tips|advice|ideas|suggestions|recommendations)\b"
    r"|\bshould i\b|\bdo you think\b"
    r"|推荐|建议我|有什么建议|你觉得|怎么办",
    re.IGNORECASE,
)
_MARKED = re.compile(r"(?:^|\n)[ \t#*]*(?:user )?(?:question|query|问题|提问)\**[ \t]*[:：]", re.IGNORECASE)
_WORD_START = re.compile(r"\s\S")


def traits(message: Message, placed: int | None, continues: str | None) -> Traits:
    """All traits of a message of an Add that is placed there and continues that message."""
    return Traits(len(message.text), speaker(message.text), asking(message.text), placed, continues)


def speaker(text: str) -> tuple[str, ...]:
    """The stems of the name in the label of ``text`` (``Caroline: ``), none where there is no label or it names a role.

    Single characters, which stand in many words, are no names.
    """
    name = label_of(text).strip(" \t\n:：")
    return tuple(stem for stem in dict.fromkeys(stems(name)) if len(stem) > 1) if name.lower() not in _ROLES else ()


def asking(text: str) -> float:
    """The share of a short text that stands in sentences ending in a question mark, 0 to 1; 0 for a long text."""
    if len(text) > ASKING_LENGTH:
        return 0.0
    sentences = _SENTENCE.findall(_ASIDE.sub("", text[len(label_of(text)) :]))
    total = sum(map(len, sentences))
    return sum(len(sentence) for sentence in sentences if sentence.rstrip().endswith(("?", "？"))) / total if total else 0.0


def asks_for_advice(text: str) -> bool:
    """Whether a question asks what to do or choose. What helps there shares its topic, hardly its words."""
    return _ADVICE.search(text) is not None


def question_of(text: str) -> str:
    """The question within a long query, which may bring a page of instructions; a short one, or one without a question, whole.

    It is what stands behind the last ``Question:``, else the last sentence that ends in a question mark with the one before it.
    """
    if len(text) <= LONG_QUERY:
        return text
    marked = [match.end() for match in _MARKED.finditer(text)]
    if marked and (question := text[marked[-1] : marked[-1] + LONG_QUERY].strip()):
        return question.split("\n\n")[0]
    sentences = [match.group() for match in _SENTENCE.finditer(text)]
    asked = next((at for at in range(len(sentences) - 1, -1, -1) if sentences[at].rstrip().endswith(("?", "？"))), None)
    return "".join(sentences[max(0, asked - 1) : asked + 1]).strip()[-LONG_QUERY:] if asked is not None else text


def goes_on(before: Message, message: Message, cut_chars: int) -> bool:
    """Whether ``message`` is the rest of a text that arrived cut: same role and label behind a piece of full length."""
    return (
        0 < cut_chars <= len(before.text)
        and before.role == message.role
        and label_of(before.text) == label_of(message.text)
        and not before.parts
        and not message.parts
    )


def tail(text: str) -> str:
    """The end of ``text`` behind its label, at most ``OVERLAP`` characters, from the start of a word where there is one."""
    body = body_of(text)
    end = body[-OVERLAP:]
    start = _WORD_START.search(end) if len(body) > OVERLAP else None
    return end[start.start() + 1 :] if start else end


def head(text: str) -> str:
    """The beginning of ``text`` behind its label, at most ``OVERLAP`` characters, up to the end of a word."""
    body = body_of(text)
    if len(body) <= OVERLAP:
        return body
    start = body[:OVERLAP]
    blank = max(start.rfind(" "), start.rfind("\n"))
    return start[:blank] if blank > 0 else start


def body_of(text: str) -> str:
    """``text`` without its label."""
    return text[len(label_of(text)) :]
