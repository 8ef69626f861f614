// Screenshots of every page, desktop and phone, light and dark, to be opened and looked at. Against
// the mock, or against BASE_URL with whatever load is on it; the busiest clients and the busiest file
// are the ones that are drilled into.
//   npm run shots [DIRECTORY]        default /tmp/ui-shots
//   SHOTS=status,analytics           only these pages
//   SIZE=desktop SCHEME=light        only this size, only this scheme
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { launch, target } from './browser/chromium.mjs';

const OUT = process.argv[2] ?? '/tmp/ui-shots';
const SIZES = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
const only = (name, all) => (process.env[name] ? process.env[name].split(',') : all);

async function signIn(page, { url, user, password }) {
  await page.goto(`${url}/login`);
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Places' }).waitFor();
}

/** The keys of the elements that did most in the last minute, ready for a URL. */
async function busiest(page, stat) {
  const keys = await page.evaluate(async (id) => {
    const answer = await fetch(`/api/v1/analytics/data?stat=${encodeURIComponent(id)}&from=-60&to=-1`);
    return answer.ok ? ((await answer.json()).rows ?? []).map((row) => row.key) : [];
  }, stat);
  return keys.map(encodeURIComponent);
}

/** Waits for data, not for time: every list beside a graph has a row. */
async function drawn(page) {
  for (const panel of await page.getByRole('article').all()) await panel.locator('.row').first().waitFor({ timeout: 10_000 });
  await page.waitForTimeout(1200);
}

const open = async (page, where, sheet) => {
  await page.goto(`${where.url}/analytics${sheet}`);
  await drawn(page);
};

/** A page made from the tree, once its heading and all that it reads are there. */
async function node(page, { url }, path, heading) {
  await page.goto(url + path);
  await page.getByRole('heading', { level: 1, name: heading }).waitFor();
  await page.getByText('Loading', { exact: true }).waitFor({ state: 'detached' });
}

const PAGES = {
  login: async (page, { url }) => {
    await page.context().clearCookies();
    await page.goto(`${url}/login`);
    await page.getByLabel('User').waitFor();
  },
  status: async (page, { url }) => {
    await page.goto(url);
    await page.locator('[data-live="rate"]').first().waitFor({ timeout: 5000 }).catch(() => undefined);
    // The latencies per client come with their own stream, two seconds later.
    await page.waitForFunction(() => !document.querySelector('section[aria-labelledby="clients"] tbody')?.textContent?.includes('–'));
  },
  analytics: async (page, where) => {
    const clients = await busiest(page, 'nfs3.ops[client]');
    await open(page, where, `?w=nfs3.ops[client]!hl=${clients.slice(0, 5).join()}&w=nfs3.ops[latency]&w=cpu.utilization[mode]&span=180`);
    await page.getByRole('img').first().hover({ position: { x: 180, y: 60 } });
  },
  chain: async (page, where) => {
    const [client] = await busiest(page, 'nfs3.ops[op=read][client]');
    const [file] = await busiest(page, `nfs3.ops[op=read][client=${client}][file]`);
    const chain = `nfs3.ops[op=read][client=${client}]`;
    await open(page, where, `?w=${chain}[file]!hl=${file ?? ''}&w=${chain}[latency]&w=nfs3.ops[user]&w=nfs3.bytes[op]!line`);
  },
  machine: async (page, where) => {
    await open(page, where, '?w=cpu.utilization[mode]&w=nic.kilobytes[device]&w=io.bytes[op]&w=mem.bytes[use]');
  },
  long: (page, where) => open(page, where, '?w=nfs3.ops[client]&w=nfs3.ops[latency]&w=nfs3.ops[op]&span=3600'),
  empty: (page, where) => page.goto(`${where.url}/analytics`),
  add: async (page, where) => {
    await page.goto(`${where.url}/analytics`);
    await page.getByRole('button', { name: 'Add statistic' }).click();
  },
  drill: async (page, where) => {
    await open(page, where, '?w=nfs3.ops[client]&w=nfs3.ops[latency]');
    await page.getByRole('article').first().locator('.row').first().click({ button: 'right' });
    await page.getByRole('menu').waitFor();
  },
  nfs: async (page, { url }) => {
    await page.goto(`${url}/nfs`);
    await page.getByRole('table', { name: 'NFS clients' }).waitFor();
  },
  'nfs-one': async (page, { url }) => {
    await page.goto(`${url}/nfs`);
    await page.getByRole('table', { name: 'NFS clients' }).getByRole('link').nth(1).click();
    await page.getByRole('region', { name: 'Locked' }).waitFor();
  },
  'nfs-expire': async (page, { url }) => {
    await page.goto(`${url}/nfs`);
    await page.getByRole('table', { name: 'NFS clients' }).getByRole('link').first().click();
    await page.getByRole('button', { name: 'Expire', exact: true }).click();
    await page.getByRole('dialog').waitFor();
  },
  configuration: (page, where) => node(page, where, '/configuration', 'Configuration'),
  service: (page, where) => node(page, where, '/configuration/services/nfs', 'NFS'),
  pending: async (page, where) => {
    await node(page, where, '/configuration/services/nfs', 'NFS');
    await page.getByLabel('Lease', { exact: true }).fill('2 min');
    await page.getByLabel('Delegations', { exact: true }).uncheck();
    await page.getByLabel('Reply cache', { exact: true }).fill('3 KiB');
    await page.getByRole('region', { name: /not committed/ }).waitFor();
  },
  users: (page, where) => node(page, where, '/configuration/users', 'Users'),
  user: (page, where) => node(page, where, '/configuration/users/admin', 'admin'),
  'user-new': async (page, where) => {
    await node(page, where, '/configuration/users', 'Users');
    await page.getByRole('button', { name: 'New user' }).click();
    await page.getByRole('dialog', { name: 'New user' }).waitFor();
  },
  service: (page, where) => node(page, where, '/configuration/services/nfs', 'NFS'),
  'service-disable': async (page, where) => {
    await node(page, where, '/configuration/services/nfs', 'NFS');
    await page.getByRole('button', { name: 'Disable', exact: true }).click();
    await page.getByRole('dialog', { name: 'Disable NFS?' }).waitFor();
  },
  history: async (page, where) => {
    await node(page, where, '/configuration?view=history', 'History');
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.getByRole('region', { name: 'Differences' }).waitFor();
  },
  restore: async (page, where) => {
    await node(page, where, '/configuration?view=history', 'History');
    await page.getByRole('button', { name: 'Restore' }).last().click();
    await page.getByRole('dialog').getByRole('table').waitFor();
  },
  file: (page, where) => node(page, where, '/configuration?view=file', 'Export and import'),
  shares: async (page, where) => {
    await node(page, where, '/shares', 'Shares');
    await page.getByRole('table').first().waitFor();
  },
  share: async (page, where) => {
    await node(page, where, '/shares', 'Shares');
    await page.getByRole('table').first().getByRole('rowheader').first().getByRole('link').click();
    await page.getByRole('region', { name: 'Settings' }).waitFor();
  },
  'share-new': async (page, where) => {
    await node(page, where, '/shares', 'Shares');
    await page.getByRole('button', { name: /^New share/ }).first().click();
    await page.getByRole('dialog').waitFor();
  },
  'share-destroy': async (page, where) => {
    await PAGES.share(page, where);
    await page.getByRole('button', { name: 'Destroy' }).click();
    await page.getByRole('dialog').waitFor();
  },
  maintenance: (page, where) => node(page, where, '/maintenance', 'Maintenance'),
  system: (page, where) => node(page, where, '/maintenance/system', 'System'),
  log: async (page, where) => {
    await node(page, where, '/maintenance/logs', /Logs?/);
    await page.getByRole('log').locator('time').first().waitFor();
  },
  sessions: (page, where) => node(page, where, '/maintenance/sessions', 'Sessions'),
  audit: async (page, where) => {
    await node(page, where, '/maintenance?view=audit', 'Audit');
    await page.getByRole('table').waitFor();
  },
  lab: async (page, where) => {
    await node(page, where, '/lab', 'Lab');
    await page.getByRole('list', { name: 'Jobs' }).getByRole('button', { name: 'Run' }).first().waitFor();
  },
  'lab-run-form': async (page, where) => {
    await PAGES.lab(page, where);
    await page.getByRole('list', { name: 'Jobs' }).getByRole('button', { name: 'Run' }).first().click();
    await page.getByRole('dialog').waitFor();
  },
  'lab-run': async (page, where) => {
    await PAGES.lab(page, where);
    await page.getByRole('table', { name: 'Runs', exact: true }).getByRole('link', { name: /^r\d+$/ }).first().click();
    await page.getByRole('table', { name: /^Staircase/ }).waitFor();
  },
  'search-setting': async (page, { url }) => {
    await page.goto(url);
    await page.getByRole('navigation', { name: 'Places' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('lease');
    await page.getByRole('option').first().waitFor();
  },
  search: async (page, { url }) => {
    await page.goto(url);
    await page.getByRole('navigation', { name: 'Places' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('lat');
  },
};

async function all(page, where, name) {
  // What is pending on one page is given up for the next one.
  page.on('dialog', (question) => void question.accept());
  await signIn(page, where);
  // The sign-in page last: it is looked at signed out.
  const wanted = only('SHOTS', Object.keys(PAGES)).sort((a, b) => (a === 'login' ? 1 : 0) - (b === 'login' ? 1 : 0));
  for (const one of wanted) {
    try {
      await PAGES[one](page, where);
    } catch (error) {
      console.log(`${one}-${name}: ${String(error).split('\n')[0]}`);
    }
    await page.screenshot({ path: join(OUT, `${one}-${name}.png`) });
    if (one !== 'status' && !name.startsWith('phone')) continue;
    await page.screenshot({ path: join(OUT, `${one}-full-${name}.png`), fullPage: true });
  }
}

const browser = await launch();
if (browser !== null) {
  await mkdir(OUT, { recursive: true });
  const where = await target();
  for (const size of only('SIZE', Object.keys(SIZES))) {
    for (const colorScheme of only('SCHEME', ['light', 'dark'])) {
      const context = await browser.newContext({ viewport: SIZES[size], colorScheme, ignoreHTTPSErrors: true, hasTouch: size === 'phone' });
      await all(await context.newPage(), where, `${size}-${colorScheme}`);
      await context.close();
    }
  }
  await browser.close();
  where.mock?.close();
  console.log(`Screenshots are in ${OUT}`);
}
