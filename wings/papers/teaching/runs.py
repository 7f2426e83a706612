"""Runs of a lab: what ``./run.sh run`` measured for a notebook, in a folder under results/labs.

In virtual time the same packets come every time, so that a command that was run before only goes on
with its folder, which takes seconds where everything is there: a notebook may be run again, and a
teacher may have thirty of them run.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from pathlib import Path

from analysis.records.results import Results, judge, read_results
from testbed.base import places, proc
from testbed.base.errors import EXIT_CONFIGURATION, ConfigurationError, TestbedError
from testbed.results.manifest import MANIFEST_FILE

VERB = ["./run.sh", "run"]
VARIABLE = "FIRSTFLIGHT_LABS"
TIMEOUT_S = 1800.0


def run(command: str, *, quiet: bool = False) -> Results:
    """Run ``command``, which begins with ``./run.sh run``, and print its output.

    With ``quiet`` only the command is printed, since its output would answer a question.

    The results go into a folder below results/labs, or below the folder that the environment
    variable FIRSTFLIGHT_LABS names.  Its name is the experiment's, and a digest of the command.

    Raises:
        ConfigurationError: it is no such command, or names a folder of its own.
        TestbedError: it failed, or a load is not proven.
    """
    folder = Path(os.environ.get(VARIABLE) or places.RESULTS / "labs").absolute()
    words = shlex.split(command)
    if words[:2] != VERB or len(words) < 3 or words[2].startswith("-"):
        raise ConfigurationError([f"{command!r} does not begin with ./run.sh run CONFIG"])
    if {"-o", "--resume"} & set(words):
        raise ConfigurationError([f"{command!r}: a lab's results are in {folder}; leave -o out"])
    output = folder / f"{Path(words[2]).stem}-{_digest(words)}"
    shown = output.relative_to(places.ROOT) if output.is_relative_to(places.ROOT) else output
    print(f"$ {command} -o {shown}")
    output_text = _measure(words, output)
    results = read_results(output)
    unproven = [reason or outcome for outcome, reason in map(judge, results.records)
                if outcome != "ok"]  # fmt: skip
    if unproven or not results.records:
        raise TestbedError(f"{shown}: a load does not count: {'; '.join(unproven) or output_text}")
    if not quiet:
        print(output_text.strip())
    return results


def _measure(words: list[str], output: Path) -> str:
    """Resume the run in ``output`` if it is of this environment, else begin; return the output."""
    if (output / MANIFEST_FILE).is_file():
        completed = proc.run([*VERB, "--resume", str(output)], cwd=places.ROOT, check=False,
                        timeout_s=TIMEOUT_S)  # fmt: skip
        if completed.returncode != EXIT_CONFIGURATION:
            return _said(completed.returncode, completed.stdout, completed.stderr)
        # It was measured with other packages, another kernel or other code.
    shutil.rmtree(output, ignore_errors=True)
    completed = proc.run(
        [*words, "-o", str(output)], cwd=places.ROOT, check=False, timeout_s=TIMEOUT_S
    )
    return _said(completed.returncode, completed.stdout, completed.stderr)


def _said(status: int, out: str, err: str) -> str:
    # 1: a value differs from a published one, which is for the lab to talk about.
    if status not in (0, 1):
        raise TestbedError(f"the run ended with status {status}: {err.strip()[-2000:]}")
    return out


def _digest(words: list[str]) -> str:
    """Return 8 hex digits that name the command and the experiment's file."""
    config = places.ROOT / words[2]
    if not config.is_file():
        raise ConfigurationError([f"there is no experiment {words[2]}; configs/ has them"])
    named = "\0".join(words).encode() + config.read_bytes()
    return hashlib.sha256(named).hexdigest()[:8]
