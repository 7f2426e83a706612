"""Habits of pages of today, one page each, and a site that serves all of them.

Paths say what comes: ``/404/a.js`` is a script that is not there, ``/302/a.png`` leads to
``/a.png``, ``/slow/a.png`` takes 300 ms, and what ends in ``.png``, ``.css``, ``.js`` and so on is
one of its type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from wings.pages.tests.recorder.site import Answer, Site, png, typed

WWW, OTHER = "http://www.habit.test", "http://other.habit.test"
_ON_LOAD = "addEventListener('load', () => {{ {} }})"
_TYPES: Mapping[str, tuple[bytes, str]] = {
    "png": (png(1), "image/png"), "svg": (b'<svg xmlns="http://www.w3.org/2000/svg" width="9" '
    b'height="9"><circle id="c" r="4"/></svg>', "image/svg+xml"),
    "css": (b"p { color: red }", "text/css"), "js": (b"window.done = 1;\n" * 50, "text/javascript"),
    "mjs": (b"export const done = 1;\n", "text/javascript"),
    "json": (b'{"ok": true}', "application/json"), "html": (b"<p>frame</p>", "text/html"),
    "txt": (b"text " * 300, "text/plain"), "mp3": (b"\0" * 5000, "audio/mpeg"),
    "webmanifest": (b'{"name": "a"}', "application/manifest+json"), "ico": (png(2), "image/png"),
}  # fmt: skip
_ERRORS = {"404": "404 Not Found", "410": "410 Gone", "500": "500 Internal Server Error",
           "204": "204 No Content"}  # fmt: skip
_FILES: Mapping[str, tuple[str, str]] = {
    "/shared.js": ("onconnect = (e) => fetch('/api/s.json').then((r) => r.text())"
                   ".then((t) => e.ports[0].postMessage(t));", "text/javascript"),
    "/worker.js": ("importScripts('/a.js'.replace('a', 'b')); fetch('/api/w.json')"
                   ".then(() => postMessage(1));", "text/javascript"),
    "/b.js": ("self.b = 1;", "text/javascript"),
    "/import.css": ("@import url('/css/b.css'); p { margin: 0 }", "text/css"),
    "/font.css": ("@font-face { font-family: f; src: url('/404/f.woff2') } p { font-family: f }",
                  "text/css"),
    "/graph.mjs": ("import { done } from '/leaf.mjs'; window.leaf = done;", "text/javascript"),
    "/sw-plain.js": ("self.addEventListener('install', () => self.skipWaiting());",
                     "text/javascript"),
    "/sw-cache.js": ("self.addEventListener('install', (e) => e.waitUntil(caches.open('v')"
                     ".then((c) => c.addAll(['/p/1.png', '/p/2.png']))));", "text/javascript"),
    "/grow.html": ("<p>one</p>", "text/html"),
}  # fmt: skip


def _script(text: str) -> str:
    return f"<p>page</p><script>{text}</script>"


def _late(text: str) -> str:
    return _script(_ON_LOAD.format(text))


HABITS: Mapping[str, str] = {
    # After the load event.
    "late-fetch": _late("setTimeout(() => fetch('/api/a.json'), 30)"),
    "late-fetch-far": _late("setTimeout(() => fetch('/api/a.json'), 700)"),
    "late-chain": _late("fetch('/api/a.json').then(() => fetch('/api/b.json'))"
                        ".then(() => { new Image().src = '/p/late.png' })"),
    "late-picture": _late("document.body.append(Object.assign(new Image(), { src: '/p/l.png' }))"),
    "lazy-picture": '<p>top</p><div style="height:9000px"></div><img loading=lazy src="/p/z.png">',
    "lazy-near": '<p>top</p><img loading=lazy width=9 height=9 src="/p/near.png">',
    "poll": _script("let n = 0; const t = setInterval(() => { fetch('/api/poll.json'); "
                    "if (++n === 4) clearInterval(t); }, 200)"),
    "poll-for-ever": _script("setInterval(() => fetch('/api/poll.json'), 400)"),
    "poll-other-answers": _late("let n = 0; const ask = () => fetch('/count.txt').then(() => "
                                "{ if (++n < 4) setTimeout(ask, 100) }); ask()"),
    "beacon": _late("navigator.sendBeacon('/beacon.txt', 'seen')"),
    "keepalive": _late("fetch('/api/k.json', { method: 'POST', body: 'x', keepalive: true })"),
    "idle-callback": _late("requestIdleCallback(() => fetch('/api/idle.json'))"),
    "observer": '<p>top</p><div id=end></div>' + _script(
        "new IntersectionObserver((e, o) => { o.disconnect(); fetch('/api/more.json') })"
        ".observe(document.getElementById('end'))"),
    "slow-after-load": _late("new Image().src = '/slow/p.png'"),
    "prefetch": '<link rel=prefetch href="/next.html"><p>page</p>',
    "speculation": '<p>page</p><script type=speculationrules>{"prefetch": [{"source": "list", '
                   '"urls": ["/spec.html"], "eagerness": "immediate"}]}</script>',
    # What the load event waits for, and what it does not.
    "busy-script": _script("const t = performance.now(); while (performance.now() < t + 100);"),
    "timer-script": _script("setTimeout(() => { new Image().src = '/p/t.png' }, 5)"),
    "audio-preload": '<audio preload=auto src="/a.mp3"></audio><p>page</p>',
    "async-script": '<script async src="/a.js"></script><p>page</p>',
    "defer-script": '<script defer src="/a.js"></script><p>page</p>',
    "injected-script": _script("document.head.append(Object.assign(document.createElement("
                               "'script'), { src: '/a.js' }))"),
    "document-write": _script("document.write('<script src=\"/w.js\"><\\/script>')"),
    "module": '<script type=module src="/graph.mjs"></script><p>page</p>',
    "dynamic-import": _script("import('/leaf.mjs')"),
    "import-map": '<script type=importmap>{"imports": {"leaf": "/leaf.mjs"}}</script>'
                  '<script type=module>import "leaf";</script><p>page</p>',
    "module-twice": '<script type=module src="/leaf.mjs"></script>'
                    '<script type=module src="/leaf.mjs"></script><p>page</p>',
    "modulepreload": '<link rel=modulepreload href="/leaf.mjs">'
                     '<script type=module src="/graph.mjs"></script><p>page</p>',
    "preload-unused": '<link rel=preload as=image href="/p/u.png"><p>page</p>',
    "priority": '<img fetchpriority=high src="/p/1.png"><img fetchpriority=low src="/p/2.png">',
    "sync-xhr": _script("const x = new XMLHttpRequest(); x.open('GET', '/api/x.json', false); "
                        "x.send()"),
    "srcset": '<img srcset="/p/small.png 400w, /p/large.png 2000w" sizes="100vw" src="/p/s.png">',
    "picture": '<picture><source media="(max-width: 600px)" srcset="/p/phone.png">'
               '<img src="/p/desk.png"></picture>',
    "print-style": '<link rel=stylesheet media=print href="/css/print.css"><p>page</p>',
    "import-style": '<link rel=stylesheet href="/import.css"><p>page</p>',
    "svg-use": '<svg><use href="/i.svg#c"></use></svg>',
    "frame": f'<iframe src="{OTHER}/frame.html"></iframe>',
    "srcdoc": '<iframe srcdoc="<img src=/p/in.png>"></iframe>',
    "object": '<object data="/o.svg" type="image/svg+xml"></object>',
    "blob": _script("fetch('/p/b.png').then((r) => r.blob()).then((b) => { "
                    "new Image().src = URL.createObjectURL(b) })"),
    "shadow": '<x-a></x-a>' + _script(
        "customElements.define('x-a', class extends HTMLElement { connectedCallback() { "
        "this.attachShadow({ mode: 'open' }).innerHTML = '<img src=/p/shadow.png>' } })"),
    "manifest": '<link rel=manifest href="/a.webmanifest"><p>page</p>',
    "favicon": '<link rel=icon href="/icon.png"><p>page</p>',
    "dialog": _script("alert('hello')"),
    "popup": _script("window.open('/pop.html')"),
    "push-state": _script("history.pushState(null, '', '/habit/other'); fetch('/api/r.json')"),
    # Failures.
    "css-404": '<link rel=stylesheet href="/404/a.css"><p>page</p>',
    "script-404": '<script src="/404/a.js"></script><p>page</p>',
    "script-500": '<script src="/500/a.js"></script><p>page</p>',
    "module-404": '<script type=module src="/404/a.mjs"></script><p>page</p>',
    "picture-404": '<img src="/404/a.png">', "picture-410": '<img src="/410/a.png">',
    "video-404": '<video preload=metadata src="/404/a.mp4"></video><p>page</p>',
    "frame-404": '<iframe src="/404/a.html"></iframe>',
    "font-404": '<link rel=stylesheet href="/font.css"><p>page</p>',
    "fetch-404": _script("fetch('/404/a.json')"), "empty-204": _script("fetch('/204/a.json')"),
    "csp-blocked": '<meta http-equiv="Content-Security-Policy" content="img-src \'self\'">'
                   f'<img src="{OTHER}/p/ad.png"><img src="/p/own.png">',
    "cors-blocked": _script(f"fetch('{OTHER}/api/a.json').catch(() => 0)"),
    "nosniff": '<script src="/nosniff/a.txt"></script><p>page</p>',
    "abort": _script("const c = new AbortController(); fetch('/slow/b.txt', { signal: c.signal })"
                     ".catch(() => 0); setTimeout(() => c.abort(), 50)"),
    "abort-at-once": _script("const c = new AbortController(); fetch('/api/a.json', { signal: "
                             "c.signal }).catch(() => 0); c.abort()"),
    "timeout-signal": _script("fetch('/slow/c.txt', { signal: AbortSignal.timeout(60) })"
                              ".catch(() => 0)"),
    "dead-host": '<img src="http://dead.test/a.png">',
    "dead-script": '<script async src="http://dead.test/a.js"></script><p>page</p>',
    "dead-fetch": _script("fetch('http://dead.test/a.json').catch(() => 0)"),
    # Redirects.
    "redirect-picture": '<img src="/302/p/r.png">',
    "redirect-fetch": _script("fetch('/302/api/r.json')"),
    "goes-on": _script("location.replace('/grow.html')"),
    "refresh": '<meta http-equiv=refresh content="0; url=/grow.html"><p>page</p>',
    "refresh-later": '<meta http-equiv=refresh content="60; url=/grow.html"><p>page</p>',
    # Requests that differ in more than their URL.
    "post": _script("fetch('/api/p.json', { method: 'POST', body: 'a=1' })"),
    "head": _script("fetch('/api/h.json', { method: 'HEAD' })"),
    "same-twice": _script("fetch('/api/t.json', { cache: 'reload' }).then(() => "
                          "fetch('/api/t.json', { cache: 'reload' }))"),
    "preflight": _script(f"fetch('{OTHER}/cors/p.json', {{ method: 'POST', body: '{{}}', headers: "
                         "{ 'Content-Type': 'application/json' } })"),
    "no-cors": _script(f"fetch('{OTHER}/p.txt', {{ mode: 'no-cors' }})"),
    "query-of-time": _script("fetch('/api/q.json?t=' + Date.now())"),
    "query-of-chance": _script("fetch('/api/q.json?r=' + Math.random())"),
    "body-of-time": _late("navigator.sendBeacon('/rum.txt', 'x'.repeat(3 + Date.now() % 5))"),
    # Workers, sockets, streams.
    "worker": _script("new Worker('/worker.js')"),
    "shared-worker": _script("new SharedWorker('/shared.js').port.onmessage = () => 0"),
    "service-worker": _script("navigator.serviceWorker?.register('/sw-plain.js')"),
    "websocket": _script("new WebSocket('ws://www.habit.test/socket')"),
    "event-source": _script("const s = new EventSource('/events'); s.onerror = () => s.close()"),
    "cookie": _script("document.cookie = 'a=b'; fetch('/api/c.json')"),
    "storage": _script("localStorage.setItem('a', 1); indexedDB.open('a'); fetch('/api/d.json')"),
}  # fmt: skip
"""The body of each page by its name."""


@dataclass
class HabitSite(Site):
    """Serves all pages, and what their paths say."""

    counts: Counter[str] = field(default_factory=Counter)

    def answer(self, method: str, url: str) -> Answer:
        """Return what the path says; ``/count.txt`` says how often it was asked for."""
        path = "/" + url.partition("://")[2].partition("?")[0].partition("/")[2]
        self.counts[path] += 1
        if path.startswith("/habit/"):
            page = f"<!doctype html><title>habit</title>{HABITS.get(path[7:], '')}"
            return typed(page.encode(), "text/html")
        if path == "/count.txt":
            return typed(b"n" * self.counts[path], "text/plain", ("Cache-Control", "no-store"))
        if path == "/events":
            return typed(b"data: 1\n\ndata: 2\n\n", "text/event-stream")
        if path in _FILES:
            text, mime = _FILES[path]
            return typed(text.encode(), mime)
        first, _, rest = path[1:].partition("/")
        if first == "302":
            return Answer(b"", "302 Found", (("Location", f"/{rest}"),))
        body, mime = _TYPES.get(path.rpartition(".")[2], (b"", "application/octet-stream"))
        if first in _ERRORS:
            return Answer(b"" if first == "204" else b"sorry", _ERRORS[first],
                          (("Content-Type", "text/html"),))  # fmt: skip
        more = {"nosniff": (("X-Content-Type-Options", "nosniff"),),
                "cors": (("Access-Control-Allow-Origin", "*"),
                         ("Access-Control-Allow-Headers", "content-type"))}  # fmt: skip
        return typed(body, mime, *more.get(first, ()), delay_s=0.3 if first == "slow" else 0.0)
