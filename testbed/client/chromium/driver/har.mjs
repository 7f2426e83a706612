/** HAR 1.2 of a recorded load, by chrome-har, without what differs between equal loads. */

import { harFromMessages } from 'chrome-har';

const PAGE_ID = 'page_1';

// The names that HAR 1.2 has; any other must begin with an underscore.
const ENTRY = ['pageref', 'startedDateTime', 'time', 'request', 'response', 'cache', 'timings']
  .concat(['serverIPAddress', 'connection', 'comment']);
const RESPONSE = ['status', 'statusText', 'httpVersion', 'cookies', 'headers', 'content']
  .concat(['redirectURL', 'headersSize', 'bodySize', 'comment']);
const CONTENT = ['size', 'compression', 'mimeType', 'text', 'encoding', 'comment'];

/**
 * @param {{method: string, params: object}[]} messages renumbered events
 * @param {{browser: string, url: string, timing: {plt_ms: number}, requests: object[]}} load
 * @returns {object} the HAR document
 */
export function harOf(messages, load) {
  const har = harFromMessages(withHeads(messages));
  const [name, version] = load.browser.split('/');
  har.log.browser = { name, version };
  har.log.pages = har.log.pages.slice(0, 1);
  for (const page of har.log.pages) {
    page.id = PAGE_ID;
    page.title = load.url;
    page.pageTimings = { ...page.pageTimings, onLoad: load.timing.plt_ms };
  }
  for (const entry of har.log.entries) {
    entry.pageref = PAGE_ID;
    delete entry._requestId;
    delete entry._requestTime; // the machine's uptime
    entry.request.headers = once(entry.request.headers);
    markCustom(entry, ENTRY);
    markCustom(entry.response, RESPONSE);
    markCustom(entry.response.content, CONTENT);
  }
  const [first] = har.log.pages;
  const untold = load.requests.filter(({ status, protocol }) => !status || protocol === null);
  har.log.entries.push(...untold.map((request) => untoldEntry(request, first)));
  har.log.entries.sort((a, b) => a.startedDateTime.localeCompare(b.startedDateTime));
  return har;
}

/** DevTools joins headers of one name; without the head as sent chrome-har takes it for smaller. */
function withHeads(messages) {
  const heads = new Map();
  for (const { method, params } of messages) {
    if (method === 'Network.responseReceivedExtraInfo') {
      heads.set(params.requestId, params.headersText); // of a redirect's end, which comes last
    }
  }
  return messages.map((message) => {
    const { method, params } = message;
    const headersText = heads.get(params.requestId);
    if (method !== 'Network.responseReceived' || !headersText) {
      return message;
    }
    return { method, params: { ...params, response: { ...params.response, headersText } } };
  });
}

function markCustom(object, names) {
  for (const name of Object.keys(object)) {
    if (!names.includes(name) && !name.startsWith('_')) {
      object[`_${name}`] = object[name];
      delete object[name];
    }
  }
}

/** chrome-har lists what the page asked for and what was sent; most headers are in both. */
function once(headers) {
  const seen = new Set();
  return headers.filter(({ name, value }) => {
    const key = `${name.toLowerCase()}: ${value}`;
    return !seen.has(key) && seen.add(key);
  });
}

/**
 * chrome-har leaves out what got no response; DevTools writes it with status 0, as here, and a
 * service worker's script with its own.
 */
function untoldEntry(request, page) {
  const started = Date.parse(page.startedDateTime) + request.start_ms;
  const time = (request.end_ms ?? request.start_ms) - request.start_ms;
  const message = { cookies: [], headers: [], headersSize: -1, bodySize: -1, httpVersion: '' };
  return {
    pageref: PAGE_ID,
    startedDateTime: new Date(started).toISOString(),
    time,
    request: { method: request.method, url: request.url, queryString: [], ...message },
    response: {
      status: request.status,
      statusText: '',
      content: { size: 0, mimeType: '' },
      redirectURL: '',
      ...(request.status ? {} : { _error: request.error ?? 'not complete at the load event' }),
      ...message,
    },
    cache: {},
    timings: { blocked: -1, dns: -1, connect: -1, send: 0, wait: time, receive: 0 },
  };
}
