"""The split package as a site: what a plain web server would answer for each of its files."""

from __future__ import annotations

import zlib

from testbed.pages.recipe.description import Recipe
from testbed.pages.recipe.mime import is_text
from testbed.pages.recipe.split import SiteFile, Split
from testbed.pages.recording.exchange import Exchange, Recording

GZIP_LEVEL = 6  # nginx's and Apache's usual one, and that of the measured sizes
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_CACHED = "public, max-age=604800"


def make_site(recipe: Recipe, pages: Split, source: str) -> Recording:
    """Every file that the page may ask for, as exchanges that never happened; the index first."""
    scheme, protocol = recipe.scheme, recipe.http
    root = f"{scheme}:{pages.files[0].url}"
    exchanges = []
    for file in pages.files:
        data, encoding = _compressed(file)
        url = f"{scheme}:{file.url}"
        exchanges.append(
            Exchange(
                url=url,
                status=200,
                protocol=protocol,
                headers=_headers(recipe, file, encoding),
                body=data,
                body_size=len(data),
                decoded_size=len(file.data),
                mime=file.mime,
                initiator=None if url == root else root,
                how="root" if url == root else "other",
            )
        )
    return Recording(
        title=recipe.title,
        url=root,
        recorded=recipe.recorded,
        source=source,
        exchanges=tuple(exchanges),
        notes=pages.notes,
    )


def _compressed(file: SiteFile) -> tuple[bytes, str]:
    """The body as a server sends it, and its content coding (empty for none)."""
    if not is_text(file.mime):
        return file.data, ""
    compressor = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    data = compressor.compress(file.data) + compressor.flush()
    return (data, "gzip") if len(data) < len(file.data) else (file.data, "")


def _headers(recipe: Recipe, file: SiteFile, encoding: str) -> tuple[tuple[str, str], ...]:
    headers = [("Content-Type", file.mime)]
    if encoding:
        headers.append(("Content-Encoding", encoding))
    if is_text(file.mime):
        headers.append(("Vary", "Accept-Encoding"))
    headers.append(("Cache-Control", _CACHED))
    if not file.url.startswith(f"//{recipe.main}/"):
        # Fonts and modules of another origin need leave; static hosts give it for everything.
        headers.append(("Access-Control-Allow-Origin", "*"))
    return tuple(headers)
