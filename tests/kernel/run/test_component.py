"""A program of a suite that is not the root's runs in a guest, by its own loader and libraries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.base import places
from testbed.base.errors import MissingError
from testbed.model import DEFAULT_ROOT
from testbed.root.cache import ensure_root
from testbed.root.download import package_file
from testbed.root.index import is_newer
from testbed.root.lock import Lock, format_lock, read_lock
from testbed.root.release import read_index
from testbed.root.spec import Component, read_spec
from tests.kernel.guests import Guests

COMPONENT = Component(
    {"debian": ("sid",)},
    {"nginx": "serves by HTTP/3"},
    dict.fromkeys(("adduser", "debconf", "dpkg", "init-system-helpers", "perl"), "for scripts"),
)
PROGRAM = """\
import re, subprocess
place = "/usr/lib/firstflight/nginx-quic/usr"
said = subprocess.run([f"{place}/sbin/nginx", "-V"], capture_output=True, text=True)
own = subprocess.run(["nginx", "-v"], capture_output=True, text=True)
maps = subprocess.run(
    [f"{place}/lib64/ld-linux-x86-64.so.2", "--list", f"{place}/sbin/nginx"],
    capture_output=True, text=True,
)
leave(said=said.stderr, own=own.stderr, libraries=re.findall(r"=> (\\S+)", maps.stdout))
"""


@pytest.mark.guest
@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", [DEFAULT_ROOT, "debian-12"])
def test_nginx_of_sid_has_http_3_beside_the_root_s(
    guests: Guests, tmp_path: Path, name: str
) -> None:
    try:
        packages = read_index(COMPONENT.suites).closure(("nginx",), frozenset(COMPONENT.without))
    except MissingError as error:
        pytest.skip(f"sid cannot be had: {error}")
    spec = replace(read_spec(name), folder=tmp_path / "wide", components={"nginx-quic": COMPONENT})
    own = read_lock(read_spec(name).lock_file)
    lock = Lock(own.taken, own.packages, None, {"nginx-quic": Lock(own.taken, packages)})
    kept, here = (cache / "roots" / "packages" for cache in (places.cache(), tmp_path / "cache"))
    here.mkdir(parents=True)
    for package in lock.all_packages.values():
        if package_file(kept, package).exists():
            package_file(here, package).symlink_to(package_file(kept, package))
    spec.folder.mkdir()
    spec.lock_file.write_text(format_lock(lock))
    root = ensure_root(spec, tmp_path / "cache", print)
    seen = replace(guests, usr=root.usr).observe(PROGRAM)
    version = seen["said"].partition("nginx/")[2].split()[0]
    assert not is_newer("1.30", version)
    assert "--with-http_v3_module" in seen["said"]
    assert "built with OpenSSL 3." in seen["said"]
    assert version not in seen["own"]
    folder = "/usr/lib/firstflight/nginx-quic/usr/"
    assert seen["libraries"]
    assert all(library.startswith(folder) for library in seen["libraries"]), seen["libraries"]
