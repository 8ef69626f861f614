// The interface in a real browser, by role and label. Against BASE_URL when it is given (with
// PLIMSOLL_USER and PLIMSOLL_PASSWORD), else against the mock.
import test from 'node:test';
import assert from 'node:assert/strict';
import { launch, target } from './chromium.mjs';
import { PATIENCE } from './patience.mjs';
import { alerts } from './alerts.mjs';
import { connection } from './connection.mjs';
import { cluster } from './cluster.mjs';
import { fabric } from './fabric.mjs';
import { hardware } from './hardware.mjs';
import { pools } from './pools.mjs';
import { keyboard } from './keyboard.mjs';
import { lab } from './lab.mjs';
import { many } from './many.mjs';
import { network } from './network.mjs';
import { tree } from './tree.mjs';

async function signIn(page, where, path = '/login') {
  await page.goto(where.url + path);
  await page.getByLabel('User').fill(where.user);
  await page.getByLabel('Password').fill(where.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Places' }).waitFor();
}

/** How many pixels of a canvas differ from its commonest colour. */
const drawnPixels = (plot) => plot.locator('canvas').first().evaluate((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Map();
  for (let at = 0; at < data.length; at += 4) {
    const colour = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
    colours.set(colour, (colours.get(colour) ?? 0) + 1);
  }
  return { colours: colours.size, drawn: data.length / 4 - Math.max(...colours.values()) };
});

/** Follows a link of a page that moves while its data arrives: a click might begin on it and end beside it. */
const follow = (link) => link.press('Enter');

const search = (page) => decodeURIComponent(new URL(page.url()).search);
const waitForSearch = (page, wanted) =>
  page.waitForURL((url) => wanted.test(decodeURIComponent(url.search)), { timeout: PATIENCE });

/** Waits until the text of `locator` is another one than `before`. */
async function waitForChange(locator, before) {
  const end = Date.now() + PATIENCE;
  while (Date.now() < end) {
    const now = await locator.textContent();
    if (now !== before) return now;
    await locator.page().waitForTimeout(100);
  }
  throw new Error(`still "${before}" after ${PATIENCE} ms`);
}

async function open(context, where, complaints) {
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    // Refused sign-ins, statistics and changes, and cut streams, are in the console because they are tested;
    // everything else there is a mistake of ours, such as a violated content security policy.
    if (message.type() === 'error' && !/status of 40[01349]|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE|ERR_CONNECTION/.test(message.text())) complaints.push(message.text());
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(where.url) && !url.startsWith('blob:')) complaints.push(`request to ${url}`);
  });
  return page;
}

async function suite() {
  const where = await target();
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ignoreHTTPSErrors: true, permissions: ['clipboard-read', 'clipboard-write'] });
  const complaints = [];
  const page = await open(context, where, complaints);
  const another = async () => open(await browser.newContext({ ignoreHTTPSErrors: true }), where, complaints);
  const all = { page, where, complaints, another };

  await test('signing in', (t) => signingIn(t, all));
  await test('the status page', (t) => statusPage(t, all));
  await test('a worksheet', (t) => worksheet(t, all));
  await test('NFS activity', (t) => activity(t, all));
  await test('who is hammering it', (t) => hammering(t, all));
  await test('NFS clients', (t) => nfsClients(t, all));
  await test('WebDAV locks', (t) => webdavLocks(t, all));
  await test('the log of transfers asks again after seconds, not as soon as it is answered', () => transfers(all));
  await test('pages made from the tree', (t) => tree(t, all));
  await test('the hardware', (t) => hardware(t, all));
  await test('pools', (t) => pools(t, all));
  await test('the fabric', (t) => fabric(t, all));
  await test('the cluster', (t) => cluster(t, all));
  await test('the network', (t) => network(t, all));
  await test('alerts and saved worksheets', (t) => alerts(t, all));
  await test('the lab', (t) => lab(t, all));
  await test('the keyboard', (t) => keyboard(t, all));
  await test('a connection that is lost or slow', (t) => connection(t, all));
  await test('interruptions', (t) => interruptions(t, all));
  await test('a phone', (t) => phone(t, all));
  await test('200 shares and 1,000 users', (t) => many(t, all));
  await test('signing out leads to the sign-in page and back', (t) => signingOut(t, all));
  await test('nothing complained', () => assert.deepEqual(complaints, []));
  await browser.close();
  where.mock?.close();
}

async function signingIn(t, { page, where }) {
  await t.test('a page asks for the sign-in first, with a clear word when it fails', async () => {
    await page.goto(`${where.url}/analytics?w=cpu.utilization[mode]`);
    await page.getByRole('heading', { name: 'Sign in to Plimsoll' }).waitFor();
    await page.getByLabel('User').fill(where.user);
    await page.getByLabel('Password').fill('not this one');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').filter({ hasText: 'Could not' }).waitFor();
  });
  await t.test('then it leads back to where one wanted to go', async () => {
    await page.getByLabel('Password').fill(where.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('toolbar', { name: 'Worksheet' }).waitFor();
    assert.match(search(page), /w=cpu\.utilization\[mode\]/);
  });
}

async function statusPage(t, { page }) {
  await page.getByRole('link', { name: 'Status' }).click();
  await t.test('says first whether it is well', async () => {
    await page.getByRole('heading', { level: 1 }).filter({ hasText: /Healthy|Degraded/ }).waitFor();
  });
  await t.test('leads to the page of a share, which has the commands of each protocol as one block', async () => {
    await follow(page.getByRole('link', { name: /^Mount / }).first());
    await page.getByRole('radio', { name: 'NFSv3' }).check();
    await page.getByRole('button', { name: /Copy the NFSv3 commands/ }).click();
    const text = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(text, /^mount -t nfs -o vers=3,proto=tcp,.*\/export\//);
    assert.equal(await page.locator('.block pre').textContent(), text);
    await page.goBack();
  });
  await t.test('numbers lead to their graphs', async () => {
    await follow(page.getByRole('region', { name: 'Activity' }).getByRole('link').first());
    await page.getByRole('toolbar', { name: 'Worksheet' }).waitFor();
    await page.goBack();
  });
}

async function worksheet(t, { page, where }) {
  await t.test('it opens with operations by protocol, by client, and latency, alive', async () => {
    await page.goto(`${where.url}/analytics`);
    await waitForSearch(page, /^\?w=all\.ops\[protocol\]&w=all\.ops\[client\]&w=all\.ops\[latency\]$/);
    await page.locator('.when[data-live=true]').waitFor();
    assert.equal(await page.getByRole('article').count(), 3);
  });
  await t.test('a panel that gets the statistic of another one replaces it', async () => {
    await page.getByRole('article').first().getByRole('combobox', { name: 'Broken down by' }).selectOption('client');
    await waitForSearch(page, /^\?w=all\.ops\[client\]&w=all\.ops\[latency\]$/);
    assert.equal(await page.getByRole('article').count(), 2);
  });
  await t.test('a filter that occurs twice is shown twice', async () => {
    await page.goto(`${where.url}/analytics?w=all.ops[client=192.0.2.21][client=192.0.2.22][op]`);
    await page.getByRole('button', { name: /^Remove the filter client/ }).nth(1).waitFor();
  });
  await t.test('one that was emptied stays empty', async () => {
    await page.goto(`${where.url}/analytics?w=`);
    await page.getByText('This worksheet is empty').waitFor();
  });
  const panel = page.getByRole('article', { name: /utilization/i });
  await t.test('a statistic is added from the menu', async () => {
    await page.getByRole('button', { name: 'Add statistic' }).click();
    await page.getByLabel('Filter statistics').fill('utilization');
    await page.getByRole('button', { name: /CPU.*utilization by CPU mode/ }).click();
    await panel.locator('.row').first().waitFor();
    assert.match(search(page), /w=cpu\.utilization\[mode\]/);
  });
  await t.test('the menu lists what leaves TCP, and TCP by client', async () => {
    await page.getByRole('button', { name: 'Add statistic' }).click();
    const menu = page.getByRole('dialog', { name: 'Add statistic' });
    const filter = page.getByLabel('Filter statistics');
    for (const [words, entry] of [
      ['handed to adapters size', /^TCP segments handed.* by size$/],
      ['handed to adapters context', /^TCP bytes of payload handed.* by context/],
      ['tcp retransmitted client', /^TCP segments retransmitted.* by client$/],
      ['tcp data to send', /^TCP connections with data to send.* by what limits/],
    ]) {
      await filter.fill(words);
      await menu.getByRole('button', { name: entry }).waitFor();
    }
    await page.keyboard.press('Escape');
    await menu.waitFor({ state: 'detached' });
  });
  await t.test('it is alive: time and values go on', async () => {
    const figures = panel.locator('.list');
    await waitForChange(figures, await figures.textContent());
    const when = page.locator('.when');
    await waitForChange(when, await when.textContent());
    assert.match(await when.textContent(), /Live/);
  });
  await t.test('space pauses, n returns to now', async () => {
    await page.locator('h2').first().click();
    await page.keyboard.press(' ');
    await waitForSearch(page, /from=\d+&to=\d+/);
    await page.keyboard.press('n');
    await waitForSearch(page, /^(?!.*from=)/);
  });
  await t.test('a click highlights, shift-click several, all of it in the URL', async () => {
    await panel.locator('.row').nth(0).click();
    await waitForSearch(page, /!hl=[^,]+$/);
    await panel.locator('.row').nth(1).click({ modifiers: ['Shift'] });
    await waitForSearch(page, /!hl=[^,]+,[^,]+$/);
    assert.equal(await panel.locator('.row[aria-pressed=true]').count(), 2);
    const { colours } = await drawnPixels(panel.getByRole('img'));
    assert.ok(colours > 4, `only ${colours} colours`);
  });
  await t.test('drilling down makes a chip and a URL, going back undoes it', async () => {
    const before = search(page);
    await panel.locator('.row').first().focus();
    await page.keyboard.press('d');
    await page.getByRole('menuitem', { name: 'by CPU', exact: false }).last().click();
    await waitForSearch(page, /cpu\.utilization\[mode=[^\]]+\]\[cpu\]/);
    await page.getByRole('button', { name: /Remove the filter mode/ }).waitFor();
    await page.goBack();
    await waitForSearch(page, /cpu\.utilization\[mode\]/);
    assert.equal(search(page), before);
    assert.equal(await page.getByRole('button', { name: /Remove the filter/ }).count(), 0);
  });
  await t.test('a chip can be removed', async () => {
    await page.goForward();
    await page.getByRole('button', { name: /Remove the filter mode/ }).click();
    await waitForSearch(page, /w=cpu\.utilization\[cpu\]/);
  });
  await t.test('reloading keeps the worksheet', async () => {
    const before = search(page);
    await page.reload();
    await page.getByRole('article', { name: /utilization/i }).locator('.row').first().waitFor();
    assert.equal(search(page), before);
  });
  await t.test('dragging on a graph zooms to that time', async () => {
    const box = await panel.getByRole('img').boundingBox();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 4 });
    await page.mouse.up();
    await waitForSearch(page, /from=\d+&to=\d+/);
    const [, from, to] = /from=(\d+)&to=(\d+)/.exec(search(page));
    assert.ok(to - from > 10 && to - from < 30, `${to - from} s`);
    await page.goBack();
  });
  await t.test('wheel, minus and arrows change the interval', async () => {
    await page.locator('.when[data-live=true]').waitFor();
    // Going back lays the page out anew: what a first turn misses, the next one meets.
    const end = Date.now() + PATIENCE;
    do {
      const box = await panel.getByRole('img').boundingBox();
      await page.mouse.move(box.x + box.width * 0.5, box.y + 40);
      await page.mouse.wheel(0, 400);
      await page.waitForURL((url) => /span=/.test(url.search), { timeout: 2000 }).catch(() => {});
    } while (!/span=/.test(search(page)) && Date.now() < end);
    assert.match(search(page), /span=120/);
    await page.keyboard.press('-');
    await waitForSearch(page, /span=240/);
    await page.keyboard.press('ArrowLeft');
    await waitForSearch(page, /from=\d+&to=\d+/);
    const [, from, to] = /from=(\d+)&to=(\d+)/.exec(search(page));
    assert.equal(to - from, 240);
    await page.keyboard.press('n');
    await waitForSearch(page, /span=240/);
  });
  await t.test('the search jumps to a statistic', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('nfs3.ops[latency]');
    await page.getByRole('option').first().waitFor();
    await page.keyboard.press('Enter');
    await waitForSearch(page, /^\?w=nfs3\.ops\[latency\]$/);
  });
}

async function activity(t, { page, where }) {
  await page.goto(`${where.url}/analytics?w=nfs3.ops[client]&w=nfs3.ops[latency]`);
  const clients = page.getByRole('article', { name: /by client/ });
  const some = await clients.locator('.row').first().waitFor({ timeout: PATIENCE }).then(() => true, () => false);
  if (!some) {
    assert.ok(!process.env.EXPECT_ACTIVITY, 'no client in the list, though there is load');
    return t.skip('no client has used the server in the last minute');
  }
  const heat = page.getByRole('article', { name: /by latency/ }).getByRole('img');
  await t.test('the heat map is drawn', async () => {
    await page.getByRole('article', { name: /by latency/ }).locator('.row').first().waitFor();
    const { drawn, colours } = await drawnPixels(heat);
    assert.ok(drawn > 500 && colours > 5, `${drawn} pixels in ${colours} colours`);
  });
  await t.test('a rectangle on it drills into those operations at that time', async () => {
    const box = await heat.boundingBox();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 20, box.y + box.height - 30, { steps: 4 });
    await page.mouse.up();
    await page.getByRole('menuitem', { name: 'by client' }).click();
    await waitForSearch(page, /nfs3\.ops\[latency=\d+-\d+\]\[client\]&from=\d+&to=\d+/);
    await page.getByRole('button', { name: /Remove the filter latency/ }).waitFor();
    await page.goBack();
  });
  await t.test('the cross-hair shows the values of one second in every panel', async () => {
    const box = await heat.boundingBox();
    await page.mouse.move(box.x + box.width * 0.9, box.y + 60);
    await clients.locator('.head .at').filter({ hasText: /\d\d:\d\d:\d\d/ }).waitFor();
  });
  await t.test('the exported CSV has a line for each second', async () => {
    const [download] = await Promise.all([
      page.waitForEvent('download'), clients.getByRole('button', { name: 'Export as CSV' }).click(),
    ]);
    assert.match(download.suggestedFilename(), /^nfs3\.ops.client.\.csv$/);
    const { readFile } = await import('node:fs/promises');
    const lines = (await readFile(await download.path(), 'utf8')).trim().split('\r\n');
    assert.match(lines[0], /^time,total/);
    assert.ok(lines.length > 30);
  });
  await t.test('the status page names who is on it', async () => {
    await page.getByRole('link', { name: 'Status' }).click();
    const rate = page.locator('[data-live="rate"]').first();
    await waitForChange(rate, await rate.textContent());
  });
}

/** From the status page to a client, what it holds, and its end. */
async function nfsClients(t, { page, where }) {
  await page.goto(where.url);
  await follow(page.getByRole('region', { name: 'Services' }).getByRole('link', { name: 'NFS clients' }));
  await page.getByRole('heading', { level: 1, name: 'NFS clients' }).waitFor();
  const clients = page.getByRole('table', { name: 'NFS clients' });
  const some = await clients.waitFor({ timeout: PATIENCE }).then(() => true, () => false);
  if (!some) {
    assert.ok(!process.env.EXPECT_CLIENT, `no client, though there is one: ${await page.locator('main').textContent()}`);
    return t.skip('no NFS client holds state');
  }
  const before = await clients.getByRole('row').count();
  const wanted = process.env.EXPECT_CLIENT ?? 'Linux NFSv4.2 anna';
  await t.test('the list is narrowed to a client, by the name that it gives itself', async () => {
    await page.getByLabel('Filter clients').fill(wanted);
    await clients.getByRole('link').nth(1).waitFor({ state: 'detached' });
    await clients.getByRole('link').first().click();
    await waitForSearch(page, /^\?client=nfs4-[0-9a-f]{16}$/);
    await page.getByText(wanted).first().waitFor();
  });
  await t.test('it shows what is open and what is locked', async () => {
    await page.getByRole('region', { name: 'Open files' }).getByRole('rowheader').first().filter({ hasText: '/export/' }).waitFor();
    await page.getByRole('region', { name: 'Locks' }).getByRole('rowheader').first().filter({ hasText: '/export/' }).waitFor();
  });
  await t.test('it is expired only after a question', async () => {
    const question = page.getByRole('dialog', { name: /^Expire / });
    await page.getByRole('button', { name: 'Expire', exact: true }).click();
    await question.getByText('Releases its state').waitFor();
    await question.getByRole('button', { name: 'Cancel' }).click();
    await question.waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Expire', exact: true }).click();
    await question.getByRole('button', { name: 'Expire' }).click();
    await page.getByRole('status').filter({ hasText: 'Expired' }).waitFor();
    if (before > 2) await clients.getByRole('row').nth(before - 1).waitFor({ state: 'detached' });
    else await page.getByText('No clients.').waitFor();
  });
}

async function transfers({ page, where }) {
  const asked = (request) => new URL(request.url()).pathname === '/api/v1/transfers';
  const began = async (request) => {
    await (await request).response();
    return (await request).timing().startTime;
  };
  const first = page.waitForRequest(asked);
  await page.goto(`${where.url}/maintenance/logs/transfers`);
  const before = await began(first);
  const between = (await began(page.waitForRequest(asked))) - before;
  assert.ok(between > 1000, `${between} ms`);
}

async function webdavLocks(t, { page, where }) {
  await page.goto(where.url);
  await follow(page.getByRole('region', { name: 'Services' }).getByRole('link', { name: 'WebDAV locks' }));
  await page.getByRole('heading', { level: 1, name: 'WebDAV locks' }).waitFor();
  const locks = page.getByRole('table', { name: 'WebDAV locks' });
  await locks.or(page.getByText('No locks.')).waitFor();
  if (!(await locks.isVisible())) return t.skip('no client of WebDAV holds a lock');
  const before = await locks.getByRole('button').count();
  await t.test('the list is narrowed by any word', async () => {
    const file = await locks.getByRole('rowheader').first().getAttribute('title');
    await page.getByLabel('Filter locks').fill('no such lock');
    await page.getByText('No matching lock').waitFor();
    await page.getByLabel('Filter locks').fill(file);
    await locks.getByRole('rowheader').first().filter({ hasText: file }).waitFor();
  });
  await t.test('a lock is released only after a question', async () => {
    const question = page.getByRole('dialog', { name: /^Release/ });
    await locks.getByRole('button', { name: /^Release/ }).first().click();
    await question.getByRole('button', { name: 'Cancel' }).click();
    await question.waitFor({ state: 'hidden' });
    await locks.getByRole('button', { name: /^Release/ }).first().click();
    await question.getByRole('button', { name: 'Release' }).click();
    await page.getByRole('status').filter({ hasText: 'Released' }).waitFor();
    await page.getByLabel('Filter locks').fill('').catch(() => {});
    if (before > 1) await locks.getByRole('button').nth(before - 1).waitFor({ state: 'detached' });
    else await page.getByText('No locks.').waitFor();
  });
}

async function interruptions(t, { page, where }) {
  if (where.mock === null) return t.skip('only the mock can be interrupted at will');
  await t.test('after a cut the stream comes back and the missing seconds are hatched', async () => {
    await page.goto(`${where.url}/analytics?w=nfs3.ops[client]`);
    await page.locator('article .row').first().waitFor();
    where.mock.interrupt(6);
    await page.getByText('Interrupted, reconnecting').waitFor();
    await page.getByText('Live', { exact: false }).first().waitFor();
    await page.getByText('Hatched: no data.').waitFor();
  });
  await t.test('what could not be read is read again', async () => {
    // A statistic of its own: the page before this one may read until it is left.
    await page.route('**/api/v1/analytics/data?stat=nfs3.ops%5Bop%5D*', (route) => route.abort('connectionrefused'), { times: 1 });
    await page.goto(`${where.url}/analytics?w=nfs3.ops[op]`);
    await page.getByRole('alert').filter({ hasText: 'does not respond' }).waitFor();
    await page.locator('article .row').first().waitFor();
    assert.equal(await page.getByRole('alert').count(), 0);
  });
  await t.test('a statistic that does not exist is said so, the others go on', async () => {
    await page.goto(`${where.url}/analytics?w=nfs3.nonsense[op]&w=cpu.utilization[mode]`);
    await page.getByRole('alert').filter({ hasText: 'there is no such statistic' }).waitFor();
    const figures = page.getByRole('article', { name: /utilization/i }).locator('.list');
    await figures.locator('.row').first().waitFor();
    await waitForChange(figures, await figures.textContent());
  });
}

/** From the first page to who hammers which file, and back. */
async function hammering(t, { page, where }) {
  await page.goto(where.url);
  // Clients that have ended are listed for a minute: the one that is there all the time.
  const busy = process.env.EXPECT_ACTIVITY?.replaceAll('.', '\\.');
  const link = new RegExp(busy ? `^${busy}(?!\\d)` : '^[\\d.:a-f]+');
  const client = page.getByRole('region', { name: 'Active clients' }).getByRole('link', { name: link }).first();
  const some = await client.waitFor({ timeout: PATIENCE }).then(() => true, () => false);
  if (!some) {
    assert.ok(!process.env.EXPECT_ACTIVITY, `no client on the status page, though there is load: ${await page.locator('main').textContent()}`);
    return t.skip('no client has used the server in the last minute');
  }
  await t.test('one click on a client shows its files', async () => {
    await client.click();
    await waitForSearch(page, /^\?w=all\.ops\[client=[^\]]+\]\[file\]/);
    await page.getByRole('article', { name: /by file/ }).locator('.row').first().waitFor();
  });
  await t.test('a file is drilled into; its name outlives a reload', async () => {
    const panel = page.getByRole('article').first();
    // The load's own file: rows move while they are looked at, and others are of a single operation.
    const names = panel.locator('.row .name');
    const busy = process.env.EXPECT_ACTIVITY ? names.filter({ hasText: 'load-' }) : names;
    const name = (await busy.first().textContent()).trim();
    await panel.locator(`.row[title^=${JSON.stringify(`${name}: `)}]`).focus();
    await page.keyboard.press('d');
    await page.getByRole('menuitem', { name: 'by latency' }).click();
    await waitForSearch(page, /\[client=[^\]]+\]\[file=[^\]]+\]\[latency\]/);
    await page.getByRole('button', { name: `Remove the filter file ${name}` }).waitFor();
    await page.getByRole('article').first().locator('.row').first().waitFor();
    await page.reload();
    await page.getByRole('button', { name: `Remove the filter file ${name}` }).waitFor();
    assert.equal(await page.getByRole('alert').count(), 0);
  });
  await t.test('two steps back is the status page', async () => {
    await page.goBack();
    await page.goBack();
    await page.getByRole('heading', { level: 1 }).filter({ hasText: /Healthy|Degraded/ }).waitFor();
  });
}

async function phone(t, { where, complaints }) {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, ignoreHTTPSErrors: true, hasTouch: true });
  const page = await open(context, where, complaints);
  await signIn(page, where);
  for (const path of ['/', '/nfs', '/shares', '/configuration', '/configuration/services/nfs', '/configuration?view=history', '/maintenance?view=audit', '/maintenance/logs', '/configuration/alerts', '/lab', '/lab/jobs', '/analytics', '/analytics?w=nfs3.ops[client]&w=nfs3.ops[latency]']) {
    await t.test(`${path} does not scroll sideways`, async () => {
      await page.goto(where.url + path);
      await page.getByRole('navigation', { name: 'Places' }).waitFor();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} px too wide`);
    });
  }
  await context.close();
}

async function signingOut(_t, { page, where }) {
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in to Plimsoll' }).waitFor();
  await page.goto(`${where.url}/`);
  await page.getByRole('heading', { name: 'Sign in to Plimsoll' }).waitFor();
}

const browser = await launch();
if (browser !== null) await suite();
