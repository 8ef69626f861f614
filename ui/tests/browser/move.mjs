// The address by which the browser reaches the administration is changed: BASE_URL has the old one,
// ELSEWHERE is the new one, ITEM the interface that has them. With KEEP=1 the page is followed to the
// new address and the change confirmed there; else nothing is done until the old address is back.
import test from 'node:test';
import assert from 'node:assert/strict';
import { launch, target } from './chromium.mjs';
import { PATIENCE } from './patience.mjs';

const NETWORK = '/configuration/network';
const { ELSEWHERE, ITEM, KEEP } = process.env;
const bar = (page) => page.getByRole('region', { name: 'Unconfirmed change' });

async function signIn(page, { user, password }) {
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Places' }).waitFor();
}

const addresses = (page) => page.getByRole('group', { name: 'IPv4 addresses' }).getByLabel('IPv4 addresses, entry 1');

/** Over connections that the browser has kept from before nothing is confirmed: the page has others. */
async function confirmHere(page, where) {
  await page.goto(`${where.url}${NETWORK}/datalinks/e0`);
  await signIn(page, where);
  await page.getByLabel('MTU', { exact: true }).fill('1400');
  await page.getByRole('button', { name: 'Commit', exact: true }).click();
  await bar(page).getByRole('button', { name: 'Confirm' }).click();
  await page.getByRole('status').filter({ hasText: 'The change is confirmed' }).waitFor();
  await bar(page).waitFor({ state: 'detached' });
}

/** Both settings in one commit: the new address, and that the administration is there. */
async function move(page, where) {
  await page.goto(`${where.url}${NETWORK}`);
  await page.getByRole('heading', { level: 1, name: 'Network', exact: true }).waitFor();
  await page.getByLabel('Administration address', { exact: true }).fill(ELSEWHERE);
  await page.getByRole('region', { name: 'Interfaces', exact: true }).getByRole('link', { name: ITEM, exact: true }).click();
  await addresses(page).fill(`${ELSEWHERE}/24`);
  await page.getByRole('region', { name: /^2 changes pending/ }).waitFor();
  await page.getByRole('button', { name: 'Commit', exact: true }).click();
  await bar(page).getByRole('link').waitFor();
}

/** The page at the new address, in a window next to the old one. */
async function follow(page, where) {
  const [next] = await Promise.all([page.context().waitForEvent('page'), bar(page).getByRole('link').click()]);
  next.setDefaultTimeout(PATIENCE);
  await next.getByLabel('User').waitFor();
  assert.equal(new URL(next.url()).hostname, ELSEWHERE);
  await signIn(next, where);
  await bar(next).getByRole('button', { name: 'Confirm' }).click();
  await next.getByRole('status').filter({ hasText: 'The change is confirmed' }).waitFor();
  await bar(next).waitFor({ state: 'detached' });
  await next.getByRole('region', { name: 'Interfaces', exact: true }).getByText(`${ELSEWHERE}/24`).waitFor();
}

const browser = await launch();
if (browser !== null) {
  const where = await target();
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ignoreHTTPSErrors: true });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  // What was committed without an answer is pending still, and asked about when the page goes.
  page.on('dialog', (question) => void question.accept());
  await test('a change that leaves the address is confirmed on the same page', () => confirmHere(page, where));
  await test('the address of the administration is changed', () => move(page, where));
  if (KEEP === '1') await test('the page at the new address keeps it', () => follow(page, where));
  else {
    await test('without a confirmation the page continues at the old address', async () => {
      await bar(page).waitFor({ state: 'detached' });
      // What was not answered is pending still; the server has the old address.
      await page.reload().catch(() => undefined);
      await page.goto(`${where.url}${NETWORK}`);
      await page.getByRole('region', { name: 'Interfaces', exact: true }).getByText(`${new URL(where.url).hostname}/24`).waitFor();
    });
  }
  await browser.close();
}
