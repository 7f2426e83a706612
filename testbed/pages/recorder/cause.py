"""What led to each request: the document, style sheet, script or redirect, as the browser says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from testbed.pages.recorder.seen import Asked, Seen
from testbed.pages.recorder.transfer import Transfer
from testbed.pages.recording.exchange import How


@dataclass(frozen=True, slots=True)
class Cause:
    """``initiator`` is the URL of a recorded exchange, or ``None``."""

    how: How
    initiator: str | None


class Causes:
    """Answers for one load.

    Args:
        seen: the load.
        urls: URLs of all recorded exchanges.
        sheets: those of them that are style sheets.
    """

    def __init__(self, seen: Seen, urls: Collection[str], sheets: Collection[str]) -> None:
        self._seen, self._urls, self._sheets = seen, urls, sheets
        self._by_id: dict[str, Asked] = {one.id: one for one in reversed(seen.asked)}
        # Before a redirect of the browser's own (HSTS) there is nothing on the wire.
        self._documents = _documents(seen.asked)

    def of(self, transfer: Transfer, asked: Asked | None) -> Cause:
        """Why this request was made."""
        if asked is None:  # a worker's, or the browser's own: the page that it names is all we know
            named = [v for key, v in transfer.request_headers if key.lower() == "referer"]
            return Cause("other", self._known(*named))
        if asked.redirected_from in self._urls:
            return Cause("redirect", asked.redirected_from)
        if asked.preflight_of and asked.preflight_of in self._by_id:
            return self._of(self._by_id[asked.preflight_of])
        return self._of(asked)

    def _of(self, asked: Asked) -> Cause:
        if asked.type == "Document" and asked.frame not in (None, self._seen.main_frame):
            parent = self._seen.frames.get(asked.frame or "", "")
            return Cause("frame", self._known(asked.initiator, self._documents.get(parent)))
        initiator = self._known(asked.initiator, asked.document)
        if asked.kind == "script":
            return Cause("script", initiator)
        if asked.kind == "parser":
            return Cause("css" if initiator in self._sheets else "parser", initiator)
        return Cause("other", initiator)

    def _known(self, *urls: str | None) -> str | None:
        return next((url for url in urls if url is not None and url in self._urls), None)


def _documents(asked: Sequence[Asked]) -> dict[str, str]:
    """The last document of each frame."""
    return {one.frame: one.url for one in asked if one.type == "Document" and one.frame}
