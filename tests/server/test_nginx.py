"""The nginx configuration: what it says, how long a header is, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.errors import LabError
from testbed.server.nginx import PADDING_BYTES, configuration, header_bytes, padding
from tests.server.pages import HOST, OTHER_HOST, make_archive, make_entry

SCRATCH = Path("/scratch")
ADDRESS = "10.10.0.1"
PRINTABLE = st.characters(min_codepoint=0x20, max_codepoint=0x7E, exclude_characters="$")
FORBIDDEN = st.one_of(st.characters(max_codepoint=0x1F), st.characters(min_codepoint=0x7F))


def configure(**entry: object) -> str:
    return configuration(make_archive(make_entry(**entry)), {HOST: ADDRESS}, SCRATCH, None)  # type: ignore[arg-type]


def test_one_server_for_each_host() -> None:
    archive = make_archive(make_entry("/"), make_entry("/a.png", host=OTHER_HOST))
    text = configuration(archive, {HOST: ADDRESS, OTHER_HOST: "10.10.0.2"}, SCRATCH, None)
    first, second = text.split("  server {\n")[1:]
    for block, address, host, path, absent in (
        (first, ADDRESS, HOST, "/", "/a.png"),
        (second, "10.10.0.2", OTHER_HOST, "/a.png", '"/"'),
    ):
        assert f"    listen {address}:80 fastopen=256 backlog=1024;\n" in block
        assert f"    server_name {host};\n" in block
        assert f'    location = "{path}" {{\n' in block
        assert absent not in block


@pytest.mark.parametrize(("asked", "written"), [(None, "1000000"), (1, "1"), (100, "100")])
def test_requests_per_connection(asked: int | None, written: str) -> None:
    text = configuration(make_archive(make_entry()), {HOST: ADDRESS}, SCRATCH, asked)
    assert f"  keepalive_requests {written};\n" in text


def test_nothing_is_written_outside_the_scratch_folder() -> None:
    text = configure()
    for line in ("pid", "client_body_temp_path", "proxy_temp_path", "fastcgi_temp_path"):
        assert f"{line} /scratch/" in text
    assert "error_log /scratch/error.log warn;" in text
    assert "access_log off;" in text


def test_header_bytes_are_those_of_the_text() -> None:
    entry = make_entry(body=b"12345", headers=(("Content-Type", "a/b"), ("X-A", "b")))
    text = (
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
        "Content-Type: a/b\r\nContent-Length: 5\r\nConnection: keep-alive\r\nX-A: b\r\n\r\n"
    )
    assert header_bytes(entry) == len(text)


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(LabError, match=r"http://www\.page\.test/: .* status 299 cannot"):
        header_bytes(make_entry(status=299))


@given(extra=st.integers(min_value=0, max_value=20_000))
def test_padding_fills_exactly(extra: int) -> None:
    bare = header_bytes(make_entry())
    entry = make_entry(headers_size=bare + extra)
    if 0 < extra <= PADDING_BYTES:
        with pytest.raises(LabError, match=f"needs {bare} or at least {bare + 14}"):
            padding(entry)
        return
    lines = [f"X-Padding: {value}\r\n" for value in padding(entry)]
    assert sum(len(line) for line in lines) == extra
    assert all(14 <= len(line) <= 2000 for line in lines)


def test_a_header_smaller_than_nginx_can_make_is_refused() -> None:
    with pytest.raises(LabError, match=r"http://www\.page\.test/: a response header of 20 bytes"):
        padding(make_entry(headers_size=20))


@given(before=st.text(PRINTABLE, max_size=9), bad=FORBIDDEN | st.just("$"))
def test_hostile_header_values_are_refused(before: str, bad: str) -> None:
    with pytest.raises(LabError, match="a header value"):
        configure(headers=(("X-A", before + bad),))
    with pytest.raises(LabError, match="a content type"):
        configure(headers=(("Content-Type", before + bad),))


@given(value=st.text(PRINTABLE, max_size=30))
def test_header_values_cannot_leave_their_quotes(value: str) -> None:
    entry = make_entry(headers=(("X-A", value),), headers_size=500)
    text = configuration(make_archive(entry), {HOST: ADDRESS}, SCRATCH, None)
    line = next(line for line in text.splitlines() if "add_header X-A" in line)
    assert line.startswith('      add_header X-A "') and line.endswith('" always;')
    assert _unquote(line[len('      add_header X-A "') : -len('" always;')]) == value


@given(name=st.text(min_size=1, max_size=9).filter(lambda n: not n.replace("-", "a").isalnum()))
def test_hostile_header_names_are_refused(name: str) -> None:
    hostile = name.replace("_", " ")
    with pytest.raises(LabError, match="a header name"):
        configure(headers=((hostile, "x"),), headers_size=500)


@given(bad=FORBIDDEN | st.just(" "), before=st.text(PRINTABLE, max_size=9))
def test_hostile_paths_are_refused(bad: str, before: str) -> None:
    with pytest.raises(LabError, match="a path"):
        configure(path=f"/{before}{bad}")


@pytest.mark.parametrize("path", ["", "a", "a/b", "~^/"])
def test_a_path_starts_with_a_slash(path: str) -> None:
    with pytest.raises(LabError, match="a path"):
        configure(path=path)


@given(host=st.text(max_size=12).filter(lambda h: not h.isascii() or set(h) & set(" ;{}\"'\\$~*/")))
def test_hostile_hosts_are_refused(host: str) -> None:
    with pytest.raises(LabError, match="a host name"):
        configuration(make_archive(make_entry()), {host: ADDRESS}, SCRATCH, None)


def _unquote(text: str) -> str:
    """What nginx reads between double quotes (ngx_conf_read_token)."""
    read, position = "", 0
    while position < len(text):
        if text[position] == "\\" and text[position + 1 : position + 2] in {'"', "'", "\\"}:
            position += 1
        else:
            assert text[position] != '"', "the quotes end here"
        read += text[position]
        position += 1
    return read
