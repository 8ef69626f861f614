// The pages made from the tree, by role and label. What needs a second administrator or another role
// is tried with the mock, which can be told to have one.
import assert from 'node:assert/strict';
import { hold, step } from './pages.mjs';
import { PATIENCE } from './patience.mjs';

const NFS = '/configuration/services/nfs';
/** Requests for the differences of two revisions. */
const COMPARE = '**/api/v1/configuration/compare*';
const pendingBar = (page) => page.getByRole('region', { name: /pending/ });
const field = (page, name) => page.getByLabel(name, { exact: true });
const commit = (page) => page.getByRole('button', { name: 'Commit', exact: true });

async function node(page, where, path, heading) {
  await page.goto(where.url + path);
  await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
}

const ofApi = (page, path) => page.evaluate(async (of) => {
  const answer = await fetch(`/api/v1${of}`);
  return answer.ok ? answer.json() : null;
}, path);

const has = async (page, path) => (await ofApi(page, `/nodes${path}`)) !== null;

const valueOf = async (page, path, property) =>
  (await ofApi(page, `/nodes${path}`)).properties.find(({ name }) => name === property);

export async function tree(t, { page, where }) {
  await page.goto(where.url);
  await page.getByRole('navigation', { name: 'Places' }).waitFor();
  if ((await ofApi(page, '/tree')) === null) return t.skip('this server has no tree');
  await settings(t, { page, where });
  if (await has(page, '/shares')) await shares(t, { page, where });
  await versions(t, { page, where });
  await maintenance(t, { page, where });
  if (await has(page, '/configuration/users')) await people(t, { page, where });
  return where.mock === null ? undefined : withTheMock(t, { page, where });
}

async function settings(t, { page, where }) {
  await t.test('one gets to a setting from the bar, link by link', async () => {
    const places = page.getByRole('navigation', { name: 'Places' });
    await places.getByRole('link', { name: 'Configuration' }).click();
    await page.getByRole('heading', { level: 1, name: 'Configuration' }).waitFor();
    await page.getByRole('navigation', { name: 'Configuration', exact: true }).getByRole('link', { name: 'NFS', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'NFS', exact: true }).waitFor();
    assert.equal(new URL(page.url()).pathname, NFS);
  });
  const before = await valueOf(page, NFS, 'lease');
  await t.test('a value that cannot be is refused under its field, and blocks the commit', async () => {
    await field(page, 'Lease').fill('soon');
    await page.getByRole('alert').filter({ hasText: 'such as 90 s' }).waitFor();
    assert.ok(await commit(page).isDisabled());
    assert.match(await commit(page).getAttribute('title'), /[Cc]orrect/);
    await page.getByRole('button', { name: 'Abort' }).click();
    await page.getByRole('alert').filter({ hasText: 'such as 90 s' }).waitFor({ state: 'detached' });
    assert.notEqual(await field(page, 'Lease').inputValue(), 'soon');
  });
  await t.test('it blocks the commit for as long as it is there', async () => {
    await field(page, 'Lease').fill('90');
    await pendingBar(page).waitFor();
    await field(page, 'Lease').fill('90 sun');
    // The page reads its node again meanwhile; what was read is on it before the next read is sent.
    for (let reads = 0; reads < 2; reads += 1) await page.waitForResponse((response) => response.url().includes(`/nodes${NFS}`));
    assert.ok(await commit(page).isDisabled());
    await page.getByRole('button', { name: 'Abort' }).click();
    await pendingBar(page).waitFor({ state: 'detached' });
  });
  await t.test('what was typed on the way to it is not pending after its page was left', async () => {
    await field(page, 'Lease').fill('90');
    await pendingBar(page).waitFor();
    await field(page, 'Lease').fill('90 sun');
    await step(page, '/configuration/services');
    await page.getByRole('heading', { level: 1, name: 'Services', exact: true }).waitFor();
    await pendingBar(page).waitFor({ state: 'detached' });
    await node(page, where, NFS, 'NFS');
  });
  await t.test('a change is pending until it is committed', async () => {
    await field(page, 'Lease').fill('77');
    await pendingBar(page).getByText('1 min 17 s').waitFor();
    assert.deepEqual((await valueOf(page, NFS, 'lease')).value, before.value);
    await page.getByLabel('Comment on the changes').fill('for the browser test');
    await commit(page).click();
    await page.getByRole('status').filter({ hasText: /Committed 1 change as revision \d+/ }).waitFor();
    assert.equal((await valueOf(page, NFS, 'lease')).value, 77);
    await page.getByRole('button', { name: 'Unset Lease' }).waitFor();
  });
  await t.test('what is taken back was never there', async () => {
    await field(page, 'Lease').fill('88 s');
    await page.getByRole('button', { name: 'Discard the change of Lease' }).click();
    await pendingBar(page).waitFor({ state: 'detached' });
    await page.keyboard.press('Tab');
    assert.equal(await field(page, 'Lease').inputValue(), '1 min 17 s');
  });
  await t.test('leaving with something pending asks', async () => {
    await field(page, 'Lease').fill('88');
    await pendingBar(page).waitFor();
    await page.getByRole('navigation', { name: 'Places' }).getByRole('link', { name: 'Status' }).click();
    const question = page.getByRole('dialog', { name: '1 change pending' });
    await question.getByRole('button', { name: 'Stay' }).click();
    await pendingBar(page).waitFor();
    assert.equal(new URL(page.url()).pathname, NFS);
    await page.getByRole('navigation', { name: 'Places' }).getByRole('link', { name: 'Status' }).click();
    await question.getByRole('button', { name: 'Discard and leave' }).click();
    await page.getByRole('heading', { level: 1 }).filter({ hasText: /Healthy|Degraded/ }).waitFor();
    assert.equal((await valueOf(page, NFS, 'lease')).value, 77);
  });
  await t.test('a service is disabled after one question that has the facts, and enabled again', async () => {
    await node(page, where, NFS, 'NFS');
    const condition = (word) => page.getByRole('status').filter({ hasText: word }).first();
    await condition('online').waitFor();
    await page.getByRole('button', { name: 'Disable', exact: true }).click();
    const question = page.getByRole('dialog', { name: 'Disable NFS?' });
    await question.getByText(/disconnected: \d+ clients? with \d+ connections?/).waitFor();
    await question.getByRole('button', { name: 'Cancel' }).click();
    assert.equal((await valueOf(page, NFS, 'state')).value, 'online');
    await page.getByRole('button', { name: 'Disable', exact: true }).click();
    await question.getByRole('button', { name: 'Disable' }).click();
    await condition(/Disabled by .* at .* UTC/).waitFor();
    await page.getByRole('button', { name: 'Enable', exact: true }).click();
    await condition('online').waitFor();
    assert.equal((await valueOf(page, NFS, 'state')).value, 'online');
    await node(page, where, '/configuration/services', 'Services');
    await page.getByRole('listitem').filter({ hasText: 'NFS' }).getByText('online', { exact: true }).waitFor();
  });
  await t.test('a service has its graphs once, and its log even without lines', async () => {
    await node(page, where, NFS, 'NFS');
    const together = page.getByRole('link', { name: 'all together' });
    await together.first().waitFor();
    assert.equal(await together.count(), 1);
    const log = page.getByRole('region', { name: 'Log' });
    await log.getByText('No lines since').or(log.getByRole('listitem').first()).first().waitFor();
  });
  await t.test('the search jumps to a setting', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('nfs: lease');
    await page.getByRole('option', { name: /NFS: Lease/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/nfs\?property=lease$/);
    await page.waitForFunction(() => document.activeElement?.tagName === 'INPUT');
  });
  await t.test('what is changed during a commit is pending after it', async () => {
    const sent = await hold(page, '**/api/v1/changes', { is: (request) => request.method() === 'POST' && request.postDataJSON().dry_run !== true });
    await field(page, 'Lease').fill('66');
    await pendingBar(page).getByText('1 min 6 s').waitFor();
    await commit(page).click();
    await page.getByRole('button', { name: 'Committing…' }).waitFor();
    await page.getByRole('checkbox', { name: 'Delegations', exact: true }).click();
    await page.getByRole('heading', { name: '2 changes pending' }).waitFor();
    await sent.release();
    await page.getByRole('heading', { name: '1 change pending' }).waitFor();
    assert.equal((await valueOf(page, NFS, 'lease')).value, 66);
    await page.getByRole('button', { name: 'Discard the change of Delegations' }).click();
    await pendingBar(page).waitFor({ state: 'detached' });
  });
  await t.test('a setting goes back to its default', async () => {
    await page.getByRole('button', { name: 'Unset Lease' }).click();
    await page.keyboard.press('Control+s');
    await page.getByRole('status').filter({ hasText: 'Committed 1 change' }).waitFor();
    assert.equal((await valueOf(page, NFS, 'lease')).source, 'default');
  });
}

async function shares(t, { page, where }) {
  const directory = process.env.SHARE_DIRECTORY ?? '/tank/made-here';
  await t.test('a share is made, with what it cannot be without', async () => {
    await node(page, where, '/shares', 'Shares');
    await page.getByRole('button', { name: 'New share in default' }).click();
    const dialog = page.getByRole('dialog', { name: 'New share' });
    await dialog.getByLabel('Name').fill('made-here');
    // A share has a directory or a pool, which the server verifies.
    const create = dialog.getByRole('button', { name: 'Create the share' });
    if (await create.isEnabled()) {
      await create.click();
      await dialog.getByRole('alert').filter({ hasText: /it needs a directory or a pool/i }).first().waitFor();
    }
    await dialog.getByLabel(/^Directory/).fill(directory);
    await dialog.getByRole('button', { name: 'Create the share' }).click();
    await page.getByRole('heading', { level: 1, name: 'made-here' }).waitFor();
  });
  await t.test('it is restricted to a network: the rule is pending, then in force', async () => {
    const rules = page.getByRole('group', { name: 'NFS exceptions' });
    await rules.getByRole('button', { name: 'Add an entry' }).click();
    await page.keyboard.type('192.0.2.0/24(rw)');
    await pendingBar(page).getByText('192.0.2.0/24(rw)').waitFor();
    await commit(page).click();
    await page.getByRole('status').filter({ hasText: 'Committed 1 change' }).waitFor();
    await node(page, where, '/shares', 'Shares');
    await page.getByRole('row', { name: /made-here.*192\.0\.2\.0/ }).waitFor();
  });
  await t.test('it gets another name', async () => {
    await page.getByRole('rowheader', { name: 'made-here' }).getByRole('link').click();
    await page.getByRole('button', { name: 'Rename' }).click();
    const dialog = page.getByRole('dialog', { name: 'Rename made-here' });
    await dialog.getByLabel('New name').fill('renamed');
    await dialog.getByRole('button', { name: 'Rename' }).click();
    await page.getByRole('heading', { level: 1, name: 'renamed' }).waitFor();
  });
  await t.test('it is destroyed after one question that has the facts', async () => {
    await page.getByRole('button', { name: 'Destroy' }).click();
    const dialog = page.getByRole('dialog', { name: 'Destroy the share renamed?' });
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Destroy' }).click();
    await dialog.locator('.facts').waitFor();
    await dialog.getByRole('button', { name: 'Destroy' }).click();
    await page.getByRole('status').filter({ hasText: 'Destroyed' }).waitFor();
    await node(page, where, '/shares', 'Shares');
    await page.getByRole('table').first().waitFor();
    assert.equal(await page.getByRole('rowheader', { name: 'renamed' }).count(), 0);
  });
}

async function versions(t, { page, where }) {
  await t.test('two revisions are compared', async () => {
    await node(page, where, '/configuration?view=history', 'History');
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.getByRole('region', { name: 'Differences' }).waitFor();
  });
  await t.test('differences are those of the revisions in the fields', async () => {
    const late = await hold(page, COMPARE);
    await page.getByRole('button', { name: 'Compare' }).click();
    await late.arrived;
    await page.getByRole('spinbutton', { name: 'Compare' }).fill('1');
    await late.release();
    assert.equal(await page.getByRole('region', { name: 'Differences' }).count(), 0);
  });
  await t.test('what a restore changes is that of its revision', async () => {
    const table = page.getByRole('table', { name: 'Revisions' });
    const dialog = page.getByRole('dialog', { name: /^Restore revision/ });
    const late = await hold(page, COMPARE);
    await table.getByRole('button', { name: 'Restore' }).nth(1).click();
    await late.arrived;
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await table.getByRole('row').filter({ hasText: 'for the browser test' }).getByRole('button', { name: 'Restore' }).click();
    await dialog.getByRole('row', { name: /Lease/ }).waitFor();
    await late.release();
    assert.equal(await dialog.getByRole('row', { name: /Lease/ }).count(), 1);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
  });
  await t.test('the one with the lease is restored, after seeing what that changes', async () => {
    const row = page.getByRole('row').filter({ hasText: 'for the browser test' });
    await row.getByRole('button', { name: 'Restore' }).click();
    const dialog = page.getByRole('dialog', { name: /^Restore revision/ });
    await dialog.getByRole('row', { name: /Lease/ }).waitFor();
    await dialog.getByRole('button', { name: 'Restore' }).click();
    await page.getByRole('status').filter({ hasText: 'Restored revision' }).waitFor();
    assert.equal((await valueOf(page, NFS, 'lease')).value, 77);
  });
  await t.test('a text that was changed during its preview is not imported', async () => {
    await node(page, where, '/configuration?view=file', 'Export and import');
    const toml = await page.locator('pre').first().filter({ hasText: 'lease' }).textContent();
    const text = page.getByLabel('or its text');
    await text.fill(toml.replace('lease = 77', 'lease = 98'));
    const late = await hold(page, /\/configuration\?dry_run/);
    await page.getByRole('button', { name: 'Preview changes' }).click();
    await late.arrived;
    await text.fill(toml.replace('lease = 77', 'lease = 99'));
    await late.release();
    assert.ok(await page.getByRole('button', { name: 'Import' }).isDisabled());
    await text.fill('');
  });
  await t.test('the configuration is exported, and another one imported after a look', async () => {
    await node(page, where, '/configuration?view=file', 'Export and import');
    const now = page.locator('pre').first();
    await now.filter({ hasText: 'lease' }).waitFor();
    const toml = await now.textContent();
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: /^Download/ }).click();
    assert.match((await download).suggestedFilename(), /\.toml$/);
    assert.ok(await page.getByRole('button', { name: 'Import' }).isDisabled());
    await page.getByLabel('or its text').fill(toml.replace('lease = 77', 'lease = 99'));
    await page.getByRole('button', { name: 'Preview changes' }).click();
    await page.getByRole('table', { name: 'Changes in this file' }).getByRole('row', { name: /Lease.*1 min 17 s.*1 min 39 s/ }).waitFor();
    await page.getByRole('button', { name: 'Import' }).click();
    await page.getByRole('status').filter({ hasText: 'Imported' }).waitFor();
    assert.equal((await valueOf(page, NFS, 'lease')).value, 99);
  });
}

async function maintenance(t, { page, where }) {
  await t.test('the system tells of itself', async () => {
    await node(page, where, '/maintenance/system', 'System');
    await page.getByText('Version', { exact: true }).waitFor();
  });
  await t.test('the log is there and goes on', async () => {
    await page.goto(`${where.url}/maintenance/logs`);
    const log = page.getByRole('log');
    await page.getByRole('status').filter({ hasText: 'live' }).waitFor();
    // A server that has just started may have said nothing.
    const nothing = log.getByText('No lines yet.');
    await log.locator('time').first().or(nothing).waitFor();
    if ((await nothing.count()) > 0) return;
    await page.getByLabel('Filter the log').fill('no line has this in it');
    await log.getByText('No matching lines.').waitFor();
  });
  await t.test('the audit log knows who changed the lease', async () => {
    await node(page, where, '/maintenance?view=audit', 'Audit');
    await page.getByLabel('Only below this path').fill(NFS);
    await page.getByRole('row').filter({ hasText: where.user }).filter({ hasText: 'Lease' }).first().waitFor();
    const narrow = await page.getByRole('columnheader').evaluateAll((all) => all.filter((one) => one.offsetWidth < 60).map((one) => one.textContent));
    assert.deepEqual(narrow, []);
  });
  await t.test('it shows the entries of the path in the field, whichever come last', async () => {
    const below = page.getByLabel('Only below this path');
    const entries = (path) => page.waitForResponse((response) => response.url().includes(`path=${encodeURIComponent(path)}`));
    const late = await hold(page, /\/audit\?.*path=%2Flab/);
    await below.fill('/lab');
    await late.arrived;
    await Promise.all([entries(NFS), below.fill(NFS)]);
    await late.release();
    assert.ok((await page.getByRole('row').filter({ hasText: 'Lease' }).count()) > 0);
  });
  await t.test('it is read once', async () => {
    const other = await page.context().newPage();
    other.setDefaultTimeout(PATIENCE);
    let reads = 0;
    other.on('request', (request) => { if (new URL(request.url()).pathname === '/api/v1/audit') reads += 1; });
    await other.clock.install();
    await other.goto(`${where.url}/maintenance?view=audit`);
    await other.getByRole('table', { name: 'Audit log' }).waitFor();
    await other.clock.runFor(60_000);
    // What its timers have begun is sent before this.
    await ofApi(other, '/session');
    assert.equal(reads, 1);
    await other.close();
  });
}

async function people(t, { page, where }) {
  await t.test('a user is made with a password that nobody sees again', async () => {
    await node(page, where, '/configuration/users', 'Users');
    await page.getByRole('button', { name: 'New user' }).click();
    const dialog = page.getByRole('dialog', { name: 'New user' });
    await dialog.getByLabel('Name', { exact: true }).fill('berta');
    await dialog.getByLabel(/^Password/).fill('short');
    await dialog.getByRole('button', { name: 'Create the user' }).click();
    await dialog.getByRole('alert').filter({ hasText: '8' }).first().waitFor();
    await dialog.getByLabel(/^Password/).fill('long enough');
    await dialog.getByRole('button', { name: 'Create the user' }).click();
    await page.getByRole('heading', { level: 1, name: 'berta' }).waitFor();
    await page.getByText('set, not shown').waitFor();
    assert.equal(await field(page, 'Password').inputValue(), '');
  });
  await t.test('a token is shown once, ready to copy', async () => {
    await node(page, where, '/configuration/tokens', 'API tokens');
    await page.getByRole('button', { name: 'New token' }).click();
    const dialog = page.getByRole('dialog', { name: 'New token' });
    await dialog.getByLabel('Name', { exact: true }).fill('monitor');
    await dialog.getByLabel('Role').selectOption('operator');
    await dialog.getByRole('button', { name: 'Create the token' }).click();
    await page.getByRole('heading', { level: 1, name: 'monitor' }).waitFor();
    await page.getByRole('button', { name: 'Issue' }).click();
    const answer = page.getByRole('dialog', { name: 'Issue: monitor' });
    await answer.getByRole('button', { name: 'Issue' }).click();
    await answer.getByRole('button', { name: 'Copy the result' }).click();
    const token = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(token.length > 16 && !token.includes('{'), token);
    await answer.getByRole('button', { name: 'Close' }).click();
    assert.equal(await page.getByText(token).count(), 0);
  });
  if (where.mock === null) return;
  await t.test('a session is ended after a question', async () => {
    await node(page, where, '/maintenance/sessions', 'Sessions');
    const row = page.getByRole('row').filter({ hasText: 'tomas' });
    await row.getByRole('button', { name: 'End' }).click();
    await page.getByRole('dialog', { name: /^End/ }).getByRole('button', { name: 'End' }).click();
    await row.waitFor({ state: 'detached' });
  });
}

async function withTheMock(t, { page, where }) {
  await t.test('what somebody else commits meanwhile is a conflict, said with the name', async () => {
    await node(page, where, NFS, 'NFS');
    await field(page, 'Lease').fill('2 min');
    await pendingBar(page).waitFor();
    where.mock.elsewhere([{ set: NFS, property: 'delegations', value: false }]);
    await commit(page).click();
    await pendingBar(page).getByRole('alert').filter({ hasText: 'changed by tomas' }).waitFor();
    await page.getByRole('button', { name: 'Commit anyway' }).click();
    await page.getByRole('status').filter({ hasText: 'Committed 1 change' }).waitFor();
    assert.equal((await valueOf(page, NFS, 'delegations')).value, false);
  });
  await t.test('what somebody else commits is seen at once', async () => {
    where.mock.elsewhere([{ set: NFS, property: 'delegations', value: true }]);
    await page.getByRole('status').filter({ hasText: 'tomas committed revision' }).waitFor();
    await page.waitForFunction(() => [...document.querySelectorAll('input[type=checkbox]')].every((box) => box.checked));
  });
  await t.test('it is told even to who has read it before', async () => {
    const tell = where.mock.untold([{ set: NFS, property: 'delegations', value: false }]);
    const box = page.getByRole('checkbox', { name: 'Delegations' });
    await box.and(page.locator(':checked')).waitFor();
    await page.getByRole('navigation', { name: 'Places' }).getByRole('link', { name: 'Configuration' }).click();
    await page.getByRole('heading', { level: 1, name: 'Configuration' }).waitFor();
    await page.getByRole('navigation', { name: 'Configuration', exact: true }).getByRole('link', { name: 'NFS', exact: true }).click();
    await box.and(page.locator(':not(:checked)')).waitFor();
    const sentence = `tomas committed revision ${(await ofApi(page, `/nodes${NFS}`)).revision}`;
    tell();
    await page.getByRole('status').filter({ hasText: sentence }).waitFor();
  });
  await t.test('what the command line gave cannot be set, and says why', async () => {
    assert.ok(await field(page, 'Domain of owners').isDisabled());
    await page.getByText('was given on the command line').waitFor();
  });
  await t.test('a role that may only look sees why nothing can be changed', async () => {
    where.mock.role({ user: 'tomas', may: false });
    await node(page, where, NFS, 'NFS');
    assert.ok(await field(page, 'Lease').isDisabled());
    await page.getByText('has no services:change').first().waitFor();
    await node(page, where, '/shares', 'Shares');
    // Until the node has come, it says that it is Loading.
    await page.getByRole('button', { name: 'New project' }).and(page.locator('[title*="shares:change"]:disabled')).waitFor();
  });
  await t.test('a place that may not be seen is not in the bar', async () => {
    where.mock.role({ user: 'berta', may: false, hidden: ['/configuration', '/maintenance'] });
    await page.goto(`${where.url}/`);
    await page.getByRole('navigation', { name: 'Places' }).getByRole('link', { name: 'Shares' }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'Configuration' }).count(), 0);
    await page.goto(`${where.url}/configuration`);
    await page.getByRole('heading', { name: 'You do not have access to this page' }).waitFor();
    where.mock.role({});
    where.mock.reset();
  });
}
