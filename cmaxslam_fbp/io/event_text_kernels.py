"""Compiled parsing and formatting of event text, `t x y p` a line: exact integers, no step per event in Python."""

# mypy: ignore-errors

from cmaxslam_fbp.compiling import compiled

OK, BAD_TIME, BAD_COORDINATE, BAD_POLARITY, BAD_COLUMNS = range(5)

_NEWLINE, _RETURN, _SPACE, _TAB, _COMMA, _HASH = 10, 13, 32, 9, 44, 35
_ZERO, _NINE, _POINT, _MINUS, _PLUS = 48, 57, 46, 45, 43


@compiled
def _skip_blanks(text, at):
    while text[at] == _SPACE or text[at] == _TAB or text[at] == _COMMA:
        at += 1
    return at


@compiled
def _parse_integer(text, at):
    """Return the value and the place behind it; the place is unchanged where no digit stands."""
    value = 0
    start = at
    while _ZERO <= text[at] <= _NINE and at - start < 18:
        value = 10 * value + (text[at] - _ZERO)
        at += 1
    return value, at


@compiled
def _parse_time(text, at):
    """Return seconds in decimal notation as integer nanoseconds, rounded to the nearest, and the place behind them."""
    negative = text[at] == _MINUS
    if negative:
        at += 1
    start = at
    seconds, at = _parse_integer(text, at)
    digits = at - start
    nanoseconds = 0
    if text[at] == _POINT:
        at += 1
        scale = 100_000_000
        while _ZERO <= text[at] <= _NINE:
            if scale > 0:
                nanoseconds += scale * (text[at] - _ZERO)
            elif scale == 0 and text[at] >= _ZERO + 5:
                nanoseconds += 1
            scale = scale // 10 if scale > 0 else -1
            digits += 1
            at += 1
    value = seconds * 1_000_000_000 + nanoseconds
    if digits == 0 or seconds >= 4_600_000_000:
        return 0, -1
    return (-value if negative else value), at


@compiled
def _ends_field(character):
    return character in (_SPACE, _TAB, _COMMA)


@compiled
def parse_events(text, length, t_ns, x, y, p):
    """Parse the whole lines in `text[:length]` (uint8, a newline at `length - 1`).

    Fills the columns and returns how many events there are, the number of lines read (the faulty one included) and a
    status. Empty lines and lines that start with `#` are passed over. Polarity is 1 (or +1) or 0 (or -1).
    """
    at = 0
    count = 0
    lines = 0
    while at < length:
        lines += 1
        at = _skip_blanks(text, at)
        if text[at] == _NEWLINE or text[at] == _RETURN or text[at] == _HASH:
            while text[at] != _NEWLINE:
                at += 1
            at += 1
            continue
        time, at = _parse_time(text, at)
        if at < 0 or not _ends_field(text[at]):
            return count, lines, BAD_TIME
        start = _skip_blanks(text, at)
        column, at = _parse_integer(text, start)
        if at == start or column > 65535 or not _ends_field(text[at]):
            return count, lines, BAD_COORDINATE
        start = _skip_blanks(text, at)
        row, at = _parse_integer(text, start)
        if at == start or row > 65535 or not _ends_field(text[at]):
            return count, lines, BAD_COORDINATE
        at = _skip_blanks(text, at)
        negative = text[at] == _MINUS
        if negative or text[at] == _PLUS:
            at += 1
        polarity = text[at] - _ZERO
        if polarity != 0 and polarity != 1:
            return count, lines, BAD_POLARITY
        at = _skip_blanks(text, at + 1)
        if text[at] == _RETURN:
            at += 1
        if text[at] != _NEWLINE:
            return count, lines, BAD_COLUMNS
        at += 1
        t_ns[count] = time
        x[count] = column
        y[count] = row
        p[count] = 0 if negative else polarity
        count += 1
    return count, lines, OK


@compiled
def _put_integer(text, at, value, width):
    """Write `value` with at least `width` digits; return the place behind it."""
    digits = 1
    rest = value // 10
    while rest > 0:
        digits += 1
        rest //= 10
    digits = max(digits, width)
    for place in range(at + digits - 1, at - 1, -1):
        text[place] = _ZERO + value % 10
        value //= 10
    return at + digits


@compiled
def format_events(t_ns, x, y, p, text):
    """Write lines `seconds.nanoseconds x y p` into `text` (uint8, at least 40 bytes an event); return their length."""
    at = 0
    for i in range(len(t_ns)):
        time = t_ns[i]
        if time < 0:
            text[at] = _MINUS
            at += 1
            time = -time
        at = _put_integer(text, at, time // 1_000_000_000, 1)
        text[at] = _POINT
        at = _put_integer(text, at + 1, time % 1_000_000_000, 9)
        text[at] = _SPACE
        at = _put_integer(text, at + 1, int(x[i]), 1)
        text[at] = _SPACE
        at = _put_integer(text, at + 1, int(y[i]), 1)
        text[at] = _SPACE
        text[at + 1] = _ZERO + p[i]
        text[at + 2] = _NEWLINE
        at += 3
    return at
