// The browser for tests and screenshots: the system's Chromium, driven without a display. Says SKIP
// and why when it is not there.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

export const PATH = process.env.CHROMIUM ?? '/usr/bin/chromium';

const ARGS = ['--no-sandbox', '--headless=new', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];

/** The browser, or `null` after having printed why it is skipped. */
export async function launch() {
  if (!existsSync(PATH)) {
    console.log(`SKIP browser tests: ${PATH} is not installed (apt-get install chromium)`);
    return null;
  }
  return chromium.launch({ executablePath: PATH, args: ARGS });
}

/** The server to use: BASE_URL with PLIMSOLL_USER and PLIMSOLL_PASSWORD, else the mock. */
export async function target() {
  const real = process.env.BASE_URL;
  if (real) {
    const user = process.env.PLIMSOLL_USER ?? 'admin';
    return { url: real.replace(/\/$/, ''), user, password: process.env.PLIMSOLL_PASSWORD ?? '', mock: null };
  }
  const { start } = await import('../../mock/server.mjs');
  const mock = await start(Number(process.env.MOCK_PORT ?? 0));
  return { url: mock.url, user: 'admin', password: 'plimsoll', mock };
}
