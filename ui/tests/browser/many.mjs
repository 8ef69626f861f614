// Pages of an appliance with many shares and users: their height and width, and how much they ask for.
import assert from 'node:assert/strict';
import { settled } from './pages.mjs';

const SHARES = 200;
const USERS = 1000;
const SIZES = [{ width: 1440, height: 900 }, { width: 390, height: 844 }];
/** Height of the status page, in screens. */
const SCREENS_MAX = 2;
/** What one page asks for until it is settled; with one for each share there would be more. */
const REQUESTS_MAX = 30;
const PAGES = ['/', '/shares', '/shares/default', '/shares/default/share-0', '/configuration', '/configuration/users', '/configuration/users/user-0'];

/** What a request asks for. Intervals are left out: how often a page asks again depends on the time that it takes. */
function askedFor(request) {
  const { pathname, searchParams } = new URL(request.url());
  return [request.method(), pathname, ...searchParams.getAll('stat')].join(' ');
}

export async function many(t, { where, page }) {
  // A real server has what its test has made.
  if (where.mock === null) return;
  where.mock.many(SHARES, USERS);
  const requests = new Set();
  const count = (request) => { if (request.url().includes('/api/')) requests.add(askedFor(request)); };
  page.on('request', count);
  for (const size of SIZES) {
    await page.setViewportSize(size);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      for (const path of PAGES) {
        await t.test(`${path} at ${size.width}, ${colorScheme}`, async () => {
          requests.clear();
          await page.goto(where.url + path);
          await page.getByRole('heading', { level: 1 }).first().waitFor();
          await settled(page);
          if (path === '/') await page.locator('[data-live="rate"]').first().waitFor();
          const { wide, high } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth - innerWidth, high: document.documentElement.scrollHeight / innerHeight }));
          assert.ok(wide <= 0, `${wide} px too wide`);
          if (path === '/') assert.ok(high <= SCREENS_MAX, `${high.toFixed(2)} screens high`);
          assert.ok(requests.size <= REQUESTS_MAX, `${requests.size} requests: ${[...requests].join(', ')}`);
          if (process.env.SHOTS_DIR) await page.screenshot({ path: `${process.env.SHOTS_DIR}/many${path.replaceAll('/', '-')}-${size.width}-${colorScheme}.png`, fullPage: path === '/' });
        });
      }
    }
  }
  page.off('request', count);
  await page.setViewportSize(SIZES[0]);
  await page.emulateMedia({ colorScheme: null });
  where.mock.reset();
}
