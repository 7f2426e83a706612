"""Registry of wings: what packages beside the engine provide to it, which runs without them.

A wing is a package in ``wings/``.  Its ``PROVIDES`` maps an extension point, as ``verbs``, to names
and the objects that go by these, each ``module:attribute``, or ``module``, as in a Python entry
point; its ``NEEDS``, if there are any, name the wings without which it is left out.  Who has an
extension point asks here for what is provided to it, and says what type that must be.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NamedTuple


class Provided(NamedTuple):
    """What a wing provides by a name: an object, which is imported when it is asked for."""

    wing: str
    name: str
    target: str

    def load(self) -> Any:
        """Import and return the object.

        Raises:
            ImportError, AttributeError: the wing does not have what it says.
        """
        module, _, attribute = self.target.partition(":")
        loaded = import_module(module)
        return getattr(loaded, attribute) if attribute else loaded


def wings() -> Iterator[ModuleType]:
    """Yield the wings that are there with all that they need, by name."""
    spec = find_spec("wings")
    if spec is None or spec.submodule_search_locations is None:
        return
    found = {
        module.name: import_module(f"wings.{module.name}")
        for module in sorted(pkgutil.iter_modules(spec.submodule_search_locations))
        if module.ispkg
    }

    def is_whole(name: str) -> bool:
        return name in found and all(map(is_whole, getattr(found[name], "NEEDS", ())))

    yield from (wing for name, wing in found.items() if is_whole(name))


def provided(point: str) -> Iterator[Provided]:
    """Yield what wings provide to an extension point, in the order of their names."""
    for wing in wings():
        names: Mapping[str, str] = wing.PROVIDES.get(point, {})
        for name, target in names.items():
            yield Provided(wing.__name__.rpartition(".")[2], name, target)
