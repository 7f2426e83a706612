"""An nginx that speaks TLS, and HTTP/2 if wanted, in front of the replay server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.base import proc
from testbed.base.namespace import Namespace
from tests.client.replay import SCHEME_HEADER

NGINX = """\
worker_processes 1;
daemon off;
master_process off;
pid {scratch}/nginx.pid;
error_log {scratch}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  ssl_certificate_key {tls}/key.pem;
  ssl_protocols {versions};
{servers}}}
"""
NGINX_SERVER = """\
  server {{
    listen {address}:443 ssl {h2} fastopen=64;
    server_name {host};
    ssl_certificate {tls}/{host}.pem;
    location / {{
      proxy_pass http://{address}:80;
      proxy_http_version 1.1;
      proxy_set_header Host {host};
      proxy_set_header {scheme_header} https;
    }}
  }}
"""


@contextmanager
def serving_tls(
    namespace: Namespace, hosts: dict[str, str], tls: Path, scratch: Path, h2: bool, versions: str
) -> Iterator[None]:
    """Take TLS connections on port 443 of each host's address, and pass them on to port 80.

    Args:
        namespace: where the addresses are.
        hosts: host name -> address.
        tls: the lab's authority, as in a built page.
        scratch: a folder to make.
        h2: whether HTTP/2 is offered.
        versions: nginx's ssl_protocols.
    """
    scratch.mkdir()
    common = {"tls": tls, "scheme_header": SCHEME_HEADER, "h2": "http2" if h2 else ""}
    servers = "".join(NGINX_SERVER.format(host=h, address=a, **common) for h, a in hosts.items())
    config = scratch / "nginx.conf"
    config.write_text(NGINX.format(scratch=scratch, tls=tls, versions=versions, servers=servers))
    argv = (*namespace.prefix, "nginx", "-e", str(scratch / "log"), "-c", str(config))
    with (
        (scratch / "output").open("wb") as log,
        proc.started(argv, stdout=log, stderr=log) as child,
    ):
        while _listeners(namespace) < len(hosts):
            assert child.poll() is None, (scratch / "output").read_text()
        yield


def _listeners(namespace: Namespace) -> int:
    with namespace.entered():
        table = Path("/proc/thread-self/net/tcp").read_text()
    rows = [line.split() for line in table.splitlines()[1:]]
    return sum(row[3] == "0A" and row[1].endswith(":01BB") for row in rows)
