import type { Page } from "playwright-core";

const MARGIN = 20;

/** The area of the open flow, with a margin. */
export const bounds = (page: Page) =>
  page.evaluate((margin) => {
    const parts = document.querySelectorAll(
      ".red-ui-flow-node-group, .red-ui-flow-group-outline, .red-ui-flow-link-line",
    );
    const boxes = [...parts].map((part) => part.getBoundingClientRect()).filter(({ width }) => width > 0);
    const chart = document.querySelector("#red-ui-workspace-chart")?.getBoundingClientRect() ?? { left: 0, top: 0 };
    const x = Math.max(chart.left, Math.min(...boxes.map(({ left }) => left)) - margin);
    const y = Math.max(chart.top, Math.min(...boxes.map(({ top }) => top)) - margin);
    const width = Math.max(...boxes.map(({ right }) => right)) + margin - x;
    const height = Math.max(...boxes.map(({ bottom }) => bottom)) + margin - y;
    return { x, y, width, height };
  }, MARGIN);
