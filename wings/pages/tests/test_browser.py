"""The real browser asks for the recorded set, in the recorded order, before the load event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.archive.reading import Archive, Entry, read_archive
from testbed.client.chromium.browser import find_browser
from testbed.pages.build import build_page
from wings.pages.tests.conftest import NAMES, Small
from wings.pages.tests.replay import Replay, assert_none_early, browse, root_document

pytestmark = pytest.mark.browser

Built = Callable[[str], Archive]
# Between the recorded start times of what the page's own document names (frames apart: the
# preload scanner leaves them to the parser) and the order in which the browser found them.
# Measured: 0.92 to 1.00.
MIN_RANK_CORRELATION = 0.8

MORE_LOADS = 2
"""On a busy machine a document comes in pieces, and its parts are found in another order."""
FEW = ("file-10k", "nytimes-fit2011", "wikipedia")
"""One of each kind of page, which `make test-all` loads."""
_loads: dict[str, Replay] = {}


@pytest.fixture(
    params=[
        pytest.param(name, marks=[] if name in FEW else [pytest.mark.nightly]) for name in NAMES
    ]
)
def loaded(request: pytest.FixtureRequest, built: Built) -> tuple[Archive, Replay]:
    """A page and one load of it; each page is loaded once for all tests."""
    archive = built(request.param)
    if archive.name not in _loads:
        _loads[archive.name] = browse(archive, find_browser())
    return archive, _loads[archive.name]


def ranks(values: list[float]) -> list[float]:
    """Average ranks, so that equal values are equal."""
    return [
        sum(other < value for other in values) + (values.count(value) - 1) / 2 for value in values
    ]


def rank_correlation(left: list[float], right: list[float]) -> float:
    """Spearman's."""
    a, b = ranks(left), ranks(right)
    middle = (len(a) - 1) / 2
    covariance = sum((x - middle) * (y - middle) for x, y in zip(a, b, strict=True))
    spread = sum((x - middle) ** 2 for x in a) * sum((y - middle) ** 2 for y in b)
    return float(covariance / spread**0.5)


def chain_end(archive: Archive, entry: Entry) -> Entry:
    by_url = {entry.url: entry for entry in archive.entries}
    while entry.location is not None:
        entry = by_url[entry.location]
    return entry


def test_exactly_the_recorded_set_each_once(loaded: tuple[Archive, Replay]) -> None:
    archive, load = loaded
    asked = Counter(visit.url for visit in load.visits)
    assert asked == {entry.url: 1 for entry in archive.entries}


def test_everything_before_the_load_event(loaded: tuple[Archive, Replay]) -> None:
    archive, load = loaded
    assert load.late == len(load.visits) == len(archive.entries)


def test_no_response_is_cut_short(loaded: tuple[Archive, Replay]) -> None:
    assert loaded[1].cut == []


def test_no_child_before_its_parent_answers(loaded: tuple[Archive, Replay]) -> None:
    assert_none_early(*loaded)


def test_found_in_the_recorded_order(loaded: tuple[Archive, Replay]) -> None:
    archive, load = loaded
    found = correlations(archive, load)
    for _ in range(MORE_LOADS):
        if min(found.values(), default=1.0) >= MIN_RANK_CORRELATION:
            break
        found = correlations(archive, browse(archive, find_browser()))
    assert min(found.values(), default=1.0) >= MIN_RANK_CORRELATION, found


def correlations(archive: Archive, load: Replay) -> dict[str, float]:
    """How alike the recorded order and that of ``load`` are, of frames and of all else."""
    document = root_document(archive).url
    place = {url: index for index, url in enumerate(load.report["found"])}
    found = {}
    for frames in (False, True):
        timed = [
            (entry.start_ms, float(place[entry.url]))
            for entry in archive.entries
            if entry.parent == document and entry.start_ms is not None
            if (chain_end(archive, entry).mime == "text/html") is frames
        ]
        if len(timed) < 2:
            continue
        starts, ats = ([pair[side] for pair in timed] for side in (0, 1))
        found["frames" if frames else "others"] = rank_correlation(starts, ats)
    return found


def test_every_picture_decodes_but_the_empty_ones(loaded: tuple[Archive, Replay]) -> None:
    archive, load = loaded
    by_url = {entry.url: entry for entry in archive.entries}
    for url in load.report["broken"]:
        assert chain_end(archive, by_url[url]).decoded_size == 0, url


def test_pictures_of_all_small_sizes_decode(small: Small, tmp_path: Path) -> None:
    sizes = [("gif", size) for size in (*range(35, 50), 298, 299, 300, 555)]
    sizes += [("png", size) for size in (*range(70, 84), 500)]
    sizes += [("jpeg", size) for size in (*range(141, 148), 70_000)]
    rows = "".join(
        f"{n},0,a.example,image/{kind},200,{480 + size},{size},url-in-main-html,,,\n"
        for n, (kind, size) in enumerate(sizes, start=1)
    )
    folder = small("0,,a.example,text/html,200,9480,9000,root,,0,100\n" + rows)
    load = browse(read_archive(build_page(folder, tmp_path / "cache")), find_browser())
    assert len(load.visits) == len(sizes) + 1
    assert load.report["broken"] == []


def test_styles_of_late_sheets_count_towards_the_load(small: Small, tmp_path: Path) -> None:
    folder = small(
        "0,,a.example,text/html,200,4480,9000,root,,0,100\n"
        "1,0,a.example,text/javascript,200,980,500,url-in-main-html,,,\n"
        "2,1,b.example,text/css,200,980,500,url-in-js,,,\n"
        "3,2,b.example,text/css,200,980,500,url-in-css,,,\n"
        "4,3,b.example,image/png,200,980,500,url-in-css,,,\n"
        "5,4,b.example,application/json,200,980,5000,time-inferred,,,\n"
        "6,5,b.example,,200,2480,2000,time-inferred,,,\n"
        "7,6,b.example,text/plain,200,980,500,time-inferred,,,\n"
        "8,7,c.example,text/html,200,1480,1000,time-inferred,,,\n"
        "9,8,c.example,text/css,200,980,500,url-in-html,,,\n"
        "10,9,c.example,image/gif,200,523,43,url-in-css,,,\n"
        "11,10,c.example,image/svg+xml,200,980,2000,time-inferred,,,\n"
        "12,11,c.example,image/gif,204,480,,time-inferred,,,\n"
        "13,12,c.example,text/html,302,480,,time-inferred,,,\n"
        "14,13,d.example,text/html,200,483,3,redirect,,,\n"
    )
    archive = read_archive(build_page(folder, tmp_path / "cache"))
    load = browse(archive, find_browser())
    assert sorted(visit.url for visit in load.visits) == sorted(e.url for e in archive.entries)
    assert load.late == len(archive.entries)
