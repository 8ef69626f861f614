// A server that does not answer, or takes its time: it is said, nothing that was typed is lost, and it
// goes on by itself.
import assert from 'node:assert/strict';
import { hold, step } from './pages.mjs';

const API = '**/api/v1/**';
const NFS = '/configuration/services/nfs';
const USERS = '/configuration/users';
const cut = (page, what = API) => page.route(what, (route) => route.abort('connectionrefused'));
const said = (page) => page.getByRole('status', { name: 'Connection' });

export async function connection(t, { page, where, another }) {
  await page.goto(where.url + NFS);
  const lease = page.getByLabel('Lease', { exact: true });
  await lease.waitFor();
  await t.test('a server that is gone is said so on the page, and a commit fails in words', async () => {
    await cut(page);
    await lease.fill('88 s');
    await said(page).getByText('The server does not respond').waitFor();
    await page.getByRole('button', { name: 'Commit', exact: true }).click();
    await page.getByRole('region', { name: /pending/ }).getByRole('alert').filter({ hasText: 'does not respond' }).waitFor();
  });
  await t.test('when it is back that goes away, and what was typed is still there', async () => {
    await page.unroute(API);
    await said(page).getByText('The server does not respond').waitFor({ state: 'detached' });
    assert.equal(await lease.inputValue(), '1 min 28 s');
    await page.getByRole('button', { name: 'Discard the change of Lease' }).click();
  });
  await t.test('a slow answer is said to be awaited', async () => {
    let answer = () => {};
    const waiting = new Promise((resolve) => { answer = resolve; });
    await page.route(API, (route) => void waiting.then(() => route.continue()).catch(() => undefined));
    await step(page, USERS);
    await said(page).getByText('Waiting for the server').waitFor();
    await page.unroute(API);
    answer();
    await said(page).getByText('Waiting for the server').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'New user' }).waitFor();
  });
  await t.test('a page that was left during a read is not read again', async () => {
    const reads = [];
    const count = (request) => { if (request.url().includes(`/nodes${USERS}`)) reads.push(request.url()); };
    const read = await hold(page, `**/api/v1/nodes${USERS}*`);
    await read.arrived;
    await step(page, NFS);
    await lease.waitFor();
    await read.release();
    page.on('request', count);
    // This page is read again after the time after which the other one was.
    for (let again = 0; again < 2; again += 1) await page.waitForResponse((response) => response.url().includes(`/nodes${NFS}`));
    page.off('request', count);
    assert.deepEqual(reads, []);
    await step(page, USERS);
    await page.getByRole('button', { name: 'New user' }).waitFor();
  });
  await t.test('a worksheet that was left during a read does not open its stream again', async () => {
    const streams = [];
    const count = (request) => { if (request.url().includes('/analytics/stream')) streams.push(request.url()); };
    const read = await hold(page, '**/api/v1/analytics/data*', { end: (route) => route.abort('connectionrefused') });
    await step(page, '/analytics?w=cpu.utilization[mode]');
    await read.arrived;
    await step(page, USERS);
    await page.getByRole('button', { name: 'New user' }).waitFor();
    page.on('request', count);
    await read.release();
    page.off('request', count);
    assert.deepEqual(streams, []);
  });
  await t.test('what was typed into a question survives Escape, not Cancel', async () => {
    const question = page.getByRole('dialog', { name: 'New user' });
    const name = question.getByLabel('Name', { exact: true });
    await page.getByRole('button', { name: 'New user' }).click();
    await name.fill('clara');
    // The page below it is read anew meanwhile.
    await page.waitForResponse((answer) => answer.url().includes('/nodes/configuration/users'));
    await page.keyboard.press('Escape');
    await question.waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'New user' }).click();
    assert.equal(await name.inputValue(), 'clara');
    await question.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'New user' }).click();
    assert.equal(await name.inputValue(), '');
    await question.getByRole('button', { name: 'Cancel' }).click();
  });
  await t.test('a page that is opened meanwhile waits, and appears by itself', async () => {
    await cut(page, '**/api/v1/session');
    await page.goto(where.url);
    await page.getByRole('heading', { name: 'Could not read the session' }).waitFor();
    await page.unroute('**/api/v1/session');
    await page.getByRole('heading', { level: 1 }).filter({ hasText: /Healthy|Degraded/ }).waitFor();
  });
  await t.test('a password that nobody has seen need not be typed again', async () => {
    const other = await another();
    await other.goto(`${where.url}/login`);
    await other.getByLabel('User').fill(where.user);
    await other.getByLabel('Password').fill(where.password);
    await cut(other);
    await other.getByRole('button', { name: 'Sign in' }).click();
    await other.getByRole('alert').filter({ hasText: 'does not respond' }).waitFor();
    assert.equal(await other.getByLabel('Password').inputValue(), where.password);
    await other.context().close();
  });
}
