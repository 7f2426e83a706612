"""The nginx configuration: what it says, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.archive.head import PADDING_BYTES, header_problem, natural_size, request_problem
from testbed.archive.reading import Entry
from testbed.base import proc
from testbed.base.errors import ConfigurationError
from testbed.server.blocks import EMPTY_FILE, paddings
from testbed.server.listeners import Listener, lab_listeners
from testbed.server.nginx import ServerOptions, configuration, nginx_argv
from tests.server.pages import HOST, OTHER_HOST, make_archive, make_entry
from tests.server.test_quoting import unquote

ADDRESS = "10.10.0.1"
PRINTABLE = st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f")
BARE = natural_size(200, 0, make_entry().headers)


def configure(
    *entries: Entry, terms: ServerOptions | None = None, protocol: str = "as-recorded"
) -> str:
    archive = make_archive(*entries)
    addresses = {host: (f"10.10.0.{i}",) for i, host in enumerate(archive.hosts, 1)}
    return configuration(
        archive, lab_listeners(archive, addresses, protocol), terms or ServerOptions()
    )


def tokens(text: str) -> list[str]:
    """The words of a configuration as nginx reads them; a brace or semicolon is one, unquoted."""
    words: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "#":
            position = text.index("\n", position)
        elif char in "\"'":
            end = position + 1
            while text[end] != char:
                end += 2 if text[end] == "\\" else 1
            assert text[end + 1] in " ;)\n", text[position : end + 2]
            words.append(text[position : end + 1])
            position = end
        elif char in "{};":
            words.append(char)
        elif not char.isspace():
            end = position
            while not text[end].isspace() and text[end] not in ";{":
                end += 1
            words.append(text[position:end])
            position = end - 1
        position += 1
    return words


def shape(text: str) -> str:
    """A configuration without what is quoted."""
    return " ".join("Q" if word[0] in "\"'" else word for word in tokens(text))


def test_one_server_for_each_host() -> None:
    text = configure(make_entry("/"), make_entry("/a.png", host=OTHER_HOST))
    first, second = text.split("  server {\n")[1:]
    for block, address, key, absent in (
        (first, ADDRESS, f"//GET:{HOST}/", "a.png"),
        (second, "10.10.0.2", f"//GET:{OTHER_HOST}/a.png", HOST),
    ):
        assert f"    listen {address}:80 fastopen=256 backlog=1024;\n" in block
        assert f'    location = "{key}" {{' in block
        assert absent not in block


@pytest.mark.parametrize(("asked", "written"), [(None, "1000000"), (1, "1"), (100, "100")])
def test_requests_per_connection(asked: int | None, written: str) -> None:
    assert f"  keepalive_requests {written};\n" in configure(
        make_entry(), terms=ServerOptions(asked)
    )


@pytest.mark.parametrize(
    ("failure", "dur_ms", "ending"),
    [("net::ERR_CONNECTION_RESET", 5.0, "reset_timedout_connection on; return 444;"),
     ("net::ERR_EMPTY_RESPONSE", 5.0, "internal; return 444;"),
     ("net::ERR_FAILED", 5.0, "internal; return 404;"),
     ("net::ERR_TIMED_OUT", 21_000.0, "echo_sleep 21.001; echo_exec //1;"),
     ("net::ERR_ABORTED", 500.0, "echo_sleep 30.500; echo_exec //1;"),
     ("net::ERR_TIMED_OUT", None, "echo_sleep 86400.000; echo_exec //1;")],
)  # fmt: skip
def test_what_failed_fails_so_again(failure: str, dur_ms: float | None, ending: str) -> None:
    failed = make_entry("/x", status=0, failure=failure, dur_ms=dur_ms)
    archive = replace(make_archive(make_entry()), failures=(failed,))
    listeners = lab_listeners(archive, {HOST: (ADDRESS,)}, "as-recorded")
    text = configuration(archive, listeners, ServerOptions())
    assert ending in text
    assert text.startswith("load_module") is ("echo" in ending)


def test_nothing_is_written_outside_the_scratch_folder() -> None:
    text = configure(make_entry())
    directives = [line.strip().rstrip(";").split() for line in text.splitlines()]
    paths = [
        words[1]
        for words in directives
        if words and words[0].endswith(("_path", "_log", "pid")) and len(words) > 1
    ]
    assert len(paths) == 8
    assert not any(path.startswith("/") or ".." in path for path in paths)
    assert nginx_argv(Path("/scratch"))[1:] == (
        *("-p", "/scratch/", "-e", "/scratch/error.log", "-c", "/scratch/nginx.conf"),
    )


@given(extra=st.integers(min_value=0, max_value=20_000))
def test_padding_fills_exactly(extra: int) -> None:
    entry = make_entry(headers_size=BARE + extra)
    if 0 < extra <= PADDING_BYTES:
        with pytest.raises(ConfigurationError, match=f"needs {BARE} or at least {BARE + 14}"):
            configure(entry)
        return
    lines = [f"X-Padding: {value}\r\n" for value in paddings(entry)]
    assert sum(len(line) for line in lines) == extra
    assert all(14 <= len(line) <= 2000 for line in lines)


def test_a_head_of_unknown_size_is_not_padded() -> None:
    assert paddings(make_entry(headers_size=None)) == ()


def test_all_that_cannot_be_replayed_is_reported_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        configure(make_entry(status=199), make_entry("/small", headers_size=20),
                  make_entry("/a b", headers=(("X-A", "a\nb"), ("X B", "c"))),
                  make_entry("/" + "u" * 4000), make_entry("/fine"))  # fmt: skip
    problems = caught.value.problems
    assert len(problems) == 6
    for problem, part in zip(
        problems,
        ("GET http://www.page.test/: a response with status 199",
         "GET http://www.page.test/small: a response header of 20 bytes cannot be made",
         "GET http://www.page.test/a b: '/a b' is no path", "X-A: 'a\\nb' is no header value",
         "'X B' is no header name", "a path and query of 4001 bytes; 3600 can be replayed"),
        strict=True,
    ):  # fmt: skip
        assert part in problem
        assert problem.startswith("small cannot be replayed: ")


@pytest.mark.parametrize(
    "wrong",
    [{"host": "a b"}, {"host": "a;b"}, {"host": "$host"}, {"host": ".page.test"}, {"host": "~a"},
     {"host": "page.test."}, {"host": "A.test"}, {"host": "../x"}, {"host": "a" * 254},
     {"host": ""}, {"method": "get"}, {"method": "G T"}, {"method": ""}, {"method": "TRACE"},
     {"method": "X" * 33}, {"path": ""}, {"path": "a/b"}, {"path": "~^/"}, {"path": "/\x7f"},
     {"path": "/\xe9"}, {"path": "/%00"}, {"path": "/%zz"}, {"path": "/a/../../b"},
     {"path": "/a/%2e%2e/%2E./b"}, {"path": "/a//../../b"}, {"headers": (("", "x"),)},
     {"headers": (("X:A", "x"),)}, {"headers": (("X\nA", "x"),)}, {"headers": (("X-A", "\r"),)},
     {"headers": (("X-A", "\u0100"),)}, {"headers": (("Content-Type", "x" * 1901),)},
     {"status": 101}, {"status": 1000}, {"status": 0}],
)  # fmt: skip
def test_what_nginx_cannot_say_or_be_asked_is_refused(wrong: dict[str, Any]) -> None:
    entry = make_entry(**{"headers_size": None} | wrong)
    with pytest.raises(ConfigurationError, match=r"small cannot be replayed: .*"):
        configure(entry)


@given(
    host=st.text(max_size=12), method=st.text(max_size=8), path=st.text(max_size=30),
    name=st.text(max_size=9), value=st.text(max_size=30),
)  # fmt: skip
def test_hostile_text_is_refused_or_stays_in_its_quotes(
    host: str, method: str, path: str, name: str, value: str
) -> None:
    entry = make_entry(
        f"/{path}", host=host, method=method, headers=((name, value),), headers_size=None
    )
    if request_problem(method, host, f"/{path}") or header_problem(name, value):
        with pytest.raises(ConfigurationError):
            configure(entry)
    else:
        tokens(configure(entry))


@given(
    url=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=30),
    value=st.text(PRINTABLE, min_size=1, max_size=60),
    media_type=st.text(PRINTABLE, min_size=1, max_size=30),
)
def test_texts_change_nothing_but_themselves(url: str, value: str, media_type: str) -> None:
    url = "/?" + url
    headers = (("Content-Type", media_type), ("X-A", value.replace("$", "S")))
    plain = (("Content-Type", "a"), ("X-A", "b"))
    text = configure(make_entry(url, headers=headers, headers_size=None))
    assert shape(text) == shape(configure(make_entry("/?a", headers=plain, headers_size=None)))
    words = [unquote(word) for word in tokens(text) if word.startswith('"')]
    assert f"//GET:{HOST}{url}" in words
    assert media_type in words
    assert headers[1][1] in words


HOSTILE = st.text(
    st.sampled_from("ab\"'\\;{}$#~ \t=@^*/?&%41\xe9") | PRINTABLE, min_size=1, max_size=40
)


@settings(max_examples=8)
@given(texts=st.lists(st.tuples(HOSTILE, HOSTILE, HOSTILE), min_size=1, max_size=20))
def test_nginx_takes_every_configuration_that_is_written(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("conf")
    entries = [
        make_entry(
            f"/p?{url}",
            headers=(("X-" + name, value), ("Content-Type", value), ("X-L", value * 99)),
            headers_size=None,
        )
        for url, name, value in texts
        if request_problem("GET", HOST, f"/p?{url}") is None
        and header_problem("X-" + name, value) is None
    ]
    archive = make_archive(make_entry(), *entries)
    listeners = (Listener(HOST, ("127.0.0.1",), 80, False, False, 65000),)
    (folder / EMPTY_FILE).touch()
    (folder / "nginx.conf").write_text(
        configuration(archive, listeners, ServerOptions()), "latin-1"
    )
    proc.run((*nginx_argv(folder), "-t"))
