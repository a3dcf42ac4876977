"""Text from tables and from the world, made harmless for a terminal and for tab-separated lines.

Names, comments and values are other people's: a control character in one of them could move the cursor, change the title of
the window or hide a line, and a tab or a line break would make two cells out of one. They are shown as escapes (``\\x1b``,
``\\n``, ``\\u202e``).
"""

import re

# C0, DEL, C1, the line and paragraph separators, and the marks that turn the direction of text.
_RANGES = ((0, 0x1F), (0x7F, 0x9F), (0x200E, 0x200F), (0x2028, 0x202E), (0x2066, 0x2069), (0xFEFF, 0xFEFF))
UNSAFE = tuple(chr(code) for first, last in _RANGES for code in range(first, last + 1))
UNSAFE_CLASS = "[" + "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in _RANGES) + "]"
"""The same as a class that Arrow's regular expressions (RE2) read."""

# Surrogates are no characters: they come from arguments that are no valid text.
_UNSAFE = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in (*_RANGES, (0xD800, 0xDFFF))) + "]")
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def safe(value: object) -> str:
    """``value`` as one line of text without control characters."""
    return _UNSAFE.sub(_escape, str(value))


def safe_lines(value: object) -> str:
    """As :func:`safe`, keeping line breaks."""
    return "\n".join(safe(line) for line in str(value).split("\n"))


def safe_json(text: str) -> str:
    """JSON text with these characters as escapes: the same value, and harmless where it is shown."""
    return _UNSAFE.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return _SHORT.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}")
