// The Lab page against a real server: a run is started from the form, followed, and its report opened.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

/** A run of one short step on a machine that has other load (ms). */
const RUN = 180_000;

/** Every sentence and every cell of these figures is on the page, in the section and under the head of its own. */
async function shows(page, { sections }) {
  await page.locator(`#figures-${sections.at(-1).id}`).waitFor({ state: 'attached' });
  const shown = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll('main section[aria-labelledby^="figures-"]')].map((section) => [
    section.getAttribute('aria-labelledby').slice('figures-'.length),
    { heads: [...section.querySelectorAll('thead th')].map((one) => one.textContent), named: [...section.querySelectorAll('tbody tr')].map((row) => [...row.children].slice(1).map((cell) => cell.dataset.head)), sentences: [...section.querySelectorAll('li')].map((one) => one.textContent), rows: [...section.querySelectorAll('tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent)) },
  ])));
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  for (const { id, sentences, heads, rows } of sections) {
    const words = rows.length === 0 ? [] : heads.map((head) => (head === '' ? 'What' : id === 'values' ? head : capital(head)));
    // On a phone each cell has its head before it.
    assert.deepEqual(shown[id], { heads: words, named: rows.map(() => words.slice(1)), sentences, rows }, id);
  }
}

export async function lab(t, { page, where }) {
  const there = await page.evaluate(async () => (await fetch('/api/v1/nodes/lab')).ok);
  if (!there) return t.skip('this server has no lab');
  await page.goto(where.url);
  await page.getByRole('navigation', { name: 'Places' }).getByRole('link', { name: 'Lab' }).click();
  await page.getByRole('heading', { level: 1, name: 'Lab' }).waitFor();
  const runs = page.getByRole('table', { name: 'Runs', exact: true });
  await t.test('a run without a target is refused in words', async () => {
    const job = page.getByRole('listitem').filter({ has: page.getByRole('link', { name: 'iops-4k', exact: true }) });
    await job.getByRole('button', { name: 'Run' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Run' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'neither a share nor a target' }).waitFor();
  });
  await t.test('one is started from the form, followed and kept', async () => {
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Target', { exact: true }).fill('null:');
    await dialog.getByLabel('Clients', { exact: true }).fill('1');
    await dialog.getByText('More options').click();
    await dialog.getByLabel('Step', { exact: true }).fill('1');
    await dialog.getByRole('button', { name: 'Run' }).click();
    await dialog.getByText('it writes nothing').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await runs.getByRole('row').filter({ hasText: 'iops-4k' }).getByText('done', { exact: true }).first().waitFor({ timeout: RUN });
    await runs.getByRole('link', { name: /^r\d+$/ }).first().click();
    await page.getByRole('table', { name: /^Steps of/ }).waitFor();
    assert.ok(await page.getByRole('button', { name: 'Destroy' }).isEnabled());
    const abort = page.getByRole('button', { name: 'Abort' });
    assert.ok(await abort.isDisabled());
    assert.match(await abort.getAttribute('title'), /has ended/);
  });
  await t.test('its page has every figure that the API has', async () => {
    const id = page.url().split('/').at(-1);
    const found = await page.evaluate(async (of) => (await fetch(`/api/v1/lab/runs/${of}/figures`)).json(), id);
    const ids = found.sections.map((section) => section.id);
    for (const wanted of ['result', 'steps', 'command', 'archive']) assert.ok(ids.includes(wanted), `${wanted} of ${ids}`);
    await shows(page, found);
  });
  await t.test('its report draws itself, and is in an origin of its own', async () => {
    const [report] = await Promise.all([page.context().waitForEvent('page'), page.getByRole('link', { name: 'Report' }).click()]);
    await report.getByRole('heading', { name: 'Step test' }).waitFor();
    assert.equal(await report.evaluate(() => self.origin), 'null');
    await report.close();
  });
  await t.test('a program that is refused has its line and token next to the text', async () => {
    await page.goto(`${where.url}/lab`);
    await page.getByRole('button', { name: 'Run a program' }).click();
    const dialog = page.getByRole('dialog');
    const text = dialog.getByLabel('Program', { exact: true });
    await text.fill('set $a=1\nsystem "true"\n');
    await dialog.getByRole('button', { name: 'Run a program' }).click();
    await dialog.locator('[data-property="text"]').getByRole('alert').filter({ hasText: "program.f:2: at 'system'" }).waitFor();
    assert.equal(await text.getAttribute('aria-invalid'), 'true');
    await text.fill('define fileset name=s,entries=20,size=1k,dirwidth=10,prealloc\ndefine process name=p { thread name=t { flowop statfile name=look,filesetname=s } }\nrun 2\n');
    await dialog.getByLabel('Target', { exact: true }).fill('null:');
    await dialog.getByRole('button', { name: 'Run a program' }).click();
    await dialog.getByText('is queued').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await runs.getByRole('row').filter({ hasText: 'program' }).getByText('done', { exact: true }).first().waitFor({ timeout: RUN });
    await runs.getByRole('link', { name: /^r\d+$/ }).first().click();
    const acts = page.getByRole('table', { name: 'Acts', exact: true });
    await acts.getByRole('rowheader', { name: 'look' }).waitFor();
  });
  await t.test('tests of IOzone are started from the form, with a line for each block', async () => {
    await page.goto(`${where.url}/lab`);
    await page.getByRole('button', { name: "Run IOzone's tests" }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Target', { exact: true }).fill('null:');
    await dialog.getByRole('button', { name: "Run IOzone's tests" }).click();
    await dialog.getByText('is queued').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await runs.getByRole('row').filter({ hasText: 'iozone' }).getByText('done', { exact: true }).first().waitFor({ timeout: RUN });
    await runs.getByRole('link', { name: /^r\d+$/ }).first().click();
    await page.getByRole('table', { name: 'Blocks', exact: true }).getByRole('rowheader', { name: 'mixed workload' }).waitFor();
  });
  const ended = (name, state) => runs.getByRole('row').filter({ hasText: name }).getByText(state, { exact: true }).first().waitFor({ timeout: RUN });
  const entry = async (dialog, list, ...texts) => {
    const group = dialog.getByRole('group', { name: list, exact: true });
    for (const [at, text] of texts.entries()) {
      await group.getByRole('button', { name: /^Add/ }).click();
      await group.getByLabel(`${list}, entry ${at + 1}`).fill(text);
    }
  };
  await t.test('a suite is started from the form, with a line for each of its rows', async () => {
    await page.goto(`${where.url}/lab`);
    await page.getByRole('button', { name: 'Run sequential reads' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Target', { exact: true }).fill('null:');
    await dialog.getByText('More options').click();
    await dialog.getByLabel('Clients', { exact: true }).fill('1');
    await entry(dialog, 'Block sizes', '4K');
    await entry(dialog, 'Threads', '1');
    await dialog.getByRole('button', { name: 'Run sequential reads' }).click();
    await dialog.getByText('is queued').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await ended('seqread', 'done');
    await runs.getByRole('row').filter({ hasText: 'seqread' }).getByRole('link', { name: /^r\d+$/ }).first().click();
    await page.getByRole('table', { name: 'Rows', exact: true }).getByRole('rowheader', { name: 'Sequential reads of 4k' }).waitFor();
  });
  await t.test('a summary of two targets is started from the form, followed and kept', async () => {
    await page.goto(`${where.url}/lab`);
    await page.getByRole('button', { name: 'Summarise limits' }).click();
    const dialog = page.getByRole('dialog');
    await entry(dialog, 'Targets', 'nowhere');
    await dialog.getByRole('button', { name: 'Summarise limits' }).click();
    await dialog.getByRole('alert').filter({ hasText: '"nowhere" is not served' }).waitFor();
    await dialog.getByLabel('Targets, entry 1').fill('null:');
    await entry(dialog, 'Rows', 'iops-4k', 'seqread-4k');
    await dialog.getByText('More options').click();
    await dialog.getByLabel('Clients', { exact: true }).fill('1');
    await entry(dialog, 'Settings', 'schedule=[[1,1],[1,2]]');
    await dialog.getByRole('button', { name: 'Summarise limits' }).click();
    await dialog.getByText('is queued').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    // Which cell is measured, while it is.
    await page.getByRole('status').filter({ hasText: /^column 1 of 1: null; row [12] of 2: / }).first().waitFor({ timeout: RUN });
    await ended('limits', 'done');
    await runs.getByRole('row').filter({ hasText: 'limits' }).getByRole('link', { name: /^r\d+$/ }).click();
    await page.getByText('2 of 2 cells measured').first().waitFor();
    const id = page.url().split('/').at(-1);
    const found = await page.evaluate(async (of) => (await fetch(`/api/v1/lab/runs/${of}/figures`)).json(), id);
    assert.equal(found.kind, 'summary');
    await shows(page, found);
    const [report] = await Promise.all([page.context().waitForEvent('page'), page.getByRole('link', { name: 'Report' }).click()]);
    await report.getByRole('heading', { name: 'Performance Limit Summary' }).first().waitFor();
    await report.close();
  });
  await t.test('a comparison is started from the form and stopped', async () => {
    await page.goto(`${where.url}/lab`);
    await page.getByRole('button', { name: 'Compare targets' }).click();
    const dialog = page.getByRole('dialog');
    assert.ok(await dialog.getByRole('button', { name: 'Compare targets' }).isDisabled(), 'two targets are required');
    await dialog.getByLabel('A', { exact: true }).fill('null:');
    await dialog.getByLabel('B', { exact: true }).fill('null:');
    await dialog.getByLabel('Rounds', { exact: true }).fill('500');
    await dialog.getByRole('button', { name: 'Compare targets' }).click();
    await dialog.getByText('is queued').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('status').filter({ hasText: /round 1 of 500: A/ }).first().waitFor({ timeout: RUN });
    await runs.getByRole('link', { name: /^r\d+$/ }).first().click();
    await page.getByRole('button', { name: 'Abort' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Abort' }).click();
    await page.getByRole('status').filter({ hasText: /^aborted: aborted by / }).waitFor({ timeout: RUN });
    assert.equal(await page.getByRole('link', { name: 'Report' }).count(), 0);
    await page.goto(`${where.url}/lab`);
  });
  await t.test('a network profile is started from the form, followed and kept', async () => {
    await page.goto(`${where.url}/lab`);
    await page.getByRole('button', { name: 'Run network profile' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Profile', { exact: true }).selectOption('stream');
    await entry(dialog, 'Settings', 'threads=0');
    await dialog.getByRole('button', { name: 'Run network profile' }).click();
    await dialog.getByRole('alert').filter({ hasText: 'expected 1 to 4096' }).waitFor();
    await dialog.getByLabel('Settings, entry 1').fill('duration=1s');
    await dialog.getByRole('button', { name: 'Run network profile' }).click();
    await dialog.getByText('is queued').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await ended('stream', 'done');
    await runs.getByRole('row').filter({ hasText: 'stream' }).getByRole('link', { name: /^r\d+$/ }).first().click();
    await page.getByText(/\/s of payload, /).first().waitFor();
    const id = page.url().split('/').at(-1);
    const found = await page.evaluate(async (of) => (await fetch(`/api/v1/lab/runs/${of}/figures`)).json(), id);
    assert.equal(found.kind, 'net');
    await shows(page, found);
    const [report] = await Promise.all([page.context().waitForEvent('page'), page.getByRole('link', { name: 'Report' }).click()]);
    await report.getByRole('heading', { name: /^stream: 4 threads to/ }).waitFor();
    await report.close();
  });
  await t.test('results of the command line are opened, and nothing else', async () => {
    for (const file of (process.env.RESULTS ?? '').split(',').filter(Boolean)) {
      await page.goto(`${where.url}/lab`);
      await page.locator('#result').setInputFiles(file);
      await page.getByRole('button', { name: 'Close' }).waitFor();
      const sent = JSON.parse(await readFile(file, 'utf8'));
      const found = await page.evaluate(async (body) => (await fetch('/api/v1/lab/figures', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })).json(), sent);
      assert.ok(found.sections.length > 3, file);
      await shows(page, found);
      await page.getByRole('button', { name: 'Close' }).click();
      await page.getByRole('heading', { name: found.title }).waitFor({ state: 'detached' });
    }
    const choose = (name, text) => page.locator('#result').setInputFiles({ name, mimeType: 'application/json', buffer: Buffer.from(text) });
    await choose('broken.json', '{');
    await page.getByRole('alert').filter({ hasText: 'it is not JSON' }).waitFor();
    await choose('other.json', '{"kind": "sweep"}');
    await page.getByRole('alert').filter({ hasText: 'has a report of its own' }).waitFor();
  });
}
