"""Compiled parsing and formatting of event text, a line per event: exact integers, no step per event in Python."""

# mypy: ignore-errors

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from cmaxslam_fbp.compiling import compiled
from cmaxslam_fbp.nanoseconds import NS_PER_S

OK, BAD_TIME, BAD_COORDINATE, BAD_POLARITY, BAD_COLUMNS = range(5)
T, X, Y, P, OTHER = range(5)  # what a column holds

_NEWLINE, _RETURN, _SPACE, _TAB, _COMMA, _SEMICOLON, _HASH = 10, 13, 32, 9, 44, 59, 35
_ZERO, _POINT, _MINUS, _PLUS = 48, 46, 45, 43
_OTHERS = 32  # lines that are parsed one by one after one that is not plain, and follows another such one
_MOST_DIGITS = 18  # of the whole part of a number
_LARGEST_NS = 4_600_000_000_000_000_000
_POWERS = 10 ** np.arange(10)
_LARGEST_WHOLE = _LARGEST_NS // _POWERS  # by the number of decimals


@compiled(inlined=True)
def _is_blank(character):
    return (character == _SPACE) | (character == _COMMA) | (character == _TAB) | (character == _SEMICOLON)


@compiled(inlined=True)
def _is_end(character):
    return (character == _NEWLINE) | (character == _RETURN)


@compiled(inlined=True)
def _digits(word):
    """Return the number that the digits at the start of eight characters make, and how many there are.

    The characters are one word, the first of them in its lowest byte. Each byte that is no digit gets its highest bit
    set; the digits before the first of these are moved to the word's end and added up in pairs, fours and eights.
    """
    word ^= np.uint64(0x3030303030303030)
    others = ((word + np.uint64(0x7676767676767676)) | word) & np.uint64(0x8080808080808080)
    if others == 0:
        count = 8
    else:
        count = np.int64(trailing_zeros(others)) >> 3
        if count == 0:
            return 0, 0
        word <<= np.uint64(64 - 8 * count)
    word = ((word & np.uint64(0x0F0F0F0F0F0F0F0F)) * np.uint64(2561)) >> np.uint64(8)
    word = ((word & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)
    word = ((word & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001)) >> np.uint64(32)
    return np.int64(word), count


@compiled(inlined=True)
def _parse_number(text, words, at, decimals):
    """Return the absolute value of a decimal number times `10^decimals`, rounded, its sign, and the place behind it.

    The place is -1 where no number stands, too large a one, or, for no decimals, none that is whole.
    """
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    value, count = _digits(words[at])
    at += count
    digits = count
    while count == 8:
        more, count = _digits(words[at])
        value = value * _POWERS[count] + more
        at += count
        digits += count
    if digits > _MOST_DIGITS or value > _LARGEST_WHOLE[decimals]:
        return 0, negative, -1
    left = decimals
    if text[at] == _POINT:
        at += 1
        count = 8
        while left >= 8 and count == 8:
            more, count = _digits(words[at])
            value = value * _POWERS[count] + more
            at += count
            digits += count
            left -= count
        digit = np.uint8(text[at] - _ZERO)
        while digit < 10 and left > 0:
            value = 10 * value + np.int64(digit)
            left -= 1
            digits += 1
            at += 1
            digit = np.uint8(text[at] - _ZERO)
        if digit < 10:
            value += digit >= 5
            digits += 1
            while digit < 10:
                if decimals == 0 and digit > 0:
                    return 0, negative, -1
                at += 1
                digit = np.uint8(text[at] - _ZERO)
    return value * _POWERS[left], negative, at if digits > 0 else -1


@compiled(inlined=True)
def _pixel(word):
    """Return the number that one to four digits make, as `_digits` does, and how many there are; 0 for more or none."""
    word ^= np.uint64(0x3030303030303030)
    others = ((word + np.uint64(0x7676767676767676)) | word) & np.uint64(0x8080808080)
    if others == 0 or others & np.uint64(0x80) != 0:
        return 0, 0
    count = np.int64(trailing_zeros(others)) >> 3
    word = (word << np.uint64(64 - 8 * count)) >> np.uint64(32)
    word = ((word & np.uint64(0x0F0F0F0F)) * np.uint64(2561)) >> np.uint64(8)
    word = (((word & np.uint64(0x00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)) & np.uint64(0xFFFF)
    return np.int64(word), count


@compiled
def _parse_plain_lines(text, words, at, length, decimals, first, t_ns, x, y, p):
    """Parse lines `t x y p` as nearly all are: no signs, single blanks, at most four digits a pixel; from `at` on.

    Fills the columns from `first` on, up to a line that is any other (it may still be a good one); returns its place,
    and how many events there are. In one loop: a call with all these arrays costs as much as a line.
    """
    count = first
    largest = _LARGEST_WHOLE[decimals]
    while at < length:
        begin = at
        value, digits = _digits(words[at])
        at += digits
        if digits == 8:
            more, further = _digits(words[at])
            value = value * _POWERS[further] + more
            at += further
            if further > 2:
                return begin, count
        if digits == 0 or value > largest:
            return begin, count
        left = decimals
        if text[at] == _POINT:
            more, digits = _digits(words[at + 1])
            at += 1 + digits
            if digits == 8:
                digit = np.uint8(text[at] - _ZERO)
                if digit < 10:
                    more = 10 * more + np.int64(digit)
                    digits = 9
                    at += 1
            if digits == 0 or digits > left:
                return begin, count
            value = value * _POWERS[digits] + more
            left -= digits
        value *= _POWERS[left]
        separator = text[at]
        column, digits = _pixel(words[at + 1])
        if (separator != _SPACE and separator != _COMMA) or digits == 0 or value > _LARGEST_NS:
            return begin, count
        at += 1 + digits
        row, digits = _pixel(words[at + 1])
        if digits == 0 or text[at] != separator:
            return begin, count
        at += 1 + digits
        if text[at] != separator or text[at + 1] | 1 != _ZERO + 1 or text[at + 2] != _NEWLINE:
            return begin, count
        t_ns[count] = value
        x[count] = column
        y[count] = row
        p[count] = text[at + 1] & 1
        count += 1
        at += 3
    return at, count


@compiled
def _parse_polarity(text, words, at):
    """Return 1 or 0 for 1, 0, -1, true or false, and the place behind it; -1 where none of these stands."""
    letter = text[at] | 32  # small
    if letter == 116 or letter == 102:  # t, f
        while 97 <= text[at] | 32 <= 122:
            at += 1
        return (1 if letter == 116 else 0), at
    value, negative, at = _parse_number(text, words, at, 0)
    return (0 if negative else value), at if value <= 1 else -1


@compiled
def parse_events(text, words, length, roles, decimals, t_ns, x, y, p):
    """Parse the whole lines in `text[:length]` (uint8, a newline at `length - 1`), of columns that hold `roles`.

    `words[i]` are the eight characters from `i` on (uint64), up to `i = length`. Times are multiplied by `10^decimals`.
    Fills the columns and returns how many events there are, the number of lines read (the faulty one included) and a
    status. Empty lines and lines that start with `#` are passed over.
    """
    at = 0
    count = 0
    lines = 0
    is_plain = len(roles) == 4 and roles[0] == T and roles[1] == X and roles[2] == Y and roles[3] == P
    others = 0  # lines until plain ones are looked for again
    while at < length:
        if is_plain and others == 0:
            at, found = _parse_plain_lines(text, words, at, length, decimals, count, t_ns, x, y, p)
            lines += found - count
            others = 0 if found > count else _OTHERS
            count = found
            if at == length:
                break
        others = max(others - 1, 0)
        lines += 1
        while _is_blank(text[at]):
            at += 1
        if _is_end(text[at]) or text[at] == _HASH:
            while text[at] != _NEWLINE:
                at += 1
            at += 1
            continue
        for k in range(len(roles)):
            role = roles[k]
            if role == T:
                value, negative, at = _parse_number(text, words, at, decimals)
                if at < 0 or value > _LARGEST_NS:
                    return count, lines, BAD_TIME
                t_ns[count] = -value if negative else value
            elif role in (X, Y):
                value, negative, at = _parse_number(text, words, at, 0)
                if at < 0 or value > 65535 or negative:
                    return count, lines, BAD_COORDINATE
                if role == X:
                    x[count] = value
                else:
                    y[count] = value
            elif role == P:
                if text[at] | 1 == _ZERO + 1 and (_is_end(text[at + 1]) or _is_blank(text[at + 1])):  # nearly all
                    p[count] = text[at] & 1
                    at += 1
                else:
                    value, at = _parse_polarity(text, words, at)
                    if at < 0:
                        return count, lines, BAD_POLARITY
                    p[count] = value
            else:
                while not _is_blank(text[at]) and not _is_end(text[at]):
                    at += 1
            if not _is_blank(text[at]) and not _is_end(text[at]):
                return count, lines, role + 1 if role < Y else role if role < OTHER else BAD_COLUMNS
            while _is_blank(text[at]):
                at += 1
            if k < len(roles) - 1 and _is_end(text[at]):
                after = roles[k + 1]
                return count, lines, after + 1 if after < Y else after if after < OTHER else BAD_COLUMNS
        if text[at] == _RETURN:
            at += 1
        if text[at] != _NEWLINE:
            return count, lines, BAD_COLUMNS
        at += 1
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
        at = _put_integer(text, at, time // NS_PER_S, 1)
        text[at] = _POINT
        at = _put_integer(text, at + 1, time % NS_PER_S, 9)
        text[at] = _SPACE
        at = _put_integer(text, at + 1, int(x[i]), 1)
        text[at] = _SPACE
        at = _put_integer(text, at + 1, int(y[i]), 1)
        text[at] = _SPACE
        text[at + 1] = _ZERO + p[i]
        text[at + 2] = _NEWLINE
        at += 3
    return at
