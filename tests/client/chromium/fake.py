"""A browser that answers on its DevTools pipe as it is told to, for what a real one rarely does."""

from __future__ import annotations

from pathlib import Path

PROGRAM = r"""#!/usr/bin/python3
import json, os, signal, sys

WAY = "{way}"
URL = "http://www.page.test/"
commands, rest, seen = 3, b"", []


def tell(message):
    os.write(4, json.dumps(message).encode() + b"\0")


def event(name, session="page", **params):
    tell({{"method": name, "params": params}} | ({{"sessionId": session}} if session else {{}}))


def finish():
    event("Page.loadEventFired", timestamp=2.0)


def request(number, timestamp):
    url = URL if number == "1" else f"{{URL}}{{number}}"
    asked = {{"url": url, "method": "GET", "headers": {{}}, "initialPriority": "High"}}
    event("Network.requestWillBeSent", requestId=number, timestamp=timestamp, wallTime=1e9,
          request=asked, initiator={{"type": "other"}}, type="Document")
    head = {{"url": url, "status": 200, "statusText": "OK", "headers": {{}},
             "mimeType": "text/html", "protocol": "http/1.1", "connectionId": 77,
             "encodedDataLength": 100}}
    event("Network.responseReceived", requestId=number, timestamp=timestamp + 0.25, response=head)
    event("Network.loadingFinished", requestId=number, timestamp=timestamp + 0.5,
          encodedDataLength=120)


def navigate(url):
    if WAY == "ends":
        print("out of memory", flush=True)
        os._exit(7)
    if WAY == "closes":
        os.close(4)
        os.close(3)
        signal.pause()
    if WAY == "crashes":
        event("Inspector.targetCrashed")
        return
    if url == "about:blank":
        if WAY != "stays":
            finish()
        return
    request("1", 1.0)
    if WAY == "caches" and [name for _, name in seen].count("Page.navigate") > 1:
        request("other", 1.0)
        event("Network.requestServedFromCache", requestId="other")
    elif WAY == "caches":
        request("other", 1.0)
    if WAY == "stalls":
        return
    if WAY == "asks":
        event("Page.javascriptDialogOpening", url=URL, message="?", type="alert")
        return
    if WAY == "works":
        event("Target.attachedToTarget", sessionId="worker", targetInfo={{"type": "worker"}})
        return
    finish()


def answer(command):
    method, session = command["method"], command.get("sessionId")
    seen.append((session, method))
    result, error = {{}}, None
    if method == "Target.setDiscoverTargets" and command["params"]["discover"]:
        event("Target.targetCreated", None, targetInfo={{"targetId": "T", "type": "page"}})
    elif method == "Target.attachToTarget":
        event("Target.attachedToTarget", None, sessionId="page", targetInfo={{"type": "page"}})
        result = {{"sessionId": "page"}}
    elif method == "Browser.getVersion":
        result = {{"product": "Fake/1.0"}}
    elif method == "Page.navigate" and WAY == "nowhere":
        result = {{"errorText": "net::ERR_NAME_NOT_RESOLVED"}}
    elif method == "Performance.enable" and WAY == "refuses":
        error = {{"code": -32601, "message": "'Performance.enable' wasn't found"}}
    elif method == "Performance.getMetrics":
        result = {{"metrics": [{{"name": "NavigationStart", "value": 1.0}}]}}
    elif method == "SystemInfo.getProcessInfo":
        result = {{"processInfo": [{{"id": 1, "cpuTime": 0.5}}]}}
    elif method == "Runtime.evaluate" and session == "page":
        timing = {{"plt_ms": 1000.5, "response_start_ms": 250.0}}
        paints = {{"paints": {{"first-paint": 300, "first-contentful-paint": 304}},
                   "largest": [304, 500], "shifts": []}}
        result = {{"result": {{"value": timing | paints}}}}
    tell({{"id": command["id"], "error": error}} if error else
         {{"id": command["id"], "result": result}})
    if method == "Page.navigate" and WAY != "nowhere":
        navigate(command["params"]["url"])
    elif method == "Page.handleJavaScriptDialog":
        finish()
    elif method == "Runtime.runIfWaitingForDebugger":
        print([name for who, name in seen if who == "worker"], flush=True)
        finish()
    elif method == "Browser.close":
        names = [name for _, name in seen if name in ("Page.navigate", "Network.clearBrowserCache")]
        print(names, flush=True)
        sys.exit()


if WAY == "dies":
    sys.exit("cannot open display")
while WAY != "sleeps" or rest is not None:
    piece = os.read(commands, 65536)
    if not piece:
        sys.exit("the pipe was closed")
    *messages, rest = (rest + piece).split(b"\0")
    for message in messages:
        if WAY != "sleeps":
            answer(json.loads(message))
"""


def write_browser(folder: Path, way: str) -> Path:
    """A program of that way, named as headless-shell is."""
    program = folder / f"{way}-headless-shell"
    program.write_text(PROGRAM.format(way=way))
    program.chmod(0o755)
    return program
