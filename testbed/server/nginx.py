"""nginx as the replay server: one server block and one address for each origin of a page.

Every response has exactly the recorded number of header bytes: nginx's own lines, the recorded
end-to-end headers, and an ``X-Padding`` header for the rest.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testbed import proc
from testbed.errors import LabError
from testbed.namespace import Namespace
from testbed.page.archive import Archive, Entry

READY_S = 10.0
HOST = re.compile(r"[A-Za-z0-9._-]+")
PATH = re.compile(r"/[\x21-\x7e]*")
HEADER_NAME = re.compile(r"[A-Za-z0-9_-]+")
# nginx has no way to write a dollar sign in a value.
HEADER_VALUE = re.compile(r"[\x20-\x23\x25-\x7e]*")
PADDING_NAME = "X-Padding"
PADDING_BYTES = len(f"{PADDING_NAME}: \r\n")
# nginx reads its configuration in pieces of 4096 bytes; no word may be longer.
LONGEST_PADDING = 2000
EMPTY_FILE = "empty"


def header_bytes(entry: Entry) -> int:
    """Bytes of the response header as nginx sends it on a kept connection, without padding.

    Raises:
        LabError: nginx's words for the status are not known here, and so not their length.
    """
    if entry.status not in REASONS:
        raise LabError(f"{entry.url}: a response with status {entry.status} cannot be replayed")
    lines = [
        f"HTTP/1.1 {entry.status} {REASONS[entry.status]}",
        "Server: nginx",
        "Date: Thu, 01 Jan 1970 00:00:00 GMT",
        f"Content-Length: {entry.body_size}",
        "Connection: keep-alive",
        *(f"{name}: {value}" for name, value in entry.headers),
    ]
    if entry.status == 204:
        lines = [line for line in lines if not line.startswith("Content-Length")]
    return sum(len(line) + 2 for line in lines) + 2


REASONS = {
    200: "OK",
    204: "No Content",
    301: "Moved Permanently",
    302: "Moved Temporarily",
    303: "See Other",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    403: "Forbidden",
    404: "Not Found",
    410: "Gone",
    500: "Internal Server Error",
    503: "Service Temporarily Unavailable",
}


def padding(entry: Entry) -> tuple[str, ...]:
    """The values of the padding headers that bring the header to its recorded size.

    Raises:
        LabError: the recorded header is smaller than what nginx must send.
    """
    missing = entry.headers_size - header_bytes(entry)
    if missing < 0 or 0 < missing <= PADDING_BYTES:
        raise LabError(
            f"{entry.url}: a response header of {entry.headers_size} bytes cannot be made, nginx "
            f"needs {header_bytes(entry)} or at least {header_bytes(entry) + PADDING_BYTES + 1}"
        )
    values = []
    while missing:
        line = min(missing, LONGEST_PADDING)
        if 0 < missing - line <= PADDING_BYTES:
            line -= PADDING_BYTES
        values.append("x" * (line - PADDING_BYTES))
        missing -= line
    return tuple(values)


def configuration(
    archive: Archive, addresses: dict[str, str], scratch: Path, keepalive_requests: int | None
) -> str:
    """The whole nginx.conf: ``addresses`` maps each host of the archive to its address."""
    blocks = [
        _server_block(host, address, [e for e in archive.entries if e.host == host], scratch)
        for host, address in addresses.items()
    ]
    kept = keepalive_requests if keepalive_requests is not None else 1_000_000
    return HEAD.format(scratch=scratch, keepalive_requests=kept) + "".join(blocks) + "}\n"


HEAD = """\
worker_processes 1;
daemon off;
master_process off;
pid {scratch}/nginx.pid;
error_log {scratch}/error.log warn;
events {{
  worker_connections 4096;
}}
http {{
  access_log off;
  server_tokens off;
  default_type application/octet-stream;
  etag off;
  if_modified_since off;
  max_ranges 0;
  sendfile on;
  # Otherwise each head leaves in a segment of its own and takes a place in the initial window.
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_timeout 300s;
  keepalive_requests {keepalive_requests};
  client_body_temp_path {scratch}/body;
  proxy_temp_path {scratch}/proxy;
  fastcgi_temp_path {scratch}/fastcgi;
  uwsgi_temp_path {scratch}/uwsgi;
  scgi_temp_path {scratch}/scgi;
"""


def _server_block(host: str, address: str, entries: Sequence[Entry], scratch: Path) -> str:
    _require(HOST, host, "a host name")
    empty = scratch / EMPTY_FILE
    locations = "".join(_location(i, entry, entry.body or empty) for i, entry in enumerate(entries))
    return f"""\
  server {{
    listen {address}:80 fastopen=256 backlog=1024;
    server_name {host};
    # Locations are compared with the request line as it came: no decoding, query included.
    rewrite ^ $request_uri;
    location / {{
      add_header X-Replay miss always;
      return 404;
    }}
{locations}  }}
"""


def _location(index: int, entry: Entry, body: Path) -> str:
    path = _quote(_require(PATH, entry.path, "a path"))
    headers = [(_require(HEADER_NAME, name, "a header name"), v) for name, v in entry.headers]
    mime = ""
    if entry.status != 204:  # nginx gives a 204 no content type of its own
        mime = next((v for name, v in headers if name.lower() == "content-type"), "")
        headers = [(name, v) for name, v in headers if name.lower() != "content-type"]
    headers += [(PADDING_NAME, value) for value in padding(entry)]
    adds = "".join(
        f'      add_header {name} "{_quote(_require(HEADER_VALUE, value, "a header value"))}" '
        "always;\n"
        for name, value in headers
    )
    serve = f"""\
      types {{ }}
      default_type "{_quote(_require(HEADER_VALUE, mime, "a content type"))}";
      add_header Last-Modified "";
{adds}"""
    if entry.status == 204:
        return f'    location = "{path}" {{\n{serve}      return 204;\n    }}\n'
    file = f'      root /;\n      try_files "{_quote(str(body))}" =404;\n'
    if entry.status == 200:
        return f'    location = "{path}" {{\n{serve}{file}    }}\n'
    # nginx writes its own body for a redirect; an error page with the recorded body does not.
    return f"""\
    location = "{path}" {{
      error_page 418 ={entry.status} @r{index};
      return 418;
    }}
    location @r{index} {{
{serve}{file}    }}
"""


def _quote(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


def _require(allowed: re.Pattern[str], text: str, what: str) -> str:
    if not allowed.fullmatch(text):
        raise LabError(f"{text!r} cannot be replayed as {what} by nginx")
    return text


@contextmanager
def serve(
    namespace: Namespace,
    archive: Archive,
    addresses: dict[str, str],
    scratch: Path,
    keepalive_requests: int | None,
) -> Iterator[int]:
    """Run nginx inside ``namespace`` and yield its process id once it listens everywhere.

    Raises:
        LabError: nginx ended, or did not listen within ``READY_S`` seconds.
    """
    scratch.mkdir(mode=0o755, parents=True)
    config = scratch / "nginx.conf"
    (scratch / EMPTY_FILE).touch()
    config.write_text(configuration(archive, addresses, scratch, keepalive_requests))
    argv = (*namespace.prefix, "nginx", "-e", str(scratch / "error.log"), "-c", str(config))
    with ExitStack() as undo:
        log = undo.enter_context((scratch / "nginx.log").open("wb"))
        child = undo.enter_context(proc.started(argv, stdout=log, stderr=log))
        deadline = time.monotonic() + READY_S
        while _count_listeners(namespace) < len(addresses):
            if child.poll() is not None or time.monotonic() > deadline:
                said = (scratch / "nginx.log").read_text(errors="replace")[-2000:]
                raise LabError(f"nginx is not ready: {said.strip()}")
            time.sleep(0.01)
        yield child.pid


def _count_listeners(namespace: Namespace) -> int:
    """Listening TCP sockets on port 80 inside ``namespace``."""
    with namespace.entered():
        table = Path("/proc/thread-self/net/tcp").read_text()
    rows = [line.split() for line in table.splitlines()[1:]]
    return sum(1 for row in rows if row[3] == "0A" and row[1].endswith(":0050"))
