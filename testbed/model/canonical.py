"""Canonical JSON of a value, and its digest."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """Return the SHA-256 hex of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()
