/**
 * What the browser's protocol tells about each request of a recording: who asked for it, when, and
 * how it ended.  The bytes themselves come from the browser's network log.
 *
 * Source: Chrome DevTools Protocol, domains Network and Page.  A timestamp is the browser's
 * monotonic clock in seconds, the one that its network log uses.
 */

import { createHash } from 'node:crypto';

import { within } from './page.mjs';

const BUFFER_BYTES = 2 ** 30;
const ANSWER_MS = 10_000;

/** Buffers for bodies: enough, so that none is evicted before it is compared. */
export const BUFFERS = {
  maxTotalBufferSize: BUFFER_BYTES,
  maxResourceBufferSize: BUFFER_BYTES / 4,
};

/**
 * The requests, frames and WebSockets of a load, as the events of any number of sessions tell.
 *
 * A shared worker's script is asked for in the page's session, and answered in its own.
 */
export class Observation {
  #current = new Map();
  #sockets = new Map();
  #answerers = new Map();
  requests = [];
  sockets = [];
  frames = new Map();

  /** Observes `session` from now on. */
  watch(session) {
    const on = (name, act) => {
      session.on(`Network.${name}`, (event) => {
        const request = this.#current.get(event.requestId);
        if (request) {
          act(request, event);
        }
      });
    };
    session.on('Network.requestWillBeSent', (event) => this.#sent(event));
    on('requestServedFromCache', (request) => Object.assign(request, { source: 'memory cache' }));
    on('responseReceived', (request, { response }) => {
      respond(request, response);
      this.#answerers.set(request, session);
    });
    on('loadingFinished', (request, { timestamp }) => {
      request.ended_s = timestamp;
    });
    on('loadingFailed', (request, { timestamp, errorText, canceled, blockedReason }) => {
      request.ended_s = timestamp;
      request.error = blockedReason ?? errorText;
      request.cancelled = Boolean(canceled);
    });
    session.on('Page.frameAttached', ({ frameId, parentFrameId }) => {
      this.frames.set(frameId, parentFrameId);
    });
    this.#watchSockets(session);
  }

  /** Keeps what WebSockets carry: whole messages, however they were cut into frames. */
  #watchSockets(session) {
    session.on('Network.webSocketCreated', ({ requestId, url, initiator }) => {
      const socket = { url, initiator: describe(initiator ?? {}), asked_s: null, opened_s: null };
      Object.assign(socket, { headers: {}, frames: [], closed_s: null });
      this.#sockets.set(requestId, socket);
      this.sockets.push(socket);
    });
    const on = (name, act) => {
      session.on(`Network.webSocket${name}`, (event) => {
        const socket = this.#sockets.get(event.requestId);
        if (socket) {
          act(socket, event);
        }
      });
    };
    on('WillSendHandshakeRequest', (socket, { timestamp }) => {
      socket.asked_s = timestamp;
    });
    on('HandshakeResponseReceived', (socket, { timestamp, response }) => {
      socket.opened_s = timestamp;
      socket.headers = response.headers;
    });
    for (const name of ['Sent', 'Received']) {
      on(`Frame${name}`, ({ frames }, { timestamp, response: { opcode, payloadData } }) => {
        frames.push([name === 'Sent', timestamp, opcode, payloadData]);
      });
    }
    on('Closed', (socket, { timestamp }) => {
      socket.closed_s = timestamp;
    });
  }

  #sent({ requestId, request, type, timestamp, initiator, frameId, redirectResponse, documentURL }) {
    const before = this.#current.get(requestId);
    if (redirectResponse && before) {
      respond(before, redirectResponse);
      before.ended_s = timestamp;
    }
    if (!/^https?:/.test(request.url)) {
      this.#current.delete(requestId);
      return;
    }
    const next = {
      id: requestId,
      url: request.url,
      method: request.method,
      posted: join(request.postDataEntries),
      type: type ?? 'Other',
      frame: frameId ?? null,
      document: documentURL,
      redirected_from: redirectResponse && before ? before.url : null,
      initiator: describe(initiator),
      sent_s: timestamp,
      started_s: null,
      wait_ms: null,
      ended_s: null,
      status: 0,
      source: 'network',
      error: null,
      cancelled: false,
      body: null,
    };
    this.#current.set(requestId, next);
    this.requests.push(next);
  }

  /** Asks for the bodies as scripts see them and keeps a digest of each. */
  async readBodies() {
    const answered = new Map();
    for (const [requestId, request] of this.#current) {
      if (request.source === 'network' && request.status && request.ended_s && !request.error) {
        const session = this.#answerers.get(request);
        answered.set(session, [...(answered.get(session) ?? []), [requestId, request]]);
      }
    }
    await Promise.all([...answered].map(([session, asked]) => readAll(session, asked)));
  }
}

/** Of a session that does not answer, such as a worker that has ended, there are no bodies. */
async function readAll(session, asked) {
  for (const [requestId, request] of asked) {
    try {
      const answer = session.send('Network.getResponseBody', { requestId });
      const { body, base64Encoded } = await within(ANSWER_MS, 'no answer', answer);
      const bytes = Buffer.from(body, base64Encoded ? 'base64' : 'utf8');
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      request.body = { sha256, size: bytes.length, text: !base64Encoded };
    } catch (error) {
      if (error.name === 'TimeoutError') {
        return;
      }
      // The browser keeps no body of preflights, pings and removed frames.
    }
  }
}

/** What a request sends, in base64; null if it sends nothing or the protocol does not say all. */
function join(entries) {
  return entries?.every(({ bytes }) => bytes)
    ? Buffer.concat(entries.map(({ bytes }) => Buffer.from(bytes, 'base64'))).toString('base64')
    : null;
}

function respond(request, response) {
  request.status = response.status;
  // In ms since requestTime; the latter is the start of the job in the network log.
  const { timing } = response;
  request.started_s = timing?.requestTime ?? null;
  request.wait_ms = timing ? timing.receiveHeadersStart - timing.sendEnd : null;
  if (response.fromServiceWorker) {
    request.source = 'service worker';
  } else if (response.fromDiskCache) {
    request.source = 'disk cache';
  } else if (response.fromPrefetchCache) {
    request.source = 'prefetch cache';
  }
}

/** Kind and URL of what led to a request; `preflight` gives the request that it is for. */
function describe(initiator) {
  const { type, url, requestId } = initiator;
  return { type, url: url || callerOf(initiator.stack), preflight_of: requestId ?? null };
}

/** The innermost script that has a URL, through what it waited for. */
function callerOf(stack) {
  for (let part = stack; part; part = part.parent) {
    const frame = part.callFrames.find(({ url }) => url);
    if (frame) {
      return frame.url;
    }
  }
  return null;
}
