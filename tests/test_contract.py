"""How odd input is read, row by row, and that answers carry the ids back byte for byte."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memserver.contract import LAST_MS, MAX_IMAGE_BYTES, MAX_TOP_K, add_response, read_add, read_search, search_response
from memserver.errors import BadRequest
from memserver.types import AddRequest, Hit, Image, Message, SearchRequest

SECRET = "the cat is called Mitzi"
PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
JPEG = b"\xff\xd8\xff\xe0" + b"pixels"
WEBP = b"RIFF\x0a\x00\x00\x00WEBP" + b"pixels"

ODD_IDS = [
    "eval:run_abc123:conv-0:chunk-0",
    "a/b/../..//c",
    "..",
    " ",
    "\u0000",
    "用户-é-🙂",
    'quote " backslash \\ percent %2F plus +',
    "line\nbreak\u2028",
    "x" * 4096,
]


def add_body(**fields: Any) -> bytes:
    return json.dumps({"request_id": "r", "user_id": "u", "session_id": "s", "messages": [], **fields}).encode()


def search_body(**fields: Any) -> bytes:
    return json.dumps({"user_id": "u", "query": "q", "top_k": 100, **fields}).encode()


def add(**fields: Any) -> AddRequest:
    return read_add(add_body(**fields))[0]


def echo(**fields: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(read_add(add_body(**fields))[1])
    return answer


def search(**fields: Any) -> SearchRequest:
    return read_search(search_body(**fields))


def message(value: Any) -> Message:
    (only,) = add(messages=[value]).messages
    return only


def content(value: Any) -> str:
    return message({"role": "user", "content": value}).text


def timestamp(value: Any) -> int | None:
    return message({"content": "x", "timestamp": value}).timestamp


def data_url(data: bytes, mime: str = "image/png") -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def image_part(url: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


# --- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ODD_IDS)
def test_ids_are_read_and_echoed_byte_for_byte(odd: str) -> None:
    request = add(request_id=odd, user_id=odd, session_id=odd)
    assert (request.request_id, request.user_id, request.session_id) == (odd, odd, odd)
    assert echo(request_id=odd, user_id=odd, session_id=odd) == {
        "success": True,
        "request_id": odd,
        "user_id": odd,
        "session_id": odd,
    }
    assert search(user_id=odd).user_id == odd


def test_the_echo_has_the_very_bytes_of_an_id_sent_unescaped() -> None:
    assert '"user_id":"用户:é/../🙂"' in add_response("r", "用户:é/../🙂", "s").decode()


@pytest.mark.parametrize("field", ["request_id", "user_id"])
@pytest.mark.parametrize("value", [None, "", 7, True, ["u"], {"u": 1}, "\ud800", "a\udfffb"])
def test_an_unusable_id_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        add(**{field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("field", ["request_id", "user_id", "messages"])
def test_a_missing_field_of_an_add_is_refused_by_name(field: str) -> None:
    fields = {"request_id": "r", "user_id": "u", "messages": []}
    del fields[field]
    with pytest.raises(BadRequest) as caught:
        read_add(json.dumps(fields).encode())
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("raw", "group"),
    [
        ("s", "s"),
        ("", ""),
        (None, ""),
        (7, "7"),
        (True, "true"),
        (10**40, "1" + 40 * "0"),
        (["a", 1], '["a",1]'),
        ({"b": "é", "a": 1}, '{"a":1,"b":"é"}'),
    ],
)
def test_any_session_id_groups_by_its_text_and_comes_back_as_it_was(raw: Any, group: str) -> None:
    assert add(session_id=raw).session_id == group
    assert echo(session_id=raw)["session_id"] == raw


def test_a_missing_session_id_groups_under_the_empty_name_and_is_echoed_as_null() -> None:
    request, answer = read_add(b'{"request_id":"r","user_id":"u","messages":[]}')
    assert request.session_id == ""
    assert answer == b'{"success":true,"request_id":"r","user_id":"u","session_id":null}'


@pytest.mark.parametrize("value", ["\ud800", ["\udc00"], {"\udc00": 1}])
def test_a_session_id_that_is_not_unicode_is_refused(value: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        add(session_id=value)
    assert caught.value.field == "session_id"


# --- bodies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b" ", b"{", b"nonsense", b"\xff\xfe", b"{'a': 1}", b'{"a":1}{"b":2}'])
def test_what_is_not_json_is_refused(body: bytes) -> None:
    for read in (read_add, read_search):
        with pytest.raises(BadRequest, match="not JSON"):
            read(body)


@pytest.mark.parametrize("body", [b"[]", b"null", b"1", b'"text"', b"NaN"])
def test_json_that_is_no_object_is_refused(body: bytes) -> None:
    for read in (read_add, read_search):
        with pytest.raises(BadRequest, match="not a JSON object"):
            read(body)


def nested(depth: int) -> bytes:
    array = b"[" * depth + b"]" * depth
    return b'{"request_id":"r","user_id":"u","session_id":%s,"query":%s,"messages":%s}' % (array, array, array)


@pytest.mark.parametrize("read", [read_add, read_search])
def test_deep_nesting_is_refused(read: Callable[[bytes], object]) -> None:
    with pytest.raises(BadRequest, match="nested too deeply"):
        read(nested(100_000))


@pytest.mark.parametrize("read", [read_add, read_search])
def test_no_depth_of_nesting_breaks(read: Callable[[bytes], object]) -> None:
    for depth in (10, *range(800, 1050)):  # around the interpreter's limit each function reaches it at another depth
        with suppress(BadRequest):
            read(nested(depth))


def test_bytes_that_are_not_utf_8_become_replacement_characters_in_text() -> None:
    request, _ = read_add(b'{"request_id":"r","user_id":"u","messages":["caf\xe9"]}')
    assert request.messages[0].text == "caf\ufffd"


def test_bytes_that_are_not_utf_8_are_refused_in_an_id() -> None:
    with pytest.raises(BadRequest) as caught:
        read_search(b'{"user_id":"caf\xe9","query":"q"}')
    assert caught.value.field == "user_id"


def test_a_byte_order_mark_is_skipped() -> None:
    assert read_search(b"\xef\xbb\xbf" + search_body()).user_id == "u"


def test_nan_and_endless_numbers_are_read() -> None:
    body = b'{"request_id":"r","user_id":"u","x":NaN,"y":%s,"messages":["kept"]}' % (b"9" * 10_000)
    assert read_add(body)[0].messages[0].text == "kept"


def test_extra_fields_are_ignored() -> None:
    assert add(metadata={"a": 1}, messages=[{"content": "x", "name": "y"}]).messages == (Message("user", "x"),)


@pytest.mark.parametrize(
    "fields", [{"request_id": [SECRET]}, {"user_id": SECRET + "\ud800"}, {"session_id": SECRET + "\ud800"}, {"messages": SECRET}]
)
def test_a_refusal_never_repeats_what_was_sent(fields: dict[str, Any]) -> None:
    with pytest.raises(BadRequest) as caught:
        add(**fields)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


# --- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "text", 1, True])
def test_messages_that_are_no_array_are_refused(value: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        add(messages=value)
    assert caught.value.field == "messages"


def test_no_messages_are_fine() -> None:
    assert add(messages=[]).messages == ()


def test_a_single_message_is_read_as_a_list_of_one() -> None:
    assert add(messages={"role": "user", "content": "x"}).messages == (Message("user", "x"),)


def test_messages_keep_their_order_and_what_is_no_message_is_dropped() -> None:
    read = add(messages=[None, {"role": "assistant", "content": "a"}, 7, "b", ["c"], {}]).messages
    assert read == (Message("assistant", "a"), Message("user", "b"))


@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000", "\u0000", None, [], [" ", None], {"text": ""}])
def test_a_blank_turn_is_dropped_and_the_rest_kept(blank: Any) -> None:
    assert add(messages=[{"content": blank}, "kept"]).messages == (Message("user", "kept"),)
    assert add(messages=[{"content": blank}]).messages == ()


@pytest.mark.parametrize(
    ("raw", "role"),
    [
        ("user", "user"),
        ("assistant", "assistant"),
        ("narrator", "narrator"),
        (" System\u0000 ", "System"),
        ("\ud800", "\ufffd"),
        ("", "user"),
        (" ", "user"),
        (None, "user"),
        (3, "user"),
        (["user"], "user"),
        ("r" * 101, "r" * 100),
    ],
)
def test_role(raw: Any, role: str) -> None:
    assert message({"role": raw, "content": "x"}).role == role


def test_a_missing_role_is_user() -> None:
    assert message({"content": "x"}).role == "user"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("plain", "plain"),
        ("  kept \n blanks\t", "  kept \n blanks\t"),
        ("a\u0000b", "ab"),
        ("a\ud800b", "a\ufffdb"),
        ("🙂", "🙂"),
        (7, "7"),
        (2.5, "2.5"),
        (True, "True"),
        ({"text": "t", "x": 1}, "t"),
        ({"content": "c"}, "c"),
        ({"b": ["é", 1], "a": None}, '{"b":["é",1],"a":null}'),
        (["a", "b"], "a\nb"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": " b"}], "a\n b"),
        (["a", "", None, {"type": "text", "text": ""}, 7], "a\n7"),
        ([{"s": "subject", "p": "predicate"}], '{"s":"subject","p":"predicate"}'),
        ("x" * 100_000, "x" * 100_000),
    ],
)
def test_content(raw: Any, text: str) -> None:
    assert content(raw) == text


# --- images -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mime", "data"), [("image/png", PNG), ("image/jpeg", JPEG), ("image/webp", WEBP)])
@pytest.mark.parametrize("bare", [True, False])
def test_an_image_is_read_with_its_digest(mime: str, data: bytes, bare: bool) -> None:
    url = data_url(data, mime)
    part = {"type": "image_url", "image_url": url if bare else {"url": url}}
    assert message({"content": [part]}).parts == (Image(hashlib.sha256(data).hexdigest(), mime, data),)


def test_parts_keep_their_order_and_the_text_joins_the_texts() -> None:
    image = Image(hashlib.sha256(PNG).hexdigest(), "image/png", PNG)
    read = message({"content": ["before", image_part(data_url(PNG)), {"type": "text", "text": "after"}]})
    assert read.parts == ("before", image, "after")
    assert read.text == "before\nafter"


def test_parts_are_empty_without_an_image() -> None:
    assert message({"content": ["a", "b"]}).parts == ()


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/cat.png",
        "data:image/gif;base64,R0lGODlh",
        "data:image/png,raw",
        "data:image/png;base64,",
        "data:image/png;base64,****",
        "data:image/png;base64,é",
        data_url(PNG)[:-1],
        data_url(PNG) + "\n",
        data_url(JPEG, "image/png"),
        data_url(b"RIFF....WAVE", "image/webp"),
        "",
        None,
        7,
    ],
)
def test_an_unreadable_image_is_dropped_and_the_text_beside_it_kept(url: Any) -> None:
    read = message({"content": ["kept", image_part(url)]})
    assert (read.text, read.parts) == ("kept", ())
    assert add(messages=[{"content": [image_part(url)]}]).messages == ()


def test_an_image_has_at_most_ten_mebibytes() -> None:
    largest = PNG.ljust(MAX_IMAGE_BYTES, b"\0")
    kept, dropped = ([image_part(data_url(data))] for data in (largest, largest + b"\0"))
    assert len(message({"content": kept}).parts) == 1
    assert add(messages=[{"content": dropped}]).messages == ()


# --- timestamps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "ms"),
    [
        (1704067200000, 1704067200000),
        (0, 0),
        (-1000, -1000),
        (1704067200000.9, 1704067200000),
        ("1704067200000", 1704067200000),
        (" 1.7e12 ", 1_700_000_000_000),
        ("2024-01-01T00:00:00Z", 1704067200000),
        ("2024-01-01", 1704067200000),
        ("2024-01-01 00:00:00.250", 1704067200250),
        ("2024-01-01T02:00:00+02:00", 1704067200000),
        (4_102_444_800_000 + 1, 4_102_444_800_001),  # after 2100
        ("3000-01-01", int(datetime(3000, 1, 1, tzinfo=UTC).timestamp()) * 1000),
        (LAST_MS, LAST_MS),
        (LAST_MS + 1, None),  # the year 10000
        (-62_135_596_800_000, -62_135_596_800_000),  # 0001-01-01
        (-62_135_596_800_001, None),
        ("0001-01-01T00:00:00+14:00", None),
        (10**400, None),
        ("9" * 5000, None),
        ("Infinity", None),
        (float("nan"), None),
        (float("-inf"), None),
        (True, None),
        (None, None),
        ("yesterday", None),
        ("", None),
        ("\ud800", None),
        ([1704067200000], None),
        ({}, None),
    ],
)
def test_a_timestamp_is_unix_milliseconds_or_absent(raw: Any, ms: int | None) -> None:
    assert timestamp(raw) == ms


def test_a_message_without_timestamp_has_none() -> None:
    assert message("x").timestamp is None


@given(st.one_of(st.integers(), st.floats(), st.text(), st.datetimes().map(str)))
def test_a_timestamp_that_is_read_can_be_rendered(raw: Any) -> None:
    ms = timestamp(raw)
    if ms is not None:
        seconds, rest = divmod(ms, 1000)
        assert datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)


# --- search -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "top_k"),
    [
        (0, 0),
        (1, 1),
        (100, 100),
        (10**9, 10**9),
        (10**30, MAX_TOP_K),
        (-5, 0),
        ("5", 5),
        (5.0, 5),
        ("many", 100),
        (None, 100),
        (True, 100),
        (float("nan"), 100),
        ([5], 100),
    ],
)
def test_top_k(raw: Any, top_k: int) -> None:
    assert search(top_k=raw).top_k == top_k


def test_top_k_is_100_when_missing() -> None:
    assert read_search(b'{"user_id":"u","query":"q"}').top_k == 100


@pytest.mark.parametrize(
    ("raw", "query"),
    [
        ("Where?", "Where?"),
        (" Where?\n", " Where?\n"),
        ("", ""),
        (" \n", ""),
        (None, ""),
        ([], ""),
        ("a\u0000\ud800", "a\ufffd"),
        (["Which", {"type": "text", "text": "one?"}, image_part(data_url(PNG))], "Which\none?"),
        ([image_part(data_url(PNG))], ""),
        (42, "42"),
        ("q" * 133_904, "q" * 133_904),
    ],
)
def test_query(raw: Any, query: str) -> None:
    assert search(query=raw).query == query


def test_a_missing_query_is_refused_by_name() -> None:
    with pytest.raises(BadRequest) as caught:
        read_search(b'{"user_id":"u"}')
    assert caught.value.field == "query"


@pytest.mark.parametrize("value", [None, "", 7, "\ud800"])
def test_an_unusable_user_of_a_search_is_refused_by_name(value: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        search(user_id=value)
    assert caught.value.field == "user_id"


@pytest.mark.parametrize(
    ("raw", "options"),
    [
        (["A. yes", "B. no"], ("A. yes", "B. no")),
        (["a\u0000", " ", "", None, 7, {"text": "b"}], ("a", "7", "b")),
        ([], ()),
        (None, ()),
        ("A", ()),
        ({"A": "yes"}, ()),
    ],
)
def test_options(raw: Any, options: tuple[str, ...]) -> None:
    assert search(options=raw).options == options


# --- the digest -------------------------------------------------------------------------------------------------------


def test_the_digest_ignores_spacing_key_order_escapes_and_other_fields() -> None:
    one = b'{"request_id":"r","user_id":"u","session_id":"s","messages":[{"role":"user","content":"\xc3\xa9"}]}'
    other = rb'{"x": 1, "messages": [ {"content":"\u00e9", "role":"user"} ], "session_id":"s", "user_id":"u", "request_id":"r"}'
    assert read_add(one)[0].digest == read_add(other)[0].digest


@pytest.mark.parametrize(
    "fields",
    [
        {"session_id": "t"},
        {"session_id": None},
        {"messages": ["b"]},
        {"messages": ["a", ""]},
        {"messages": ["a\u0000"]},
        {"messages": ["\ud800"]},
        {"messages": [{"content": "a"}]},
        {"messages": [float("nan")]},
        {"messages": [10**30]},
        {"messages": [10**30 + 1]},
    ],
)
def test_the_digest_sees_every_change_of_messages_and_session(fields: dict[str, Any]) -> None:
    assert add(**({"messages": ["a"]} | fields)).digest != add(messages=["a"]).digest


def test_the_digest_tells_integers_apart_that_a_float_cannot() -> None:
    assert add(messages=[{"timestamp": 10**30}]).digest != add(messages=[{"timestamp": 10**30 + 1}]).digest


# --- everything -------------------------------------------------------------------------------------------------------

odd_text = st.text(st.characters(exclude_categories=()), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | odd_text,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(odd_text | st.sampled_from(["type", "text", "content", "role", "timestamp", "image_url", "url"]), inner)
    ),
    max_leaves=12,
)
names = st.sampled_from(["request_id", "user_id", "session_id", "messages", "query", "top_k", "options"])


@given(st.dictionaries(names, values) | values)
def test_any_json_is_read_or_refused_and_never_breaks(value: Any) -> None:
    fields = {"request_id": "r", "user_id": "u", "query": "q", "messages": []}
    for body in (value, fields | value if isinstance(value, dict) else value):
        for read in (read_add, read_search):
            with suppress(BadRequest):
                read(json.dumps(body).encode())


@given(st.binary())
def test_any_bytes_are_read_or_refused_and_never_break(body: bytes) -> None:
    for read in (read_add, read_search):
        with suppress(BadRequest):
            read(body)


@given(st.lists(values, max_size=5))
def test_any_messages_are_read_as_text_that_utf_8_can_carry(elements: list[Any]) -> None:
    for read in add(messages=elements).messages:
        assert read.text.strip()
        assert "\0" not in (read.role + read.text)
        assert (read.role + read.text).encode()


@given(st.text(min_size=1), st.text(min_size=1), st.text())
def test_every_unicode_id_is_echoed(request_id: str, user_id: str, session_id: str) -> None:
    ids = {"request_id": request_id, "user_id": user_id, "session_id": session_id}
    assert echo(**ids) == {"success": True, **ids}


# --- answers ----------------------------------------------------------------------------------------------------------


def test_hits_are_written_in_order_and_created_at_is_left_out_when_absent() -> None:
    answer = search_response([Hit("m1", "é", 0.5, "2024-01-01T00:00:00Z"), Hit("m2", "b", 0.25)])
    assert answer.decode() == (
        '{"data":[{"id":"m1","content":"é","score":0.5,"created_at":"2024-01-01T00:00:00Z"},'
        '{"id":"m2","content":"b","score":0.25}]}'
    )


def test_no_hits_are_an_empty_array() -> None:
    assert search_response([]) == b'{"data":[]}'


def test_a_hit_with_an_image_is_written_as_parts_that_add_reads_back() -> None:
    parts = ("before", Image(hashlib.sha256(PNG).hexdigest(), "image/png", PNG))
    (hit,) = json.loads(search_response([Hit("m", parts, 1.0)]))["data"]
    assert hit["content"] == [{"type": "text", "text": "before"}, image_part(data_url(PNG))]
    assert message({"content": hit["content"]}).parts == parts


@pytest.mark.parametrize("number", ["NaN", "1e999", "[-Infinity]"])
def test_a_session_id_that_json_can_not_echo_is_refused(number: str) -> None:
    with pytest.raises(BadRequest, match="session_id"):
        read_add(b'{"request_id":"r","user_id":"u","messages":[],"session_id":' + number.encode() + b"}")


@pytest.mark.parametrize("name", ["request_id", "user_id", "session_id"])
def test_an_id_is_taken_up_to_16384_characters(name: str) -> None:
    ids = {"request_id": "r", "user_id": "u", "session_id": "s", "messages": []}
    read_add(json.dumps({**ids, name: "é" * 16_384}).encode())
    with pytest.raises(BadRequest, match=name):
        read_add(json.dumps({**ids, name: "é" * 16_385}).encode())
