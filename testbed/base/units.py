"""Quantities as text for people; values keep their unit in their name everywhere else."""

from __future__ import annotations


def format_duration(seconds: float) -> str:
    """Return a duration in its two largest units: ``4.2 s``, ``1 min 05 s``, ``2 h 03 min``.

    Raises:
        ValueError: ``seconds`` is negative or not a number.
    """
    if not seconds >= 0:
        raise ValueError(f"a duration cannot be {seconds!r} s")
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole_seconds = round(seconds)
    if whole_seconds < 3600:
        return f"{whole_seconds // 60} min {whole_seconds % 60:02d} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02d} min"


def format_bytes(count: int) -> str:
    """Return ``count`` bytes in binary units with one decimal: ``512 B``, ``1.5 KiB``, ``2.0 GiB``.

    Raises:
        ValueError: ``count`` is negative.
    """
    if count < 0:
        raise ValueError(f"a size cannot be {count} bytes")
    if count < 1024:
        return f"{count} B"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} TiB"


def format_count(number: int, singular: str, more: str | None = None) -> str:
    """Return ``1 host`` or ``2 hosts``; ``more`` is for what does not take an s."""
    return f"{number} {singular if number == 1 else more or f'{singular}s'}"
