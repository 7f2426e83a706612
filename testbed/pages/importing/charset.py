"""Text of a HAR back into the bytes that it was: HAR holds Unicode, whatever the charset was."""

from __future__ import annotations

import re

_CHARSET = re.compile(r"charset\s*=\s*\"?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
# What the web means by a name (WHATWG Encoding); only these, because Python's names open modules.
_CODECS = {
    **dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii", "windows-1252"), "cp1252"),
    **{f"windows-125{n}": f"cp125{n}" for n in (0, 1, 3, 4, 5, 6, 7, 8)},
    **{f"iso-8859-{n}": f"iso8859_{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("gb2312", "gbk", "gb18030"), "gb18030"),
    **{"iso-8859-9": "cp1254", "euc-jp": "euc_jp", "euc-kr": "cp949", "big5": "big5hkscs"},
    **{"koi8-r": "koi8_r", "koi8-u": "koi8_u", "utf-16le": "utf_16_le", "utf-16be": "utf_16_be"},
}


def encode_text(text: str, content_type: str, size: int | None) -> bytes:
    """``text`` in the charset that ``content_type`` names if that gives ``size`` bytes, or UTF-8.

    Half a surrogate pair becomes a question mark.
    """
    utf8 = text.encode("utf-8", "replace")
    found = _CHARSET.search(content_type)
    codec = _CODECS.get(found.group(1).lower()) if found else None
    if codec is None or size is None or len(utf8) == size:
        return utf8
    try:
        other = text.encode(codec)
    except UnicodeEncodeError:
        return utf8
    return other if len(other) == size else utf8
