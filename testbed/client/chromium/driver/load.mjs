/**
 * Loads one page in a fresh headless Chromium, writes its timings and its HAR, and exits.
 *
 * Usage: node load.cjs ORDER.json, where ORDER holds: url, executable, profile, environment,
 * sandbox, timeout_ms, wait_until_ms (or null), result, har.
 */

import { readFileSync, writeFileSync } from 'node:fs';

import { launch, TimeoutError } from 'puppeteer-core';

import { browserArguments } from './flags.mjs';
import { harOf } from './har.mjs';
import { record, renumber, requestsOf } from './recording.mjs';

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

async function navigationStart(session) {
  const { metrics } = await session.send('Performance.getMetrics');
  const metric = metrics.find(({ name }) => name === 'NavigationStart');
  if (!metric) {
    throw new Error('the browser reports no NavigationStart');
  }
  return metric.value;
}

/** Go to the page and wait for its load event. */
async function navigate(session, order) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    const complain = () => reject(new TimeoutError(`no load event in ${order.timeout_ms} ms`));
    timer = setTimeout(complain, order.timeout_ms);
  });
  const loaded = new Promise((resolve) => {
    session.once('Page.loadEventFired', resolve);
  });
  try {
    const { errorText } = await session.send('Page.navigate', { url: order.url });
    if (errorText) {
      throw new Error(`${errorText} at ${order.url}`);
    }
    await Promise.race([loaded, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function evaluate(session, script) {
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

async function load(browser, order) {
  // Not browser.pages(): Puppeteer's own Page would read every event a second time.
  const target = browser.targets().find((one) => one.type() === 'page');
  const session = await target.createCDPSession();
  const messages = record(session);
  await Promise.all([
    session.send('Network.enable'),
    session.send('Page.enable'),
    session.send('Performance.enable'),
  ]);
  if (order.wait_until_ms !== null) {
    await sleepUntil(order.wait_until_ms);
  }
  await navigate(session, order);
  const timing = await evaluate(session, readTiming);
  const start = await navigationStart(session);
  renumber(messages);
  const loaded = {
    browser: await browser.version(),
    url: order.url,
    sandbox: order.sandbox,
    timing,
    requests: requestsOf(messages, start),
  };
  writeFileSync(order.har, JSON.stringify(harOf(messages, loaded), null, 1) + '\n');
  writeFileSync(order.result, JSON.stringify(loaded) + '\n');
}

async function main() {
  const order = JSON.parse(readFileSync(process.argv[2], 'utf8'));
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
  try {
    await load(browser, order);
  } finally {
    await browser.close();
  }
}

// The exit is explicit: an open pipe to the browser would keep the process alive.
main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(error.name === 'TimeoutError' ? TIMED_OUT : 1);
  },
);
