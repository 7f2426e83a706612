/**
 * The browser's command line, with the reason for each flag.
 *
 * Puppeteer's own default flags are not used: what decides a result stands here.
 */

/** In CSS pixels; the commonest screen of 2013. */
export const WINDOW = { width: 1366, height: 768 };

const FLAGS = [
  // A full browser's binary needs to be told; headless-shell is always headless.
  ['--headless', 'no window system'],
  ['--disable-gpu', 'software drawing: the result must not depend on a graphics card'],
  ['--in-process-gpu', 'one process less to start; it would draw nothing'],
  ['--disable-software-rasterizer', 'no drawing library either: nobody looks at the page'],
  ['--disable-site-isolation-trials', 'one renderer for all frames, as in the browser of 2011'],
  [`--window-size=${WINDOW.width},${WINDOW.height}`, 'the page lays out alike everywhere'],
  ['--lang=en-US', 'Accept-Language, and with it the size of requests, must not vary'],
  ['--no-proxy-server', 'no proxy from the environment or the desktop'],
  ['--no-first-run', 'no first-run page'],
  ['--no-default-browser-check', 'nor this one'],
  ['--disable-quic', 'TCP is under test'],
  ['--disable-background-networking', 'no requests of the browser itself'],
  ['--disable-component-update', 'no requests of the browser itself'],
  ['--disable-sync', 'no requests of the browser itself'],
  ['--disable-default-apps', 'no requests of the browser itself'],
  ['--disable-extensions', 'nothing between page and network'],
  ['--disable-domain-reliability', 'no reports to anybody'],
  ['--disable-breakpad', 'no crash handler process, no reports'],
  ['--metrics-recording-only', 'no reports to anybody'],
  ['--disable-field-trial-config', 'no experiments: every installation behaves alike'],
  ['--enable-benchmarking', 'no experiments: nor any chosen at random'],
  ['--password-store=basic', 'no key ring service'],
  ['--mute-audio', 'no sound device'],
  ['--block-new-web-contents', 'no windows beside the page: they would load with it'],
  ['--js-flags=--random-seed=1', 'scripts that put Math.random() into URLs ask for the same ones'],
];

const DISABLED_FEATURES = [
  ['UseDnsHttpsSvcb', 'an HTTPS-record question per host: one more packet each way'],
  ['AsyncDns', "the C library's resolver, as the lab's files configure it"],
  ['DnsOverHttpsUpgrade', 'no other resolver than the lab has'],
  ['HttpsUpgrades', 'pages are http only: no try on port 443 first'],
  ['HttpsFirstBalancedMode', 'the same'],
  ['HttpsFirstBalancedModeAutoEnable', 'the same'],
  ['OptimizationHints', 'no requests of the browser itself'],
  ['MediaRouter', 'no multicast search for screens'],
  ['Translate', 'no requests of the browser itself'],
  ['TcpSocketPoolLimitRandomization', 'a random limit of connections'],
];

const ENABLED_FEATURES = [
  // With the line on the GPU process a quarter of a load's CPU time.
  ['NetworkServiceInProcess2', 'one process less to start; the same network stack'],
  ['HstsTopLevelNavigationsOnly', 'the built-in HSTS list turned what was recorded as http to https'],
];

// The second forking helper starts processes that need no sandbox; there are none here.
const WITH_SANDBOX = [['--no-unsandboxed-zygote', 'one process less to start']];

// For a user or a kernel that cannot give the browser its sandbox.
const WITHOUT_SANDBOX = [
  ['--no-sandbox', 'the order says that the browser cannot have its sandbox'],
  ['--no-zygote', 'then the forking helper is of no use'],
];

// For a kernel whose traps for forbidden system calls do not reach the browser; its other layer,
// empty namespaces of user, process and network, remains.
const WITHOUT_CALL_FILTER = [
  ['--disable-seccomp-filter-sandbox', 'the order says that the filter cannot work here'],
];

// The one way of trust that leaves no trace on the machine: no certificate store is written, and
// everything that no certificate with one of these keys stands behind is refused as ever.  It is
// heeded only together with --user-data-dir.  Chains trusted like this are asked about nowhere
// (OCSP, CT), and are free of the key pins and lifetimes that the browser demands of public ones.
const TRUST = '--ignore-certificate-errors-spki-list';

/**
 * @param {{sandbox: boolean, filter_calls: boolean, profile: string, authority: ?string}} order
 *   authority: Base64 SHA-256 of the key of a certificate in the chains that the lab's servers send
 * @returns {string[]} arguments for the browser
 */
export function browserArguments(order) {
  const depending = [
    ...(order.sandbox ? WITH_SANDBOX : WITHOUT_SANDBOX),
    ...(order.sandbox && !order.filter_calls ? WITHOUT_CALL_FILTER : []),
  ];
  const flags = [...FLAGS, ...depending].map(([flag]) => flag);
  const names = (features) => features.map(([name]) => name).join(',');
  return [
    ...flags,
    ...(order.authority ? [`${TRUST}=${order.authority}`] : []),
    `--enable-features=${names(ENABLED_FEATURES)}`,
    `--disable-features=${names(DISABLED_FEATURES)}`,
    `--user-data-dir=${order.profile}`,
    'about:blank',
  ];
}
