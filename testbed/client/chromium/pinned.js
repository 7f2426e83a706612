/**
 * Pinned randomness: a script that gives a page's scripts the same times and random numbers in
 * every load, whatever the link.  It runs in every document and dedicated worker before anything
 * else; recordings and replays inject the same file.
 *
 * The n-th reading at one place in the code, of one document, is the same in every load; another
 * place has a sequence of its own, so that it does not matter which script comes first.
 * docs/decisions/chromium.md says why.
 *
 * `performance.timing` and the performance entries stay what they are.
 */
(function pin(seedMs) {
  const FRAMES = 8; // callers that make a place: libraries wrap clocks
  const FAST_STEPS = 10;
  const {
    Crypto, Date: NativeDate, Error: NativeError, Math: NativeMath, Performance, Proxy, Reflect,
    Uint8Array: Bytes,
  } = globalThis;
  // A worker that has not started has no address yet: to ask for it crashes the renderer.
  const here = globalThis.document ? globalThis.location.href : 'worker';
  const readings = new Map();

  /** Where `called` was called from: scripts and offsets of the innermost callers. */
  function placeOf(called) {
    const { stackTraceLimit, prepareStackTrace } = NativeError;
    const site = (call) => `${call.getScriptNameOrSourceURL()}@${call.getPosition()}`;
    const holder = {};
    try {
      NativeError.stackTraceLimit = FRAMES;
      NativeError.prepareStackTrace = (_error, calls) => calls.map(site).join();
      NativeError.captureStackTrace(holder, called);
      return `${here} ${holder.stack}`;
    } catch {
      return here; // the page has frozen Error: then its whole document is one place
    } finally {
      Reflect.set(NativeError, 'stackTraceLimit', stackTraceLimit);
      Reflect.set(NativeError, 'prepareStackTrace', prepareStackTrace);
    }
  }

  /** The place's name and how often `called` was called from there, this time included. */
  function visit(what, called) {
    const place = `${what} ${placeOf(called)}`;
    const count = (readings.get(place) ?? 0) + 1;
    readings.set(place, count);
    return { place, count };
  }

  /** Steps of 1, 2, 4 ... 1024, 1024 ... ms: loops that wait for a moment end soon. */
  function elapsed(count) {
    const fast = 2 ** NativeMath.min(count, FAST_STEPS) - 1;
    return fast + NativeMath.max(0, count - FAST_STEPS) * 2 ** FAST_STEPS;
  }

  /** Numbers of 32 bits from a place and a count (FNV-1a, then the finaliser of MurmurHash3). */
  function* stream({ place, count }) {
    let state = 2166136261;
    for (const character of `${place} ${count}`) {
      state = NativeMath.imul(state ^ character.codePointAt(0), 16777619);
    }
    for (;;) {
      state = (state + 0x9e3779b9) | 0;
      let mixed = NativeMath.imul(state ^ (state >>> 16), 0x85ebca6b);
      mixed = NativeMath.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
      yield (mixed ^ (mixed >>> 16)) >>> 0;
    }
  }

  function fill(bytes, numbers) {
    for (let at = 0; at < bytes.length; at += 1) {
      bytes[at] = numbers.next().value;
    }
    return bytes;
  }

  function replace(owner, name, value) {
    const found = owner && Reflect.getOwnPropertyDescriptor(owner, name);
    if (found) {
      Reflect.defineProperty(owner, name, { ...found, value });
    }
    return found?.value;
  }

  const time = (called) => seedMs - 1 + elapsed(visit('clock', called).count);

  replace(NativeDate, 'now', function now() {
    return time(now);
  });
  const traps = {
    construct(target, given, made) {
      return Reflect.construct(target, given.length ? given : [time(traps.construct)], made);
    },
    apply(target) {
      return new target(time(traps.apply)).toString();
    },
  };
  const PinnedDate = new Proxy(NativeDate, traps);
  replace(NativeDate.prototype, 'constructor', PinnedDate);
  replace(globalThis, 'Date', PinnedDate);

  replace(NativeMath, 'random', function random() {
    const numbers = stream(visit('random', random));
    const [high, low] = [numbers.next().value >>> 5, numbers.next().value >>> 6];
    return (high * 2 ** 26 + low) / 2 ** 53;
  });

  const nativeValues = replace(Crypto?.prototype, 'getRandomValues', function getRandomValues(array) {
    Reflect.apply(nativeValues, this, [array]); // it refuses what is no array of integers
    const bytes = new Bytes(array.buffer, array.byteOffset, array.byteLength);
    fill(bytes, stream(visit('values', getRandomValues)));
    return array;
  });
  // Only secure contexts have it.
  replace(Crypto?.prototype, 'randomUUID', function randomUUID() {
    const bytes = fill(new Bytes(16), stream(visit('uuid', randomUUID)));
    bytes[6] = (bytes[6] & 0x0f) | 0x40; // RFC 9562 section 5.4
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const text = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
    return text.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  });

  replace(Performance?.prototype, 'now', function now() {
    return elapsed(visit('stopwatch', now).count);
  });
})(1767225600000); // 2026-01-01 00:00 UTC: the first time that a script reads, of all pages
