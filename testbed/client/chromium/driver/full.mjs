/**
 * What a full browser does beyond headless-shell, taken away: its own user interface asks for the
 * page's icon and takes part of the window.
 *
 * Source: Chrome DevTools Protocol, Network.setBlockedURLs and Emulation.setDeviceMetricsOverride.
 */

import { WINDOW } from './flags.mjs';

const ICON = '/favicon.ico';

/** Readies a full browser's page; `due` are the URLs that the recorded page asks for itself. */
export async function readyFullBrowser(session, due) {
  const { width, height } = WINDOW;
  const screen = { width, height, deviceScaleFactor: 1, mobile: false };
  await session.send('Emulation.setDeviceMetricsOverride', screen);
  if (!due.some((url) => url.endsWith(ICON))) {
    await session.send('Network.setBlockedURLs', { urls: [`*${ICON}`] });
  }
}

/** The messages without those of requests that were blocked here: nothing left the browser. */
export function withoutBlocked(messages) {
  const blocked = new Set(
    messages
      .filter(({ params }) => params.blockedReason === 'inspector')
      .map(({ params }) => params.requestId),
  );
  return messages.filter(({ params }) => !blocked.has(params.requestId));
}
