"""Entry point of the graph client's process: one order file in, one result file out.

Started as ``python -I -S main.py ORDER``: isolated from the user's settings and from installed
packages, so the path to our own package is set here.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time

ROOT = os.path.realpath(__file__).rpartition("/testbed/")[0]


def main(order_path: str) -> None:
    """Load the page that ``order_path`` describes and write its result file."""
    from testbed.client.walk.discovery import build_graph
    from testbed.client.walk.loader import Loader

    with open(order_path, encoding="utf-8") as file:  # noqa: PTH123 - no pathlib
        order = json.load(file)
    roots = build_graph(order["entries"], order["think_time"])
    trust = None
    if order["authority"] is not None:
        from testbed.client.walk.tls import Trust

        trust = Trust(order["authority"], order["tls_version"])
    loader = Loader(order["fast_open"], order["timeout_s"], trust)
    gc.disable()  # a pause inside the load would be a pause of the browser that this imitates
    if order["wait_until_ns"] is not None:
        time.sleep(max(0.0, (order["wait_until_ns"] - time.time_ns()) / 1e9))
    started = time.time()
    loader.load(roots)
    result = {
        "started": started,
        "timed_out": loader.timed_out,
        "requests": [fetch.report(loader.start) for fetch in loader.fetches],
    }
    with open(order["result"], "w", encoding="utf-8") as file:  # noqa: PTH123 - no pathlib
        json.dump(result, file)


if __name__ == "__main__":
    sys.path.insert(0, ROOT)
    main(sys.argv[1])
