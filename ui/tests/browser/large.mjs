// Every page of an appliance with 200 shares, 1,000 users and 500 LUNs, which tests/browser.rs makes: at
// the width of a desk and of a phone each is laid out well and draws what can be seen.
//   EXPECT_ACTIVITY=1  there are at least five clients
//   MEASURES=1         also the processor time of the main thread and of the API's answers
//   SHOTS_DIR=FOLDER   screenshots of all of them, light and dark
import test from 'node:test';
import assert from 'node:assert/strict';
import { launch, target } from './chromium.mjs';
import { PATIENCE } from './patience.mjs';
import { covered, ELEMENTS_MAX, faults } from './layout.mjs';
import { nodesOf, settled, step } from './pages.mjs';

const SIZES = [{ width: 1440, height: 900 }, { width: 390, height: 844 }];
/** Height of the status page, in screens. */
const SCREENS_MAX = 2;
/** Pages that are no nodes. */
const OTHERS = ['/', '/analytics', '/analytics?w=all.ops[share]&w=all.ops[client]', '/nfs', '/webdav', '/shares',
  '/configuration?view=history', '/configuration?view=file', '/maintenance?view=audit'];
const USERS = '/configuration/users';
const LUNS = '/shares/default/luns';
/** Processor time of the main thread until a page is there, and time of an answer of the API (ms). */
const PAINT_MAX = 1000;
const ANSWER_MAX = 200;

const nameOf = (path) => path.replaceAll(/[^a-z0-9]+/gi, '-').replace(/^-/, '') || 'status';

/** Waits until a page is there with what it has read. */
async function arrived(page) {
  await page.locator('main h1, main [role=toolbar]').filter({ hasNotText: 'Page not found' }).first().waitFor();
  await settled(page);
}

/** As a link does; by way of no page, so that nothing of the one before is taken for it. */
async function arrive(page, path) {
  await step(page, '/nowhere');
  await page.getByRole('heading', { name: 'Page not found' }).waitFor();
  await step(page, path);
  await arrived(page);
}

async function signedIn(where, size, colorScheme) {
  const context = await browser.newContext({ viewport: size, colorScheme, hasTouch: size.width < 720, ignoreHTTPSErrors: true });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  await page.goto(`${where.url}/login`);
  await page.getByLabel('User').fill(where.user);
  await page.getByLabel('Password').fill(where.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Places' }).waitFor();
  return page;
}

/** Nodes of the tree: an item of each kind, of shares also the second one, whose project has many of them. */
const paths = async (page) => [...new Set([...OTHERS, ...(await nodesOf(page, (of) => (of === '/shares' ? 2 : 1))).map(({ address }) => address)])];

async function looks(t, where, size) {
  const page = await signedIn(where, size, 'light');
  const all = await paths(page);
  assert.ok(all.length > 50, `only ${all.length} pages`);
  for (const path of all) {
    await t.test(`${path} at ${size.width}`, async () => {
      await arrive(page, path);
      // With as many clients as it lists.
      if (path === '/' && process.env.EXPECT_ACTIVITY) await page.locator('[data-live="rate"]').nth(4).waitFor();
      assert.deepEqual(await faults(page), []);
      await page.evaluate(() => scrollTo(0, 0));
      assert.deepEqual(await covered(page), []);
      await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
      assert.deepEqual(await covered(page), []);
      if (path !== '/') return;
      const screens = await page.evaluate(() => document.documentElement.scrollHeight / innerHeight);
      assert.ok(screens <= SCREENS_MAX, `${screens.toFixed(2)} screens high`);
    });
  }
  await t.test(`long lists at ${size.width}`, () => lists(page, where));
  await page.context().close();
}

/** Where the headings of a list are, and the row below them. */
const below = (page) => page.evaluate(() => {
  const head = document.querySelector('main thead th').getBoundingClientRect();
  const row = document.elementFromPoint(head.left + 4, head.bottom + head.height / 2)?.closest('tbody tr');
  return { top: Math.round(head.top), bar: Math.round(document.querySelector('header').getBoundingClientRect().bottom), row: row?.textContent ?? '' };
});

/** By scrolling, by keys and by words one gets to every row; the headings stay in sight. */
async function lists(page, where) {
  await arrive(page, USERS);
  const rows = page.getByRole('table', { name: 'users' }).getByRole('rowheader');
  await rows.first().waitFor();
  assert.equal(await page.getByRole('table', { name: 'users' }).getAttribute('aria-rowcount'), '1002');
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight / 2));
  await page.getByRole('link', { name: 'user-0500' }).waitFor();
  const middle = await below(page);
  assert.ok(middle.top >= middle.bar - 1 && middle.top < middle.bar + 2, `the headings are at ${middle.top}, the bar ends at ${middle.bar}`);
  assert.match(middle.row, /user-04|user-05/);
  assert.ok((await page.evaluate(() => document.querySelectorAll('*').length)) < ELEMENTS_MAX);
  const focused = (name) => page.waitForFunction((text) => document.activeElement?.textContent === text, name);
  await rows.first().getByRole('link').focus();
  await page.keyboard.press('End');
  await focused('user-0999');
  await page.keyboard.press('ArrowUp');
  await focused('user-0998');
  await page.keyboard.press('Home');
  await focused('admin');
  await page.getByLabel('Filter users').fill('number 777');
  await rows.filter({ hasText: 'user-0777' }).waitFor();
  assert.equal(await rows.count(), 1);
  await page.goto(`${where.url}/shares`);
  await page.getByLabel('Filter shares and LUNs').fill('lun-432');
  await page.getByRole('link', { name: 'lun-432' }).waitFor();
  await page.getByRole('combobox', { name: /^Search/ }).click();
  await page.keyboard.type('lun-321');
  await page.getByRole('option', { name: /lun-321/ }).click();
  await page.getByRole('heading', { level: 1, name: 'lun-321' }).waitFor();
}

/** Processor time of the main thread until a page that is loaded anew is there, in ms. */
async function painted(page, url, path) {
  const one = await page.context().newPage();
  one.setDefaultTimeout(PATIENCE);
  const session = await page.context().newCDPSession(one);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  await one.goto(url + path);
  await arrived(one);
  const { metrics } = await session.send('Performance.getMetrics');
  await one.close();
  return 1000 * metrics.find(({ name }) => name === 'TaskDuration').value;
}

async function measures(t, where) {
  const page = await signedIn(where, SIZES[0], 'light');
  for (const path of await paths(page)) {
    await t.test(`${path} is painted within ${PAINT_MAX} ms of processor time`, async () => {
      const took = await painted(page, where.url, path);
      console.log(`${path}: ${took.toFixed(0)} ms`);
      assert.ok(took < PAINT_MAX, `${took.toFixed(0)} ms`);
    });
  }
  for (const path of [`${USERS}?depth=1`, `${LUNS}?depth=1`, '/shares?depth=2']) {
    await t.test(`the API answers ${path} within ${ANSWER_MAX} ms`, async () => {
      const took = await page.evaluate(async (of) => {
        const times = [];
        for (let at = 0; at < 5; at += 1) {
          const start = performance.now();
          await (await fetch(`/api/v1/nodes${of}`)).text();
          times.push(performance.now() - start);
        }
        return Math.min(...times);
      }, path);
      console.log(`${path}: ${took.toFixed(0)} ms`);
      assert.ok(took < ANSWER_MAX, `${took.toFixed(0)} ms`);
    });
  }
  await page.context().close();
}

async function shots(where, folder) {
  for (const size of SIZES) {
    for (const scheme of ['light', 'dark']) {
      const page = await signedIn(where, size, scheme);
      for (const path of await paths(page)) {
        await arrive(page, path);
        await page.waitForTimeout(500);
        await page.screenshot({ path: `${folder}/${nameOf(path)}-${size.width}-${scheme}.png` });
      }
      await page.context().close();
    }
  }
}

/** A page with one fault of each kind. */
const PLANTED = `<style>body { margin: 0 } .hide { overflow: hidden; width: 60px } td { width: 40px; max-width: 40px; white-space: nowrap }</style>
<main><button style="position: absolute; left: -30px; top: 0">outside</button>
<button style="position: absolute; left: 10px; top: 100px">one</button><button style="position: absolute; left: 20px; top: 105px">other</button>
<div class="hide" style="margin-top: 150px"><button style="width: 90px">wider</button></div>
<button style="width: 40px; overflow: hidden; white-space: nowrap">a text that is too long</button>
<table style="table-layout: fixed"><tr><td>a cell with a text that is too long</td><td></td></tr></table>
<div style="width: 500px">wide</div>
<div style="height: 30px; overflow-y: auto"><button>seen</button><div style="height: 12px"></div><button>further down</button></div><button>next to it</button><br><br><br><br></main>`;

/** What the checks would not see they could not find on the pages. */
async function planted() {
  const page = await browser.newPage({ viewport: SIZES[1] });
  await page.setContent(PLANTED);
  const found = await faults(page);
  const wanted = [/^the page is \d+ px wider/, /"outside" is outside the window/, /"wider" is cut by div/, /the text of button "a text/, /"one" and button "other" cover each other/, /"a cell .* runs \d+ px out of td/];
  // What is further down in a box that scrolls covers nothing.
  assert.ok(!found.some((fault) => fault.includes('further down')), found.join('; '));
  for (const one of wanted) assert.ok(found.some((fault) => one.test(fault)), `${one}: ${found.join('; ')}`);
  assert.equal((await covered(page)).length, 1, 'one button is covered by the other');
  await page.close();
}

const browser = await launch();
if (browser !== null) {
  const where = await target();
  await test('planted faults are found', planted);
  for (const size of SIZES) await test(`every page at ${size.width}`, (t) => looks(t, where, size));
  if (process.env.MEASURES) await test('main-thread time and answers', (t) => measures(t, where));
  if (process.env.SHOTS_DIR) await shots(where, process.env.SHOTS_DIR);
  await browser.close();
}
