// The page of a share, used as people use it, one JSON line each way: {"do": "open", "url", "user", "password"}, then
// any of WAYS below, each in a folder's page at "url"; answers {"ok": …} or {"error": "…"}.
import { createInterface } from 'node:readline';
import { launch } from './chromium.mjs';
import { PATIENCE } from './patience.mjs';

let page = null;
let answerTo = '';

const row = (href) => page.locator('#list tbody tr', { has: page.locator(`a[href$="${href}"]`) });
const press = (href, what) => row(href).getByRole('button', { name: new RegExp(`^${what} `) }).click();

const WAYS = {
  async open({ url, user, password }) {
    page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on('dialog', (dialog) => dialog.accept(answerTo));
    await page.goto(url);
    await page.getByLabel('Name').fill(user);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation', { name: 'Path' }).waitFor();
  },
  async upload({ url, file, href, breaks }) {
    await page.goto(url);
    let broken = 0;
    if (breaks) {
      await page.route('**/.plimsoll/upload/*', (route) => {
        // The second part is cut off once; the page asks how far it has come, and goes on.
        const cut = route.request().method() === 'PATCH' && ++broken === 2;
        return cut ? route.abort('connectionreset') : route.continue();
      });
    }
    await page.locator('#files').setInputFiles(file);
    await row(href).waitFor();
    await page.unroute('**/.plimsoll/upload/*');
    return broken;
  },
  async download({ url, href, to }) {
    await page.goto(url);
    const coming = page.waitForEvent('download');
    await row(href).locator('a').first().click({ modifiers: ['Alt'] });
    await (await coming).saveAs(to);
  },
  async rename({ url, href, name, now }) {
    await page.goto(url);
    answerTo = name;
    await press(href, 'Rename');
    await row(now).waitFor();
  },
  async remove({ url, href }) {
    await page.goto(url);
    await press(href, 'Delete');
    await row(href).waitFor({ state: 'detached' });
  },
  async list({ url }) {
    await page.goto(url);
    await page.locator('#transfers').waitFor({ state: 'attached' });
    return page.locator('#list tbody a').evaluateAll((links) => links.map((link) => link.textContent).join('\n'));
  },
};

const browser = await launch();
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  try {
    console.log(JSON.stringify({ ok: (await WAYS[request.do](request)) ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
await browser.close();
