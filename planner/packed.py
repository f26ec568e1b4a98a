"""Unpack documents that are stored with gzip, such as the plans of the examples."""

from __future__ import annotations

import zlib

from planner.messages import Message

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
