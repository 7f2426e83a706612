"""Replay server: nginx, its whole configuration, TLS included, and its process.

``listeners`` says where it listens, ``blocks`` what it serves there, ``matching`` which recorded
response answers a request, and ``replay_log`` how requests were answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from testbed.archive.reading import Archive
from testbed.base import proc
from testbed.base.errors import ConfigurationError, LabError
from testbed.base.namespace import Namespace
from testbed.model import KEPT_ALIVE_S, EarlyDataAt
from testbed.server.asked import Asked, asked_of, candidates_of
from testbed.server.beside_nginx import started_beside
from testbed.server.blocks import CHOICE, EMPTY_FILE, check_replayable, server_block
from testbed.server.channels import is_channel, serve_channels
from testbed.server.choice import to_order
from testbed.server.choice_program import SOCKET
from testbed.server.listeners import Listener
from testbed.server.matching import CONDITION
from testbed.server.quoting import Constants, quote
from testbed.server.replay_log import EARLY, log_directives
from testbed.server.think import Think, load_directive, require_module, silence_s

NO_LIMIT = 1_000_000
PID_FILE = "nginx.pid"
ERROR_LOG = "error.log"
# nginx is one process here (master_process off) and changes no ids, so the kernel keeps to this.
TIED = ("setpriv", "--pdeathsig", "KILL")

# Paths are relative to the server's folder.
HEAD = """\
worker_processes 1;
daemon off;
master_process off;
pid {pid};
error_log {error_log} warn;
events {{
  worker_connections 4096;
}}
http {{
{log}{constants}\
  server_tokens off;
  default_type application/octet-stream;
  etag off;
  if_modified_since off;
  max_ranges 0;
  merge_slashes on;
  uninitialized_variable_warn off;
  variables_hash_max_size 65536;
  variables_hash_bucket_size 256;
  # HEAD is answered as GET is; a length of 0 is as none.
  map $request_method $answered_method {{ default $request_method; HEAD GET; }}
  map $http_if_none_match$http_if_modified_since $condition {{ default "{condition}"; "" ""; }}
  map $content_length $body_length {{ default ":$content_length"; "" ""; 0 ""; }}
  sendfile on;
  # Otherwise each head leaves in a segment of its own and takes a place in the initial window.
  tcp_nopush on;
  tcp_nodelay on;
  keepalive_timeout {kept_alive_s}s;
  keepalive_requests {keepalive_requests};
  keepalive_disable none;
  # Links are slow, and requests have long URLs and cookies.
  client_header_timeout 300s;
  client_body_timeout 300s;
  send_timeout 300s;
  large_client_header_buffers 8 64k;
  client_max_body_size 0;
  client_body_buffer_size 1m;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
"""
CHAIN = 2
"""Certificates of a built page's chain: a host's own and its issuer's."""
BEGIN = "-----BEGIN CERTIFICATE-----"
TLS_LINK = "tls"
"""A link in the server's folder to the certificates: nginx looks for variables in their paths."""
TLS = """\
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols TLSv{version};
    # One curve and few ciphers, and every connection shakes hands in full: equal loads are equal.
    ssl_ecdh_curve {curves};
    ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20;
    ssl_session_cache off;
"""
NO_TICKETS = """\
    ssl_session_tickets off;
    ssl_conf_command NumTickets 0;
"""
# As many as OpenSSL gives, for as long as tickets may live (RFC 8446 section 4.6.1).
TICKETS = """\
    ssl_session_tickets on;
    ssl_session_timeout 7d;
    ssl_conf_command NumTickets 2;
"""
# What nginx says of it holds until a handshake ends, so it is asked before the answer.
EARLY_DATA = f"""\
    ssl_early_data on;
    set ${EARLY} $ssl_early_data;
"""


NGINX = ("/usr/sbin/nginx",)
"""Where each root has it, and Debian."""
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "nginx": NGINX,
    "nginx-quic": ("/usr/lib/firstflight/nginx-quic/usr/sbin/nginx",),
    "aioquic": ("/usr/lib/firstflight/aioquic/usr/bin/python3",),
}
"""The words that start each web server: the root's own, or that of one of its components."""
CURVES = {
    "browser": "X25519:prime256v1",
    "x25519": "X25519:prime256v1",
    "x25519mlkem768": "X25519MLKEM768",
}
"""The groups that a server takes, by the key shares asked for."""


@dataclass(frozen=True, slots=True)
class Handshakes:
    """How a server opens connections over TLS.

    ``version`` ("1.2" or "1.3") is the only one offered.  ``tickets`` says whether sessions can be
    resumed, ``early_data`` whether requests may come in the first flight of such a one, and
    ``early_data_at``, ``key_share`` and ``certificates`` are as in a condition.
    """

    version: str = "1.3"
    tickets: bool = False
    early_data: bool = False
    key_share: str = "browser"
    early_data_at: EarlyDataAt = "all"
    certificates: int = CHAIN

    def of(self, host: str, root_url: str) -> Handshakes:
        """Return those of ``host``, the page's own origin by its ``root_url`` or another."""
        first = host == urlsplit(root_url).hostname
        taken = self.early_data_at in ("all", "first" if first else "others")
        return replace(self, early_data=self.early_data and taken)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of the server, the same for every page.

    ``keepalive_requests`` ends a connection after so many requests; ``None``: never.
    ``handshakes`` are those over TLS.  ``tls`` is the built page's folder with ``key.pem`` and
    ``<host>.pem``; ``None`` when no listener has TLS.  With ``buffered_log`` the log is written
    when the server ends, and not for each request.  ``think`` is how long the server thinks before
    it answers; ``None``: not at all.  ``program`` are the words that start nginx, the last of them
    its place in the ``usr`` that has its modules.  With ``validates`` conditional requests are
    answered by the recorded validators: for loads that need it, because another configuration,
    read for longer, makes other keys.  ``at_once``: what was recorded with times of its own, such
    as messages of WebSockets, does not wait for them.
    """

    keepalive_requests: int | None = None
    handshakes: Handshakes = Handshakes()
    tls: Path | None = None
    buffered_log: bool = True
    think: Think | None = None
    program: tuple[str, ...] = NGINX
    validates: bool = False
    at_once: bool = False

    @property
    def usr(self) -> Path:
        """Where nginx and its modules are."""
        return Path(self.program[-1]).parents[1]


def configuration(archive: Archive, listeners: Sequence[Listener], terms: ServerOptions) -> str:
    """Return the whole nginx.conf, to be written as Latin-1.

    Raises:
        ConfigurationError: the page cannot be replayed, or listeners have TLS and terms none.
    """
    return _configuration(archive, listeners, terms, _ask(archive, listeners, terms))


def _ask(
    archive: Archive, listeners: Sequence[Listener], terms: ServerOptions
) -> tuple[Asked, ...]:
    """Return what each listener is asked of a page that can be replayed."""
    check_replayable(archive)
    entries, rules = archive.served, archive.rules
    return tuple(asked_of(each, entries, rules, validates=terms.validates) for each in listeners)


def _configuration(
    archive: Archive, listeners: Sequence[Listener], terms: ServerOptions, pages: Sequence[Asked]
) -> str:
    check_certificates(listeners, terms.tls)
    constants = Constants()
    blocks = []
    for listener, page in zip(listeners, pages, strict=True):
        handshakes = terms.handshakes.of(listener.host, archive.root_url)
        tls = tls_directives(listener.host, handshakes) if listener.tls else ""
        think = terms.think and terms.think.of(listener.host)
        blocks.append(server_block(listener, page, constants, tls, think))
    request_limit = NO_LIMIT if terms.keepalive_requests is None else terms.keepalive_requests
    head = HEAD.format(
        pid=PID_FILE,
        error_log=ERROR_LOG,
        condition=CONDITION,
        log=log_directives(
            terms.buffered_log, terms.handshakes.early_data, any(each.h3 for each in listeners)
        ),
        constants=constants.definitions(),
        kept_alive_s=KEPT_ALIVE_S,
        keepalive_requests=request_limit,
    )
    modules = load_directive(terms.usr) if _waits(archive, terms) else ""
    chooses = any(page.candidates for page in pages)
    upstream = f"  upstream {CHOICE} {{ server unix:{SOCKET}; }}\n" if chooses else ""
    return modules + head + upstream + "".join(blocks) + "}\n"


@contextmanager
def serve(
    namespace: Namespace | None,
    archive: Archive,
    listeners: Sequence[Listener],
    scratch: Path,
    terms: ServerOptions,
) -> Iterator[int]:
    """Run nginx inside ``namespace`` and yield its process id once it listens everywhere.

    ``scratch`` is made; it holds the configuration and the logs, also after the end.  Without a
    namespace it runs where we do, and ends with the thread that started it, whatever ends that;
    what has a namespace is in a guest or an enclosure, which ends as a whole.

    Raises:
        ConfigurationError: the page cannot be replayed.
        LabError: nginx ended, or did not listen in time.
        MissingError: nginx is not installed, or not the module that thinks.
    """
    if _waits(archive, terms):
        require_module(terms.usr)
    pages = _ask(archive, listeners, terms)
    text = _configuration(archive, listeners, terms, pages)
    scratch.mkdir(mode=0o755, parents=True)
    scratch = scratch.absolute()
    (scratch / EMPTY_FILE).touch()
    (scratch / "nginx.conf").write_text(text, "latin-1")
    if terms.tls is not None:
        lay_certificates(scratch / TLS_LINK, terms.tls.absolute(), terms.handshakes.certificates)
    tied = TIED if namespace is None else ()
    argv = (*tied, *nginx_argv(scratch, terms.program))
    candidates = candidates_of(pages)
    with ExitStack() as undo:
        undo.enter_context(serve_channels(archive, scratch, tied, at_once=terms.at_once))
        log = undo.enter_context((scratch / "nginx.log").open("wb"))
        if candidates:
            order = to_order(candidates, archive.rules)
            undo.enter_context(started_beside("choice_program", "choice", order, scratch, tied))
        with nullcontext() if namespace is None else namespace.entered():
            # Paths of sockets are short: those of programs beside nginx are relative to its folder.
            where = scratch if candidates or any(map(is_channel, archive.entries)) else None
            child = undo.enter_context(proc.started(argv, cwd=where, stdout=log, stderr=log))
        if not proc.becomes_ready(child, lambda: has_sockets(scratch)):
            log_text = (scratch / "nginx.log").read_text(errors="replace")[-2000:]
            raise LabError(f"nginx is not ready: {log_text.strip()}")
        yield child.pid


def _waits(archive: Archive, terms: ServerOptions) -> bool:
    """Return whether some request is to wait, which takes a module."""
    return terms.think is not None or any(silence_s(each) is not None for each in archive.served)


def lay_certificates(place: Path, tls: Path, certificates: int) -> None:
    """Have what is in the folder ``tls`` at ``place``, each chain with so many certificates."""
    if certificates == CHAIN:
        # A link: paths of certificates may hold variables, and this one has none.
        place.symlink_to(tls)
        return
    place.mkdir()
    for path in tls.iterdir():
        before, *chain = path.read_text("ascii").split(BEGIN)
        more = chain[1:][-1:] * (certificates - CHAIN)
        (place / path.name).write_text(BEGIN.join((before, *chain, *more)), "ascii")


def nginx_argv(scratch: Path, program: tuple[str, ...] = NGINX) -> tuple[str, ...]:
    """Return the command of an nginx with all its files in ``scratch``; ``program`` starts it."""
    conf, log = scratch / "nginx.conf", scratch / ERROR_LOG
    return (*program, "-p", f"{scratch}/", "-e", str(log), "-c", str(conf))


def has_sockets(scratch: Path) -> bool:
    """Return whether the nginx of ``scratch`` has all its sockets: then it writes its id down."""
    path = scratch / PID_FILE
    return path.exists() and path.stat().st_size > 0


def check_certificates(listeners: Sequence[Listener], folder: Path | None) -> None:
    """Make sure that ``folder`` has a certificate for each of ``listeners`` with TLS.

    Raises:
        ConfigurationError: the origins for which it has none.
    """
    missing = [
        f"https://{each.host}: {folder} has no certificate for it; build the page anew"
        for each in listeners
        if each.tls and (folder is None or not (folder / f"{each.host}.pem").is_file())
    ]
    if missing:
        raise ConfigurationError(missing)


def tls_directives(host: str, handshakes: Handshakes) -> str:
    """Return the directives of a server for ``host``."""
    text = TLS.format(
        certificate=quote(f"{TLS_LINK}/{host}.pem"),
        key=quote(f"{TLS_LINK}/key.pem"),
        version=handshakes.version,
        curves=CURVES[handshakes.key_share],
    )
    text += TICKETS if handshakes.tickets else NO_TICKETS
    return text + (EARLY_DATA if handshakes.early_data else "")
