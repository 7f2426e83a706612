"""The bytes of WARC files for warcio: unpacked piece by piece, lines and the whole bounded."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import BinaryIO

from warcio.bufferedreaders import BufferedReader  # type: ignore[import-untyped]

from testbed.pages.limits import ARCHIVE_BYTES, LINE_BYTES, mib

PIECE_BYTES = 1 << 16


class TooMuchError(Exception):
    """The records are larger than what is taken in; the message is a clause."""


@dataclass
class Allowance:
    """Bytes that may still be unpacked, of all files of one import together."""

    left: int = field(default=ARCHIVE_BYTES)

    def take(self, size: int) -> None:
        """Count ``size`` bytes.

        Raises:
            TooMuchError: it is more than is left.
        """
        self.left -= size
        if self.left < 0:
            raise TooMuchError(f"more than {mib(ARCHIVE_BYTES)} of records; import fewer pages")


class Lines(BufferedReader):  # type: ignore[misc]
    """warcio's reader, whose lines would grow without end; ``last`` is the last line."""

    last = b""

    def readline(self, length: int | None = None) -> bytes:
        """A line.

        Raises:
            TooMuchError: it is longer than any that is meant.
        """
        line = b""
        most = min(length or LINE_BYTES, LINE_BYTES)
        while len(line) < most and not line.endswith(b"\n"):
            self._fillbuff()
            if self.empty():
                break
            line += self.buff.readline(most - len(line))
        if len(line) >= LINE_BYTES:
            raise TooMuchError(f"a line of more than {LINE_BYTES} bytes")
        self.last = line or self.last
        return line


class Unpacked:
    """The bytes of a file, gzip members undone piece by piece, and counted."""

    def __init__(self, file: BinaryIO, allowance: Allowance) -> None:
        self._file = file
        self._allowance = allowance
        start = file.read(2)
        self._rest = start
        self._stream = zlib.decompressobj(31) if start == b"\x1f\x8b" else None
        self._inside = False

    def read(self, size: int = -1) -> bytes:
        """Up to some 64 KiB, whatever ``size`` is; nothing at the end.

        Raises:
            TooMuchError: it is more than what is taken in.
            EOFError: the last gzip member is not whole.
        """
        while True:
            data = self._rest or self._file.read(PIECE_BYTES)
            self._rest = b""
            if self._inside and not data:
                raise EOFError("the gzip file ends too early, so fetch it again")
            if self._stream is None or not data:
                self._allowance.take(len(data))
                return data
            piece = self._stream.decompress(data, PIECE_BYTES)
            self._rest = self._stream.unconsumed_tail
            self._inside = not self._stream.eof
            if self._stream.eof:
                self._rest = self._stream.unused_data or self._file.read(PIECE_BYTES)
                self._stream = zlib.decompressobj(31)
            if piece:
                self._allowance.take(len(piece))
                return piece

    def tell(self) -> int:
        """Where we are; warcio asks, for messages only."""
        return 0
