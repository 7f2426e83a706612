"""Fixtures of the engine's tests that those of loads on a server share."""

from tests.acceptance.conftest import acceptance_cache, house
from tests.conftest import root
from tests.kernel.conftest import guest_init, guests, kernel_binary

__all__ = ["acceptance_cache", "guest_init", "guests", "house", "kernel_binary", "root"]
