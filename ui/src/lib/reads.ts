// Reads of a page: repeated while it is open, and shown in the order in which they were made.

/** Reads at once, and again `pause` ms after each end, until the returned function is called. */
export function repeat(read: (first: boolean) => Promise<void>, pause: () => number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let ended = false;
  const next = (first: boolean): void => void read(first).then(() => {
    // A read that is in progress at the end has no timer yet.
    if (!ended) timer = setTimeout(() => next(false), pause());
  });
  next(true);
  return () => {
    ended = true;
    clearTimeout(timer);
  };
}

/**
 * Called as a read begins. The function that it returns is called with the response: true unless
 * a later read has had one.
 */
export function inOrder(): () => () => boolean {
  let [begun, newest] = [0, 0];
  return () => {
    const number = (begun += 1);
    return () => {
      if (number < newest) return false;
      newest = number;
      return true;
    };
  };
}
