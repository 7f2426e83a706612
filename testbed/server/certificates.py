"""How an origin of nginx speaks TLS: its certificate, and what both ends may agree on.

Source: nginx's ngx_http_ssl_module; RFC 8446, RFC 5246.
"""

from __future__ import annotations

from pathlib import Path

from testbed.base.errors import ConfigurationError
from testbed.server.words import quote

TLS_LINK = "tls"
"""A link in the server's folder to the certificates: nginx looks for variables in their paths."""

TLS = """\
    ssl_certificate {certificate};
    ssl_certificate_key {key};
    ssl_protocols TLSv{version};
    # One curve and few ciphers, and every connection shakes hands in full: equal loads are equal.
    ssl_ecdh_curve X25519:prime256v1;
    ssl_ciphers ECDHE+AESGCM:ECDHE+CHACHA20;
    ssl_session_cache off;
    ssl_session_tickets off;
    ssl_conf_command NumTickets 0;
"""


def tls_directives(host: str, folder: Path | None, version: str) -> str:
    """The directives of a server for ``host``, whose certificate is in ``folder``.

    ``version`` is the only one offered, as "1.3".

    Raises:
        ConfigurationError: there is no certificate.
    """
    if folder is None or not (folder / f"{host}.pem").is_file():
        raise ConfigurationError(
            [f"https://{host}: {folder} has no certificate for it; build the page anew"]
        )
    return TLS.format(
        certificate=quote(f"{TLS_LINK}/{host}.pem"),
        key=quote(f"{TLS_LINK}/key.pem"),
        version=version,
    )
