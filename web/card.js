// What the browser shows of a run, as data. No page and no ComfyUI in here, so it is tested by itself.

export const NODES = [
  "DFloat11Compress",
  "DFloat11CompressFolder",
  "DFloat11Inspect",
  "DFloat11Verify",
  "DFloat11Restore",
];

/**
 * The card that a node's output holds: `{state, title, rows: [[label, text], ...], note, changed}`; null without one.
 * It comes as JSON text: ComfyUI takes objects in an output for files to preview.
 */
export function cardOf(output) {
  let card;
  try {
    card = JSON.parse(output?.df11?.[0]);
  } catch {
    return null;
  }
  if (typeof card?.title !== "string") return null;
  const rows = Array.isArray(card.rows) ? card.rows : [];
  return {
    state: ["done", "same", "warning"].includes(card.state) ? card.state : "done",
    title: card.title,
    rows: rows.filter((row) => Array.isArray(row) && row.length === 2).map((row) => row.map(String)),
    note: typeof card.note === "string" ? card.note : "",
    changed: card.changed === true,
  };
}

/** What is wrong with the native part, as the server wrote it into a node's definition; empty if nothing. */
export function problemOf(definition) {
  const inputs = { ...definition?.input?.required, ...definition?.input?.optional };
  for (const input of Object.values(inputs)) {
    const problem = input?.[1]?.df11_problem;
    if (typeof problem === "string") return problem;
  }
  return "";
}

/** The sentence of a failed run of one of our nodes; null for other nodes. */
export function failureOf(event) {
  if (!NODES.includes(event?.node_type)) return null;
  const message = String(event.exception_message ?? "").trim();
  return message || "The run failed; the server's console says more.";
}

/** A message that stays as long as it takes to read, in milliseconds. */
export function readingTime(text) {
  return Math.min(30_000, 4_000 + 60 * text.length);
}
