"""Days that a text speaks of: the periods a question names, and relative dates resolved for who reads a message.

English and Chinese. What is not defined to the day, or may mean something else, is left alone: a wrong date costs more than
a missing one. Every pattern is linear in the length of its input, since all its repetitions are bounded.
One file, since both readings share their words; half of it is those words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

import numpy as np
import numpy.typing as npt

MAX_PERIODS = 8
"""A text that names more days than that is a document rather than a question: only the first ones count."""

LOOKED_AT = 4000
"""Characters of each end of a long text; a question stands before or after its instructions."""


@dataclass(frozen=True, slots=True)
class Span:
    """The days from ``start`` to ``end``, both included."""

    start: date
    end: date

    @property
    def middle(self) -> date:
        """The day that "two weeks ago" is resolved to; earlier of two."""
        return self.start + (self.end - self.start) / 2

    def contains(self, days: npt.NDArray[np.datetime64], grace: int) -> npt.NDArray[np.bool_]:
        """Which of ``days`` lie in it or at most ``grace`` days behind its end; (n,) datetime64[D] -> (n,), NaT never."""
        return (days >= np.datetime64(self.start)) & (days <= np.datetime64(self.end) + grace)


@dataclass(frozen=True, slots=True)
class Yearly:
    """A month (1 to 12) of any year, or one day of it; the 29th of February is the 1st of March in other years."""

    month: int
    day: int | None = None

    def contains(self, days: npt.NDArray[np.datetime64], grace: int) -> npt.NDArray[np.bool_]:
        """As ``Span.contains``; ``grace`` below eleven months."""
        months = days.astype("datetime64[M]")
        latest = months - (months.astype(np.int64) - (self.month - 1)) % 12  # numpy counts months from January 1970
        first = latest.astype("datetime64[D]") + ((self.day or 1) - 1)
        last = first if self.day else (latest + 1).astype("datetime64[D]") - 1
        return (days >= first) & (days <= last + grace)


Period = Span | Yearly


def periods(text: str) -> tuple[Period, ...]:
    """The periods that a question names, in its order, each once, at most ``MAX_PERIODS``; empty if it names none.

    Relative ones ("last week") count only where the question tells its own date ("Today is May 30, 2023"), which is none itself.
    """
    if len(text) > 2 * LOOKED_AT:
        text = f"{text[:LOOKED_AT]}\n{text[-LOOKED_AT:]}"
    text, now = _without_own_date(text)
    readers: list[tuple[re.Pattern[str], _Reader]] = [(pattern, _named) for pattern in _ABSOLUTE]
    if now:
        readers += [(pattern, partial(read, now)) for _, pattern, read in _DAYS]
        readers += [(pattern, partial(read, now)) for pattern, read in _SPANS]
    in_order = sorted(_found(text, readers), key=lambda placed: placed[0])
    return tuple(dict.fromkeys(period for _, period in in_order))[:MAX_PERIODS]


def resolved(text: str, on: date) -> str:
    """``text`` of the day ``on`` with the date behind each relative day: ``last Tuesday (2023-07-18)``, ``昨天（2023-05-07）``.

    All its words stay, and resolving twice changes nothing more. Left alone is what is vague ("about two weeks ago"),
    undefined at day level ("last week", "next Friday"), or outside the calendar.
    """

    def dated(read: _RelativeReader, match: re.Match[str]) -> str:
        if {"vague", "more"} & {name for name, words in match.groupdict().items() if words}:
            return match[0]
        try:
            day = read(on, match).middle
        except OverflowError:
            return match[0]
        return f"{match[0]} ({day})" if match[0].isascii() else f"{match[0]}（{day}）"

    lower = text.lower()
    for cue, pattern, read in _DAYS:
        if cue in lower:
            text = pattern.sub(partial(dated, read), text)
    return text


# --- words and fragments of patterns ----------------------------------------------------------------------------------

_ENGLISH = (
    "one two three four five six seven eight nine ten "
    "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
).split()
_HAN = {numeral: i for i, numeral in enumerate("一二三四五六七八九", 1)} | {"两": 2, "兩": 2}
_NUMBERS = _HAN | {word: i for i, word in enumerate(_ENGLISH, 1)} | {"a": 1, "couple of": 2, "few": 3}
_MONTHS = {name: i for i, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
# As north of the equator; a winter begins in December of its year.
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12, "春": 3, "夏": 6, "秋": 9, "冬": 12}
_ENGLISH_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_WEEKDAYS = {name: i for names in (_ENGLISH_WEEKDAYS, "一二三四五六日") for i, name in enumerate(names)} | {"天": 6}
_OFFSETS = {
    **{"yesterday": -1, "tomorrow": 1, "day before yesterday": -2, "day after tomorrow": 2},
    **{"昨天": -1, "昨日": -1, "前天": -2, "大前天": -3, "明天": 1, "后天": 2, "後天": 2, "大后天": 3, "大後天": 3},
}
_SHIFTS = {"last": -1, "this": 0, "上": -1, "上上": -2, "这": 0, "這": 0, "本": 0, "去": -1, "今": 0, "前": -2}
_UNITS = {
    **{"天": "day", "月": "month", "年": "year", "周末": "weekend", "週末": "weekend"},
    **dict.fromkeys(("周", "週", "星期", "礼拜", "禮拜"), "week"),
}
_LENGTHS = {"day": (1.0, 1), "week": (7.0, 3), "month": (30.44, 15), "year": (365.25, 183)}
"""Days of a unit, and how many days "some units ago" may be off."""

_FRAGMENTS = {
    "{year}": r"(?P<year>(?:19|20|21)\d\d)",
    "{month}": r"(?P<month>1[0-2]|0?[1-9])",
    "{day}": r"(?P<day>[12]\d|3[01]|0?[1-9])",
    "{nth}": r"(?:st|nd|rd|th)?\b",
    "{name}": (
        r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
        r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b(?!['’]s)"
    ),
    "{season}": r"(?P<season>spring|summer|autumn|fall|winter)",
    "{count}": rf"(?P<number>\d{{1,3}}|a|{'|'.join(_ENGLISH)})",
    "{some}": rf"(?P<number>\d{{1,3}}|few|couple of|{'|'.join(_ENGLISH)})",
    "{weekday}": rf"(?P<weekday>{'|'.join(_ENGLISH_WEEKDAYS)})",
    "{一}": r"(?P<number>\d{1,3}|[一二三四五六七八九]?十[一二三四五六七八九]?|[一二两兩三四五六七八九])",
    "{weeks}": "周|週|星期|礼拜|禮拜",
    "{上}": r"(?<![早晚马馬加网網线線路街身以同会會碰赶趕上])上{1,2}",  # an evening, 晚上, is not a last one
    "{start}": r"(?<![\w.,:/+$€£¥#-])",
    "{end}": r"(?![\w%/:-]|[.,]\d)",
    "{open}": r"(?!\s?[(（]\d)",  # a date stands there already
}


def _compile(pattern: str) -> re.Pattern[str]:
    """Fill in the fragments; a blank stands for one to three of any kind. ASCII: a word may border on a Chinese character."""
    for name, fragment in _FRAGMENTS.items():
        pattern = pattern.replace(name, fragment)
    return re.compile(pattern.replace(" ", r"\s{1,3}"), re.ASCII | re.IGNORECASE)


def _number(word: str) -> int:
    """The value of a number or of a month's name."""
    word = " ".join(word.lower().split())
    if word[:3] in _MONTHS:
        return _MONTHS[word[:3]]
    if "十" in word:
        tens, ones = word.split("十")
        return 10 * _HAN.get(tens, 1) + _HAN.get(ones, 0)
    return _NUMBERS.get(word) or int(word)


# --- absolute periods -------------------------------------------------------------------------------------------------

_Reader = Callable[[re.Match[str]], Period | None]


def _named(match: re.Match[str]) -> Period | None:
    """From the groups ``year``, ``month`` or ``season``, and ``day``, as far as there are; None for a day no calendar has."""
    groups = match.groupdict()
    year, month, day = (_number(groups[name]) if groups.get(name) else None for name in ("year", "month", "day"))
    if year and groups.get("season"):
        return _months(year, _SEASONS[groups["season"].lower()], 3)
    if year and not day:
        return _months(year, month, 1) if month else _months(year, 1, 12)
    if not month or not day:
        return Yearly(month) if month else None
    try:
        found = date(year or 2000, month, day)  # a leap year: the 29th of February is a day of some year
    except ValueError:
        return None
    return Span(found, found) if year else Yearly(month, day)


def _months(year: int, month: int, count: int) -> Span:
    return Span(_first(12 * year + month - 1), _first(12 * year + month - 1 + count) - timedelta(1))


def _first(months: int) -> date:
    """The first day of a month, counted from January of year 0."""
    return date(months // 12, months % 12 + 1, 1)


_FULL = [  # what a question can tell its own date in; "march 5" is a date and "may 5 people come" is not
    _compile(pattern)
    for pattern in (
        r"{start}{year}[-/.]{month}[-/.]{day}(?!\d)",
        r"\b(?!(?-i:may) \d{1,2}\b(?!,? \d{4}))\b{name}\.? {day}{nth}(?:,? {year}\b)?",
        r"{start}{day}{nth}(?: of)? (?!(?-i:may)\b(?!,? \d{4})){name}(?:[.,]? {year}\b)?",
        r"(?:{year}\s?年\s?|[去今前明]年的?)?(?<![\d.一二三四五六七八九十几幾个個近每第])"
        r"(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])\s?月(?![龄齡大])份?"
        r"(?:\s?(?P<day>[12]\d|3[01]|0?[1-9]|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九])\s?[日号號])?",
    )
]
_COUNTED = (
    "steps|words|calories|kcal|dollars|euros|usd|people|miles|met(?:er|re)s|feet|km|kg|mg|ml|tokens|characters|lines|pages|points"
    "|followers|users|items|hours|minutes|times|votes"
)
_NOT_COUNTED = rf"(?! (?:{_COUNTED})\b|\s?[元块塊个個人字次步克米])"
_ABSOLUTE = [  # earlier ones take their words from later ones
    *_FULL,
    *map(
        _compile,
        (
            r"{start}(?P<day>1[3-9]|2\d|3[01])(?P<by>[/.-]){month}(?P=by){year}{end}",
            r"{start}{month}(?P<by>[/.-])(?P<day>1[3-9]|2\d|3[01]|(?P=month))(?P=by){year}{end}",
            r"\b{name}(?:\.|,)?(?: of)? {year}\b",
            r"\b{season}(?: of|,)? {year}\b",
            r"\b{year} {season}\b",
            r"(?<!\d){year}\s?年的?(?P<season>[春夏秋冬])",
            r"\b(?:in|since|last|during|until|till|early|late|mid)[\s-]{name}(?! (?:i|we|you|he|she|they)\b)",
            r"\b(?:this|next|of|by|before|after|from|between) (?=(?-i:[A-Z])){name}(?! (?:i|we|you|he|she|they)\b)",
            r"\b(?P<month>january|february|july|september|october|november|december)\b",
            r"(?<!\d){year}\s?年",
            r"\b(?:in|of|during|since|year|until|till|by|before|after|from|to|through|early|late|mid)[\s-](?:the year )?"
            rf"(?P<year>(?:19|20)\d\d){{end}}{_NOT_COUNTED}",
            rf"{{start}}(?P<year>199\d|200[1-9]|20[1-3]\d){{end}}{_NOT_COUNTED}",
        ),
    ),
]


# --- relative to a day ------------------------------------------------------------------------------------------------

_RelativeReader = Callable[[date, re.Match[str]], Span]
"""Raises ``OverflowError`` outside the calendar."""


def _offset(now: date, match: re.Match[str]) -> Span:
    return _around(now + timedelta(_OFFSETS[" ".join(match["word"].lower().split())]))


def _last_weekday(now: date, match: re.Match[str]) -> Span:
    """The latest one strictly before ``now``."""
    return _around(now - timedelta((now.weekday() - _WEEKDAYS[match["weekday"].lower()] - 1) % 7 + 1))


def _weekday_of_week(now: date, match: re.Match[str]) -> Span:
    """上周五 is of the calendar week before, 上上周五 of the one before that."""
    return _around(_monday(now, _SHIFTS[match["which"]]) + timedelta(_WEEKDAYS[match["weekday"]]))


def _ago(now: date, match: re.Match[str]) -> Span:
    count, unit = _number(match["number"]), _unit(match)
    length, slack = _LENGTHS[unit]
    return _around(now - timedelta(round(count * length)), 0 if unit == "day" and count == 1 else slack)


def _past(now: date, match: re.Match[str]) -> Span:
    """From some units ago to now."""
    length, _ = _LENGTHS[_unit(match)]
    return Span(now - timedelta(round(_number(match["number"] or "a") * length)), now)


def _calendar(now: date, match: re.Match[str]) -> Span:
    """A week, weekend, month or year of the calendar; "last week" goes on until ``now``, since many mean the last seven days."""
    shift = _SHIFTS[match["which"].lower()]
    monday = _monday(now, shift)
    match _unit(match):
        case "week":
            return Span(monday, now if shift == -1 else monday + timedelta(6))
        case "weekend":
            return Span(monday + timedelta(5), monday + timedelta(6))
        case "month":
            return _months(now.year, now.month + shift, 1)
        case _:
            return _months(now.year + shift, 1, 12)


def _around(day: date, slack: int = 0) -> Span:
    return Span(day - timedelta(slack), day + timedelta(slack))


def _monday(now: date, weeks: int) -> date:
    return now + timedelta(7 * weeks - now.weekday())


def _unit(match: re.Match[str]) -> str:
    unit = match["unit"].lower()
    return _UNITS.get(unit, unit)


_MORE_OR_LESS = (
    "about|around|roughly|approximately|almost|nearly|over|under|than|least|most|maybe|perhaps|like|some|or|to|and"
    "|twenty|thirty|forty|fifty|hundred"
)
_AGO = (
    rf"\b(?<![\w.,'’~≈–-])(?P<vague>(?:{_MORE_OR_LESS}) )?{{count}} (?P<unit><units>)s? ago\b"
    r"(?P<more> (?:(?:on |last )?{weekday}|yesterday|tomorrow)\b)?+{open}"
)
_HAN_AGO = (  # behind a person or a pause only: 手术三天前 and 应在三天前 count from something else
    r"(?:(?P<vague>[约約近概多])|(?<![^\s，。！？、；：,.!?;:“「我你您他她们們妈媽爸哥姐弟妹奶爷爺子是就才从從]))"
    r"{一}[个個]?(?P<unit><units>)[以之]?前(?![后後]|左右){open}"
)
_DAYS: list[tuple[str, re.Pattern[str], _RelativeReader]] = [  # with what stands in each match, in lower case: searched first
    ("yesterday", _compile(r"\b(?<!ago\s)(?P<word>(?:day before )?yesterday)\b(?:['’]s\b)?+{open}"), _offset),
    (
        "tomorrow",
        _compile(r"\b(?<!better\s)(?<!brighter\s)(?<!ago\s)(?P<word>(?:day after )?tomorrow)\b(?:['’]s\b)?+{open}"),
        _offset,
    ),
    ("last", _compile(r"\b(?<!the\s)(?<!ago\s)last {weekday}\b(?! of\b)(?:['’]s\b)?+{open}"), _last_weekday),
    ("ago", _compile(_AGO.replace("<units>", "day|week")), _ago),
    ("昨", _compile(r"(?P<word>昨[天日]){open}"), _offset),
    ("前天", _compile(r"(?<![目以之从從])(?P<word>大?前天)(?![气氣]){open}"), _offset),  # 目前天气, 以前天天
    ("天", _compile(r"(?<![以之然最随隨背])(?P<word>大?[后後]天)(?![气氣性免]){open}"), _offset),
    ("明天", _compile(r"(?<![说說证證聪聰声聲文光透])(?P<word>明天)(?![气氣]){open}"), _offset),
    (  # what follows may claim the numeral: 上周一共, 上周三次, 上周日本
        "上",
        _compile(
            r"(?P<which>{上})[个個]?(?:{weeks})(?P<weekday>[一二三四五六日天])"
            r"(?![共直起般些样樣个個次气氣常本年月一二两兩三四五六七八九十百千]){open}"
        ),
        _weekday_of_week,
    ),
    ("前", _compile(_HAN_AGO.replace("<units>", "天|{weeks}")), _ago),
]
_SPANS: list[tuple[re.Pattern[str], _RelativeReader]] = [
    (_compile(_AGO.replace("<units>", "month|year")), _ago),
    (_compile(_HAN_AGO.replace("<units>", "(?<=[个個])月|年")), _ago),
    (_compile(r"\b(?:(?:past|last) {some}|past|the last) (?P<unit>day|week|month|year)s?\b(?! of\b)"), _past),
    (_compile(r"\b(?<!the\s)(?P<which>last|this) (?P<unit>weekend|week|month|year)\b(?! of\b)"), _calendar),
    (_compile(r"(?:最近|[过過]去|近)的?{一}[个個]?(?P<unit>天|{weeks}|(?<=[个個])月|年)"), _past),
    (_compile(r"(?P<which>{上}|[这這本])[个個]?(?P<unit>周末|週末|{weeks}|月)"), _calendar),
    (_compile(r"(?<![以之目从從])(?P<which>[去今前])(?P<unit>年)(?![轻輕级級])"), _calendar),
]


# --- reading a question -----------------------------------------------------------------------------------------------

_OWN_DATE = _compile(
    r"(?:\A\s{0,9}[\[【(（]|\b(?:(?:current|question|today['’]s)[\s_])?(?:date|time|today|now)\b\s?(?:is\b|[:：=,(])"
    r"|(?:今天|现在|現在|日期|时间|時間)(?:是|为|為|[:：]))\s?(?:{weekday},? )?"
)


def _without_own_date(text: str) -> tuple[str, date | None]:
    """``text`` without the dates that it gives as its own, and the first of them."""
    now = None
    for lead in _OWN_DATE.finditer(text):
        for pattern in _FULL:
            match = pattern.match(text, lead.end())
            own = _named(match) if match else None
            if match and isinstance(own, Span) and own.start == own.end:
                now = now or own.start
                text = _blanked(text, lead.start(), match.end())
    return text, now


def _found(text: str, readers: Iterable[tuple[re.Pattern[str], _Reader]]) -> Iterator[tuple[int, Period]]:
    """Each period with its place; no character of ``text`` serves two of them."""
    for pattern, read in readers:
        for match in pattern.finditer(text):
            if period := read(match):
                yield match.start(), period
                text = _blanked(text, *match.span())


def _blanked(text: str, start: int, end: int) -> str:
    """The same length, so that places stay, and nothing that a pattern could bridge."""
    return text[:start] + "\0" * (end - start) + text[end:]
