// The pages that `plimsoll lab` writes, opened from disk in a real browser: every chart has shapes and
// none of them leaves the page, nothing complains, nobody outside is asked.
//   REPORTS=run/report.html,limits/index.html npm run test:report       files to look at
//   ANALYTICS=https://nas:10215/                                        links to that server must be there
//   SHOTS=DIRECTORY                                                     and leave screenshots there
import test from 'node:test';
import assert from 'node:assert/strict';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch } from './chromium.mjs';

const SIZES = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
/** What a chart must have at least: below it there is an empty frame. */
const SHAPES_MIN = { stairs: 1, curve: 2, time: 3, heat: 3 };
const files = (process.env.REPORTS ?? '').split(',').filter(Boolean);

/** Shapes that have a size, of each figure. */
const shapes = (page) => page.evaluate(() => Object.fromEntries([...document.querySelectorAll('figure')].map((figure) => {
  const drawn = [...figure.querySelectorAll('svg rect, svg circle, svg path, svg polyline')]
    .filter((shape) => { const { width, height } = shape.getBoundingClientRect(); return width > 0 && height > 0; });
  return [figure.id, drawn.length];
})));

async function open(context, file, complaints) {
  const page = await context.newPage();
  const url = pathToFileURL(resolve(file)).href;
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()));
  page.on('request', (request) => request.url() !== url && complaints.push(`request to ${request.url()}`));
  await page.goto(url);
  return page;
}

async function check(browser, file, size, colorScheme) {
  const complaints = [];
  const context = await browser.newContext({ viewport: SIZES[size], colorScheme });
  const page = await open(context, file, complaints);
  await page.getByRole('heading', { level: 1 }).filter({ hasText: /\w/ }).waitFor();
  if (process.env.SHOTS) {
    const name = `${file.split('/').slice(-2).join('-').replace(/\.html$/, '')}-${size}-${colorScheme}`;
    await page.screenshot({ path: join(process.env.SHOTS, `${name}.png`), fullPage: true });
  }
  for (const [id, drawn] of Object.entries(await shapes(page))) {
    assert.ok(drawn >= (SHAPES_MIN[id] ?? 1), `${id} has ${drawn} shapes`);
  }
  assert.ok(await page.locator('table tbody tr').count() > 0, 'there are no figures');
  const dead = await page.locator('a:not([href]), a[href^="/"]').count();
  assert.equal(dead, 0, 'a link that leads nowhere from a file');
  if (process.env.ANALYTICS) {
    const links = page.locator(`a[href^="${process.env.ANALYTICS.replace(/\/$/, '')}/analytics?w="]`);
    assert.ok(await links.count() > 0, 'no link to Analytics');
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${wide} px too wide`);
  assert.deepEqual(complaints, []);
  await context.close();
}

const browser = await launch();
if (browser !== null) {
  assert.ok(files.length > 0, 'REPORTS names no file');
  for (const file of files) {
    for (const size of Object.keys(SIZES)) {
      for (const scheme of ['light', 'dark']) await test(`${file}, ${size}, ${scheme}`, () => check(browser, file, size, scheme));
    }
  }
  await browser.close();
}
