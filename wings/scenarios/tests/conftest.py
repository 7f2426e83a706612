"""Fixtures of the engine's tests that those of scenarios share."""

from tests.acceptance.conftest import acceptance_cache, house
from tests.conftest import root

__all__ = ["acceptance_cache", "house", "root"]
