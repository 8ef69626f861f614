// Where we are: the path and the query, and nothing else. Links are plain links; a click on one
// that stays on this site changes the state instead of loading the page.

class Router {
  path = $state(location.pathname);
  search = $state(location.search);

  constructor() {
    addEventListener('popstate', () => this.#read());
    addEventListener('click', (event) => this.#click(event));
  }

  #read(): void {
    this.path = location.pathname;
    this.search = location.search;
  }

  /** Goes to a path with its query; `replace` does not make a step to go back to. */
  go(to: string, replace = false): void {
    if (to === location.pathname + location.search) return;
    if (replace) history.replaceState(null, '', to);
    else history.pushState(null, '', to);
    const moved = this.path !== location.pathname;
    this.#read();
    if (moved && !replace) scrollTo(0, 0);
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
