"""Process of the graph client: an event loop that fetches a page by Chrome's rules.

It starts once for each load, so it imports little: no dataclasses, no typing, no pathlib.
"""
