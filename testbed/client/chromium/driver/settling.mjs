/**
 * What a load still owes after its load event: requests that do not hold it back, such as those
 * of fetch(), were recorded too, and may begin or end later than in the recording.
 */

/** How long a page that owes something may be silent before it is taken as finished. */
export const QUIET_MS = 1000;
export const POLL_MS = 20;

/**
 * @param {{url: string, start_ms: number, end_ms: ?number}[]} requests so far
 * @param {number} loadMs when the load event ended
 * @param {string[]} due URLs that the load is to ask for, each as often as recorded
 * @returns {boolean} whether all of `due`, and all that began before the load event, has ended
 */
export function isSettled(requests, loadMs, due) {
  const owed = new Map();
  for (const url of due) {
    owed.set(url, (owed.get(url) ?? 0) + 1);
  }
  for (const { url, start_ms: startMs, end_ms: endMs } of requests) {
    const [asked] = url.split('#');
    const left = owed.get(asked) ?? 0;
    if (endMs === null && (startMs <= loadMs || left > 0)) {
      return false;
    }
    owed.set(asked, left - 1);
  }
  return [...owed.values()].every((count) => count <= 0);
}

/**
 * Ends what was answered and then silent: a script that never reads a body gets no end for it.
 *
 * @param {object[]} requests of a load that has been quiet, changed in place
 * @returns {object[]} the same
 */
export function endUnread(requests) {
  for (const request of requests) {
    if (request.end_ms === null && request.status !== 0) {
      request.end_ms = request.last_ms;
    }
  }
  return requests;
}
