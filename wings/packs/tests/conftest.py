"""Fixtures of the engine's tests that those of packs share."""

from tests.acceptance.conftest import acceptance_cache, house

__all__ = ["acceptance_cache", "house"]
