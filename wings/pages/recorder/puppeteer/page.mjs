/**
 * Going to a page, asking it about itself, and waiting for it, over sessions of the browser's
 * protocol.
 *
 * Source: Chrome DevTools Protocol, domains Network, Page, Performance and Runtime; W3C Navigation
 * Timing 2.
 */

import { setTimeout as sleep } from 'node:timers/promises';

import { TimeoutError } from 'puppeteer-core';

const POLL_MS = 20;
const SETTLE_MS = 250; // observers of visibility are told within a few frames
const MOST_STEPS = 200; // some pages have no end
// These answer for as long as the page lives.
const ENDLESS = new Set(['EventSource', 'WebSocket', 'Ping']);

/** The browser could not load the page; the message says why, in its own words. */
export class LoadError extends Error {
  name = 'LoadError';
}

/** Rejects after `ms`, unless `promise` settles first. */
export async function within(ms, what, promise) {
  const timer = new AbortController();
  const late = sleep(Math.max(ms, 0), undefined, { signal: timer.signal }).then(() => {
    throw new TimeoutError(`${what} in ${Math.round(ms)} ms`);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    late.catch(() => undefined);
    timer.abort();
  }
}

/** Goes to the page and waits for its load event. */
export async function navigate(session, url, timeoutMs) {
  const loaded = new Promise((resolve) => {
    session.once('Page.loadEventFired', resolve);
  });
  const visit = async () => {
    const { errorText } = await session.send('Page.navigate', { url });
    if (errorText) {
      throw new LoadError(`${errorText} at ${url}`);
    }
    await loaded;
  };
  await within(timeoutMs, 'no load event', visit());
}

/** Runs a function of no parameters in the page and returns its value. */
export async function evaluate(session, script) {
  const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
    expression: `(${script})()`,
    awaitPromise: true,
    returnByValue: true,
  });
  if (exceptionDetails) {
    throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  }
  return result.value;
}

/** Navigation timing of the page in ms since navigationStart, and its title; runs in the page. */
export function readPage() {
  return new Promise((resolve) => {
    const poll = () => {
      const [entry] = performance.getEntriesByType('navigation');
      if (entry.loadEventEnd === 0) {
        setTimeout(poll, 0);
        return;
      }
      resolve({ plt_ms: entry.loadEventEnd, title: globalThis.document.title });
    };
    poll();
  });
}

/** Counts from now on which functions run. */
export async function startCoverage(session, parameters) {
  await session.send('Profiler.enable');
  await session.send('Profiler.startPreciseCoverage', parameters);
}

/** What ran until now, and what is shown, at `scale` of its size. */
export async function readSeen(session, scale) {
  const { result } = await session.send('Profiler.takePreciseCoverage');
  const { cssLayoutViewport } = await session.send('Page.getLayoutMetrics');
  const { clientWidth: width, clientHeight: height } = cssLayoutViewport;
  const clip = { x: 0, y: 0, width, height, scale };
  const { data } = await session.send('Page.captureScreenshot', { format: 'png', clip });
  return { coverage: result, picture: data };
}

/** When the navigation started, in monotonic seconds. */
export async function readStart(session) {
  const { metrics } = await session.send('Performance.getMetrics');
  return metrics.find(({ name }) => name === 'NavigationStart').value;
}

/**
 * Requests in flight, told by the events of any number of sessions.
 *
 * A request whose response has begun keeps the traffic busy only as long as something arrives: a
 * script that never reads a body keeps its request open for ever.
 */
export class Traffic {
  #unanswered = new Set();
  #last = performance.now();
  requests = 0;
  bytes = 0;

  /** Counts the requests of `session` from now on. */
  watch(session) {
    session.on('Network.requestWillBeSent', ({ requestId, request, type }) => {
      if (/^https?:/.test(request.url)) {
        this.requests += 1;
        this.#last = performance.now();
        if (!ENDLESS.has(type)) {
          this.#unanswered.add(requestId);
        }
      }
    });
    session.on('Network.dataReceived', ({ encodedDataLength }) => {
      this.bytes += encodedDataLength;
      this.#last = performance.now();
    });
    for (const name of ['responseReceived', 'loadingFinished', 'loadingFailed']) {
      session.on(`Network.${name}`, ({ requestId }) => {
        this.#unanswered.delete(requestId);
        this.#last = performance.now();
      });
    }
  }

  /**
   * Waits until no request has been in flight for `ms`, at the longest until `deadline`, a moment
   * of performance.now(); returns whether it became quiet.
   */
  async untilQuiet(ms, deadline) {
    while (this.#unanswered.size || performance.now() - this.#last < ms) {
      if (performance.now() >= deadline) {
        return false;
      }
      await sleep(POLL_MS);
    }
    return true;
  }
}

/** One screen down; whether there was any way to go; runs in the page. */
function step() {
  const page = globalThis;
  const before = page.scrollY;
  page.scrollBy({ top: page.innerHeight, behavior: 'instant' });
  return page.scrollY > before;
}

/**
 * Scrolls to the end of the page, step by step, as a reader would: for what loads when seen;
 * returns whether the end was reached before the `deadline`.
 */
export async function scrollToEnd(session, traffic, deadline) {
  for (let steps = 0; steps < MOST_STEPS && performance.now() < deadline; steps += 1) {
    const left = deadline - performance.now();
    if (!(await within(left, 'no answer', evaluate(session, step)))) {
      return true;
    }
    await traffic.untilQuiet(Infinity, Math.min(performance.now() + SETTLE_MS, deadline));
    await traffic.untilQuiet(SETTLE_MS, deadline);
  }
  return false;
}
