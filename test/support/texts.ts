import type { Page } from "playwright-core";

/**
 * The visible texts of a page, or of a part of it, that are cut: they reach over the edge of a box that clips them, or of the
 * page. A box that scrolls in this direction clips nothing.
 */
export const cutTexts = (page: Page, within = "body"): Promise<string[]> =>
  page.evaluate((selector) => {
    /** Pixels. Letters such as "j" reach over their box, and positions are rounded. */
    const SLACK = 1.5;
    const cut: string[] = [];
    const root = document.querySelector(selector) ?? document.body;
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let text = walker.nextNode(); text; text = walker.nextNode()) {
      const parent = text.parentElement;
      if (!text.textContent?.trim() || !parent?.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
        continue;
      if (parent.closest("script, style, option")) continue;
      const range = document.createRange();
      range.selectNodeContents(text);
      const rects = [...range.getClientRects()].filter(({ width, height }) => width > 1 && height > 1);
      const last = rects.at(-1);
      // Half of the last letter.
      const top = last && document.elementFromPoint(last.right - 3, (last.top + last.bottom) / 2);
      // A label is seen through its blank field.
      const isClear = top instanceof HTMLInputElement && top.value === "";
      if (top && !isClear && !top.contains(parent) && !parent.contains(top))
        cut.push(`${text.textContent.trim().slice(0, 60)} (covered)`);
      for (let box: Element | null = parent; box; box = box.parentElement) {
        const { overflowX, overflowY, position, clipPath } = getComputedStyle(box);
        // Texts for screen readers only.
        if (clipPath !== "none" && position === "absolute") break;
        const { left, right, top, bottom, width, height } = box.getBoundingClientRect();
        if (width <= 1 || height <= 1) break;
        const isWide =
          /hidden|clip/.test(overflowX) && rects.some((one) => one.right > right + SLACK || one.left < left - SLACK);
        const isHigh =
          /hidden|clip/.test(overflowY) && rects.some((one) => one.bottom > bottom + SLACK || one.top < top - SLACK);
        const isOut =
          box === document.documentElement && rects.some((one) => one.right > innerWidth + SLACK || one.left < -SLACK);
        if (isWide || isHigh || isOut) {
          cut.push(text.textContent.trim().slice(0, 60));
          break;
        }
        // A fixed box is not clipped by those around it, and one that scrolls shows the rest of its texts.
        if (position === "fixed" || /auto|scroll/.test(overflowX + overflowY)) break;
      }
    }
    return cut;
  }, within);
