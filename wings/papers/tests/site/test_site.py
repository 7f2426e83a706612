"""The site: loads and promises in one matrix, links that lead somewhere, nothing from elsewhere."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from analysis.records.results import read_results
from firstflight.cli.choice import Choice
from testbed.base.errors import ConfigurationError, StorageError
from testbed.experiment.options import Override
from tests.analysis.report.test_report import Page
from tests.analysis.sample import write_records
from tests.analysis.verdicts.compare.test_kernels import OFF, ON, lane
from tests.hallway import CATALOGUE
from wings.papers.site.matrix import read_matrix
from wings.papers.site.pages import write_site
from wings.papers.site.steps import find_steps
from wings.papers.tests.site.runs import (
    MINE,
    change_environment,
    load_once,
    write_kept,
    write_loads,
)
from wings.server_loads.tests.served import write_served

STATED = '[[step]]\nbefore = "6.1"\nafter = "6.12"\ncommit = "a2cbb1603943"\nsubject = "a <b>"\n'


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return write_loads(folder / "loads"), write_kept(folder / "promises")


@pytest.fixture(scope="module")
def site(runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "site"
    stated = out.with_name("steps.toml")
    stated.write_text(STATED)
    said = write_site(runs, out, stated)
    assert said.startswith("3 kernels, 3 cells, 5 promises, 1 step; ")
    return out


def words_of(page: Path) -> str:
    return " ".join(" ".join(Page(page.read_text()).texts).split())


def refused(*directories: Path, out: Path, stated: Path | None = None) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        write_site(directories, out, stated)
    return list(caught.value.problems)


def test_loads_and_promises_are_rows_and_kernels_columns(runs: tuple[Path, Path]) -> None:
    matrix = read_matrix(runs)
    assert [column.name for column in matrix.columns] == ["6.1", "6.12", "mine"]
    assert [(row.title, row.medians) for row in matrix.loads] == [
        ("amazon, RTT 20 ms, fast open off", (1000.0, 1020.0, 1030.0)),
        ("amazon, RTT 20 ms, fast open on", (900.0, 900.0, None)),
        ("wsj, RTT 20 ms, fast open off", (2000.0, None, None)),
    ]
    states = [[found and found.finding and found.finding.state for found in row.found]
              for row in matrix.promises]  # fmt: skip
    assert states == [[None, state, None] for state in
                      ("kept", "broken", "changed", "unsupported", "timeout")]  # fmt: skip
    assert matrix.unequal == ()


def test_every_link_leads_to_a_file_or_a_heading_of_the_site(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) == 1 + 3 + 3 + 1 + 5
    followed = set()
    for page in pages:
        read = Page(page.read_text())
        for tag, attributes in read.tags:
            assert not {"src", "srcset", "data", "action", "background"} & attributes.keys()
            assert tag not in ("script", "link", "iframe", "object", "base")
            if tag != "a":
                continue
            link = urlsplit(attributes["href"] or "")
            assert (link.scheme, link.netloc) == ("", "")
            target = (page.parent / unquote(link.path)).resolve() if link.path else page
            assert target.is_file() and target.is_relative_to(site.resolve())
            if link.fragment:
                assert f'id="{link.fragment}"' in target.read_text()
            followed.add(target)
    assert followed == {file.resolve() for file in site.rglob("*") if file.is_file()}


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http" not in text.replace("http-equiv", "")
        assert not re.search(r"url\(|@import", text)


def test_packets_are_copied_as_they_were(site: Path, runs: tuple[Path, Path]) -> None:
    for results in (runs[0] / "6.1", runs[1]):
        for record in read_results(results).records:
            for name, sha256 in record.artefacts.items():
                (copy,) = site.rglob(f"{record.trial_id}/{name}")
                assert hashlib.sha256(copy.read_bytes()).hexdigest() == sha256


def test_the_index_says_what_came_of_each(site: Path) -> None:
    words = words_of(site / "index.html")
    for said in ("1.000", "1.020", "slower 2.00 %, step 1", "✗ unproven broken, step 1",
                 "not run", "✗ broken", "△ changed", "○ unsupported", "✗ timeout",
                 'Step 1 , 6.1 to 6.12: a2cbb1603943 ("a <b>")'):  # fmt: skip
        assert said in words
    assert "no packets kept" in words  # the promises that came to no end have none
    assert "<svg" in (site / "index.html").read_text()


def test_a_page_has_the_proof_and_the_drawing(site: Path) -> None:
    load = site / "loads" / "6.12" / "amazon-rtt-20-ms-fast-open-off.html"
    assert "Verified by packet capture" in words_of(load)
    assert "The link as measured" in words_of(load)
    assert load.read_text().count("<svg") == 1
    promise = site / "promises" / "6.12" / "broken.html"
    assert "line 3: it has no data" in words_of(promise)
    assert promise.read_text().count("<svg") == 1
    unproven = site / "loads" / "6.12" / "wsj-rtt-20-ms-fast-open-off.html"
    assert "Seed 0 does not count" in words_of(unproven)


def test_captures_that_were_not_kept_are_said(tmp_path: Path) -> None:
    folder = load_once(tmp_path / "run", "6.1", OFF, 1000.0)
    shutil.rmtree(folder / "trials")
    write_site([folder], tmp_path / "site")
    assert "1.000 no packets kept" in words_of(tmp_path / "site" / "index.html")
    (page,) = (tmp_path / "site" / "loads").rglob("*.html")
    assert "run holds no capture of trial" in words_of(page)
    assert str(tmp_path) not in page.read_text()
    assert [file.suffix for file in (tmp_path / "site").rglob("*") if file.is_file()] == [
        ".html", ".html",
    ]  # fmt: skip


def test_a_file_that_a_browser_might_run_is_not_copied(tmp_path: Path) -> None:
    folder = load_once(tmp_path / "run", "6.1", OFF, 1000.0)
    (record,) = read_results(folder).records
    for name in ("page.html", "../../run.log", "a#b.log"):
        path = folder / "trials" / record.trial_id / name
        path.write_bytes(b"<script>")
        record.artefacts[name] = hashlib.sha256(b"<script>").hexdigest()
    write_records(folder, [record])
    write_site([folder], tmp_path / "site")
    (page,) = (tmp_path / "site" / "loads").rglob("*.html")
    assert "page.html is no capture or log." in words_of(page)
    names = {file.name for file in (tmp_path / "site").rglob("*") if file.is_file()}
    assert names == {"index.html", page.name, "client.pcap", "load.har", "a#b.log"}
    assert f'href="{page.stem}/{record.trial_id}/a%23b.log" download' in page.read_text()


def test_the_command_that_bisects_is_one_that_can_be_run(runs: tuple[Path, Path]) -> None:
    (step,), _ = find_steps(read_matrix(runs), ())
    words = shlex.split(step.bisect)
    assert words[:5] == ["./run.sh", "kernel", "bisect", "--git", "LINUX"]
    assert words[5:9] == ["--experiment", "configs/paper-table1.toml", "-n", "1"]
    assert words[9:-1] == ["--good", "v6.1", "--bad", "v6.12"]
    choice = Choice(Path("configs/paper-table1.toml"), words[-1], ())
    planned = choice.load(CATALOGUE, [Override("kernel.version", "6.1", "the kernel 6.1")])
    assert [(one.page, one.tcp.tfo) for one in planned.conditions] == [("amazon", False)]  # type: ignore[attr-defined]


def test_one_trial_that_came_out_twice_is_refused_unless_it_is_the_same(tmp_path: Path) -> None:
    one = load_once(tmp_path / "one", "6.1", OFF, 1000.0)
    same = load_once(tmp_path / "same", "6.1", OFF, 1000.0)
    other = load_once(tmp_path / "other", "6.1", OFF, 1000.5)
    assert len(read_matrix([one, same]).loads) == 1
    (problem,) = refused(one, same, other, out=tmp_path / "site")
    assert problem.startswith(f"{one} and {other} both hold trial ")
    assert problem.endswith(f"./run.sh compare {one} {other} shows what differs")
    seeds = lane(tmp_path / "seeds", "6.1", {OFF: [1000.0, 1001.0]})
    assert "with other bits" in refused(one, seeds, out=tmp_path / "site")[0]
    assert not (tmp_path / "site").exists()


def test_trials_of_one_cell_in_two_folders_are_not_pooled(tmp_path: Path) -> None:
    both = lane(tmp_path / "both", "6.1", {OFF: [1000.0, 1001.0]}, None)
    first = lane(tmp_path / "first", "6.1", {OFF: [1000.0]}, None)
    assert len(read_matrix([first, both]).loads[0].found[0].records) == 2  # type: ignore[union-attr]
    text = (both / "records.jsonl").read_text().splitlines(keepends=True)
    (both / "records.jsonl").write_text(text[-1])
    (problem,) = refused(first, both, out=tmp_path / "site")
    assert "have different trials of amazon, RTT 20 ms: results are never pooled" in problem


def test_other_pages_are_refused_and_other_code_is_said(tmp_path: Path) -> None:
    old = load_once(tmp_path / "old", "6.1", OFF, 1000.0)
    new = load_once(tmp_path / "new", "6.12", OFF, 1100.0)
    change_environment(new, "parts", {"code.bundle": "another", "root": "another"})
    assert read_matrix([old, new]).unequal == ("new from old in root, code.bundle",)
    assert find_steps(read_matrix([old, new]), ()) == ((), ("old and new",))
    write_site([old, new], tmp_path / "site")
    words = words_of(tmp_path / "site" / "index.html")
    assert "No step is looked for between old and new." in words
    change_environment(new, "pages", {"amazon": "f" * 64})
    (problem,) = refused(old, new, out=tmp_path / "none")
    assert problem.startswith("page amazon is ")
    assert problem.endswith(f"{new}: a row is of one page; run one of them again")
    change_environment(new, "pages", {"wsj": "0" * 64, "amazon": read_page(old)})
    assert read_matrix([old, new]).loads  # wsj was loaded in neither


def read_page(folder: Path) -> str:
    return str(read_results(folder).manifest["environment"]["pages"]["amazon"])


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    run = load_once(tmp_path / "run", "6.1", OFF, 1000.0)
    served = write_served(tmp_path / "served")
    out = tmp_path / "site"
    out.mkdir()
    (out / "precious").touch()
    stated = tmp_path / "steps.toml"
    stated.write_text('[[step]]\nbefore = "6.1"\ncommit = "HEAD"\n')
    problems = refused(run, tmp_path / "none", served, run, out=out, stated=stated)
    told = "\n".join(problems)
    for said in (f"{out} is there and is no empty folder", "step.0.after: Field required",
                 "step.0.commit: String should match", str(tmp_path / "none"),
                 f"{served} holds trials of the kind server_load",
                 f"{run} is named twice"):  # fmt: skip
        assert said in told
    assert [file.name for file in out.iterdir()] == ["precious"]


def test_a_commit_of_no_step_is_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    stated = tmp_path / "steps.toml"
    stated.write_text(STATED.replace("6.12", "7.3"))
    problems = refused(*runs, out=tmp_path / "site", stated=stated)
    assert problems == ["commit a2cbb1603943: no step from 6.1 to 7.3 is seen; steps: 6.1 to 6.12"]


def test_steps_beside_the_results_are_read(tmp_path: Path) -> None:
    loads = write_loads(tmp_path / "loads")
    (loads / "steps.toml").write_text(STATED)
    (tmp_path / "site").mkdir()  # an empty folder may be there
    write_site([loads], tmp_path / "site")
    assert "found by bisection" in words_of(tmp_path / "site" / "index.html")


def test_a_site_that_cannot_be_written_is_not_there(
    runs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(StorageError, match="No space left on device; make room"):
        write_site(runs, tmp_path / "site")
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_of_ones_own_is_in_no_figure(tmp_path: Path) -> None:
    lane(tmp_path / "a", "6.1", {OFF: [1000.0]})
    lane(tmp_path / "b", "mine", MINE)
    write_site([tmp_path / "a", tmp_path / "b"], tmp_path / "site")
    text = (tmp_path / "site" / "index.html").read_text()
    assert "<svg" not in text and "1.030" in text


def test_two_builds_of_a_release_are_two_columns(tmp_path: Path) -> None:
    one = load_once(tmp_path / "one", "6.1", OFF, 1000.0)
    two = load_once(tmp_path / "two", "6.1", ON, 900.0)
    change_environment(two, "parts", {"kernel.config_sha256": "another"})
    names = [column.name for column in read_matrix([one, two]).columns]
    assert len(names) == 2 and all(re.fullmatch(r"6\.1 \([0-9a-f]{8}\)", name) for name in names)
