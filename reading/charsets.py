"""Foreign bytes as text by the character set that whoever sent them names, if any: of Python's, those that
take time in proportion to the length, whatever the bytes are.

Python looks up whatever it is told: `punycode` takes the square of the length, others unfold or evaluate.
What is none of these counts as not named. UTF-8 alone, for what is ours to demand, `wholetext` reads.
"""

from __future__ import annotations

import codecs
import re
from encodings import normalize_encoding
from encodings.aliases import aliases

_NAMES = """
    ascii utf_8 utf_8_sig utf_16 utf_16_be utf_16_le utf_32 utf_32_be utf_32_le latin_1
    iso8859_1 iso8859_2 iso8859_3 iso8859_4 iso8859_5 iso8859_6 iso8859_7 iso8859_8 iso8859_9 iso8859_10
    iso8859_11 iso8859_13 iso8859_14 iso8859_15 iso8859_16 koi8_r koi8_t koi8_u kz1048 ptcp154 tis_620
    cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp437 cp720 cp737 cp775 cp850 cp852 cp855
    cp856 cp857 cp858 cp860 cp861 cp862 cp863 cp864 cp865 cp866 cp869 cp874 cp1125
    mac_cyrillic mac_greek mac_iceland mac_latin2 mac_roman mac_turkish
    big5 big5hkscs cp932 cp949 cp950 euc_jis_2004 euc_jisx0213 euc_jp euc_kr gb18030 gb2312 gbk hz
    iso2022_jp iso2022_jp_1 iso2022_jp_2 iso2022_jp_2004 iso2022_jp_3 iso2022_jp_ext iso2022_kr johab
    shift_jis shift_jis_2004 shift_jisx0213
"""
_LINEAR = frozenset(_NAMES.split())
_BY_NAME = {name: name for name in _LINEAR} | {
    other: name for other, name in aliases.items() if name in _LINEAR
}
_MARKED = {
    "utf_16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf_32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}
"""Those whose texts say by their first bytes in which order the others are."""
_LONGEST_NAME = 40
_AT_ONCE = 16_384
_LONGEST_TYPE = 1_000
"""Characters of a Content-Type. For each parameter Python's reader looks again at all before it."""
_CHARSET = re.compile(r"charset\s{0,9}=\s{0,9}\"?([\w.:-]{1,40})\"?", re.ASCII | re.IGNORECASE)


def codec_of(charset: str) -> str:
    """Python's name for a character set that a stranger named; empty: it is none that text is read by."""
    if not charset or len(charset) > _LONGEST_NAME or not charset.isascii():
        return ""
    # Not by Python's own look-up, which keeps each name it was ever asked for.
    return _BY_NAME.get(normalize_encoding(charset.strip()).lower(), "")


def strictly(data: bytes, charset: str) -> str | None:
    """None: it is not written in this character set, or in no such."""
    codec = codec_of(charset)
    try:
        return _decoded(data, codec, "strict") if codec else None
    except ValueError:
        return None


def as_text(data: bytes, charset: str = "") -> str:
    """By this character set, or by UTF-8 where it is none; what is not written in it is replaced."""
    return _decoded(data, codec_of(charset) or "utf_8", "replace")


def _decoded(data: bytes, codec: str, errors: str) -> str:
    """In pieces: each replacement takes its time, in which no other thread gets a turn."""
    if codec in _MARKED and not data.startswith(_MARKED[codec]):
        codec = f"{codec}_le"  # where Python's decoder of pieces gives up
    decoder = codecs.getincrementaldecoder(codec)(errors)
    pieces = [decoder.decode(data[at : at + _AT_ONCE]) for at in range(0, len(data), _AT_ONCE)]
    return "".join([*pieces, decoder.decode(b"", final=True)])


def plain_type(content_type: str) -> str:
    """A Content-Type that others may read by Python's own means: its character set is one of these, or not
    named, and there is little of it."""
    kind, _semicolon, parameters = content_type[: _LONGEST_TYPE + 1].partition(";")
    kind, is_none, _value = kind.partition(
        "="
    )  # that has no kind, and would be read as a parameter
    if len(content_type) > _LONGEST_TYPE:
        return kind[:_LONGEST_TYPE].strip()
    if not is_none and "charset" not in parameters.lower():
        return content_type
    given = parameters.split(";")
    found = [match[1] for each in given if (match := _CHARSET.fullmatch(each.strip()))]
    kept = [each for each in given if "charset" not in each.lower()]
    codec = codec_of(found[0]) if len(found) == 1 and len(kept) == len(given) - 1 else ""
    if codec in _MARKED:
        codec += "_le"  # others would give up at a text that does not begin with its mark
    return ";".join([kind, *kept, *([f" charset={codec.replace('_', '-')}"] if codec else [])])
