"""A page as one HAR 1.2 file for other tools: contents embedded, our own fields kept.

Source: http://www.softwareishard.com/blog/har-12-spec/ ; ``content.text`` is the decoded body, in
base64 where it is no text.
"""

from __future__ import annotations

import base64
import json
import tempfile
from pathlib import Path
from typing import Any

from testbed.archive.reading import HAR_NAME, Entry, read_archive
from testbed.base.errors import ConfigurationError, StorageError
from testbed.pages.coding import CodingError, decode
from testbed.pages.facts import FACTS_NAME, read_facts
from testbed.pages.verify_entry import LARGEST_CONTENT_BYTES

TRANSFERRED = "_transferred"
_TEXT_TYPES = frozenset(
    {"application/json", "application/javascript", "application/xml", "image/svg+xml"}
)


def export_har(folder: Path) -> str:
    """The text of a HAR file with everything that the built page in ``folder`` holds.

    Where a body is compressed, the response also has ``_transferred``, the body as transferred in
    base64, so that an importer gets the same bytes back, whatever compressed them.

    Raises:
        ConfigurationError: the folder holds no page archive, or a body is missing or broken.
    """
    archive = read_archive(folder)
    facts = read_facts(folder / FACTS_NAME)
    document: dict[str, Any] = json.loads((folder / HAR_NAME).read_bytes())
    document["log"]["comment"] = f"{facts.source}\n{facts.licence}"
    problems, latest = [], ""
    for entry, item in zip(archive.entries, document["log"]["entries"], strict=True):
        if entry.start_ms is None:
            # Tools sort by this: what has no recorded start keeps its place.
            item["startedDateTime"] = latest or item["startedDateTime"]
        latest = max(latest, str(item["startedDateTime"]))
        try:
            _embed(entry, item["response"])
        except (CodingError, OSError) as error:
            problems.append(f"{folder / HAR_NAME}: {entry.url}: cannot be exported: {error}")
    if problems:
        raise ConfigurationError(problems)
    return json.dumps(document, indent=1) + "\n"


def write_export(text: str, path: Path, *, replace: bool) -> None:
    """Write an exported page to ``path``, which appears whole or not at all.

    Raises:
        ConfigurationError: the file is there and is not to be replaced.
        StorageError: it cannot be written.
    """
    try:
        if path.exists() and not replace:
            raise ConfigurationError(
                [f"{path}: there is a file of this name; choose another with -o, or give --replace"]
            )
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as scratch:
            fresh = Path(scratch) / path.name
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror}; choose another place with -o FILE"
        ) from None


def _embed(entry: Entry, response: dict[str, Any]) -> None:
    """Put the body of ``entry`` into its response.

    Raises:
        CodingError: it does not decode.
        OSError: it cannot be read.
    """
    if entry.body is None:
        return
    data = entry.body.read_bytes()
    codings = [value for name, value in entry.headers if name.lower() == "content-encoding"]
    limit = LARGEST_CONTENT_BYTES if entry.decoded_size is None else entry.decoded_size
    content = decode(data, ", ".join(codings), limit)
    response["content"] |= {"size": len(content), "compression": len(content) - len(data)}
    text = _text(entry.mime, content)
    if text is None:
        text = base64.b64encode(content).decode()
        response["content"]["encoding"] = "base64"
    response["content"]["text"] = text
    if content != data:
        response[TRANSFERRED] = base64.b64encode(data).decode()


def _text(mime: str, content: bytes) -> str | None:
    """The content as text, if its type says that it is and its bytes are UTF-8."""
    if not mime.startswith("text/") and mime not in _TEXT_TYPES:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None
