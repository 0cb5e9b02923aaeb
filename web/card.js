// What the browser shows of a run, as data. No page and no ComfyUI in here, so it is tested by itself.

export const NODES = ["DFloat11Compress", "DFloat11CompressFolder", "DFloat11Inspect", "DFloat11Verify", "DFloat11Restore"];
const WRITING = ["DFloat11Compress", "DFloat11CompressFolder", "DFloat11Restore"];

/** Whether a run of this node may have put new files into the loaders' lists. */
export function writes(node) {
  return WRITING.includes(node);
}

/**
 * The report of a node, which it outputs as text, in parts: the first line is the title, "Label: text" a row,
 * "| a | b |" cells of a table, all else a line. Null where the node gave no report.
 */
export function cardOf(output) {
  const report = output?.text?.[0];
  if (typeof report !== "string" || !report.trim()) return null;
  const [title, ...lines] = report.split("\n").map((line) => line.trim());
  return { title, state: stateOf(title), parts: lines.filter(Boolean).map(partOf).filter(Boolean) };
}

function stateOf(title) {
  if (/^(Would be refused|Not enough space)|\bfailed\b/.test(title)) return "warning";
  return title.startsWith("Already") ? "same" : "done";
}

function partOf(line) {
  if (/^\|[-| ]+\|$/.test(line)) return null;
  if (line.startsWith("|") && line.endsWith("|")) {
    const cells = line.slice(1, -1).split(/(?<!\\)\|/);
    return { cells: cells.map((cell) => cell.trim().replaceAll("\\|", "|")) };
  }
  const [, label, text] = line.match(/^([A-Z][^:.]{0,40}): (.+)$/) ?? [];
  return label ? { label, text } : { text: line };
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

/** Whether the errors that the page has of a refused run, by node, hold this sentence of ours. */
export function isRefused(errors, sentence) {
  if (typeof sentence !== "string" || !sentence) return false;
  const details = Object.values(errors ?? {}).flatMap((node) => node?.errors ?? []).map((error) => error?.details);
  return details.some((text) => String(text ?? "").includes(sentence));
}

/** How long a message stays, in milliseconds: as long as it takes to read. */
export function readingTime(text) {
  return Math.min(30_000, 4_000 + 60 * text.length);
}
