// Result cards, messages and fresh lists for the nodes of this pack. Without this file everything still works.

import { api } from "../../scripts/api.js";
import { app } from "../../scripts/app.js";
import { cardOf, failureOf, isRefused, NODES, problemOf, readingTime, writes } from "./card.js";

const NAME = "DFloat11 Compress";
const MARKS = { done: "✓", same: "=", warning: "!" };
// Pixels: of a card's text before it scrolls, and what is free above and below it: in the card, and in ComfyUI around it.
const TALLEST = 640;
const FREE = 16 + 20;
let problem = "";

function message(severity, detail) {
  app.extensionManager?.toast?.add?.({ severity, summary: NAME, detail, life: readingTime(detail) });
}

async function refreshLists() {
  try {
    await app.extensionManager.command.execute("Comfy.RefreshNodeDefinitions");
  } catch {
    await app.refreshComboInNodes?.();
  }
}

/** Every page hears of a refused run; the one that asked for it gets the answer to its request about now. */
async function refused({ detail }) {
  for (let tries = 0; tries < 50; tries += 1) {
    if (isRefused(app.lastNodeErrors, detail?.sentence)) return message("error", detail.sentence);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function element(tag, style, text = "") {
  const made = document.createElement(tag);
  Object.assign(made.style, style);
  made.textContent = text;
  return made;
}

/** The place for cards on a node, made when there is something to show. */
function place(node) {
  const known = node.widgets?.find((widget) => widget.name === "df11_card");
  if (known) return known.element.firstChild;
  const box = element("div", {
    boxSizing: "border-box",
    padding: "8px 10px",
    overflow: "auto",
    borderRadius: "6px",
    background: "var(--comfy-input-bg)",
    color: "var(--input-text)",
    font: "12px/1.5 system-ui, sans-serif",
    userSelect: "text",
    overflowWrap: "anywhere",
  });
  box.className = "df11-card";
  const content = element("div", {});
  box.append(content);
  const getMinHeight = () => Math.min(TALLEST, content.offsetHeight) + FREE;
  node.addDOMWidget?.("df11_card", "DF11_CARD", box, { serialize: false, hideOnZoom: false, getMinHeight });
  // Its height is known once it is on the page, and changes with the node's width.
  new ResizeObserver(() => {
    const wanted = node.computeSize?.();
    if (wanted && wanted[1] > node.size[1]) node.setSize?.([node.size[0], wanted[1]]);
    node.setDirtyCanvas?.(true, true);
  }).observe(content);
  return content;
}

/** Text that is broken behind the separators of paths before it is broken anywhere; copied it is as it was. */
function entryOf(style, text) {
  const made = element("span", style);
  made.append(...text.split(/(?<=[/\\])/).flatMap((part) => [part, document.createElement("wbr")]));
  return made;
}

/** The parts below each other; consecutive rows share their columns, and so do the lines of a table. */
function body(parts) {
  const all = element("div", {});
  let grid = null;
  let columns = 0;
  for (const { label, cells, text } of parts) {
    const entries = cells ?? (label ? [label, text] : [text]);
    const kind = cells ? -entries.length : entries.length;
    if (!grid || kind !== columns) {
      const template = cells ? `minmax(6em, 1fr) repeat(${entries.length - 1}, auto)` : label ? "fit-content(9em) 1fr" : "1fr";
      grid = element("div", { display: "grid", gridTemplateColumns: template, columnGap: "12px" });
      columns = kind;
      all.append(grid);
    }
    entries.forEach((entry, at) => grid.append(entryOf({ opacity: label && at === 0 ? "0.7" : "1" }, entry)));
  }
  return all;
}

function fill(node, { state, title, parts }) {
  const heading = element("div", { fontWeight: "600" }, `${MARKS[state]} ${title}`);
  place(node).replaceChildren(heading, body(parts));
}

app.registerExtension({
  name: "dfloat11compress.results",

  beforeRegisterNodeDef(_type, definition) {
    if (NODES.includes(definition.name)) problem ||= problemOf(definition);
  },

  nodeCreated(node) {
    if (!NODES.includes(node.comfyClass)) return;
    if (problem) fill(node, { state: "warning", title: "Native part missing", parts: [{ text: problem }] });
    const before = node.onExecuted;
    let last = "";
    node.onExecuted = function (output, ...rest) {
      before?.call(this, output, ...rest);
      const card = cardOf(output);
      // ComfyUI sends the output of an unchanged node again with every run.
      if (!card || last === output.text[0]) return;
      last = output.text[0];
      fill(this, card);
      message(card.state === "warning" ? "warn" : "success", card.title);
      if (writes(this.comfyClass)) refreshLists();
    };
  },

  setup() {
    if (problem) {
      message("warn", problem);
      const badge = { label: `${NAME}: native part missing`, url: "", icon: "pi pi-exclamation-triangle" };
      app.registerExtension({ name: "dfloat11compress.missing", aboutPageBadges: [badge] });
    }
    api.addEventListener("df11.refused", refused);
    api.addEventListener("execution_error", ({ detail }) => {
      const sentence = failureOf(detail);
      if (sentence) message("error", sentence);
    });
  },
});
