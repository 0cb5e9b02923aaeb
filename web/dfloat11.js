// Result cards, messages and fresh lists for the nodes of this pack. Without this file everything still works.

import { api } from "../../scripts/api.js";
import { app } from "../../scripts/app.js";
import { cardOf, failureOf, NODES, problemOf, readingTime } from "./card.js";

const NAME = "DFloat11 Compress";
const MARKS = { done: "✓", same: "=", warning: "!" };
let problem = "";
const shown = new Set();

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

function element(tag, style, text = "") {
  const made = document.createElement(tag);
  Object.assign(made.style, style);
  made.textContent = text;
  return made;
}

/** The place for cards on a node, made when there is something to show. */
function place(node) {
  const known = node.widgets?.find((widget) => widget.name === "df11_card");
  if (known) return known.element;
  const box = element("div", {
    boxSizing: "border-box",
    padding: "8px 10px",
    overflow: "auto",
    borderRadius: "6px",
    background: "var(--comfy-input-bg)",
    color: "var(--input-text)",
    font: "12px/1.5 system-ui, sans-serif",
    userSelect: "text",
  });
  node.addDOMWidget?.("df11_card", "DF11_CARD", box, {
    serialize: false,
    hideOnZoom: false,
    getMinHeight: () => Number(box.dataset.height),
  });
  return box;
}

function fill(node, { state, title, rows, note }) {
  const box = place(node);
  box.dataset.state = state;
  box.replaceChildren(element("div", { fontWeight: "600" }, `${MARKS[state]} ${title}`));
  const table = element("div", { display: "grid", gridTemplateColumns: "auto 1fr", columnGap: "12px" });
  for (const [label, text] of rows) {
    table.append(element("span", { opacity: "0.7" }, label));
    table.append(element("span", { overflowWrap: "anywhere" }, text));
  }
  box.append(table);
  if (note) box.append(element("div", { marginTop: "4px" }, note));
  // Long names and notes wrap; 44 letters fit a line of a node of the usual width.
  const wrapped = (text) => Math.ceil((text.length + 1) / 44);
  const lines = 1 + rows.reduce((sum, row) => sum + wrapped(row[1]), 0) + (note ? wrapped(note) : 0);
  box.dataset.height = String(24 + 18 * lines);
  const wanted = node.computeSize?.();
  if (wanted) node.setSize?.([Math.max(node.size[0], wanted[0]), Math.max(node.size[1], wanted[1])]);
  node.setDirtyCanvas?.(true, true);
}

app.registerExtension({
  name: "DFloat11Compress.Results",

  beforeRegisterNodeDef(_type, definition) {
    if (NODES.includes(definition.name)) problem ||= problemOf(definition);
  },

  nodeCreated(node) {
    if (!NODES.includes(node.comfyClass)) return;
    if (problem) fill(node, { state: "warning", title: "Native part missing", rows: [], note: problem });
    const before = node.onExecuted;
    node.onExecuted = function (output, ...rest) {
      before?.call(this, output, ...rest);
      const card = cardOf(output);
      if (card) fill(this, card);
    };
  },

  setup() {
    if (problem) {
      message("warn", problem);
      const badge = { label: `${NAME}: native part missing`, url: "", icon: "pi pi-exclamation-triangle" };
      app.registerExtension({ name: "DFloat11Compress.Missing", aboutPageBadges: [badge] });
    }
    api.addEventListener("executed", ({ detail }) => {
      const card = cardOf(detail?.output);
      // ComfyUI sends the output of an unchanged node again with every run.
      const run = `${detail?.node}: ${JSON.stringify(card)}`;
      if (!card || shown.has(run)) return;
      shown.add(run);
      message(card.state === "warning" ? "warn" : "success", card.title);
      if (card.changed) refreshLists();
    });
    api.addEventListener("execution_error", ({ detail }) => {
      const sentence = failureOf(detail);
      if (sentence) message("error", sentence);
    });
  },
});
