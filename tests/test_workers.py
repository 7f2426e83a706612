"""Test runs in several workers: what stays together, what begins first, and interrupts."""

from __future__ import annotations

import ast
import os
import signal
import sys
import time
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path

import pytest

from testbed.base import proc
from tests.changed import list_tests
from tests.workers import (
    MACHINE,
    MOST,
    WORKER_BYTES,
    fitting_workers,
    function_of,
    marked_tests,
    read_available,
    read_durations,
    write_durations,
)

ROOT = Path(__file__).parent.parent
FILES = [path for top in ("tests", "wings") for path in (ROOT / top).rglob("test_*.py")]
GB = 1 << 30
DEADLINE_S = 900.0  # a busy machine may take its time
WORKER = """\
import os, time
from pathlib import Path
import pytest

def note():
    with Path({notes!r}).open("a") as stream:
        test = os.environ["PYTEST_CURRENT_TEST"].split(" ")[0]
        stream.write(test + " " + os.environ.get("PYTEST_XDIST_WORKER", "-") + "\\n")

"""
SHORT = "def test_a():\n    note()\n\ndef test_b():\n    note()\n"
LONG = SHORT.replace("def ", "@pytest.mark.slow\ndef ")
MARKED_WHOLE = "pytestmark = pytest.mark.machine\n\n" + SHORT
MARKED_IN_PART = SHORT.replace("def test_b", "@pytest.mark.machine\ndef test_b")
ENDLESS = """\
@pytest.fixture(scope="module")
def thing():
    yield
    time.sleep(1)
    Path(__file__).with_suffix(".undone").touch()

def test_a(thing):
    note()
    time.sleep(86400)
"""
LEAVES = """\
import os, signal, subprocess

def test_a():
    left = subprocess.Popen(["sleep", "86400"], start_new_session=True)
    Path({left!r}).write_text(str(left.pid))
    note()
    {then}
"""
INI = "[pytest]\nmarkers =\n    slow: takes long\n    machine: one at a time\n"


def argv(folder: Path, *words: str) -> tuple[str, ...]:
    given = ("-p", "conftest", "-p", "no:cacheprovider", "--rootdir", str(folder))
    return (sys.executable, "-m", "pytest", *given, "--dist", "loadfile", *words, str(folder))


def write_tests(folder: Path, files: Mapping[str, str]) -> None:
    (folder / "pytest.ini").write_text(INI)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(WORKER.format(notes=str(folder / "notes")) + content)


def notes(folder: Path) -> list[tuple[str, str]]:
    """Files and workers of the tests in the order in which they ran."""
    lines = (folder / "notes").read_text().splitlines() if (folder / "notes").exists() else []
    return [(file, worker) for file, worker in map(str.split, lines)]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize(
    ("cores", "available", "workers"),
    [(2, 22 * GB, 3), (2, 3 * GB, 1), (1, 22 * GB, 1), (64, 512 * GB, MOST), (2, GB, 1),
     (4, 3 * WORKER_BYTES, 3)],
)  # fmt: skip
def test_as_many_as_there_is_room_for(cores: int, available: int, workers: int) -> None:
    assert fitting_workers(cores, available) == workers


def test_memory_of_this_machine(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  4000000 kB\nMemFree:  1000 kB\nMemAvailable:  3000000 kB\n")
    assert read_available(meminfo) == 3_072_000_000
    assert read_available() > 0


def run(folder: Path, *words: str) -> list[str]:
    """The lines that a run of the tests in ``folder`` prints, all of which pass."""
    command = argv(folder, *words)
    done = proc.run(command, cwd=folder, env=ENVIRONMENT, check=False, timeout_s=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_files_and_tests_of_the_machine_stay_together_and_long_ones_begin(tmp_path: Path) -> None:
    files = dict.fromkeys(("test_a.py", "test_b.py"), SHORT)
    marked = {"test_c.py": MARKED_WHOLE, "test_d.py": MARKED_IN_PART}
    write_tests(tmp_path, {**files, **marked, "test_z.py": LONG})
    assert run(tmp_path, "-n", "2")[-1].strip("= ").startswith("10 passed in ")
    ran = notes(tmp_path)
    assert len(ran) == 10
    workers: dict[str, set[str]] = {}
    for name, worker in ran:
        file = name.partition("::")[0]
        machine = file == "test_c.py" or name == "test_d.py::test_b"
        workers.setdefault(MACHINE if machine else file, set()).add(worker)
    assert workers.keys() == {"test_a.py", "test_b.py", "test_d.py", "test_z.py", MACHINE}
    assert all(len(found) == 1 for found in workers.values())
    first = next(name for name, worker in ran if {worker} == workers["test_z.py"])
    assert first == "test_z.py::test_a"


def test_a_unit_begins_by_what_it_took(tmp_path: Path) -> None:
    write_tests(tmp_path, dict.fromkeys(("test_a.py", "test_b.py", "test_c.py"), SHORT))
    (tmp_path / "tests").mkdir()
    took = {"test_a.py::test_b": (7.0, 7), "test_b.py::test_a": (3.0, 1)}
    write_durations(tmp_path, {**took, "test_c.py::test_b": (9.5, 1), "gone.py::test_a": (7.0, 1)})
    run(tmp_path, "-n", "0")
    assert [name for name, _ in notes(tmp_path)] == [
        f"{file}.py::{name}"
        for file in ("test_c", "test_b", "test_a")
        for name in ("test_a", "test_b")
    ]


def test_a_function_is_named_without_its_parameters() -> None:
    assert function_of("tests/a.py::test_b[c[d]-e::f]") == "tests/a.py::test_b"


def test_what_tests_took_is_noted_and_what_did_not_run_stays(tmp_path: Path) -> None:
    slept = SHORT.replace("note()", "time.sleep(0.6)", 1)
    write_tests(tmp_path, {"test_a.py": slept, "test_b.py": LONG})
    (tmp_path / "tests").mkdir()
    (tmp_path / "test_c.py").write_text(SHORT)
    names = [f"test_{name}.py::test_a" for name in ("a", "c", "gone")]
    names += ["test_a.py::test_b", "test_c.py::test_gone"]
    write_durations(tmp_path, dict.fromkeys(names, (9.0, 1)))
    run(tmp_path, "-n", "1", "--note-durations", "--ignore", str(tmp_path / "test_c.py"))
    noted = read_durations(tmp_path)
    long = {"test_b.py::test_a", "test_b.py::test_b"}
    assert noted.keys() == {"test_a.py::test_a", "test_c.py::test_a", *long}
    assert 0.6 <= noted["test_a.py::test_a"][0] < 9
    assert noted["test_c.py::test_a"] == (9.0, 1)


def test_what_sees_the_machine_is_marked() -> None:
    """And what it calls within its file."""
    unmarked = []
    for path in list_tests(ROOT):
        text = path.read_text()
        if "read_host_state()" not in text or path == Path(__file__):
            continue
        functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        seeing = {node.name for node in functions if "read_host_state()" in ast.unparse(node)}
        assert all(name.startswith("test_") for name in seeing), path
        unmarked += [f"{path}::{name}" for name in seeing - marked_tests(path, MACHINE)]
    assert unmarked == []


NIGHTLY = {
    "test_over_http_2_and_3": "test_a_socket_says_what_it_said",
    "test_at_once_nothing_waits": "test_events_come_when_they_came",
    "test_a_body_comes_in_its_pieces": "test_events_come_when_they_came",
    "test_a_second_visit_is_served_by_the_worker": "test_a_shared_worker_is_seen",
    "test_a_preload_in_a_copy_is_an_arm_and_the_report_says_which_is_faster":
        "test_a_command_plans_its_trials",
    "test_requests_without_an_end_are_listened_to_for_a_while":
        "test_what_a_page_does_after_its_load_event_is_its_own_affair",
    "test_what_blocks_nothing_is_no_number":
        "test_what_is_blocked_is_not_asked_for_nor_what_it_leads_to",
    "test_recorded_waits_are_replayed":
        "test_what_is_blocked_is_not_asked_for_nor_what_it_leads_to",
    "test_one_host_is_slower_and_the_others_are_not":
        "test_what_is_blocked_is_not_asked_for_nor_what_it_leads_to",
    "test_a_think_time_of_a_host_that_the_page_has_not_is_no_number":
        "test_what_is_blocked_is_not_asked_for_nor_what_it_leads_to",
    "test_what_a_user_prefers_is_emulated_and_a_swept_device_is_proven":
        "test_the_recorded_device_loads_what_was_recorded",
    "test_an_artifact_is_rerun_in_its_own_root_where_the_tree_has_none":
        "test_a_pack_is_rerun_and_is_the_same_or_says_what_differs",
    "test_the_same_bits_without_anything": "test_equal_seeds_are_equal_loads",
    "test_older_kernels": "test_a_pinned_source_takes_its_patches_and_its_configuration",
    "test_older_kernels_have_neighbours":
        "test_a_pinned_source_takes_its_patches_and_its_configuration",
    "test_an_older_kernel_sends_other_packets":
        "test_the_terminal_shows_the_first_packet_that_differs",
    "test_a_millisecond_for_each_segment_is_seen_in_every_cell":
        "test_after_an_error_of_the_compiler_the_tree_is_used_again",
    "test_what_does_not_compile_or_boot_is_said_and_not_kept":
        "test_after_an_error_of_the_compiler_the_tree_is_used_again",
    "test_nginx_of_sid_has_http_3_beside_the_root_s": "test_all_that_was_recorded_is_asked_for",
    "test_a_debug_kernel_has_the_verdicts_of_the_plain_one":
        "test_what_cannot_run_is_left_out_with_the_reason",
    "test_tests_of_the_source_have_equal_verdicts_twice":
        "test_names_and_patterns_choose_among_all",
    "test_a_suite_fails_with_packetdrills_line": "test_packetdrills_line_is_the_reason_of_its_part",
    "test_without_packetdrill_the_others_run": "test_what_cannot_run_is_left_out_with_the_reason",
    "test_memory_that_leaks_fails_a_test_of_a_debug_kernel":
        "test_a_kernel_warning_fails_a_test_that_passed_with_its_first_lines",
    "test_offloads_of_the_ends_change_no_packet":
        "test_segments_that_a_device_did_not_cut_are_found",
    "test_the_level_of_the_processor_changes_nothing":
        "test_what_ran_before_the_lab_and_before_the_client_leaves_no_trace",
    "test_twice_the_loads_of_a_condition_take_a_little_more_memory":
        "test_a_report_makes_as_many_calls_as_there_are_loads",
    "test_what_one_machine_measured_no_other_measures": "test_a_store_may_be_elsewhere",
    "test_two_at_once_write_what_one_writes": "test_a_store_may_be_elsewhere",
    "test_a_worker_that_is_killed_in_a_load": "test_the_same_bytes",
    "test_a_store_elsewhere_takes_packages_that_are_named": "test_a_store_may_be_elsewhere",
    "test_a_halved_backlog_is_found_in_every_overload_experiment":
        "test_a_halved_backlog_is_found",
    "test_each_of_many_timers_is_the_listed_one":
        "test_clients_have_the_listed_timers_and_the_load_goes_on_until_they_ended",
    "test_all_boots_are_equal":
        "test_a_load_that_goes_on_from_an_image_is_equal_to_one_that_booted",
    "test_built_in_steps_it_is_the_pinned_kernel_to_the_bit":
        "test_what_is_built_in_steps_is_what_is_built_at_once",
    "test_code_that_does_nothing_and_another_default_of_a_sysctl_have_no_effect_on_any_cell":
        "test_after_an_error_of_the_compiler_the_tree_is_used_again",
    "test_a_kernel_that_warns_or_dies_is_broken_and_says_by_what":
        "test_a_kernel_warning_fails_a_test_that_passed_with_its_first_lines",
    "test_what_a_patch_adds_and_does_not_turn_on_is_said":
        "test_after_an_error_of_the_compiler_the_tree_is_used_again",
    "test_each_mistake_of_fast_open_breaks_a_promise": "test_each_scenario_fails_with_its_fault",
    "test_a_students_work_stays_and_what_was_removed_comes_back":
        "test_a_sheet_has_questions_and_blanks",
    "test_students_get_it_without_solutions_and_with_a_sheet_of_one_page":
        "test_a_sheet_has_questions_and_blanks",
    "test_a_scheduler_that_is_killed": "test_the_same_bytes",
    "test_a_machine_with_a_clock_of_another_year": "test_the_same_bytes",
    "test_a_week_of_56_branches": "test_the_newest_branch_is_tested_and_a_worse_one_exits_with_1",
    "test_snakemake": "test_parallel",
    "test_the_steps_of_github": "test_parallel",
    "test_each_root_draws_other_load_times_of_the_same_distribution":
        "test_further_draws_are_within_and_a_shift_is_beyond_with_its_gain",
    "test_a_server_that_answers_later_is_beyond_the_spread":
        "test_further_draws_are_within_and_a_shift_is_beyond_with_its_gain",
    "test_both_implementations_say_the_same": "test_what_is_on_the_wire_is_as_promised",
    "test_a_page_is_spread_and_keeps_its_parents":
        "test_what_is_referred_to_is_found_and_spread",
    "test_a_teacher_grades_with_the_tools_own_commands":
        "test_its_solutions_pass_and_wrong_answers_do_not",
    "test_a_page_that_is_busy_for_ever_is_kept":
        "test_every_answered_request_is_there_and_no_other",
    "test_a_page_that_never_gets_quiet_is_told":
        "test_every_answered_request_is_there_and_no_other",
    "test_slurm": "test_parallel",
    "test_an_array_runs": "test_parallel",
    "test_a_run_that_is_interrupted_goes_on": "test_the_same_bytes",
    "test_over_http_2_as_well": "test_all_of_it_is_asked_for_and_answered_exactly",
    "test_work_is_free_without_a_price": "test_nginx_serves_there_where_its_work_is_free",
    "test_a_saturation_is_found_where_the_prices_put_it":
        "test_a_search_encloses_the_saturation",
    "test_a_list_of_proportions_has_the_capacity_of_the_model":
        "test_clients_that_wait_for_each_other_get_its_capacity_to_the_connection",
    "test_clients_send_as_many_syns_as_they_are_asked_to":
        "test_a_syn_is_sent_again_when_the_asked_time_is_over",
    "test_over_http3_as_well": "test_each_request_gets_its_own_answer",
    "test_user_data_is_of_cloud_inits_schema": "test_the_script_of_the_cloud_machine_is_clean",
    "test_the_same_holds_for_invented_loads":
        "test_recorded_loads_are_hardly_ever_called_different_from_themselves",
    "test_a_browser_that_throttles_itself": "test_a_browser_asks_when_it_can",
    "test_names_that_are_searched_for": "test_what_holds_responses_back",
    "test_each_number_of_an_observation": "test_what_a_client_says",
}  # fmt: skip
"""What `make test-all` leaves out whole, but for the image, and the cheap case that it has."""


def test_what_make_test_all_leaves_out_has_a_case_there() -> None:
    image, left_out, kept = ROOT / "tests/docker/test_image.py", set[str](), set[str]()
    for path in list_tests(ROOT):
        nightly = marked_tests(path, "nightly")
        left_out |= nightly if path != image else set()
        kept |= {node.name for node in ast.walk(ast.parse(path.read_text()))
                 if isinstance(node, ast.FunctionDef) and node.name not in nightly}  # fmt: skip
    assert {name for name in left_out if name.startswith("test_")} == NIGHTLY.keys()
    assert set(NIGHTLY.values()) <= kept


def test_what_make_test_leaves_out_has_another_case_in_its_folder() -> None:
    folders = dict[Path, set[bool]]()
    for path in list_tests(ROOT):
        left_out = marked_tests(path, "thorough") | marked_tests(path, "nightly")
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                folders.setdefault(path.parent, set()).add(node.name in left_out)
    assert [folder for folder, found in folders.items() if found == {True}] == []


def test_no_folder_of_tests_is_passed_over(pytestconfig: pytest.Config) -> None:
    """As pytest does by itself with any that is named build."""
    patterns = pytestconfig.getini("norecursedirs")
    folders = {path.parent.relative_to(ROOT) for path in list_tests(ROOT)}
    assert [
        str(folder)
        for folder in folders
        if any(fnmatch(part, pattern) for part in folder.parts for pattern in patterns)
    ] == []


def test_an_interrupt_undoes_what_each_worker_made(tmp_path: Path) -> None:
    """As a terminal does it: the whole process group is told."""
    write_tests(tmp_path, {"test_a.py": ENDLESS, "test_b.py": ENDLESS})
    with proc.started(argv(tmp_path, "-n", "2"), cwd=tmp_path, env=ENVIRONMENT) as child:
        deadline = time.monotonic() + DEADLINE_S
        while len(notes(tmp_path)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(DEADLINE_S) == pytest.ExitCode.INTERRUPTED
    assert sorted(path.name for path in tmp_path.glob("*.undone")) == [
        "test_a.undone",
        "test_b.undone",
    ]


@pytest.mark.parametrize(
    ("workers", "then", "by"),
    [
        ("0", "pass", None),
        ("1", "os.kill(os.getpid(), signal.SIGKILL)", None),
        ("1", "time.sleep(86400)", signal.SIGINT),
        ("0", "time.sleep(86400)", signal.SIGTERM),
    ],
    ids=["passes", "dies", "interrupted", "terminated"],
)
def test_what_a_test_starts_ends_with_the_run(
    tmp_path: Path, workers: str, then: str, by: signal.Signals | None
) -> None:
    left = tmp_path / "left"
    write_tests(tmp_path, {})
    text = WORKER.format(notes=str(tmp_path / "notes")) + LEAVES.format(left=str(left), then=then)
    (tmp_path / "test_a.py").write_text(text)
    words = argv(tmp_path, "-n", workers, "--max-worker-restart", "0")
    with proc.started(words, cwd=tmp_path, env=ENVIRONMENT) as child:
        if by is not None:
            deadline = time.monotonic() + DEADLINE_S
            while not notes(tmp_path):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            os.killpg(child.pid, by) if by is signal.SIGINT else os.kill(child.pid, by)
        child.wait(DEADLINE_S)
    assert not Path("/proc", left.read_text()).exists()
