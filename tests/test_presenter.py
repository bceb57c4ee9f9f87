"""What a hit shows, and the length budget."""

import pytest

from memserver.presenter import ContentStyle, present
from memserver.types import Hit, Image, Message, StoredMessage

MAY_8 = 1_683_504_000_000  # 2023-05-08T00:00:00Z


def hits(*messages: Message, style: ContentStyle = "dated", budget: int = 0, limit: int = 100) -> list[Hit]:
    stored = {seq: StoredMessage(seq, f"id{seq}", "s", message) for seq, message in enumerate(messages, 1)}
    return present([(seq, 1 / seq) for seq in stored], stored, style, budget, limit)


@pytest.mark.parametrize(
    ("message", "dated", "raw"),
    [
        (Message("user", " hi ", MAY_8), "[2023-05-08] user: hi", " hi "),
        (Message("user", "hi"), "user: hi", "hi"),
        (Message("user", "Caroline: hi", MAY_8), "[2023-05-08] Caroline: hi", "Caroline: hi"),
        (Message("user", "Caroline: hi"), "Caroline: hi", "Caroline: hi"),
        (Message("user", "hi", 10**18), "user: hi", "hi"),
    ],
)
def test_content_by_style(message: Message, dated: str, raw: str) -> None:
    assert [hit.content for hit in hits(message)] == [dated]
    assert [hit.content for hit in hits(message, style="raw")] == [raw]


def test_created_at_is_the_messages_own_time_or_absent() -> None:
    shown = hits(Message("user", "a", MAY_8 + 1), Message("user", "b"), Message("user", "c", 10**18), Message("user", "d", -1))
    assert [hit.created_at for hit in shown] == ["2023-05-08T00:00:00.001Z", None, None, "1969-12-31T23:59:59.999Z"]


def test_the_budget_counts_content_and_a_hit_that_does_not_fit_makes_room_for_shorter_ones() -> None:
    texts = ["a" * 40, "b" * 70, "c" * 59, "d"]
    shown = hits(*(Message("user", text) for text in texts), style="raw", budget=100)
    assert [hit.id for hit in shown] == ["id1", "id3"]  # 40, not 40 + 1 + 70, 40 + 1 + 59 = 100, not one more


def test_the_first_hit_is_given_whatever_its_length() -> None:
    assert [len(hit.content) for hit in hits(Message("user", "a" * 500), Message("user", "b"), style="raw", budget=100)] == [500]


def test_what_was_left_out_for_its_length_makes_room_within_the_limit() -> None:
    texts = ["a" * 40, "b" * 70, "c" * 10, "d" * 10]
    shown = hits(*(Message("user", text) for text in texts), style="raw", budget=100, limit=2)
    assert [hit.id for hit in shown] == ["id1", "id3"]


def test_no_budget_gives_all() -> None:
    assert len(hits(*[Message("user", "a" * 100_000)] * 20)) == 20


def test_a_message_that_is_gone_is_left_out() -> None:
    stored = {2: StoredMessage(2, "id2", "s", Message("user", "b"))}
    assert [hit.id for hit in present([(1, 0.9), (2, 0.8)], stored, "dated", 0, 100)] == ["id2"]


def test_images_keep_their_place_and_the_label_stands_in_front() -> None:
    image = Image("00", "image/png", b"png")
    with_text, alone = hits(Message("user", "look\nhere", MAY_8, ("look", image, "here")), Message("user", "", MAY_8, (image,)))
    assert with_text.content == ("[2023-05-08] user: look", image, "here")
    assert alone.content == ("[2023-05-08] user:", image)
    assert hits(Message("user", "", MAY_8, (image,)), style="raw")[0].content == (image,)
