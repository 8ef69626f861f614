// Where we are: the path and the query, and nothing else. Links are plain links; a click on one
// that stays on this site changes the state instead of loading the page.

/** Browsers limit how often an address may be replaced; a turning wheel would exceed that. */
const REPLACE_MS = 150;

class Router {
  path = $state(location.pathname);
  search = $state(location.search);
  /** Asked before another page is shown; a page with something unsaved says no, and asks. */
  guard: (to: string) => boolean = () => true;
  #pending: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    addEventListener('popstate', () => {
      clearTimeout(this.#pending);
      this.#pending = undefined;
      if (!this.guard(location.pathname + location.search)) {
        // The step is already made, and which way it went is not told: make one that undoes it.
        history.pushState(null, '', this.path + this.search);
        return;
      }
      this.path = location.pathname;
      this.search = location.search;
    });
    addEventListener('pagehide', () => this.#flush());
    addEventListener('click', (event) => this.#click(event));
  }

  /** Writes a replacement that has been put off into the address bar. */
  #flush(): void {
    if (this.#pending === undefined) return;
    clearTimeout(this.#pending);
    this.#pending = undefined;
    history.replaceState(null, '', this.path + this.search);
  }

  /** Goes to a path with its query; `replace` does not make a step to go back to. */
  go(to: string, replace = false): void {
    const { pathname, search } = new URL(to, location.origin);
    if (pathname === this.path && search === this.search) return;
    if (!this.guard(pathname + search)) return;
    const moved = this.path !== pathname;
    if (!replace) {
      this.#flush();
      history.pushState(null, '', pathname + search);
    }
    this.path = pathname;
    this.search = search;
    if (replace) this.#pending ??= setTimeout(() => this.#flush(), REPLACE_MS);
    else if (moved) scrollTo(0, 0);
  }

  #click(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest?.('a');
    if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (link.pathname.startsWith('/api/')) return;
    event.preventDefault();
    this.go(link.pathname + link.search);
  }
}

export const router = new Router();
