"""The choice of a link backend; ``backends`` is the registry, in the order of preference.

To add a backend: one module with a ``LinkBackend``, and one line here.
"""

from __future__ import annotations

from pathlib import Path

from testbed.base.errors import MissingError
from testbed.lab.link.netem import NETEM
from testbed.lab.link.protocol import LinkBackend
from testbed.lab.link.tap import PROGRAM, Tap


def backends(program: Path = PROGRAM) -> tuple[LinkBackend, ...]:
    """Every backend, the preferred one first; ``program`` is the compiled ``native/link``."""
    return (NETEM, Tap(program))


def choose_backend(program: Path = PROGRAM) -> LinkBackend:
    """The first backend that works in a scratch namespace of the running kernel.

    Raises:
        MissingError: none does; the message says why not, one by one.
    """
    problems = []
    for backend in backends(program):
        problem = backend.find_problem()
        if problem is None:
            return backend
        problems.append(f"{backend.name}: {problem}")
    raise MissingError(
        "this kernel cannot emulate the access link; it needs CONFIG_NET_SCH_NETEM and "
        "CONFIG_NET_SCH_TBF, or CONFIG_TUN; or use the virtual kernel (--kernel virtual)\n"
        + "\n".join(problems)
    )
