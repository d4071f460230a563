#include "report/page_assets.h"

namespace fdbench::report {

// Text from result files reaches the page as text nodes and attributes alone, never as markup.
const std::string_view kPageScript = R"js(
"use strict";
(() => {
const $ = id => document.getElementById(id), all = (q, e) => [...(e || document).querySelectorAll(q)];
const table = $("rows-table"), tip = $("tip"), live = $("live");
const heads = table ? all("thead th", table) : [], keys = heads.map(h => h.dataset.k);
const body = table ? table.tBodies[0] : null, rows = body ? [...body.rows] : [];
const cell = (row, key) => row.cells[keys.indexOf(key)].textContent;

// What a mark stands for, in words.
function words(mark) {
  if (mark.dataset.t) return mark.dataset.t;
  const row = $("r" + mark.dataset.row);
  if (!row) return "";
  const c = k => cell(row, k), lines = [[c("variant"), c("tuning")].filter(x => x && x !== "default").join(" ")];
  lines.push("seq " + c("seq") + ", heads " + c("heads") + "/" + c("kv_heads") + ", dim " + c("dim") + ", " + c("dtype"));
  if (c("median_us")) lines.push(c("median_us") + " us" + (c("lo_us") ? " (95 %: " + c("lo_us") + " \u2026 " + c("hi_us") + ")" : ""));
  if (c("GBps")) lines.push(c("GBps") + " GB/s" + (c("roof_percent") ? ", " + c("roof_percent") + " % of the roof" : "") + (c("speedup") ? ", " + c("speedup") + "\u00d7 the reference" : ""));
  if (c("status") !== "ok") lines.push(c("status"));
  if (c("remarks")) lines.push(c("remarks"));
  return lines.join("\n");
}
let on = null;
function show(mark, x, y) {
  if (on) on.classList.remove("on");
  on = mark;
  tip.hidden = !mark;
  if (!mark) return;
  mark.classList.add("on");
  tip.textContent = words(mark);
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - w - 6)) + "px";
  tip.style.top = Math.max(4, y + 16 + h > innerHeight ? y - h - 10 : y + 16) + "px";
}
// Points of several curves may lie under one another's reach: the nearest is meant.
function markOf(e) {
  const mark = e.target.closest && e.target.closest(".m");
  if (!mark || !mark.matches(".pt")) return mark;
  const away = m => { const b = m.querySelector(".hit").getBoundingClientRect(); return Math.hypot(b.left + b.width / 2 - e.clientX, b.top + b.height / 2 - e.clientY); };
  return document.elementsFromPoint(e.clientX, e.clientY).map(x => x.closest(".pt")).filter(Boolean).reduce((a, b) => away(b) < away(a) ? b : a, mark);
}
document.addEventListener("pointermove", e => { const m = markOf(e); if (m) show(m, e.clientX, e.clientY); else if (on && e.pointerType !== "touch") show(null); });
document.addEventListener("click", e => { const m = markOf(e); if (m) { show(m, e.clientX, e.clientY); pick(m.dataset.row); } else show(null); });
document.addEventListener("scroll", () => { if (on && document.activeElement !== on.ownerSVGElement) show(null); }, {passive: true, capture: true});

// A chart has the focus; arrows go from mark to mark, Enter shows the row's samples.
document.addEventListener("keydown", e => {
  if (e.key === "Escape") return show(null);
  const chart = document.activeElement;
  if (!chart || !chart.matches("svg.chart")) return;
  const marks = all(".m", chart), step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
  let at = marks.indexOf(on);
  if (e.key === "Enter" && at >= 0) return pick(marks[at].dataset.row);
  if (e.key === "Home") at = 0; else if (e.key === "End") at = marks.length - 1;
  else if (step) at = at < 0 ? (step > 0 ? 0 : marks.length - 1) : (at + step + marks.length) % marks.length;
  else return;
  if (!marks.length) return;
  e.preventDefault();
  const box = marks[at].getBoundingClientRect();
  show(marks[at], box.left + box.width / 2, box.top + box.height / 2);
  live.textContent = words(marks[at]);
});
document.addEventListener("focusout", () => show(null));

// The samples of a row. Two characters a sample: its place between the row's least and greatest, in 4096 steps.
const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
function samples(row) {
  const [lo, hi, text, aside, starts] = row.dataset.s.split(";"), out = [];
  const marked = new Set(aside ? aside.split(",").map(Number) : []), first = new Set(starts ? starts.split(",").map(Number) : []);
  for (let i = 0; i * 2 < text.length; ++i) {
    const place = (digits.indexOf(text[2 * i]) * 64 + digits.indexOf(text[2 * i + 1])) / 4095;
    out.push({us: +lo + (hi - lo) * place, aside: marked.has(i), starts: first.has(i)});
  }
  return out;
}
function svg(name, attributes, parent, text) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (text !== undefined) e.textContent = text;
  if (parent) parent.append(e);
  return e;
}
const figure = $("samples"), picker = $("pick");
function draw(row) {
  const list = samples(row), W = 760, H = 300, L = 70, R = 560, T = 12, B = 262;
  const us = list.map(s => s.us), lo = Math.min(...us), hi = Math.max(...us), span = hi - lo || 1;
  const y = v => B - (B - T) * (v - lo) / span, x = i => L + (R - L) * (i + .5) / list.length;
  const chart = svg("svg", {class: "chart dist", viewBox: `0 0 ${W} ${H}`, role: "img", tabindex: 0,
    "aria-label": "Samples of " + cell(row, "variant") + " in the order taken, and how often each time was seen"});
  for (let i = 0; i <= 4; ++i) {
    const v = lo + span * i / 4;
    svg("line", {class: "grid", x1: L, x2: R, y1: y(v), y2: y(v)}, chart);
    svg("text", {class: "tick", x: L - 6, y: y(v) + 4, "text-anchor": "end"}, chart, v.toPrecision(4));
  }
  svg("text", {class: "axis", x: 4, y: T + 2}, chart, "us");
  svg("text", {class: "axis", x: R, y: H - 10, "text-anchor": "end"}, chart, "samples in the order taken; a line where a process begins");
  svg("text", {class: "axis", x: R + 20, y: H - 10}, chart, "how often");
  const c = k => parseFloat(cell(row, k));
  if (!isNaN(c("lo_us"))) svg("rect", {class: "ci", x: L, width: R - L, y: y(c("hi_us")), height: Math.max(1, y(c("lo_us")) - y(c("hi_us")))}, chart);
  svg("line", {class: "mid", x1: L, x2: R, y1: y(c("median_us")), y2: y(c("median_us"))}, chart);
  const bins = new Array(30).fill(0);
  list.forEach((s, i) => {
    if (s.starts && i) svg("line", {class: "zero", x1: x(i - .5), x2: x(i - .5), y1: T, y2: B}, chart);
    if (!s.aside) bins[Math.min(29, Math.floor((s.us - lo) / span * 30))]++;
    const t = s.us.toPrecision(4) + " us" + (s.aside ? ", set aside" : "");
    if (s.aside) svg("path", {class: "m smp aside", "data-t": t, d: `M${x(i) - 4} ${y(s.us) - 4}l8 8m0 -8l-8 8`}, chart);
    else svg("circle", {class: "m smp", "data-t": t, cx: x(i), cy: y(s.us), r: list.length > 200 ? 2 : 3.5}, chart);
  });
  const most = Math.max(...bins), step = (B - T) / 30;
  bins.forEach((n, i) => { if (n) svg("rect", {class: "hist", x: R + 20, y: B - step * (i + 1) + .5, width: (W - R - 30) * n / most, height: step - 1}, chart); });
  const old = figure.querySelector("svg");
  if (old) old.replaceWith(chart); else figure.querySelector(".scroll").append(chart);
  const aside = list.filter(s => s.aside).length;
  $("samples-note").textContent = [list.length + " samples shown", aside + " set aside (crosses)", "median " + cell(row, "median_us") + " us",
    "quartiles " + cell(row, "q1_us") + " and " + cell(row, "q3_us"), "least " + cell(row, "min_us"), "greatest " + cell(row, "max_us")].join(", ") + ".";
}
function pick(key) {
  const row = key && $("r" + key);
  if (!row) return;
  rows.forEach(r => r.classList.toggle("on", r === row));
  if (!row.dataset.s) return;
  picker.value = key;
  draw(row);
}
if (picker) {
  picker.addEventListener("change", () => pick(picker.value));
  if (picker.value) draw($("r" + picker.value));
}
if (body) body.addEventListener("click", e => { const r = e.target.closest("tr"); if (r) pick(r.id.slice(1)); });

// The table: sort, filter, copy.
const number = t => t === "" ? NaN : Number(t);
heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
  const down = head.getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
  heads.forEach(h => h.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const key = r => r.cells[column].textContent;
  const order = [...body.rows].sort((a, b) => {
    const s = key(a), t = key(b), m = number(s), n = number(t);
    if (s === "" || t === "") return (s === "") - (t === "");  // empty ones last, either way
    return sign * (isNaN(m) || isNaN(n) ? s.localeCompare(t) : m - n);
  });
  body.append(...order);
}));
const find = $("find"), status = $("status"), role = $("role");
function filter() {
  const want = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !(want.every(w => text.includes(w)) && (!status.value || cell(row, "status") === status.value) && (!role.value || cell(row, "role") === role.value));
    shown += !row.hidden;
  }
  $("count").textContent = shown + " of " + rows.length + " rows";
}
if (find) for (const e of [find, status, role]) e.addEventListener("input", filter);
const quoted = t => /[",\r\n]/.test(t) ? '"' + t.replace(/"/g, '""') + '"' : t;
function csv() {
  const lines = [keys, ...[...body.rows].filter(r => !r.hidden).map(r => [...r.cells].map(c => c.textContent))];
  return lines.map(l => l.map(quoted).join(",")).join("\r\n") + "\r\n";
}
if ($("copy")) $("copy").addEventListener("click", async () => {
  const text = csv();
  let done = false;
  try { await navigator.clipboard.writeText(text); done = true; } catch (e) {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
  }
  live.textContent = $("copy").textContent = done ? "Copied" : "Could not copy";
  setTimeout(() => { $("copy").textContent = "Copy as CSV"; }, 1500);
});
})();
)js";

const std::string_view kPageScriptSha256 = "fbinaTasELyJ/IyXbrqF+prPNwyicm+XgBVqCdjlmII=";

}  // namespace fdbench::report
