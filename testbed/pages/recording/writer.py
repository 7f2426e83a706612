"""Writes a recording as a page folder that a person can read and ``archive`` replays."""

from __future__ import annotations

import json
from pathlib import Path

from testbed.archive.reading import HAR_NAME
from testbed.pages.facts import PageFacts
from testbed.pages.folder import new_page
from testbed.pages.recording.exchange import Recording
from testbed.pages.recording.har import make_recorded_har
from testbed.pages.synthesis.har import body_name

LICENCE_RECORDED = (
    "The contents belong to their owners. Keep this folder to yourself: it must not be published "
    "without their leave."
)
BODIES_RECORDED = (
    "As transferred, still compressed where they were; each file is named by the SHA-256 of its "
    "bytes. What was not recorded or was changed is listed under deviations."
)


def write_archive(
    folder: Path,
    recording: Recording,
    *,
    licence: str,
    replace: bool = False,
    bodies: str = BODIES_RECORDED,
) -> tuple[str, ...]:
    """Write ``page.toml``, ``page.har`` and ``bodies/<sha256>`` of ``recording`` to ``folder``.

    The folder appears whole or not at all; one recording always gives the same bytes.
    ``licence`` and ``bodies`` are the texts of page.toml.  Returned are its deviations: the notes
    of the recording, then what had to change to be written.

    Raises:
        ValueError: the recording is not whole, a body is missing for example.
        ConfigurationError: the folder is there, and ``replace`` is not given.
        StorageError: it cannot be written; what was there before is intact.
    """
    har = make_recorded_har(folder.name, recording)
    facts = PageFacts(
        title=recording.title,
        url=recording.url,
        recorded=recording.recorded,
        source=recording.source,
        licence=licence,
        bodies=bodies,
        deviations=har.notes,
        pinned=recording.pinned,
    )
    document = json.dumps(har.document, indent=1, allow_nan=False)
    with new_page(folder, facts, replace=replace) as scratch:
        (scratch / HAR_NAME).write_text(document + "\n", encoding="utf-8")
        (scratch / "bodies").mkdir()
        for exchange in recording.exchanges:
            if exchange.body:
                (scratch / f"{body_name(exchange.body)}").write_bytes(exchange.body)
    return har.notes
