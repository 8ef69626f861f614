// Screenshots of every page, desktop and phone, light and dark, to be opened and looked at.
//   npm run shots [DIRECTORY]        default /tmp/ui-shots
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { launch, target } from './browser/chromium.mjs';

const OUT = process.argv[2] ?? '/tmp/ui-shots';
const SIZES = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
const SHEET = '/analytics?w=nfs3.ops[client]!hl=10.0.0.11,10.0.0.12,10.0.0.21&w=nfs3.ops[latency]&w=nfs3.ops[op=read][file]!line!hl=home/ines/sim/run7.h5&w=cpu.utilization[mode]';

async function signIn(page, { url, user, password }) {
  await page.goto(`${url}/login`);
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Places' }).waitFor();
}

const shot = (page, name) => page.screenshot({ path: join(OUT, `${name}.png`) });

/** Waits for data, not for time: the list beside each graph has rows. */
const drawn = (page) => page.locator('article .row').nth(5).waitFor();

async function pages(page, where, name) {
  await page.goto(`${where.url}/login`);
  await page.getByLabel('User').waitFor();
  await shot(page, `login-${name}`);
  await signIn(page, where);
  await page.locator('[data-live="rate"]').first().waitFor();
  // The latencies per client come with their own stream, two seconds later.
  await page.waitForFunction(() => !document.querySelector('section[aria-labelledby="clients"] tbody')?.textContent?.includes('–'));
  await shot(page, `status-${name}`);
  await page.screenshot({ path: join(OUT, `status-full-${name}.png`), fullPage: true });
  await page.goto(where.url + SHEET);
  await drawn(page);
  await page.waitForTimeout(1200);
  await page.getByRole('img').first().hover({ position: { x: 180, y: 60 } });
  await shot(page, `analytics-${name}`);
  await page.goto(`${where.url}/analytics`);
  await page.getByRole('button', { name: 'Add statistic' }).click();
  await shot(page, `add-${name}`);
  await page.goto(`${where.url}/analytics?w=nfs3.ops[client]&w=nfs3.ops[latency]&span=3600`);
  await drawn(page);
  await page.locator('article .row').first().click({ button: 'right' });
  await page.getByRole('menu').waitFor();
  await shot(page, `drill-${name}`);
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.type('lat');
  await shot(page, `search-${name}`);
}

const browser = await launch();
if (browser !== null) {
  await mkdir(OUT, { recursive: true });
  const where = await target();
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) {
      const context = await browser.newContext({ viewport, colorScheme, ignoreHTTPSErrors: true, hasTouch: size === 'phone' });
      await pages(await context.newPage(), where, `${size}-${colorScheme}`);
      await context.close();
    }
  }
  await browser.close();
  where.mock?.close();
  console.log(`Screenshots are in ${OUT}`);
}
