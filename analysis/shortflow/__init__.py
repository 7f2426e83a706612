"""The model of short flows: what a fetch of one object on a cold connection takes."""

from analysis.shortflow.fetch import FetchParts, explain_fetch, predict_fetch_ms

__all__ = ["FetchParts", "explain_fetch", "predict_fetch_ms"]
