// Scrolling of the conversation. New text never moves the view, unless the reader has scrolled to
// the end.

import { byId } from "../lib/dom.js";

const AT_END = 24; // pixels that still count as the end
const INPUT_MILLISECONDS = 600; // a scroll this soon after a gesture is the reader's own

export class Scroll {
  #scroller = byId("scroller");
  #jump = byId("jump");
  #following = false;
  #input = -Infinity; // when the reader last did something that scrolls
  #set = 0; // where the end was when the view was put there

  constructor() {
    const scroller = this.#scroller;
    const gesture = () => {
      this.#input = performance.now();
    };
    for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) {
      scroller.addEventListener(kind, gesture, { passive: true });
    }
    scroller.addEventListener(
      "scroll",
      () => {
        // Nothing but a reader moves up from where the end was: by the scrollbar, by a search in the
        // page, with keys that another part of the page got.
        const up = scroller.scrollTop < this.#set - AT_END && this.#distance() >= AT_END;
        if (up || performance.now() - this.#input < INPUT_MILLISECONDS)
          this.#following = this.#distance() < AT_END;
        this.#showJump();
      },
      { passive: true },
    );
    this.#jump.addEventListener("click", () => {
      this.#following = true;
      this.#toEnd();
    });
    const grown = new ResizeObserver(() => this.#grown());
    for (const node of [scroller, byId("thread")]) grown.observe(node);
  }

  /** Puts the beginning of `node` at the top, where reading starts. */
  show(node, behavior = calm() ? "auto" : "smooth") {
    this.#following = false;
    this.#input = -Infinity; // the press that asked for this is no scrolling of the reader's
    this.#jump.classList.remove("compact");
    const top = node.getBoundingClientRect().top - this.#scroller.getBoundingClientRect().top;
    this.#scroller.scrollBy({ top, behavior });
  }

  /** The answer is complete: stops following the end. */
  rest() {
    this.#following = false;
    // Smaller, as it covers text that may now be read; unseen for a frame: it has not jumped there.
    this.#jump.hidden = true;
    this.#jump.classList.add("compact");
    requestAnimationFrame(() => setTimeout(() => this.#showJump()));
  }

  #grown() {
    if (this.#following) this.#toEnd();
    this.#showJump();
  }

  // At once: a smooth way there is still under way when new text moves the end, and would look
  // like the reader's own.
  #toEnd() {
    this.#scroller.scrollTo({ top: this.#scroller.scrollHeight, behavior: "instant" });
    this.#set = this.#scroller.scrollTop;
  }

  #distance() {
    const { scrollHeight, scrollTop, clientHeight } = this.#scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  #showJump() {
    // The last turn fills the window: what is left below its words is not worth a jump.
    const last = this.#scroller.querySelector(".turns > .turn:last-child > :last-child");
    this.#jump.hidden = this.#following || bottom(last) - bottom(this.#scroller) < 120;
  }
}

const bottom = (node) => node?.getBoundingClientRect().bottom ?? 0;
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
