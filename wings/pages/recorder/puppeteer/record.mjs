/**
 * Loads one page in a fresh headless Chromium, waits until it is quiet, and writes what the
 * browser's protocol told about its requests; the browser writes its network log meanwhile.
 *
 * Usage: node record.cjs ORDER.json DESCRIPTOR, where ORDER holds: url, executable, arguments,
 * environment, timeout_ms, wait_ms, scroll, coverage (parameters), scale (of a picture), pinned (a
 * script, or null), device (commands of the protocol), netlog (the file), mark (a word that no page
 * knows), guard_log, result; and DESCRIPTOR is open for writing and gets lines of JSON about the
 * progress.
 */

import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { launch } from 'puppeteer-core';

import { BUFFERS, Observation } from './observation.mjs';
import {
  evaluate,
  LoadError,
  navigate,
  readPage,
  readSeen,
  readStart,
  scrollToEnd,
  startCoverage,
  Traffic,
  within,
} from './page.mjs';

const TIMED_OUT = 3;
const NOT_LOADED = 4; // then the result says why
const PROGRESS_MS = 200;
const STACK_DEPTH = 32; // so that an image that a script asks for is traced to the script
const MARKS = 16; // the browser keeps back so many events
const TAIL_BYTES = 2 ** 20;
const POLL_MS = 20;
const AGENT = 'Emulation.setUserAgentOverride'; // which each target takes, and its page the rest
const ANSWER_MS = 5000; // a page that is busy for ever answers no question

/** Pages, frames and workers of one recording. */
class Recorder {
  #order;
  traffic = new Traffic();
  observation = new Observation();
  targets = [];
  dialogs = [];

  constructor(order) {
    this.#order = order;
  }

  /** Observes a target, and those that it starts before they do anything. */
  async observe(session, kind = 'page') {
    this.observation.watch(session);
    this.traffic.watch(session);
    // Each is accepted: one that stays open stops the page's scripts, and nobody is there.
    session.on('Page.javascriptDialogOpening', ({ type }) => {
      this.dialogs.push(type);
      // A page that is gone has no dialog either.
      session.send('Page.handleJavaScriptDialog', { accept: true }).catch(() => undefined);
    });
    const wishes = [session.send('Network.enable', BUFFERS)];
    const hasDocument = kind === 'page' || kind === 'iframe';
    const source = this.#order.pinned;
    if (source !== null) {
      wishes.push(
        hasDocument
          ? session.send('Page.addScriptToEvaluateOnNewDocument', { source })
          : session.send('Runtime.evaluate', { expression: source }),
      );
    }
    if (hasDocument) {
      wishes.push(session.send('Page.enable'));
    }
    for (const [method, params] of this.#order.device) {
      if (kind === 'page') {
        wishes.push(session.send(method, params));
      } else if (method === AGENT) {
        session.send(method, params).catch(() => undefined);
      }
    }
    wishes.push(
      session.send('Runtime.enable'),
      session.send('Runtime.setAsyncCallStackDepth', { maxDepth: STACK_DEPTH }),
      this.follow(session),
    );
    if (kind !== 'page') {
      // Unanswered until then: a worker that waits for its debugger evaluates nothing.
      wishes.push(session.send('Runtime.runIfWaitingForDebugger'));
    }
    await Promise.all(wishes);
  }

  /** Observes what `session` starts; of the browser's own, the targets that `more` says. */
  async follow(session, more = {}) {
    session.on('Target.attachedToTarget', ({ sessionId, targetInfo }) => {
      this.targets.push({ type: targetInfo.type, url: targetInfo.url });
      const started = session.connection().session(sessionId);
      // Not every target has every domain, and some are gone at once; the network log has it all.
      this.observe(started, targetInfo.type).catch(() => undefined);
    });
    await session.send('Target.setAutoAttach', {
      autoAttach: true,
      waitForDebuggerOnStart: true,
      flatten: true,
      ...more,
    });
  }

  /** When the first request was made, which is a moment after navigationStart. */
  get startedAt() {
    return this.observation.requests[0].sent_s;
  }
}

function startProgress(traffic) {
  const descriptor = Number(process.argv[3]);
  let told = '';
  return setInterval(() => {
    const line = JSON.stringify({ requests: traffic.requests, bytes: traffic.bytes });
    if (line !== told) {
      writeSync(descriptor, `${line}\n`);
      told = line;
    }
  }, PROGRESS_MS);
}

/** Rejects when the page crashes: it would answer nothing any more. */
function untilCrash(session) {
  return new Promise((_resolve, reject) => {
    session.once('Inspector.targetCrashed', () => reject(new LoadError('the page crashed')));
  });
}

async function record(browser, order) {
  const target = browser.targets().find((one) => one.type() === 'page');
  const session = await target.createCDPSession();
  const recorder = new Recorder(order);
  await Promise.all([session.send('Performance.enable'), session.send('Inspector.enable')]);
  // Several pages may share one, so that it is a target of the browser's, and of no page.
  const shared = { filter: [{ type: 'shared_worker' }] };
  await recorder.follow(await browser.target().createCDPSession(), shared);
  await recorder.observe(session);
  const loaded = new Promise((resolve) => {
    session.once('Page.loadEventFired', ({ timestamp }) => resolve(timestamp));
  });
  const { frameTree } = await session.send('Page.getFrameTree');
  const progress = startProgress(recorder.traffic);
  try {
    const seen = await Promise.race([watch(session, recorder, order), untilCrash(session)]);
    const [browserVersion, loadS] = await Promise.all([browser.version(), loaded]);
    await flushLog(session, order).catch(() => undefined); // the log's reader sees whether it is there
    return { browser: browserVersion, main_frame: frameTree.frame.id, load_s: loadS, ...seen };
  } finally {
    clearInterval(progress);
  }
}

/** Loads the page, waits until it is quiet, and returns what was seen meanwhile. */
async function watch(session, recorder, order) {
  const { traffic } = recorder;
  const deadline = performance.now() + order.timeout_ms;
  await startCoverage(session, order.coverage);
  await navigate(session, order.url, order.timeout_ms);
  // A page may be busy for ever, or already be another one.
  const asking = async (answer, otherwise) =>
    within(ANSWER_MS, 'no answer', answer).catch(() => otherwise);
  const start = await asking(readStart(session), recorder.startedAt);
  const page = await asking(evaluate(session, readPage), { plt_ms: null, title: '' });
  const scroll = async () => scrollToEnd(session, traffic, deadline).catch(() => false);
  let quiet = await traffic.untilQuiet(order.wait_ms, deadline);
  const seen = await asking(readSeen(session, order.scale), null);
  const scrolled = order.scroll ? await scroll() : null;
  quiet = await traffic.untilQuiet(order.wait_ms, deadline) && quiet;
  const { observation } = recorder;
  await observation.readBodies();
  return {
    start_s: start,
    ...page,
    scrolled,
    quiet,
    seen,
    requests: observation.requests.sort((a, b) => a.sent_s - b.sent_s),
    frames: Object.fromEntries(observation.frames),
    sockets: observation.sockets,
    targets: recorder.targets,
    dialogs: recorder.dialogs,
  };
}

/**
 * Waits until the network log has all that happened before, and the mark behind it.
 *
 * The log is written some events at a time, and a browser that ends on a busy machine may lose the
 * last ones.  To set a cookie is an event, and costs no packet: what comes before it in the log is
 * in the file when it is.
 */
async function flushLog(session, order) {
  const deadline = performance.now() + ANSWER_MS;
  while (performance.now() < deadline) {
    const given = { name: order.mark, value: 'x', url: 'http://firstflight.invalid/' };
    const marks = Array.from({ length: MARKS }, () => session.send('Network.setCookie', given));
    await within(deadline - performance.now(), 'no answer', Promise.all(marks));
    await sleep(POLL_MS);
    if (readTail(order.netlog).includes(order.mark)) {
      return;
    }
  }
}

/** The end of a file that may be large. */
function readTail(path) {
  const file = openSync(path, 'r');
  try {
    const tail = Buffer.alloc(TAIL_BYTES);
    const start = Math.max(fstatSync(file).size - TAIL_BYTES, 0);
    return tail.subarray(0, readSync(file, tail, 0, TAIL_BYTES, start));
  } finally {
    closeSync(file);
  }
}

/**
 * Ends the browser and waits until it has.
 *
 * Puppeteer's own close() kills a browser that ends before it has answered the wish to.
 */
async function end(browser) {
  const program = browser.process();
  if (browser.connected && program.exitCode === null) {
    const ended = new Promise((resolve) => {
      program.once('exit', resolve);
    });
    const session = await browser.target().createCDPSession();
    await session.send('Browser.close').catch(() => undefined);
    await ended;
  }
  await browser.close();
}

async function main() {
  const order = JSON.parse(readFileSync(process.argv[2], 'utf8'));
  const browser = await launch({
    executablePath: order.executable,
    ignoreDefaultArgs: true,
    args: order.arguments,
    env: order.environment,
    pipe: true,
    defaultViewport: null,
    timeout: order.timeout_ms,
    protocolTimeout: 0,
    dumpio: true,
    handleSIGTERM: false,
  });
  // Puppeteer ends the browser when this process exits.
  process.once('SIGTERM', () => process.exit(1));
  const write = (result) => writeFileSync(order.result, JSON.stringify(result) + '\n');
  try {
    if (!existsSync(order.guard_log)) {
      throw new LoadError('the browser has not loaded the guard of private addresses');
    }
    write(await record(browser, order));
  } catch (error) {
    if (browser.connected && !(error instanceof LoadError)) {
      throw error;
    }
    write({ failed: browser.connected ? error.message : 'the browser ended' });
    return NOT_LOADED;
  } finally {
    await end(browser);
  }
  return 0;
}

// The exit is explicit: an open pipe to the browser would keep the process alive.
main().then(
  (status) => process.exit(status),
  (error) => {
    console.error(error);
    process.exit(error.name === 'TimeoutError' ? TIMED_OUT : 1);
  },
);
