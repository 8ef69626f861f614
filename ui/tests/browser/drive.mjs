// A browser that does what it is told, one JSON line each way: for tests that compare the three ways
// of administration. Everything is done as people do it: by links, fields, buttons and questions.
//   {"do": "open", "url", "user", "password"}   then any of WAYS below; answers {"ok": …} or {"error": "…"}
import { createInterface } from 'node:readline';
import { launch } from './chromium.mjs';
import { PATIENCE, SOON } from './patience.mjs';
import { localTime, read as readText, readLocalTime } from '../../src/lib/kinds.ts';

/** What is said against something stays at least this long if it is meant (ms). */
const MEANT = 3000;

let page = null;
let base = '';
const complaints = [];

const step = (to) => page.evaluate((address) => {
  history.pushState(null, '', address);
  dispatchEvent(new PopStateEvent('popstate'));
}, to);

/** Goes to an address without loading the program anew, as a link does; by way of no page, so that what
 * is shown is read anew. */
async function go(to) {
  await step('/nowhere');
  await page.getByRole('heading', { name: 'Page not found' }).waitFor();
  await step(to);
}

const addressOf = (path) => path.split('/').map(encodeURIComponent).join('/');
const button = (where, name) => where.getByRole('button', { name, exact: true });
const dialog = (name) => page.getByRole('dialog', { name });
// What is set on an alert's page: words of its sentence, and fields.
const settings = () => page.getByRole('region', { name: 'Settings' }).or(page.getByRole('group', { name: 'The alert as a sentence' }));
const rowOf = (where, { name }) => where.locator(`[data-property="${name}"]`);

async function node(path) {
  await go(addressOf(path));
  await page.locator(`[data-node="${path}"]`).waitFor();
}

/** A field of a form; a property without one is what the tests look for. */
async function fieldOf(where, property) {
  const row = rowOf(where, property);
  if ((await row.count()) === 0) throw new Error(`no field for ${property.name}`);
  const label = row.getByText(property.title, { exact: true }).or(row.getByRole('group', { name: property.title, exact: true })).or(row.getByLabel(property.title));
  if ((await label.count()) === 0) throw new Error(`the field of ${property.name} is not called ${property.title}`);
  return row;
}

async function enter(where, property) {
  const row = await fieldOf(where, property);
  const { kind, value } = property;
  const control = row.locator('input, select, textarea').first();
  if (kind.type !== 'list' && (await control.isDisabled())) throw new Error(`${property.name} cannot be changed: ${await control.getAttribute('title')}`);
  if (kind.type === 'bool') await control.setChecked(value);
  else if (kind.type !== 'list' && (await control.evaluate((one) => one.localName)) === 'select') await control.selectOption(value);
  else if (kind.type === 'time') await control.fill(localTime(value));
  else if (kind.type !== 'list') await control.fill(String(value));
  else if ((await row.getByRole('button', { name: 'Add an entry' }).count()) === 0) await control.fill(value.join(', '));
  else {
    const first = row.getByRole('button', { name: 'Remove entry 1', exact: true });
    for (let left = await row.locator('li input').count(); left > 0; left -= 1) await first.click();
    for (const [at, one] of value.entries()) {
      await row.getByRole('button', { name: 'Add an entry' }).click();
      await row.locator('li input').nth(at).fill(String(one));
    }
  }
}

/** The first of several things that comes to be; the name of which it was. */
const first = (waits) => Promise.any(Object.entries(waits).map(async ([name, locator]) => (await locator.first().waitFor(), name)));

const pending = () => page.getByRole('region', { name: /pending|No pending changes/ });

/** Commits what waits; what is said against it, if it is refused. What is found wrong between two changes
 * that go together is gone again when both are there. */
async function commit() {
  const done = page.getByRole('status').filter({ hasText: /^Committed/ });
  const question = page.getByRole('dialog').locator('.danger, .primary').last();
  const wrong = settings().locator('.wrong:not(:empty)').or(pending().getByRole('alert')).or(pending().locator('.why'));
  const end = Date.now() + PATIENCE;
  let said = '';
  for (let since = end; Date.now() < end && Date.now() - since < MEANT; await page.waitForTimeout(50)) {
    if ((await done.count()) > 0) return done.textContent();
    // What cuts clients off asks once more.
    if ((await question.count()) > 0) await question.click();
    said = [...new Set(await wrong.allTextContents())].join(' ').trim();
    if (said !== '') since = Math.min(since, Date.now());
    else {
      since = end;
      await button(pending(), 'Commit').click({ timeout: 500 }).catch(() => undefined);
    }
  }
  await button(pending(), 'Abort').click();
  throw new Error(`refused: ${said}`);
}

async function readOne(row, { kind, role }) {
  if (role === 'secret') return (await row.locator('.source').textContent()).includes('set, not shown');
  if (kind.type === 'list' && (await row.getByRole('button', { name: 'Add an entry' }).count()) === 0) {
    return (await row.locator('input').inputValue()).split(',').map((part) => part.trim()).filter((part) => part !== '');
  }
  if (kind.type === 'list') {
    const all = await row.locator('li input').evaluateAll((inputs) => inputs.map((input) => input.value));
    return all.map((text) => readText(kind.of, text).value);
  }
  const control = row.locator('input, select, textarea').first();
  if (kind.type === 'bool') return control.isChecked();
  const text = await control.inputValue();
  if (text === '') return null;
  return kind.type === 'time' ? readLocalTime(text) : readText(kind, text).value;
}

/** Why a control cannot be used, or null. */
const whyNot = async (one) => ((await one.isDisabled()) ? ((await one.getAttribute('title')) ?? '') : null);

/** An item's tools or a node's action: the button must be there and say why if it cannot be used. */
async function usable(where, name) {
  const one = button(where, name).first();
  await one.waitFor({ timeout: SOON });
  // A page that is still reading has not decided yet.
  const end = Date.now() + SOON;
  while (/^$|Loading/.test((await whyNot(one)) ?? 'usable') && Date.now() < end) await page.waitForTimeout(20);
  if (await one.isDisabled()) throw new Error(`${name} is disabled: ${await one.getAttribute('title')}`);
  return one;
}

/** Clicks a button that can be used. It may be disabled between the look and the click, as its run ends: then why. */
async function press(where, name) {
  const one = await usable(where, name);
  try {
    await one.click({ timeout: SOON });
  } catch {
    await (await usable(where, name)).click();
  }
}

/** Waits until a dialog is gone; what it says, if it stays. */
async function closed(question, submit) {
  await question.getByRole('button', { name: submit }).click();
  const end = Date.now() + PATIENCE;
  let why = '';
  for (let since = end; Date.now() < end && Date.now() - since < MEANT; await page.waitForTimeout(50)) {
    if (!(await question.isVisible())) return;
    const alerts = await question.getByRole('alert').allTextContents().catch(() => []);
    why = alerts.filter((text) => text !== '').join(' ');
    since = why === '' ? end : Math.min(since, Date.now());
  }
  await page.keyboard.press('Escape');
  throw new Error(`refused: ${why}`);
}

const WAYS = {
  async open({ url, user, password }) {
    base = url.replace(/\/$/, '');
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ignoreHTTPSErrors: true });
    await page?.context().close();
    page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    page.on('pageerror', (error) => complaints.push(String(error)));
    await page.goto(`${base}/login`);
    await page.getByLabel('User').fill(user);
    await page.getByLabel('Password').fill(password);
    await button(page, 'Sign in').click();
    await page.getByRole('navigation', { name: 'Places' }).waitFor();
  },
  async set({ path, properties }) {
    await node(path);
    for (const property of properties) await enter(settings(), property);
    await pending().waitFor();
    return commit();
  },
  async unset({ path, properties }) {
    await node(path);
    for (const property of properties) {
      const row = await fieldOf(settings(), property);
      const unset = button(row, `${property.role === 'secret' ? 'Remove' : 'Unset'} ${property.title}`);
      if ((await unset.count()) > 0) await unset.click();
      // A word of a sentence goes back to what holds without it, or is emptied.
      else await enter(settings(), { ...property, value: property.default ?? '' });
    }
    await pending().waitFor();
    return commit();
  },
  async read({ path, properties }) {
    await node(path);
    const found = {};
    for (const property of properties) found[property.name] = await readOne(await fieldOf(settings(), property), property);
    return found;
  },
  async create({ path, noun, name, properties }) {
    await go(addressOf(path));
    await press(page, `New ${noun}`);
    const form = dialog(`New ${noun}`);
    await form.getByLabel('Name', { exact: true }).first().fill(name);
    const more = form.locator('details:not([open]) > summary');
    if ((await more.count()) > 0) await more.click();
    for (const property of properties) await enter(form, property);
    const submit = button(form, `Create the ${noun}`);
    if (await submit.isDisabled()) throw new Error(`it cannot be made: ${await submit.getAttribute('title')}`);
    await closed(form, `Create the ${noun}`);
    await page.locator(`[data-node="${path}/${name}"]`).waitFor();
  },
  async rename({ path, to }) {
    await node(path);
    await press(page, 'Rename');
    const form = dialog(/^Rename /);
    await form.getByLabel('New name').fill(to);
    await closed(form, 'Rename');
  },
  async destroy({ path }) {
    await node(path);
    await press(page, 'Destroy');
    await closed(dialog(/^Destroy /), 'Destroy');
  },
  /** Up to its question, or all of it; what it says then. */
  async act({ path, action, invoke }) {
    await node(path);
    // What only shows something does so on a page of its own, which can be narrowed by the same things; spans and
    // numbers have their own forms there.
    if (action.reads) {
      const narrowing = action.parameters.filter(({ kind }) => !['time', 'integer'].includes(kind.type));
      for (const { title } of narrowing) await page.getByLabel(new RegExp(`^${title}`)).first().waitFor();
      return 'shown';
    }
    // A page of its own may have an action beside its content.
    const head = page.locator(`[data-node="${path}"], [data-actions-of="${path}"]`);
    await press(head, action.title);
    const form = dialog(new RegExp(`^${action.title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`));
    if (!action.destructive && action.parameters.length === 0) {
      const done = page.getByRole('status').filter({ hasText: /done|is confirmed|is restored/ });
      return first({ done, answered: form });
    }
    for (const property of action.parameters) await fieldOf(form, property);
    if (!invoke) {
      await page.keyboard.press('Escape');
      return 'asked';
    }
    await button(form, action.title).click();
    return first({ done: page.getByRole('status').filter({ hasText: 'done' }), answered: form.getByRole('button', { name: 'Close' }), refused: form.getByRole('alert').filter({ hasText: /\S/ }) });
  },
  /** Goes to a page and stays there. */
  async stay({ path }) {
    await go(addressOf(path));
    await page.getByRole('heading', { level: 1 }).waitFor();
  },
  /** A page with these words at two widths, light and dark: nothing is wider than the window. With SHOTS_DIR it is
   * photographed. */
  async looks({ path, name, words }) {
    const before = page.viewportSize();
    const wide = [];
    for (const [width, colorScheme] of [[1440, 'dark'], [1440, 'light'], [390, 'dark'], [390, 'light']]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await go(addressOf(path));
      for (const word of words) await page.getByText(word).filter({ visible: true }).first().waitFor();
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) wide.push(`${over} px too wide at ${width}`);
      if (process.env.SHOTS_DIR) await page.screenshot({ path: `${process.env.SHOTS_DIR}/${name}-${width}-${colorScheme}.png`, fullPage: true });
    }
    await page.setViewportSize(before);
    if (wide.length > 0) throw new Error(wide.join(', '));
  },
  /** Waits until a list of the open page has an entry with these words, or has none any more. */
  async listed({ list, text, there }) {
    const entry = page.getByRole('list', { name: list }).getByRole('listitem').filter({ hasText: text });
    await entry.first().waitFor({ state: there ? 'visible' : 'detached' });
  },
  /** Steps on the open page, or in its dialog while one is open: `shows` words, `press` a button (of the entry of a list
   * with the words `of`; `opens` a dialog), `fill` a field, `choose` what has this title. */
  async use({ steps }) {
    const asked = page.getByRole('dialog');
    for (const step of steps) {
      const area = (await asked.count()) > 0 ? asked.last() : page;
      const where = step.of === undefined ? area : area.getByRole('listitem').filter({ hasText: step.of });
      if (step.shows !== undefined) await page.getByText(step.shows).filter({ visible: true }).first().waitFor();
      if (step.fill !== undefined) await area.getByLabel(step.fill, { exact: true }).first().fill(step.with);
      if (step.choose !== undefined) {
        const label = area.locator('label').filter({ has: page.getByText(step.choose, { exact: true }) });
        await label.locator('input').or(area.getByLabel(step.choose, { exact: true })).first().check();
      }
      if (step.press === undefined) continue;
      const inside = await asked.count();
      await where.getByRole('button', { name: step.press, exact: step.of === undefined }).first().click();
      if (step.opens) await asked.last().waitFor();
      if (inside === 0) continue;
      // A dialog answers by closing or by a result that is to be closed, or says why not.
      const alert = asked.getByRole('alert').filter({ hasText: /\S/ });
      const came = await first({ refused: alert, answered: button(asked, 'Close'), closed: page.locator('body:not(:has(dialog[open]))') });
      if (came === 'refused') throw new Error(`refused: ${await alert.first().textContent()}`);
      if (came === 'answered') await button(asked, 'Close').click();
      await asked.waitFor({ state: 'detached' });
    }
  },
  /** What a button or a field that may not be used says about it. */
  async why({ path, name }) {
    await go(addressOf(path));
    const one = button(page, name).or(page.getByLabel(name, { exact: true })).first();
    await one.waitFor();
    const end = Date.now() + SOON;
    while (/Loading/.test((await whyNot(one)) ?? '') && Date.now() < end) await page.waitForTimeout(20);
    return whyNot(one);
  },
  async export() {
    await go('/configuration?view=file');
    const text = page.locator('pre').first();
    await text.filter({ hasText: 'format = 1' }).waitFor();
    return text.textContent();
  },
  async import({ text }) {
    await go('/configuration?view=file');
    await page.getByLabel('or its text').fill(text);
    await button(page, 'Preview changes').click();
    await page.getByRole('table', { name: 'Changes in this file' }).waitFor();
    await button(page, 'Import').click();
    return page.getByRole('status').filter({ hasText: /^Imported/ }).textContent();
  },
  /** Goes by the search box: types, waits for a hit of this kind and name, presses Enter there. */
  async search({ text, kind, name }) {
    await page.keyboard.press('/');
    await page.keyboard.type(text);
    const hit = page.getByRole('option').filter({ has: page.locator('.kind', { hasText: kind }) }).filter({ has: page.locator('.name', { hasText: new RegExp(`^${name}$`) }) });
    await hit.first().click();
    return decodeURIComponent(new URL(page.url()).pathname);
  },
  /** Waits until a graph has a row with these words. */
  async seen({ sheet, words }) {
    await go(`/analytics?${sheet}`);
    for (const word of words) await page.locator('article .row').filter({ hasText: word }).first().waitFor({ timeout: 3 * PATIENCE });
  },
  /** The first steps: what they have, that their links lead somewhere, and that they go when closed. */
  async guide() {
    await go('/');
    const guide = page.getByRole('region', { name: 'First steps' });
    const shown = await guide.waitFor().then(() => true, () => false);
    if (!shown) return null;
    const links = await guide.getByRole('link').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
    for (const link of links) {
      await go(link);
      await page.getByRole('heading', { level: 1 }).or(page.getByRole('toolbar')).first().waitFor();
      if ((await page.getByText('Page not found').count()) > 0) throw new Error(`${link} leads nowhere`);
    }
    const wide = [];
    for (const [width, colorScheme] of [[390, 'dark'], [390, 'light'], [1280, 'dark'], [1280, 'light']]) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await go('/');
      await guide.waitFor();
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) wide.push(`${over} px too wide at ${width}`);
      if (process.env.SHOTS_DIR) await page.screenshot({ path: `${process.env.SHOTS_DIR}/guide-${width}-${colorScheme}.png` });
    }
    if (wide.length > 0) throw new Error(wide.join(', '));
    const text = await guide.textContent();
    await button(guide, 'Close the first steps').click();
    await guide.waitFor({ state: 'detached' });
    await page.getByRole('status').filter({ hasText: /./ }).first().waitFor({ timeout: 1000 }).catch(() => undefined);
    return { text, links };
  },
  async complaints() {
    return complaints;
  },
};

/** One line, without what is only there for people at a terminal. */
// eslint-disable-next-line no-control-regex
const sentence = (error) => String(error?.message ?? error).replace(/\u001b\[\d+m/g, '').split('\n').slice(0, 6).join(' | ');

const browser = await launch();
if (browser === null) process.exit(3);
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = { ok: (await WAYS[request.do](request)) ?? null };
  } catch (error) {
    answer = { error: sentence(error instanceof AggregateError ? error.errors[0] : error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
