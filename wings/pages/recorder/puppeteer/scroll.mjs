/** Scrolling to the end of a page, step by step, as a reader would: for what loads when seen. */

import { evaluate, within } from './navigation.mjs';

const SETTLE_MS = 250; // observers of visibility are told within a few frames
const MOST_STEPS = 200; // some pages have no end

/** One screen down; whether there was any way to go; runs in the page. */
function step() {
  const page = globalThis;
  const before = page.scrollY;
  page.scrollBy({ top: page.innerHeight, behavior: 'instant' });
  return page.scrollY > before;
}

/**
 * @param {import('puppeteer-core').CDPSession} session
 * @param {import('./quiet.mjs').Traffic} traffic
 * @param {number} deadline as performance.now() gives it
 * @returns {Promise<boolean>} whether the end was reached
 */
export async function scrollToEnd(session, traffic, deadline) {
  for (let steps = 0; steps < MOST_STEPS && performance.now() < deadline; steps += 1) {
    const left = deadline - performance.now();
    if (!(await within(left, 'no answer', evaluate(session, step)))) {
      return true;
    }
    const pause = Math.min(performance.now() + SETTLE_MS, deadline);
    await traffic.untilQuiet(Infinity, pause);
    await traffic.untilQuiet(SETTLE_MS, deadline);
  }
  return false;
}
