"""Texts as they come: long, cut in the middle of a word, Chinese, code. What is longer than a model's window is split."""

from __future__ import annotations

from memserver.preflight.probe import QUESTION, Group, Probe, turn
from memserver.preflight.search import OTHER_TOPICS

MESSAGE_CHARS = 8_000  # the longest message that the platform sends
QUERY_CHARS = 133_904  # the longest query seen in a run
LONG_CHARS = 100_000
FILLER = "Then the committee adjourned, and the minutes were read and approved without further remarks. "
CHINESE = [
    "患者主诉头痛三天，伴有发热和咳嗽。",
    "合同应当采用书面形式订立。",
    "昨天我们去爬山，看到了很多红叶。",
    "这家餐厅的牛肉面非常好吃。",
    "他每天早上六点起床跑步。",
    "图书馆周一不开放。",
    "小猫的名字叫墨墨，今年两岁。",
]
CODE = [
    "def parse_invoice_total(path): return Decimal(read(path))",
    "class HttpRetryPolicy: max_attempts = 5",
    "const renderSidebar = () => <Sidebar items={items} />",
    "SELECT user_name FROM accounts WHERE closed_at IS NULL",
    "fn merge_sorted_runs(left: &[u32], right: &[u32]) -> Vec<u32>",
]
GROUP = Group("texts")


def _filler(chars: int) -> str:
    return (FILLER * (chars // len(FILLER) + 1))[:chars]


@GROUP.check("finds the end of a message of 8,000 characters", "embed all of a text: split it into windows, do not cut it")
def finds_end(probe: Probe) -> None:
    _finds_end(probe, MESSAGE_CHARS)


@GROUP.check("finds the end of a text of 100,000 characters", "embed all of a text: split it into windows, do not cut it")
def finds_far_end(probe: Probe) -> None:
    _finds_end(probe, LONG_CHARS)


def _finds_end(probe: Probe, chars: int) -> None:
    user, end = probe.user(), f"The harbour gate opens with the password {probe.word()}."
    probe.store(user, *map(turn, OTHER_TOPICS), turn(_filler(chars - len(end)) + end))
    probe.expect(user, end, query="With which password does the harbour gate open?", top_k=2)


@GROUP.check("takes a full Add of long messages", "14 messages of 8,000 characters are one Add: split them for the model")
def takes_full_add(probe: Probe) -> None:
    user = probe.user()
    probe.store(user, *[turn(f"{number}. {_filler(MESSAGE_CHARS - 10)}") for number in range(14)])
    probe.expect(user, "committee", query="When did the committee adjourn?")


@GROUP.check(
    "keeps both halves of a text cut across messages", "keep consecutive messages whole and in order; do not drop fragments"
)
def keeps_halves(probe: Probe) -> None:
    user, word = probe.user(), probe.word()
    first, second = f"the name of my beagle is {word[:5]}", f"{word[5:]}, and it barks"
    probe.store(user, turn(f"document: {first}"), turn(f"document: {second}"))
    probe.expect(user, first, second)


@GROUP.check("takes a query of 133,904 characters", "split a long query or shorten it for the model; never refuse it")
def takes_long_query(probe: Probe) -> None:
    user = probe.user()
    word = probe.remember(user)
    probe.expect(user, word, query=_filler(QUERY_CHARS - len(QUESTION)) + QUESTION)


@GROUP.check(
    "finds Chinese", "tokenize Chinese (bigrams will do) and embed it with a model that knows it; it is most of the traffic"
)
def finds_chinese(probe: Probe) -> None:
    user = probe.user()
    probe.store(user, *map(turn, CHINESE))
    probe.expect(user, CHINESE[-1], query="小猫叫什么名字？", top_k=2)


@GROUP.check("finds code by part of an identifier", "split identifiers at underscores and capitals, and keep them whole too")
def finds_code(probe: Probe) -> None:
    user = probe.user()
    probe.store(user, *map(turn, CODE))
    probe.expect(user, CODE[1], query="Which retry policy do we use?", top_k=2)
