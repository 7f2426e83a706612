/**
 * The events of one load as the browser's protocol gives them, and the requests in them.
 *
 * Source: Chrome DevTools Protocol, domains Network and Page.  An event's timestamp is the
 * browser's monotonic clock in seconds.
 */

const EVENTS = [
  'Network.requestWillBeSent',
  'Network.requestWillBeSentExtraInfo',
  'Network.requestServedFromCache',
  'Network.responseReceived',
  'Network.responseReceivedExtraInfo',
  'Network.dataReceived',
  'Network.loadingFinished',
  'Network.loadingFailed',
  'Network.resourceChangedPriority',
  'Page.frameStartedLoading',
  'Page.frameAttached',
  'Page.domContentEventFired',
  'Page.loadEventFired',
];

const OK = 200;
/** Statuses whose responses have no body; see https://fetch.spec.whatwg.org/#statuses. */
const BODILESS = [204, 205, 304];

/**
 * Collects the events of `session` from now on, in their order.
 *
 * @param {import('puppeteer-core').CDPSession} session
 * @param {{method: string, params: object}[]} messages grows as events arrive
 */
export function record(session, messages) {
  for (const method of EVENTS) {
    session.on(method, (params) => messages.push({ method, params }));
  }
}

/** Numbers things in the order in which they are first named, from 1. */
class Numbering {
  #numbers = new Map();

  of(thing) {
    if (!this.#numbers.has(thing)) {
      this.#numbers.set(thing, this.#numbers.size + 1);
    }
    return this.#numbers.get(thing);
  }
}

/**
 * Replaces the browser's random and process-wide identifiers by numbers in order of first use, so
 * that equal loads give equal files.
 *
 * @param {{method: string, params: object}[]} messages changed in place
 */
export function renumber(messages) {
  const requests = new Numbering();
  const frames = new Numbering();
  const connections = new Numbering();
  for (const { params } of messages) {
    if (params.requestId !== undefined) {
      params.requestId = `request_${requests.of(params.requestId)}`;
    }
    if (params.frameId !== undefined) {
      params.frameId = `frame_${frames.of(params.frameId)}`;
    }
    if (params.parentFrameId !== undefined) {
      params.parentFrameId = `frame_${frames.of(params.parentFrameId)}`;
    }
    delete params.loaderId;
    delete params.initiator?.requestId;
    removeScriptIds(params.initiator?.stack);
    for (const response of [params.response, params.redirectResponse]) {
      // 0 stands for no connection.
      if (response?.connectionId) {
        response.connectionId = connections.of(response.connectionId);
      }
    }
  }
}

function removeScriptIds(stack) {
  for (let part = stack; part; part = part.parent) {
    delete part.parentId;
    for (const frame of part.callFrames) {
      frame.scriptId = '0';
    }
  }
}

/**
 * @param {{method: string, params: object}[]} messages
 * @param {number} start monotonic seconds at navigationStart
 * @returns {object[]} one per request that went out, redirected ones included; times in ms.  What
 *     the browser's caches or a service worker answered did not go out: what the worker itself
 *     asked the network for is told by its own session.  last_ms: when something last arrived.
 */
export function requestsOf(messages, start) {
  const requests = [];
  const cached = new Set();
  const current = new Map();
  const since = (timestamp) => (timestamp - start) * 1000;
  for (const { method, params } of messages) {
    const request = current.get(params.requestId);
    if (method === 'Network.requestWillBeSent') {
      if (params.redirectResponse && request) {
        respond(request, params.redirectResponse);
        request.end_ms = since(params.timestamp);
        request.transfer_bytes = params.redirectResponse.encodedDataLength;
      }
      if (/^https?:/.test(params.request.url)) {
        const next = newRequest(params, since(params.timestamp));
        current.set(params.requestId, next);
        requests.push(next);
      }
    } else if (!request) {
      continue;
    } else if (method === 'Network.requestServedFromCache') {
      cached.add(request);
    } else if (method === 'Network.responseReceived') {
      respond(request, params.response);
      request.last_ms = since(params.timestamp);
      const { fromDiskCache, fromPrefetchCache, fromServiceWorker } = params.response;
      if (fromDiskCache || fromPrefetchCache || fromServiceWorker) {
        cached.add(request);
      }
    } else if (method === 'Network.dataReceived') {
      request.last_ms = since(params.timestamp);
    } else if (method === 'Network.loadingFinished') {
      request.end_ms = since(params.timestamp);
      if (request.status) {
        request.transfer_bytes = params.encodedDataLength;
      } else {
        // Of a service worker's script only the end is told, and only of one that is taken; the
        // bytes told are those of its head, whatever came of its body.
        request.status = OK;
      }
    } else if (method === 'Network.loadingFailed') {
      request.end_ms = since(params.timestamp);
      // Scripts let go of the rest of a response that has no rest.
      if (!(params.canceled && BODILESS.includes(request.status))) {
        request.error = params.errorText;
        request.status = 0;
      }
    }
  }
  return requests.filter((request) => !cached.has(request));
}

function newRequest(params, startMs) {
  return {
    url: params.request.url,
    method: params.request.method,
    status: 0,
    start_ms: startMs,
    end_ms: null,
    last_ms: null,
    transfer_bytes: null,
    protocol: null,
    connection: null,
    dns_ms: null,
    connect_ms: null,
    initiator: describe(params.initiator),
    error: null,
  };
}

function respond(request, response) {
  request.status = response.status;
  request.protocol = response.protocol ?? null;
  request.connection = response.connectionId ? String(response.connectionId) : null;
  const { timing } = response;
  request.dns_ms = lasted(timing?.dnsStart, timing?.dnsEnd);
  request.connect_ms = lasted(timing?.connectStart, timing?.connectEnd);
}

/** How long a phase took; the browser says -1 for what a request did not wait for. */
function lasted(start, end) {
  return start >= 0 && end >= start ? end - start : null;
}

function describe(initiator) {
  const url = initiator.url ?? initiator.stack?.callFrames[0]?.url;
  return url ? `${initiator.type} ${url}` : initiator.type;
}
