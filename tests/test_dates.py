"""Periods that a question names, and relative dates resolved in a message."""

from __future__ import annotations

import re
from datetime import date, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memserver.dates import LOOKED_AT, MAX_PERIODS, Period, Span, Yearly, periods, resolved

NOW = date(2023, 5, 30)  # a Tuesday
TODAY = "Today is May 30, 2023. "
JINTIAN = "今天是2023年5月30日。"


def on(year: int, month: int, day: int) -> Span:
    return Span(date(year, month, day), date(year, month, day))


def near(day: date, slack: int) -> Span:
    return Span(day - timedelta(slack), day + timedelta(slack))


def month(year: int, number: int, last: int) -> Span:
    return Span(date(year, number, 1), date(year, number, last))


def whole(year: int) -> Span:
    return Span(date(year, 1, 1), date(year, 12, 31))


# --- days in a period -------------------------------------------------------------------------------------------------


def days(*texts: str) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
    return np.array(texts, dtype="datetime64[D]")


def test_a_span_has_its_first_and_last_day_and_the_days_of_grace_behind_it() -> None:
    span = Span(date(2023, 5, 7), date(2023, 5, 9))
    around = days("2023-05-06", "2023-05-07", "2023-05-09", "2023-05-10", "2023-05-12", "2023-05-13", "NaT")
    assert span.contains(around, 0).tolist() == [False, True, True, False, False, False, False]
    assert span.contains(around, 3).tolist() == [False, True, True, True, True, False, False]


def test_a_month_of_any_year_has_its_days_every_year_and_its_grace_goes_on_into_the_next_year() -> None:
    around = days("2022-11-30", "2022-12-01", "2022-12-31", "2023-01-01", "2023-01-07", "2023-01-08", "1969-12-31", "NaT")
    assert Yearly(12).contains(around, 0).tolist() == [False, True, True, False, False, False, True, False]
    assert Yearly(12).contains(around, 7).tolist() == [False, True, True, True, True, False, True, False]


def test_a_day_of_any_year_is_that_day_and_its_grace() -> None:
    around = days("2022-05-04", "2022-05-05", "2022-05-06", "2023-05-05", "2023-05-07", "2023-05-08", "NaT")
    assert Yearly(5, 5).contains(around, 0).tolist() == [False, True, False, True, False, False, False]
    assert Yearly(5, 5).contains(around, 2).tolist() == [False, True, True, True, True, False, False]


@given(st.dates(), st.integers(0, 300))
def test_a_yearly_period_has_every_day_up_to_its_grace_later_as_a_span_has(day: date, grace: int) -> None:
    later = np.array([np.datetime64(day) + grace])
    if (day.month, day.day) != (2, 29):
        assert Yearly(day.month, day.day).contains(later, grace).all()
    assert Yearly(day.month).contains(later, grace).all()
    assert Span(day, day).contains(later, grace).all()


# --- what a question names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("What did John do on 7 May 2023?", [on(2023, 5, 7)]),
        ("on 7 May, 2023", [on(2023, 5, 7)]),
        ("on the 7th of May, 2023", [on(2023, 5, 7)]),
        ("May 7, 2023", [on(2023, 5, 7)]),
        ("on Aug 15th", [Yearly(8, 15)]),
        ("on may 7, 2023", [on(2023, 5, 7)]),
        ("on 5 May", [Yearly(5, 5)]),
        ("on march 15", [Yearly(3, 15)]),
        ("2023-05-07", [on(2023, 5, 7)]),
        ("2023/05/07", [on(2023, 5, 7)]),
        ("5/17/2023", [on(2023, 5, 17)]),
        ("17/5/2023", [on(2023, 5, 17)]),
        ("5/5/2023", [on(2023, 5, 5)]),
        ("5/7/2023", []),
        ("Which countries in July 2022?", [month(2022, 7, 31)]),
        ("in February 2024", [month(2024, 2, 29)]),
        ("in May", [Yearly(5)]),
        ("in may", [Yearly(5)]),
        ("since last march", [Yearly(3)]),
        ("before June", [Yearly(6)]),
        ("the December deal", [Yearly(12)]),
        ("what may I eat, and may 5 people come?", []),
        ("this may be wrong, section 7 may apply", []),
        ("they march on, the soldiers march", []),
        ("what is the name of April's dog? what did June say?", []),
        ("summer 2022", [Span(date(2022, 6, 1), date(2022, 8, 31))]),
        ("towards the end of summer of 2022", [Span(date(2022, 6, 1), date(2022, 8, 31))]),
        ("winter 2022", [Span(date(2022, 12, 1), date(2023, 2, 28))]),
        ("in 2023", [whole(2023)]),
        ("during the year 1987", [whole(1987)]),
        ("the Boston marathon 2023", [whole(2023)]),
        ("2000 steps, $2015, 2048 tokens, 2015 people, v1.2.2015, 20155", []),
        ("May 2023 and June 2023", [month(2023, 5, 31), month(2023, 6, 30)]),
        ("in May, in May, in May", [Yearly(5)]),
        ("31 June 2023", [month(2023, 6, 30)]),
        ("29 February", [Yearly(2, 29)]),
        ("yesterday, last week, two weeks ago", []),
        ("What does Maria like?", []),
        ("", []),
    ],
)
def test_absolute_periods_in_english(text: str, named: list[Period]) -> None:
    assert periods(text) == tuple(named)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("2023年5月7日吃了什么？", [on(2023, 5, 7)]),
        ("2023 年 5 月 7 号", [on(2023, 5, 7)]),
        ("2023年5月", [month(2023, 5, 31)]),
        ("2023年去了哪里", [whole(2023)]),
        ("2022年夏天", [Span(date(2022, 6, 1), date(2022, 8, 31))]),
        ("5月7日", [Yearly(5, 7)]),
        ("拔智齿约的是五月几号", [Yearly(5)]),
        ("十二月三十一号", [Yearly(12, 31)]),
        ("去年五月", [Yearly(5)]),
        ("王建国三月复诊时换成了什么药", [Yearly(3)]),
        ("三个月里瘦了多少", []),
        ("一个三月大的婴儿", []),
        ("昨天，上个月，去年", []),
    ],
)
def test_absolute_periods_in_chinese(text: str, named: list[Period]) -> None:
    assert periods(text) == tuple(named)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("yesterday", near(date(2023, 5, 29), 0)),
        ("the day before yesterday", near(date(2023, 5, 28), 0)),
        ("a day ago", near(date(2023, 5, 29), 0)),
        ("three days ago", near(NOW - timedelta(3), 1)),
        ("two weeks ago", near(NOW - timedelta(14), 3)),
        ("about two weeks ago", near(NOW - timedelta(14), 3)),
        ("three months ago", near(NOW - timedelta(91), 15)),
        ("a year ago", near(NOW - timedelta(365), 183)),
        ("last Saturday", on(2023, 5, 27)),
        ("last Tuesday", on(2023, 5, 23)),
        ("last weekend", Span(date(2023, 5, 27), date(2023, 5, 28))),
        ("last week", Span(date(2023, 5, 22), NOW)),
        ("this week", Span(date(2023, 5, 29), date(2023, 6, 4))),
        ("last month", month(2023, 4, 30)),
        ("last year", whole(2022)),
        ("in the past three months", Span(NOW - timedelta(91), NOW)),
        ("over the last 10 days", Span(NOW - timedelta(10), NOW)),
        ("in the last few weeks", Span(NOW - timedelta(21), NOW)),
        ("in the past week", Span(NOW - timedelta(7), NOW)),
        ("in the last year", Span(NOW - timedelta(365), NOW)),
    ],
)
def test_relative_periods_in_english_count_from_the_questions_own_date(text: str, named: Span) -> None:
    assert periods(f"{TODAY}What did I do {text}?") == (named,)
    assert periods(f"What did I do {text}?") == ()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("昨天", on(2023, 5, 29)),
        ("三天前", near(NOW - timedelta(3), 1)),
        ("两周前", near(NOW - timedelta(14), 3)),
        ("三个月前", near(NOW - timedelta(91), 15)),
        ("上周六", on(2023, 5, 27)),
        ("上周末", Span(date(2023, 5, 27), date(2023, 5, 28))),
        ("上周", Span(date(2023, 5, 22), NOW)),
        ("上个月", month(2023, 4, 30)),
        ("这个月", month(2023, 5, 31)),
        ("最近三个月", Span(NOW - timedelta(91), NOW)),
        ("去年", whole(2022)),
    ],
)
def test_relative_periods_in_chinese_count_from_the_questions_own_date(text: str, named: Span) -> None:
    assert periods(f"{JINTIAN}我{text}做了什么？") == (named,)
    assert periods(f"我{text}做了什么？") == ()


@pytest.mark.parametrize(
    "own",
    [
        "Current Date: 2023/05/30 (Tue) 23:40\n",
        "Question date: 2023-05-30\n",
        "question_date=2023-05-30 ",
        "Today's date is Tuesday, 30 May 2023. ",
        "Today is May 30, 2023: ",
        "[2023-05-30] ",
        "[Tuesday, 30 May 2023 23:40] ",
        "今天是2023年5月30日，",
        "当前日期：2023-05-30 ",
    ],
)
def test_a_questions_own_date_is_no_period_but_what_relative_ones_count_from(own: str) -> None:
    assert periods(f"{own}what was it?") == ()
    assert periods(f"{own}what was it yesterday?") == (on(2023, 5, 29),)


def test_the_month_before_january_is_december_of_the_year_before() -> None:
    assert periods("[2023-01-15] last month") == (month(2022, 12, 31),)


def test_periods_come_in_the_order_of_the_text_and_are_few() -> None:
    assert periods("in 2021, in May 2020, then 2022-03-04") == (whole(2021), month(2020, 5, 31), on(2022, 3, 4))
    assert periods(" ".join(f"2023-05-{day:02}" for day in range(1, 32))) == tuple(
        on(2023, 5, day) for day in range(1, MAX_PERIODS + 1)
    )


def test_of_a_long_text_only_both_ends_are_read() -> None:
    filler = "x " * LOOKED_AT
    assert periods(f"in 2021 {filler} in 2022 {filler} in 2023") == (whole(2021), whole(2023))


# --- what a message says ----------------------------------------------------------------------------------------------

ON = date(2023, 5, 8)  # a Monday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I went yesterday.", "I went yesterday (2023-05-07)."),
        ("Yesterday's class", "Yesterday's (2023-05-07) class"),
        ("the day before yesterday", "the day before yesterday (2023-05-06)"),
        ("see you tomorrow morning", "see you tomorrow (2023-05-09) morning"),
        ("the day after tomorrow", "the day after tomorrow (2023-05-10)"),
        ("last Tuesday", "last Tuesday (2023-05-02)"),
        ("Last monday night", "Last monday (2023-05-01) night"),
        ("last Sunday's race", "last Sunday's (2023-05-07) race"),
        ("two weeks ago", "two weeks ago (2023-04-24)"),
        ("3 days ago", "3 days ago (2023-05-05)"),
        ("a week ago", "a week ago (2023-05-01)"),
        ("Twenty days ago", "Twenty days ago (2023-04-18)"),
        ("two\nweeks ago, yesterday", "two\nweeks ago (2023-04-24), yesterday (2023-05-07)"),
        ("昨天去了", "昨天（2023-05-07）去了"),
        ("前天和大前天", "前天（2023-05-06）和大前天（2023-05-05）"),
        ("明天天晴，后天呢", "明天（2023-05-09）天晴，后天（2023-05-10）呢"),
        ("上周五开会", "上周五（2023-05-05）开会"),
        ("上个星期天", "上个星期天（2023-05-07）"),
        ("上上周三", "上上周三（2023-04-26）"),
        ("我三天前", "我三天前（2023-05-05）"),
        ("妈妈两周前", "妈妈两周前（2023-04-24）"),
        ("两个星期前", "两个星期前（2023-04-24）"),
        ("10天前，十二天之前", "10天前（2023-04-28），十二天之前（2023-04-26）"),
    ],
)
def test_a_relative_day_gets_its_date_behind_it(text: str, expected: str) -> None:
    assert resolved(text, ON) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("next Friday", "this Friday", "on Friday", "last week", "last month", "a few days ago", "today", "tonight"),
        *("a couple of weeks ago", "about two weeks ago", "two or three days ago", "2-3 weeks ago", "1.5 weeks ago"),
        *("two weeks ago on Tuesday", "a week ago Friday", "a week ago yesterday", "twenty two days ago", "two months ago"),
        *("the last Friday of June", "for a better tomorrow", "yesterday (5 May)"),
        *(
            "今天",
            "上周",
            "上个月",
            "几天前",
            "两三天前",
            "大约三天前",
            "十几天前",
            "三个月前",
            "5月3日前",
            "三天前后",
            "手术三天前",
            "应在三天前通知",
            "开工三日前",
            "下周五",
        ),
        *(
            "目前天气很好",
            "以前天天吃",
            "然后天黑了",
            "以后天天来",
            "请说明天气",
            "晚上周五见",
            "上周一共三次",
            "上周三次",
            "上周一直",
        ),
    ],
)
def test_what_is_undefined_vague_or_another_word_stays_as_it_is(text: str) -> None:
    assert resolved(text, ON) == text


@pytest.mark.parametrize("text", ["yesterday", "two weeks ago", "last Friday", "昨天", "上周五", "三天前", "999 weeks ago"])
def test_a_day_before_the_calendar_is_left_out(text: str) -> None:
    assert resolved(text, date.min) == text


@pytest.mark.parametrize("text", ["tomorrow", "后天"])
def test_a_day_behind_the_calendar_is_left_out(text: str) -> None:
    assert resolved(text, date.max) == text


# --- properties -------------------------------------------------------------------------------------------------------

WORDS = (
    *("yesterday", "yesterday's", "the day before yesterday", "tomorrow", "last Friday", "last", "the", "of", "on", "Tuesday"),
    *("two", "twenty", "3", "1", "a", "days", "weeks", "week", "months", "ago", "about", "or", "to", "half", "better", "past"),
    *(
        "昨天",
        "前天",
        "大前天",
        "大",
        "明天",
        "后天",
        "上周五",
        "上",
        "上个",
        "周",
        "星期",
        "三",
        "五",
        "十",
        "天",
        "前",
        "两",
        "个",
        "月",
        "日",
        "约",
        "后",
    ),
    *(
        " ",
        "  ",
        "\n",
        ",",
        ".",
        "-",
        "’s",
        "(",
        "2023",
        "5",
        "年",
        "May",
        "in",
        "may",
        "31",
        "/",
        "Today is 2023-05-30",
        "now: ",
    ),
)
TEXTS = st.text() | st.lists(st.sampled_from(WORDS)).map("".join) | st.lists(st.sampled_from(WORDS)).map(" ".join)


@given(TEXTS, st.dates())
def test_resolving_twice_is_resolving_once(text: str, day: date) -> None:
    assert resolved(resolved(text, day), day) == resolved(text, day)


@given(TEXTS, st.dates())
def test_all_words_stay_the_dates_are_only_put_in_between(text: str, day: date) -> None:
    dated = re.compile(r" \(\d{4}-\d\d-\d\d\)|（\d{4}-\d\d-\d\d）")
    assert dated.sub("", resolved(text, day)) == dated.sub("", text)


@given(TEXTS)
def test_any_text_can_be_asked_for_its_periods(text: str) -> None:
    found = periods(text)
    assert len(found) == len(set(found)) <= MAX_PERIODS
    assert all(period.start <= period.end for period in found if isinstance(period, Span))


@given(st.dates())
def test_a_full_date_is_read_back_in_each_spelling(day: date) -> None:
    day = day.replace(year=1900 + day.year % 300, day=min(day.day, 28))
    for text in (f"{day}", f"{day:%d %B} {day.year}", f"{day:%B %d}, {day.year}", f"{day.year}年{day.month}月{day.day}日"):
        assert periods(f"on {text}") == (Span(day, day),), text
