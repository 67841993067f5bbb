// Work that comes faster than it can be shown must leave room for the frames in between.

const SLICE = 20; // milliseconds of work after which a frame is due
const PATIENCE = 100; // milliseconds after which no frame is waited for: the page may be out of view

/** Gives a function to be awaited between pieces of work; most calls come back at once. */
export function breather() {
  let since = performance.now();
  return async () => {
    if (document.hidden || performance.now() - since < SLICE) return;
    await new Promise((resolve) => {
      const late = setTimeout(resolve, PATIENCE);
      requestAnimationFrame(() => {
        clearTimeout(late);
        // Behind the frame's own work, so that it is painted before more is done.
        setTimeout(resolve);
      });
    });
    since = performance.now();
  };
}
