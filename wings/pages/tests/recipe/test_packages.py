"""Packages come from their registry once, only as pinned, and no name leads out of them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from testbed.base.debian import MIRROR_VARIABLE
from testbed.base.errors import ConfigurationError, MissingError
from testbed.root import release
from tests.root.debs import locked, pack, publish, serving
from wings.pages.recipe.description import Recipe, read_recipe
from wings.pages.recipe.packages import (
    choose_version,
    collect_files,
    find_installed,
    install,
    npm_integrity,
    read_files,
    read_package,
)
from wings.pages.tests.recipe.recipes import FILES, TABLE, tarball, write_page

PINNED = Recipe.model_construct(package="p", version="1.0-1", suite="bookworm", when_gone="refuse")


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a fake npm that hands out ``small.tgz`` and counts how often."""
    folder = tmp_path / "registry"
    folder.mkdir()
    (folder / "small.tgz").write_bytes(tarball(FILES))
    npm = folder / "npm"
    npm.write_text(
        "#!/bin/sh\n"
        'while [ "$1" != --pack-destination ]; do shift; done\n'
        f'echo "$3" >> {folder}/asked\n'
        f'exec /bin/cp {folder}/small.tgz "$2"/\n'
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


def recipe(tmp_path: Path, registry: Path) -> Recipe:
    integrity = npm_integrity(registry / "small.tgz")
    return read_recipe(write_page(tmp_path / "pages", integrity=integrity))


def asked(registry: Path) -> list[str]:
    return (registry / "asked").read_text().split()


def test_a_package_is_fetched_once(tmp_path: Path, registry: Path) -> None:
    small = recipe(tmp_path, registry)
    first = install(small, tmp_path / "cache", lambda _: None)
    assert install(small, tmp_path / "cache", lambda _: None) == first
    assert asked(registry) == ["small@1.0.0"]
    assert read_package(small, first)["a.js"] == FILES["package/a.js"]


def test_a_damaged_copy_is_fetched_again(tmp_path: Path, registry: Path) -> None:
    small = recipe(tmp_path, registry)
    first = install(small, tmp_path / "cache", lambda _: None)
    first.archive.write_bytes(b"damaged")
    assert install(small, tmp_path / "cache", lambda _: None) == first
    assert len(asked(registry)) == 2


def test_another_package_under_the_same_name_is_refused(tmp_path: Path, registry: Path) -> None:
    small = recipe(tmp_path, registry)
    (registry / "small.tgz").write_bytes(tarball({"package/index.html": b"evil"}))
    with pytest.raises(MissingError, match=r"small@1\.0\.0: the registry gave .*it is not used"):
        install(small, tmp_path / "cache", lambda _: None)
    assert list((tmp_path / "cache").rglob("*.tgz")) == []


def test_an_unreachable_registry_is_told(tmp_path: Path, registry: Path) -> None:
    small = recipe(tmp_path, registry)
    (registry / "npm").write_text("#!/bin/sh\necho ENOTFOUND >&2\nexit 1\n")
    with pytest.raises(MissingError, match=r"npm cannot fetch small@1\.0\.0: .*ENOTFOUND"):
        install(small, tmp_path / "cache", lambda _: None)


def test_the_pinned_version_is_taken_when_there_is_a_newer_one() -> None:
    assert choose_version(PINNED, ["1.0-2", "1.0-1"]) == "1.0-1"


def test_a_version_that_is_gone_is_told_with_the_ways_on() -> None:
    with pytest.raises(MissingError) as caught:
        choose_version(PINNED, ["1.0-2"])
    assert str(caught.value) == (
        "p 1.0-1 is no longer in Debian's suite bookworm (offered: 1.0-2); set recipe.version and "
        'recipe.sha256 to an offered one, or set recipe.when_gone to "newest"'
    )


def test_the_newest_is_taken_only_where_the_recipe_says_so() -> None:
    moving = PINNED.model_copy(update={"when_gone": "newest"})
    assert choose_version(moving, ["1.0-3", "1.0-2"]) == "1.0-3"
    with pytest.raises(MissingError, match="offered: nothing"):
        choose_version(moving, [])


@pytest.mark.parametrize(("when_gone", "kept"), [("newest", "1.0-3"), ("refuse", None)])
def test_a_machine_keeps_the_version_that_it_settled_on(
    tmp_path: Path, when_gone: str, kept: str | None
) -> None:
    table = TABLE.replace('"npm"', '"debian"').replace('"1.0.0"', '"1.0-1"')
    checksum = f'sha256 = "{"0" * 64}"\nsuite = "bookworm"\nwhen_gone = "{when_gone}"'
    debian = table.replace('integrity = "{integrity}"', checksum)
    small = read_recipe(write_page(tmp_path / "pages", table=debian))
    for folder in ("1.0-3", ".fetch-killed"):
        place = tmp_path / "cache" / "packages" / "debian" / "small" / folder
        place.mkdir(parents=True)
        (place / "small.deb").write_bytes(b"another")
    found = find_installed(small, tmp_path / "cache")
    assert (found and found.version) == kept


def debian_recipe(tmp_path: Path, sha256: str, when_gone: str = "refuse") -> Recipe:
    table = TABLE.replace('"npm"', '"debian"').replace('"1.0.0"', '"1.0-1"')
    more = f'sha256 = "{sha256}"\nsuite = "bookworm"\nwhen_gone = "{when_gone}"'
    debian = table.replace('integrity = "{integrity}"', more)
    return read_recipe(write_page(tmp_path / "pages", table=debian))


@pytest.mark.parametrize(("when_gone", "version"), [("refuse", "1.0-1"), ("newest", "1.0-2")])
def test_a_package_of_debian_is_what_its_signed_index_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when_gone: str, version: str
) -> None:
    data = pack({"package": None, "package/a.js": "of Debian", "package/b.js": Path("a.js")})
    package = locked("small", data, version=version)
    small = debian_recipe(tmp_path, package.sha256, when_gone)
    said: list[str] = []
    monkeypatch.setenv("PATH", "/nowhere")  # neither apt nor dpkg
    monkeypatch.setattr(release, "verify_release", lambda signed, address: signed.decode())
    with serving(publish({"bookworm": [(package, data, "")]})) as mirror:
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        installed = install(small, tmp_path / "cache", said.append)
    assert (installed.version, installed.checksum) == (version, f"sha256-{package.sha256}")
    assert installed.archive.name == f"small_{version}_amd64.deb"
    assert read_package(small, installed) == {"a.js": b"of Debian", "b.js": b"of Debian"}
    assert any("is gone from Debian; taking 1.0-2" in line for line in said) is (
        version != small.version
    )


def test_another_package_of_debian_than_is_pinned_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pack({"package/a.js": "another"})
    package = locked("small", data, version="1.0-1")
    monkeypatch.setattr(release, "verify_release", lambda signed, address: signed.decode())
    with serving(publish({"bookworm": [(package, data, "")]})) as mirror:
        monkeypatch.setenv(MIRROR_VARIABLE, f"{mirror.address}/debian")
        with pytest.raises(MissingError, match=r"the recipe pins sha256-0{64}; it is not used"):
            install(debian_recipe(tmp_path, "0" * 64), tmp_path / "cache", lambda said: None)
    assert not any(path.endswith(".deb") for path, _ in mirror.asked)


def collect(data: bytes, root: str, limit: int = 10_000) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as archive:
        return collect_files(archive, Path("x.deb"), root, limit)


def test_only_files_below_the_root_are_read() -> None:
    files = collect(tarball(FILES), "package")
    assert sorted(files) == ["a.css", "a.js", "f.woff2", "img/1.gif", "img/2.gif", "index.html",
                             "not-asked-for.txt"]  # fmt: skip
    assert files["img/1.gif"] == b"GIF89a1"


def test_names_and_links_stay_inside() -> None:
    hostile = {"../../package/x": b"1", "package/../../../etc/passwd": b"2", "/package/y": b"3"}
    links = {"package/passwd": "/etc/passwd", "package/up": "../../../../etc/hostname",
             "package/same": "y", "package/chain": "./same", "package/loop": "loop"}  # fmt: skip
    files = collect(tarball(hostile, links), "package")
    assert files == {"x": b"1", "y": b"3", "same": b"3", "chain": b"3"}


def test_too_much_is_refused() -> None:
    bomb = tarball({"package/a": bytes(1000), "package/b": bytes(1000)})
    assert len(collect(bomb, "package", 2000)) == 2
    with pytest.raises(ConfigurationError, match="more than 1999 bytes"):
        collect(bomb, "package", 1999)


@pytest.mark.parametrize(
    "data", [b"", b"no archive", tarball(FILES)[:100]], ids=["empty", "text", "half"]
)
def test_what_is_no_archive_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.tgz").write_bytes(data)
    with pytest.raises(ConfigurationError, match=r"x\.tgz"):
        read_files(tmp_path / "x.tgz", "package")


def test_a_wrong_root_is_told() -> None:
    with pytest.raises(ConfigurationError, match=r"no files below 'pack'.*recipe\.root"):
        collect(tarball(FILES), "pack")
