"""The templates of what people read, and the filters that all of them have."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from analysis import words

TEMPLATES = Path(__file__).parent / "templates"
FILTERS = (
    "axis_name",
    "axis_value",
    "number",
    "signed",
    "seconds",
    "significant",
    "clean",
    "count",
)


def open_templates() -> Environment:
    """The templates: everything escaped, nothing undefined, JSON the same for equal values."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    environment.filters |= {name: getattr(words, name) for name in FILTERS}
    return environment
