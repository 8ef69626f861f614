// How long the browser's tests wait for what a page does not have yet.

/** A machine that is shared may take this many times as long as one that is not. */
const BUSY = 4;

/** Everything is there within this time, or is missing (ms). */
export const PATIENCE = Number(process.env.PATIENCE_MS ?? BUSY * 60_000);

/** What a page has that is there at all is there soon (ms). */
export const SOON = PATIENCE / 5;
