/**
 * Going to a page and asking it about itself, over a session of the browser's protocol.
 *
 * Source: Chrome DevTools Protocol, domains Page, Performance and Runtime; W3C Navigation Timing 2.
 */

import { TimeoutError } from 'puppeteer-core';

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

/** The browser could not load the page; the message says why, in its own words. */
export class LoadError extends Error {
  name = 'LoadError';
}

/**
 * Accepts every dialog of the page: one that stays open stops its scripts, and nobody is there.
 *
 * @param {import('puppeteer-core').CDPSession} session
 * @param {(kind: string) => void} tell is given alert, confirm, prompt or beforeunload
 */
export function answerDialogs(session, tell = () => undefined) {
  session.on('Page.javascriptDialogOpening', ({ type }) => {
    tell(type);
    // A page that is gone has no dialog either.
    session.send('Page.handleJavaScriptDialog', { accept: true }).catch(() => undefined);
  });
}

/** Rejects after `ms`, unless `promise` settles first. */
export async function within(ms, what, promise) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    const complain = () => reject(new TimeoutError(`${what} in ${Math.round(ms)} ms`));
    timer = setTimeout(complain, Math.max(ms, 0));
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
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

/** The browser's own account of the page, by name; `NavigationStart` is in monotonic seconds. */
export async function readMetrics(session) {
  const { metrics } = await session.send('Performance.getMetrics');
  const byName = Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
  if (byName.NavigationStart === undefined) {
    throw new Error('the browser reports no NavigationStart');
  }
  return byName;
}
