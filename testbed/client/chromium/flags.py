"""The browser's command line, with the reason for each flag.

The flags that automation libraries give by default are not used: what decides a result is here.
"""

from __future__ import annotations

from pathlib import Path

from testbed.model import NO_OPENING, Opening

WINDOW = (1366, 768)
"""Width and height in CSS pixels: the commonest screen of 2013."""

FLAGS = (
    # A full browser's binary needs to be told; headless-shell is always headless.
    ("--headless", "no window system"),
    ("--disable-gpu", "software drawing: the result must not depend on a graphics card"),
    ("--in-process-gpu", "one process less to start; it would draw nothing"),
    ("--disable-software-rasterizer", "no drawing library either: nobody looks at the page"),
    ("--disable-site-isolation-trials", "one renderer for all frames, as in the browser of 2011"),
    ("--window-size={},{}".format(*WINDOW), "the page lays out alike everywhere"),
    ("--lang=en-US", "Accept-Language, and with it the size of requests, must not vary"),
    ("--no-proxy-server", "no proxy from the environment or the desktop"),
    ("--no-first-run", "no first-run page"),
    ("--no-default-browser-check", "nor this one"),
    ("--disable-background-networking", "no requests of the browser itself"),
    ("--disable-component-update", "no requests of the browser itself"),
    ("--disable-sync", "no requests of the browser itself"),
    ("--disable-default-apps", "no requests of the browser itself"),
    ("--disable-extensions", "nothing between page and network"),
    ("--disable-domain-reliability", "no reports to anybody"),
    ("--disable-breakpad", "no crash handler process, no reports"),
    ("--metrics-recording-only", "no reports to anybody"),
    ("--disable-field-trial-config", "no experiments: every installation behaves alike"),
    ("--enable-benchmarking", "no experiments: nor any chosen at random"),
    ("--password-store=basic", "no key ring service"),
    ("--mute-audio", "no sound device"),
    ("--block-new-web-contents", "no windows beside the page: they would load with it"),
    ("--js-flags=--random-seed=1", "scripts that put Math.random() into URLs ask for the same"),
)  # fmt: skip

WITHOUT_QUIC = (("--disable-quic", "TCP is under test"),)

# "*" is every https origin (net/http and network_session_configurator in Chromium's source), so
# the page need not be known.  No origin is then asked over TCP, not even when QUIC fails.
WITH_QUIC = (("--origin-to-force-quic-on=*", "QUIC is under test, from the first packet on"),)

# Of loads only: what the browser would keep on disk for a next time that never comes.
IN_MEMORY = (("--incognito", "cache, cookies and other stores in memory, not in files"),)

DISABLED_FEATURES = (
    ("UseDnsHttpsSvcb", "an HTTPS-record question per host: one more packet each way"),
    ("AsyncDns", "the C library's resolver, as the lab's files configure it"),
    ("DnsOverHttpsUpgrade", "no other resolver than the lab has"),
    ("HttpsUpgrades", "pages are http only: no try on port 443 first"),
    ("HttpsFirstBalancedMode", "the same"),
    ("HttpsFirstBalancedModeAutoEnable", "the same"),
    ("OptimizationHints", "no requests of the browser itself"),
    ("MediaRouter", "no multicast search for screens"),
    ("Translate", "no requests of the browser itself"),
    ("TcpSocketPoolLimitRandomization", "a random limit of connections"),
)

ENABLED_FEATURES = (
    # With the line on the GPU process a quarter of a load's CPU time.
    ("NetworkServiceInProcess2", "one process less to start; the same network stack"),
    ("HstsTopLevelNavigationsOnly", "the built-in HSTS list turned recorded http into https"),
)

EARLY_DATA_FEATURES = (("EnableTLS13EarlyData", "early data over TCP; QUIC has it in any case"),)

# The second forking helper starts processes that need no sandbox; there are none here.
WITH_SANDBOX = (("--no-unsandboxed-zygote", "one process less to start"),)

# For a user or a kernel that cannot give the browser its sandbox.
WITHOUT_SANDBOX = (
    ("--no-sandbox", "the browser cannot have its sandbox"),
    ("--no-zygote", "then the forking helper is of no use"),
)

# For a kernel whose traps for forbidden system calls do not reach the browser; its other layer,
# empty namespaces of user, process and network, remains.
WITHOUT_CALL_FILTER = (("--disable-seccomp-filter-sandbox", "the filter cannot work here"),)

# The one way of trust that leaves no trace on the machine: no certificate store is written, and
# everything that no certificate with one of these keys stands behind is refused as ever.  It is
# heeded only together with --user-data-dir.  Chains trusted like this are asked about nowhere
# (OCSP, CT), and are free of the key pins and lifetimes that the browser demands of public ones.
TRUST = "--ignore-certificate-errors-spki-list"

LAB_AUTHORITY = "HKwjX3y6fUl6TzUyRCoYWV79N/ka5tcI26Ep7eaveFs="
"""Of the intermediate of every page's chains (``testbed.pages.authority``), which is everywhere the
same: so a browser can be started before its page is known."""

FIRST_PAGE = "about:blank"


def browser_arguments(
    profile: Path,
    *,
    sandbox: bool,
    filter_calls: bool,
    authority: str | None,
    in_memory: bool = False,
    opening: Opening = NO_OPENING,
) -> list[str]:
    """Return the arguments of a browser with its own ``profile`` folder.

    Args:
        profile: an empty folder.
        sandbox: whether the browser can have its own sandbox.
        filter_calls: whether the sandbox's filter of system calls works on this kernel.
        authority: Base64 SHA-256 of the key of a certificate in the chains that the lab's servers
            send; ``None``: no more trust than usual.
        in_memory: whether to keep nothing in files.
        opening: what else it has to know at its start.
    """
    features = ENABLED_FEATURES + (EARLY_DATA_FEATURES if opening.early_data else ())
    flags = [*FLAGS, *(IN_MEMORY if in_memory else ())]
    flags += WITH_QUIC if opening.quic else WITHOUT_QUIC
    flags += WITH_SANDBOX if sandbox else WITHOUT_SANDBOX
    if sandbox and not filter_calls:
        flags += WITHOUT_CALL_FILTER
    return [
        *(flag for flag, _ in flags),
        *([f"{TRUST}={authority}"] if authority else []),
        f"--enable-features={_join(features)}",
        f"--disable-features={_join(DISABLED_FEATURES)}",
        f"--user-data-dir={profile}",
    ]


def _join(features: tuple[tuple[str, str], ...]) -> str:
    return ",".join(name for name, _ in features)
