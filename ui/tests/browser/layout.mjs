// What is wrong with how a page is laid out, as one who uses it would see it: wider than the window,
// controls that are cut or cover each other, text that runs out of its box, more than it has to draw.

/** Elements of one page, whatever there is to show. */
export const ELEMENTS_MAX = 3000;

/** Everything that is wrong on the page as it stands, each as a sentence. */
export const faults = (page) => page.evaluate((most) => {
  /** Rounding of positions (px). */
  const SLACK = 1.5;
  /** A space at the end of a broken line hangs out of its box (px). */
  const SPACE = 8;
  const CONTROLS = 'button, a[href], input, select, textarea, summary';
  const seen = (one) => one.checkVisibility({ visibilityProperty: true }) && [...one.getClientRects()].some(({ width, height }) => width > 1 && height > 1);
  const what = (one) => `${one.localName} "${(one.getAttribute('aria-label') || one.textContent || one.getAttribute('placeholder') || '').trim().replaceAll(/\s+/g, ' ').slice(0, 60)}"`;
  const above = (one) => {
    const all = [];
    for (let at = one.parentElement; at !== null; at = at.parentElement) all.push(at);
    return all;
  };
  const styles = new Map();
  const style = (one) => styles.get(one) ?? (styles.set(one, getComputedStyle(one)), styles.get(one));
  /** Stays where it is while the page scrolls below it, or is read by programs alone. */
  const isApart = (one) => [one, ...above(one)].some((at) => /fixed|sticky/.test(style(at).position) || at.matches('.hidden, .skip, [aria-hidden=true]'));
  const controls = [...document.querySelectorAll(CONTROLS)].filter((one) => seen(one) && !one.matches('.skip') && !one.closest('.hidden'));
  const found = [];
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) found.push(`the page is ${wide} px wider than the window`);
  const elements = document.querySelectorAll('*').length;
  if (elements > most) found.push(`${elements} elements; the maximum is ${most}`);

  for (const one of controls) {
    const box = one.getBoundingClientRect();
    if (box.left < -SLACK || box.right > innerWidth + SLACK) found.push(`${what(one)} is outside the window: ${Math.round(box.left)} to ${Math.round(box.right)}`);
    // A title has the rest of a text that ends in three dots.
    const cut = above(one).find((at) => style(at).overflowX === 'hidden' && style(at).textOverflow !== 'ellipsis' && (() => {
      const room = at.getBoundingClientRect();
      return box.left < room.left - SLACK || box.right > room.right + SLACK;
    })());
    if (cut) found.push(`${what(one)} is cut by ${cut.localName}.${cut.className}`);
    if (one.matches('button, a.button') && one.scrollWidth > one.clientWidth + SLACK) found.push(`the text of ${what(one)} is cut`);
  }

  /** What is further down in a box that scrolls covers nothing. */
  const inSight = (one) => {
    const rooms = above(one).filter((at) => at !== document.body && at !== document.documentElement && /auto|scroll/.test(style(at).overflowY)).map((at) => at.getBoundingClientRect());
    return [...one.getClientRects()].map(({ left, right, top, bottom }) => ({ left, right,
      top: Math.max(top, ...rooms.map((room) => room.top)), bottom: Math.min(bottom, ...rooms.map((room) => room.bottom)) }));
  };
  const rects = controls.filter((one) => !isApart(one)).map((one) => ({ one, boxes: inSight(one) }));
  for (const [at, { one, boxes }] of rects.entries()) {
    for (const { one: other, boxes: others } of rects.slice(at + 1)) {
      if (one.contains(other) || other.contains(one)) continue;
      const cover = boxes.some((a) => others.some((b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > SLACK && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > SLACK));
      if (cover) found.push(`${what(one)} and ${what(other)} cover each other`);
    }
  }

  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    const parent = node.parentElement;
    if (node.textContent.trim() === '' || parent.closest('script, style, textarea, select, option, .hidden, .skip, [aria-hidden=true]') || !parent.checkVisibility({ visibilityProperty: true })) continue;
    const block = [parent, ...above(parent)].find((at) => style(at).display !== 'inline' && style(at).display !== 'contents');
    // Boxes that scroll or end in three dots show the rest.
    if ([block, ...above(block)].some((at) => at !== document.documentElement && at !== document.body && (/auto|scroll/.test(style(at).overflowX) || style(at).textOverflow === 'ellipsis'))) continue;
    range.selectNodeContents(node);
    const room = block.getBoundingClientRect();
    const out = [...range.getClientRects()].find(({ left, right }) => left < room.left - SPACE || right > room.right + SPACE);
    if (out) found.push(`"${node.textContent.trim().slice(0, 60)}" runs ${Math.round(Math.max(room.left - out.left, out.right - room.right))} px out of ${block.localName}`);
  }
  return [...new Set(found)];
}, ELEMENTS_MAX);

/** Controls in view that something else covers. */
export const covered = (page) => page.evaluate(() => {
  /** What stays in sight while the page scrolls below it. */
  const isStuck = (one) => one !== null && (getComputedStyle(one).position === 'sticky' || isStuck(one.parentElement));
  const found = [];
  for (const one of document.querySelectorAll('main button, main a[href], main input, main select, main textarea, main summary')) {
    if (!one.checkVisibility({ visibilityProperty: true }) || one.closest('.hidden')) continue;
    const box = one.getClientRects()[0];
    if (box === undefined) continue;
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    // What is below the bar or above the bottom row can be scrolled to.
    const bar = document.querySelector('header')?.getBoundingClientRect().bottom ?? 0;
    const foot = [...document.querySelectorAll('header nav')].map((nav) => nav.getBoundingClientRect().top).find((top) => top > bar) ?? innerHeight;
    if (y <= bar || y >= foot || x < 0 || x > innerWidth) continue;
    // So can what is further down in a box that scrolls.
    const isBelow = (box) => box !== null && ((/auto|scroll/.test(getComputedStyle(box).overflowY) && !(box.getBoundingClientRect().top <= y && y <= box.getBoundingClientRect().bottom)) || isBelow(box.parentElement));
    if (isBelow(one.parentElement)) continue;
    const top = document.elementFromPoint(x, y);
    if (top === null || one.contains(top) || top.contains(one) || one.closest('label')?.contains(top) || isStuck(top)) continue;
    found.push(`${one.localName} "${(one.getAttribute('aria-label') || one.textContent).trim().slice(0, 60)}" is covered by ${top.localName}.${top.className}`);
  }
  return found;
});
