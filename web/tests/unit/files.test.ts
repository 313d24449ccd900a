import { expect, test } from "@playwright/test";
import { guessSeparator, parseTable } from "../../src/runs/files/csv";
import { prettyJson } from "../../src/runs/files/jsonText";
import { isText, kindOf } from "../../src/runs/files/kind";

const bytes = (text: string) => new TextEncoder().encode(text);

test("fields in quotes may contain separators, line breaks and quotes", () => {
  const text = 'a,"b,c",d\r\n1,"two\nlines","say ""hi"""\n,,\n';
  expect(parseTable(text, ",", 10, true)).toEqual({ rows: [["a", "b,c", "d"], ["1", "two\nlines", 'say "hi"'], ["", "", ""]], more: false });
});

test("empty lines are no rows, and a quote within a field is one", () => {
  expect(parseTable('a;b\n\n\n5" pipe;x', ";", 10, true).rows).toEqual([["a", "b"], ['5" pipe', "x"]]);
});

test("the last row of a table that is cut may go on, so it is left out", () => {
  expect(parseTable("a,b\nc,d\ne,", ",", 10, false)).toEqual({ rows: [["a", "b"], ["c", "d"]], more: true });
  expect(parseTable("a,b\nc,d\ne,", ",", 10, true)).toEqual({ rows: [["a", "b"], ["c", "d"], ["e", ""]], more: false });
});

test("only so many rows are read as were asked for", () => {
  expect(parseTable("a\nb\nc\nd\n", ",", 2, true)).toEqual({ rows: [["a"], ["b"]], more: true });
  expect(parseTable("a\nb\n", ",", 2, true).more).toBe(false);
  expect(parseTable("a\nb\nc", ",", 2, true).more).toBe(true);
});

test("the separator is the one that occurs most often in the first line, outside of quotes", () => {
  expect(guessSeparator("a;b;c\n1,2,3,4,5,6")).toBe(";");
  expect(guessSeparator('"a,b,c";d\n')).toBe(";");
  expect(guessSeparator("a\tb")).toBe("\t");
  expect(guessSeparator("a|b|c,d")).toBe("|");
  expect(guessSeparator("alone")).toBe(",");
});

test("JSON is indented as it is written, with all digits", () => {
  expect(prettyJson('{"a":[1,2,{}],"b":12345678901234567890.10,"c":"x, {y}: \\"z\\"","d":[]}')).toBe(
    '{\n  "a": [\n    1,\n    2,\n    {}\n  ],\n  "b": 12345678901234567890.10,\n  "c": "x, {y}: \\"z\\"",\n  "d": []\n}',
  );
  const value = { a: [1, [2, [3]]], b: { c: null, d: true }, e: "\n\\" };
  expect(prettyJson(JSON.stringify(value))).toBe(JSON.stringify(value, null, 2));
  expect(prettyJson(JSON.stringify(value, null, "\t"))).toBe(JSON.stringify(value, null, 2));
  expect(prettyJson('"alone"')).toBe('"alone"');
});

test("what is not JSON stays as it is", () => {
  for (const text of ["", "{", "{'a': 1}", '{"a": 1} {"b": 2}']) expect(prettyJson(text)).toBeNull();
});

test("what a file contains counts more than what it is called", () => {
  const png = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0);
  expect(kindOf("table.csv", png)).toEqual({ show: "image", type: "image/png" });
  expect(kindOf("x", Uint8Array.of(0xff, 0xd8, 0xff, 0xe0))).toEqual({ show: "image", type: "image/jpeg" });
  expect(kindOf("x", bytes("GIF89a"))).toEqual({ show: "image", type: "image/gif" });
  expect(kindOf("x", bytes("RIFFxxxxWEBP"))).toEqual({ show: "image", type: "image/webp" });
  expect(kindOf("not.png", bytes("words"))).toEqual({ show: "text" });
  expect(kindOf("table.csv", Uint8Array.of(97, 0, 98))).toEqual({ show: "none" });
  expect(kindOf("a.svg", bytes("<svg/>"))).toEqual({ show: "image", type: "image/svg+xml" });
});

test("tables, JSON and texts are known by their names", () => {
  expect(kindOf("A.CSV", bytes("a"))).toEqual({ show: "table", separator: null });
  expect(kindOf("a.tsv", bytes("a"))).toEqual({ show: "table", separator: "\t" });
  expect(kindOf("a.geojson", bytes("{}"))).toEqual({ show: "json" });
  expect(kindOf("Makefile", bytes("a"))).toEqual({ show: "text" });
  expect(kindOf("", new Uint8Array())).toEqual({ show: "text" });
});

test("a text may be cut within its last character", () => {
  const all = bytes("größe 🧬");
  for (let end = 0; end <= all.length; end++) expect(isText(all.subarray(0, end))).toBe(true);
  expect(isText(Uint8Array.of(0xc3, 0x28))).toBe(false);
  expect(isText(Uint8Array.of(0xff))).toBe(false);
});
