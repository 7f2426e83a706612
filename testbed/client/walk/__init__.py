"""The graph client's own process: an event loop that fetches a page as Chrome's rules have it.

It starts once for each load, so it imports little: no dataclasses, no typing, no pathlib.
"""
