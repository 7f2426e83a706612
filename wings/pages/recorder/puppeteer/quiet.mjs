/** Which requests are in flight, and waiting until there is none for a while. */

const POLL_MS = 20;
// These answer for as long as the page lives.
const ENDLESS = new Set(['EventSource', 'WebSocket', 'Ping']);

/**
 * Requests in flight, told by the events of any number of sessions.
 *
 * A request whose response has begun keeps the traffic busy only as long as something arrives: a
 * script that never reads a body keeps its request open for ever.
 */
export class Traffic {
  #unanswered = new Map();
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
          this.#unanswered.set(requestId, request.url);
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

  /** How long nothing has been in flight, in ms. */
  get quietMs() {
    return this.#unanswered.size ? 0 : performance.now() - this.#last;
  }

  /**
   * Waits until no request has been in flight for `ms`, at the longest until `deadline`.
   *
   * @param {number} ms
   * @param {number} deadline as performance.now() gives it
   * @returns {Promise<boolean>} whether it became quiet
   */
  async untilQuiet(ms, deadline) {
    while (this.quietMs < ms) {
      if (performance.now() >= deadline) {
        return false;
      }
      await new Promise((resolve) => {
        setTimeout(resolve, POLL_MS);
      });
    }
    return true;
  }
}
