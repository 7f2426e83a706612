"""nginx as people run it, under load: one static file, its workers pinned, its own account.

Debian's defaults (sendfile, tcp_nopush, keep-alive, HTTP by the request's version), but for what a
load needs: room for its connections, and a log of nothing but each response's status, in blocks.
Its counts are those of nginx's own status page, over a socket that is not TCP's.
"""

from __future__ import annotations

import http.client
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from testbed.base import proc
from testbed.base.errors import LabError
from testbed.base.namespace import Namespace
from testbed.server.nginx import ERROR_LOG, PID_FILE, has_sockets, nginx_argv
from wings.server_loads.account import ServerAccount
from wings.server_loads.processors import mask_of
from wings.server_loads.programs import END_S, FAST_OPEN_QUEUE
from wings.server_loads.spec import ServerLoad

STATUS_SOCKET = "status.sock"
STATUS_LOG = "status.log"
CONNECTIONS_MOST = 65_536
LACKED = ("worker_connections are not enough", "Too many open files", "Cannot allocate memory")
"""What nginx complains of where it could not take a connection."""
CONFIGURATION = """\
user root root;
daemon off;
worker_processes {workers};
{affinity}\
worker_rlimit_nofile {descriptors};
pid {pid};
error_log {error_log} warn;
events {{
  worker_connections {connections};
}}
http {{
  log_format status '$status';
  access_log {status_log} status buffer=64k;
  sendfile on;
  tcp_nopush on;
  default_type text/html;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  server {{
    listen {address} backlog={backlog}{fast_open}{reuse};
    root www;
  }}
  server {{
    listen unix:{status_socket};
    access_log off;
    stub_status;
  }}
}}
"""


def configuration(
    scratch: Path, address: str, load: ServerLoad, backlog: int, processors: tuple[int, ...]
) -> str:
    """Return the whole nginx.conf; without ``processors`` its workers run on any."""
    workers = load.server.workers
    _, descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        descriptors = CONNECTIONS_MOST
    masks = " ".join(f"{mask_of([number]):b}" for number in processors)
    return CONFIGURATION.format(
        workers=workers,
        affinity=f"worker_cpu_affinity {masks};\n" if masks else "",
        descriptors=descriptors,
        connections=min(descriptors, CONNECTIONS_MOST),
        pid=PID_FILE,
        error_log=ERROR_LOG,
        status_log=STATUS_LOG,
        address=address,
        backlog=backlog,
        fast_open=f" fastopen={FAST_OPEN_QUEUE}" if load.tcp.tfo else "",
        reuse=" reuseport" if workers > 1 else "",
        status_socket=scratch / STATUS_SOCKET,
    )


@contextmanager
def serving_nginx(
    namespace: Namespace,
    address: str,
    load: ServerLoad,
    backlog: int,
    processors: tuple[int, ...],
    scratch: Path,
) -> Iterator[Callable[[], ServerAccount]]:
    """Run nginx inside ``namespace``; what is yielded ends it and returns its account.

    ``scratch`` is made: it holds configuration, the file that is served, and logs.

    Raises:
        LabError: it did not start, or not end as it should.
        MissingError: nginx is not installed.
    """
    scratch.mkdir(mode=0o755)
    (scratch / "www").mkdir()
    (scratch / "www" / "index.html").write_bytes(b"x" * load.server.response_bytes)
    text = configuration(scratch, address, load, backlog, processors)
    (scratch / "nginx.conf").write_text(text)
    log = scratch / "nginx.log"
    with (
        log.open("wb") as output,
        proc.started(
            (*namespace.prefix, *nginx_argv(scratch)), stdout=output, stderr=output
        ) as child,
    ):
        if not proc.becomes_ready(child, lambda: has_sockets(scratch)):
            raise LabError(f"nginx did not start: {_complaints(scratch)}")

        def end() -> ServerAccount:
            accepted, requests = _read_status(scratch / STATUS_SOCKET)
            workers = _count_children(child.pid)
            child.terminate()
            if child.wait(END_S) != 0:
                raise LabError(f"nginx did not end as it should: {_complaints(scratch)}")
            answers = Counter((scratch / STATUS_LOG).read_text().split())
            said = (scratch / ERROR_LOG).read_text(errors="replace")
            return ServerAccount({
                "accepted": accepted,
                "requests": requests,
                "responses": answers["200"],
                "lacked": sum(said.count(words) for words in LACKED),
            }, workers=workers)  # fmt: skip

        yield end


def _count_children(parent: int) -> int:
    """Return how many processes a process has started that are there (proc_pid_stat(5))."""
    found = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            found += int(stat.read_text().rpartition(")")[2].split()[1]) == parent
    return found


def _complaints(scratch: Path) -> str:
    logs = (scratch / "nginx.log", scratch / ERROR_LOG)
    return "".join(log.read_text(errors="replace")[-2000:] for log in logs if log.exists()).strip()


def _read_status(path: Path) -> tuple[int, int]:
    """Return the connections that were accepted and the requests, this one left out."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(END_S)
        client.connect(str(path))
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answer = http.client.HTTPResponse(client)
        answer.begin()
        lines = answer.read().decode().splitlines()
    accepted, _, requests = map(int, lines[2].split())
    return accepted - 1, requests - 1
