"""Find the examples and their stored plans, and unpack documents that are stored with gzip, as these plans are."""

from __future__ import annotations

import zlib
from pathlib import Path

from planner.messages import Message

_HERE = Path(__file__).resolve().parent
EXAMPLES = (
    _HERE.parent / "examples"
    if (_HERE.parent / "pyproject.toml").is_file()
    else _HERE / "dashboard" / "data" / "examples"
)
"""The examples: of a checkout, or those that a wheel holds; beside an installed package, `examples` could be anybody's."""
MAGIC = b"\x1f\x8b"  # the first bytes of every gzip file (RFC 1952)
MOST_BYTES = 200_000_000  # in a document once unpacked; stored plans have 3 million at most


def unpacked(data: bytes) -> bytes:
    """Return the document inside gzip, or the data as they are. Raises ValueError where they are damaged, or too long once unpacked."""
    if not data.startswith(MAGIC):
        return data
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        inside = stream.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(Message.of("files.gzip_damaged", error=str(error)).text()) from None
    if stream.unconsumed_tail:
        raise ValueError(Message.of("files.gzip_too_long", most=MOST_BYTES // 10**6).text())
    if not stream.eof or stream.unused_data:
        raise ValueError(Message.of("files.gzip_damaged", error=Message.of("files.gzip_cut").text()).text())
    return inside
