/**
 * Loads one page in a fresh headless Chromium, writes its timings and its HAR, and exits.
 *
 * Usage: node load.cjs ORDER.json, where ORDER holds: url, executable, full_browser (whether it is
 * one), profile, environment, sandbox, filter_calls, authority (or null), pinned, due (URLs that the
 * load is to ask for), timeout_ms, wait_until_ms (or null), result, har.
 */

import { readFileSync, writeFileSync } from 'node:fs';

import { launch } from 'puppeteer-core';

import { costOf, longestQueued, readProcesses, readQueued } from './cost.mjs';
import { browserArguments } from './flags.mjs';
import { readyFullBrowser, withoutBlocked } from './full.mjs';
import { harOf } from './har.mjs';
import { answerDialogs, evaluate, navigate, readMetrics } from './navigation.mjs';
import { PINNED_MS, pinScript } from './pinned.mjs';
import { Traffic } from './quiet.mjs';
import { record, renumber, requestsOf } from './recording.mjs';
import { endUnread, isSettled, POLL_MS, QUIET_MS } from './settling.mjs';

const TIMED_OUT = 3;

/** Navigation timing of the page in ms since navigationStart, and the rounded classic PLT. */
function readTiming() {
  return new Promise((resolve) => {
    const poll = () => {
      const [entry] = performance.getEntriesByType('navigation');
      if (entry.loadEventEnd === 0) {
        setTimeout(poll, 0);
        return;
      }
      const classic = performance.timing;
      resolve({
        plt_ms: entry.loadEventEnd,
        plt_rounded_ms: classic.loadEventEnd - classic.navigationStart,
        dom_content_loaded_ms: entry.domContentLoadedEventEnd,
        response_start_ms: entry.responseStart,
      });
    };
    poll();
  });
}

async function sleepUntil(moment) {
  while (Date.now() < moment) {
    const left = moment - Date.now();
    await new Promise((resolve) => {
      setTimeout(resolve, left);
    });
  }
}

/** Observes, and where asked pins, the workers that `session` starts, before they do anything. */
async function joinWorkers(session, order, messages, traffic) {
  const join = async (worker) => {
    record(worker, messages);
    traffic.watch(worker);
    // All at once: a paused worker may leave a command without an answer until it runs.
    const pin = { expression: pinScript(PINNED_MS) };
    await Promise.all([
      worker.send('Network.enable'),
      ...(order.pinned ? [worker.send('Runtime.evaluate', pin)] : []),
      worker.send('Runtime.runIfWaitingForDebugger'),
    ]);
  };
  session.on('Target.attachedToTarget', ({ sessionId }) => {
    const worker = session.connection().session(sessionId);
    join(worker).catch((error) => console.error(`a worker was gone at once: ${error.message}`));
  });
  await session.send('Target.setAutoAttach', {
    autoAttach: true,
    waitForDebuggerOnStart: true,
    flatten: true,
  });
}

async function prepare(session, order, messages, traffic) {
  record(session, messages);
  traffic.watch(session);
  answerDialogs(session);
  await Promise.all([
    session.send('Network.enable'),
    session.send('Page.enable'),
    session.send('Performance.enable'),
    joinWorkers(session, order, messages, traffic),
  ]);
  if (order.pinned) {
    const source = pinScript(PINNED_MS);
    await session.send('Page.addScriptToEvaluateOnNewDocument', { source });
  }
  if (order.full_browser) {
    await readyFullBrowser(session, order.due);
  }
}

async function load(browser, order) {
  // Not browser.pages(): Puppeteer's own Page would read every event a second time.
  const target = browser.targets().find((one) => one.type() === 'page');
  const session = await target.createCDPSession();
  const seen = [];
  const traffic = new Traffic();
  await prepare(session, order, seen, traffic);
  const before = isRealTime(order) ? await readProcesses(session) : null;
  const queued = before && readQueued(before);
  if (order.wait_until_ms !== null) {
    await sleepUntil(order.wait_until_ms);
  }
  const deadline = performance.now() + order.timeout_ms;
  await navigate(session, order.url, order.timeout_ms);
  // Asked at once, so that what was spent until now is little more than until the load event.
  const [timing, metrics, after] = await Promise.all([
    evaluate(session, readTiming),
    readMetrics(session),
    readProcesses(session),
  ]);
  const waited = queued && { queued_s: longestQueued(queued, readQueued(after)) };
  const start = metrics.NavigationStart;
  const settled = () => isSettled(requestsOf(seen, start), timing.plt_ms, order.due);
  while (!settled() && traffic.quietMs < QUIET_MS && performance.now() < deadline) {
    await new Promise((resolve) => {
      setTimeout(resolve, POLL_MS);
    });
  }
  const quiet = traffic.quietMs >= QUIET_MS;
  const version = await browser.version();
  const messages = withoutBlocked(seen);
  renumber(messages);
  const requests = requestsOf(messages, start);
  const loaded = {
    browser: version,
    url: order.url,
    sandbox: order.sandbox,
    pinned: order.pinned,
    timing,
    cost: { ...costOf(metrics, after, before), ...waited },
    // What began after the load event and has no end yet is no part of the load.
    requests: (quiet ? endUnread(requests) : requests).filter(
      (request) => request.end_ms !== null || request.start_ms <= timing.plt_ms,
    ),
  };
  writeFileSync(order.har, JSON.stringify(harOf(messages, loaded), null, 1) + '\n');
  return loaded;
}

/**
 * Whether computing takes time.  Loads that wait for their moment are in virtual time: there a
 * single clock read before the load, 256 ns, can move the page load time by a millisecond.
 */
function isRealTime(order) {
  return order.wait_until_ms === null;
}

/** Seconds since `start`, a moment as performance.now() gives it. */
function since(start) {
  return (performance.now() - start) / 1000;
}

async function main() {
  const order = JSON.parse(readFileSync(process.argv[2], 'utf8'));
  const launching = isRealTime(order) ? performance.now() : null;
  const browser = await launch({
    executablePath: order.executable,
    ignoreDefaultArgs: true,
    args: browserArguments(order),
    env: order.environment,
    pipe: true,
    defaultViewport: null,
    timeout: order.timeout_ms,
    protocolTimeout: 0,
    dumpio: true,
  });
  const launchS = launching === null ? null : since(launching);
  let loaded;
  let closing;
  try {
    loaded = await load(browser, order);
  } finally {
    closing = performance.now();
    await browser.close();
  }
  if (launchS !== null) {
    const { user, system } = process.cpuUsage();
    const cpuS = (user + system) / 1e6;
    Object.assign(loaded.cost, { launch_s: launchS, close_s: since(closing), driver_cpu_s: cpuS });
  }
  writeFileSync(order.result, JSON.stringify(loaded) + '\n');
}

// The exit is explicit: an open pipe to the browser would keep the process alive.
main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(error.name === 'TimeoutError' ? TIMED_OUT : 1);
  },
);
