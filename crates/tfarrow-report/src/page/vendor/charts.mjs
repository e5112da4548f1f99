// The part of Observable Plot that page.js uses.
export { cell, gridY, lineY, plot, pointer, pointerX, rectY, ruleY, text, tip } from "@observablehq/plot";
