import assert from "node:assert/strict";
import test from "node:test";

import { cardOf, failureOf, isRefused, NODES, problemOf, readingTime, writes } from "./web/card.js";

const parts = (...lines) => cardOf({ text: [["Done: 1 GB", ...lines].join("\n")] }).parts;

test("a report becomes title, rows, table and lines", () => {
  const card = cardOf({ text: ["Done: 2 GB -> 1 GB\nWritten to: C:\\x: y\n\nplain line.\n"] });
  assert.equal(card.title, "Done: 2 GB -> 1 GB");
  assert.deepEqual(card.parts, [{ label: "Written to", text: "C:\\x: y" }, { text: "plain line." }]);
  const table = parts("| model | size |", "|---|---|", "| a\\|b | |");
  assert.deepEqual(table, [{ cells: ["model", "size"] }, { cells: ["a|b", ""] }]);
  assert.deepEqual(parts("E_NO: not a label. Really: no"), [{ label: "E_NO", text: "not a label. Really: no" }]);
  assert.deepEqual(parts("The file x. Note: y"), [{ text: "The file x. Note: y" }]);
});

test("the title tells how it ended", () => {
  const state = (title) => cardOf({ text: [title] }).state;
  assert.equal(state("Done: 2 GB"), "done");
  assert.equal(state("Already done: 2 GB"), "same");
  for (const bad of ["Would be refused: 1 reason", "Not enough space: 3 GB", "1 compressed, 2 failed"]) assert.equal(state(bad), "warning");
});

test("no report, no card", () => {
  for (const output of [undefined, null, {}, { text: [] }, { text: [" "] }, { text: [1] }]) assert.equal(cardOf(output), null);
});

test("lists are refreshed after nodes that write", () => {
  assert.deepEqual(NODES.filter(writes), ["DFloat11Compress", "DFloat11CompressFolder", "DFloat11Restore"]);
});

test("the problem stands at any input", () => {
  assert.equal(problemOf({ input: { required: { a: [["x"], {}], b: ["INT", { df11_problem: "gone" }] } } }), "gone");
  assert.equal(problemOf({ input: { required: { a: ["STRING"] }, optional: { b: ["INT", { df11_problem: "old" }] } } }), "old");
  for (const fine of [undefined, {}, { input: {} }, { input: { required: { a: [["x"]] } } }]) assert.equal(problemOf(fine), "");
});

test("only our nodes' failures are ours", () => {
  assert.equal(failureOf({ node_type: "KSampler", exception_message: "no" }), null);
  for (const node of NODES) assert.equal(failureOf({ node_type: node, exception_message: " Disk full. [E_NO_SPACE]\n" }), "Disk full. [E_NO_SPACE]");
  assert.notEqual(failureOf({ node_type: NODES[0] }), "");
});

test("a refused run is known by our sentence among the page's errors", () => {
  const errors = { 1: { errors: [] }, 7: { errors: [{ details: "model - The model 'x' is not in the list." }] } };
  assert.ok(isRefused(errors, "The model 'x' is not in the list."));
  assert.ok(!isRefused(errors, "The model 'y' is not in the list."));
  for (const none of [undefined, null, {}, { 1: {} }, { 1: { errors: [null, {}] } }]) assert.ok(!isRefused(none, "x"));
  for (const none of [undefined, "", 1]) assert.ok(!isRefused(errors, none));
});

test("long messages stay longer, within bounds", () => {
  assert.ok(readingTime("short") < readingTime("x".repeat(100)));
  assert.equal(readingTime("x".repeat(10_000)), 30_000);
});
