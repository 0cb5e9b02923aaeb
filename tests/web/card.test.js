import assert from "node:assert/strict";
import test from "node:test";

import { cardOf, failureOf, NODES, problemOf, readingTime } from "./web/card.js";

test("a card is taken from the output as the server made it", () => {
  const card = { state: "same", title: "Already done", rows: [["Size", "1 GB"]], note: "n", changed: true };
  assert.deepEqual(cardOf({ df11: [JSON.stringify(card)] }), card);
});

test("what is no card is none, and odd parts fall away", () => {
  for (const output of [undefined, null, {}, { df11: [] }, { df11: ["{"] }, { df11: ["{}"] }, { df11: ["null"] }, { text: ["x"] }])
    assert.equal(cardOf(output), null);
  const odd = { title: "t", state: "x", rows: [["a"], "b", ["c", 1]], note: 3, changed: "yes" };
  assert.deepEqual(cardOf({ df11: [JSON.stringify(odd)] }), { state: "done", title: "t", rows: [["c", "1"]], note: "", changed: false });
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

test("long messages stay longer, within bounds", () => {
  assert.ok(readingTime("short") < readingTime("x".repeat(100)));
  assert.equal(readingTime("x".repeat(10_000)), 30_000);
});
