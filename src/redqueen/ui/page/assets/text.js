// Words and code as nodes. Whatever a model wrote becomes text nodes here, never markup.
"use strict";
const RQ = {};
{
RQ.MOST_CHARS = 20000;

// el("td", {class: "word"}, "text", node): an element; null children are left out.
RQ.el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") node.style.cssText = value;  // as an attribute the page's policy forbids it
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child != null).map((child) => child instanceof Node ? child : String(child)));
  return node;
};

RQ.fill = (node, ...children) => {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child != null));
  return node;
};

// Characters that a reader cannot see, or that turn the text around, are written out.
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/gu;
const written = (char) => {
  if (char === "\n" || char === "\t") return char;
  const code = char.codePointAt(0);
  return code < 256 ? "\\x" + code.toString(16).padStart(2, "0") : code < 65536 ? "\\u" + code.toString(16).padStart(4, "0") : `\\U${code.toString(16).padStart(8, "0")}`;
};
RQ.visible = (text) => String(text).replace(UNSEEN, written);
RQ.capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);
RQ.two = (value) => value == null ? "-" : value.toFixed(2);
RQ.count = (value) => value == null ? "-" : value < 1e10 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
RQ.short = (value) => value == null ? "-" : Math.abs(value) >= 1000 ? RQ.count(value) : String(Number(value.toPrecision(4)));
RQ.many = (count, noun) => `${RQ.count(count)} ${noun}${count === 1 ? "" : "s"}`;
// A span of time, as the terminal has it.
RQ.span = (seconds) => {
  if (seconds < 100) return `${Math.round(seconds)} s`;
  let minutes = Math.round(seconds / 60);
  if (minutes < 100) return `${minutes} min`;
  let hours = Math.floor(minutes / 60);
  minutes %= 60;
  if (hours < 48) return minutes ? `${hours} h ${minutes} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  hours %= 24;
  return hours ? `${days} d ${hours} h` : `${days} d`;
};

const KEYWORDS = new Set(("False None True and as assert async await break class continue def del elif else except finally for from global " +
  "if import in is lambda nonlocal not or pass raise return try while with yield match case").split(" "));
const TOKEN = /(#[^\n]*)|((?:\b[rRbBfFuU]{1,2})?(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))|(\b\d[\w.]*)|([A-Za-z_]\w*)(?=(\s*\()?)/g;

// The words of a program, told apart.
RQ.program = (text, pre = RQ.el("pre")) => {
  const shown = RQ.visible(text);
  let at = 0;
  pre.replaceChildren();
  for (const found of shown.matchAll(TOKEN)) {
    const [word, comment, string, number, name, call] = found;
    const kind = comment ? "c" : string ? "s" : number ? "n" : KEYWORDS.has(name) ? "k" : call ? "f" : null;
    if (!kind) continue;
    pre.append(shown.slice(at, found.index), RQ.el("span", {class: kind}, word));
    at = found.index + word.length;
  }
  pre.append(shown.slice(at));
  return pre;
};

// A program or another text; a very long text is shown in part until somebody asks for all of it.
RQ.code = (text, python = true) => {
  const whole = String(text);
  const pre = RQ.el("pre", {tabindex: "0"});
  const show = (part, told) => told ? RQ.program(part, pre) : RQ.fill(pre, document.createTextNode(RQ.visible(part)));
  if (whole.length <= RQ.MOST_CHARS) { show(whole, python); return pre; }
  show(whole.slice(0, RQ.MOST_CHARS), python);
  const more = RQ.el("button", {type: "button", onclick: () => { show(whole, false); more.remove(); }},
    `show all ${RQ.count(whole.length)} characters`);
  return RQ.el("div", {}, pre, more);
};

// What a table is sorted by: numbers as such, places by step, words as people count (t2 before t10); nothing comes last.
const ORDER = new Intl.Collator("en", {numeric: true});
const NUMBER = /^[+-]?[\d,]*\.?\d+(e[+-]?\d+)?/;
const sortKey = (cell) => {
  const content = Array.isArray(cell) ? cell[0] : cell;
  const text = (content instanceof Node ? content.textContent : String(content ?? "")).trim();
  const place = /^(\d+):(\d+)$/.exec(text);
  const found = NUMBER.exec(text);
  return {text: text === "-" ? "" : text, number: place ? Number(place[1]) * 1e9 + Number(place[2]) : found ? Number(found[0].replaceAll(",", "")) : null};
};
const sorted = (rows, {column, down}) => {
  const keyed = rows.map((row) => [sortKey(row[column]), row]);
  const numbers = keyed.every(([key]) => key.text === "" || key.number != null);
  const compare = ([a], [b]) => (a.text === "") - (b.text === "") || (down ? -1 : 1) * (numbers ? a.number - b.number : ORDER.compare(a.text, b.text));
  return keyed.sort(compare).map(([, row]) => row);
};

// A table that goes on beyond the edge of its place fades out there.
const faded = (wide) => {
  const beyond = wide.scrollWidth - wide.clientWidth;
  wide.dataset.more = `${wide.scrollLeft > 2 ? "left " : ""}${wide.scrollLeft < beyond - 2 ? "right" : ""}`.trim();
};
const edged = new ResizeObserver((entries) => {
  for (const {target} of entries) {
    const wide = target.closest(".wide");
    if (!wide) continue;
    if (target !== wide) edged.observe(wide);
    faded(wide);
  }
});
RQ.watchEdges = (table) => edged.observe(table);
document.addEventListener("scroll", (event) => { if (event.target.classList?.contains("wide")) faded(event.target); }, {capture: true, passive: true});

// heads: [text, class, what it means]; rows of cells, each a node, a text, or [content, class].
// A head sorts its column: up or down, and back to the order in which the rows came.
// Whoever was at a link of it by the keyboard is there again afterwards.
RQ.table = (table, heads, rows, caption) => RQ.stay(table, () => {
  RQ.watchEdges(table);
  const order = table.order;
  const head = ([text, kind, means], column) => {
    if (!text || rows.length < 2) return RQ.el("th", {scope: "col", class: kind, title: means}, text);
    const down = order && order.column === column ? order.down : null;
    const turn = () => {
      const words = Boolean(kind) && kind.includes("word");
      table.order = down == null ? {column, down: !words} : down === !words ? {column, down: !down} : null;
      RQ.table(table, heads, rows, caption);
    };
    return RQ.el("th", {scope: "col", class: kind, title: means, "aria-sort": down == null ? null : down ? "descending" : "ascending"},
      RQ.el("button", {type: "button", class: "sort", onclick: turn}, text));
  };
  RQ.fill(table,
    caption ? RQ.el("caption", {}, RQ.el("span", {}, caption)) : null,
    RQ.el("thead", {}, RQ.el("tr", {}, heads.map(head))),
    RQ.el("tbody", {}, (order ? sorted(rows, order) : rows).map((cells) => RQ.el("tr", {}, cells.map((cell, place) => {
      const [content, kind] = Array.isArray(cell) ? cell : [cell, heads[place] && heads[place][1]];
      return RQ.el("td", {class: kind, "data-head": heads[place] && heads[place][0]}, content);
    })))));
});

RQ.stay = (table, change) => {
  const at = table.contains(document.activeElement) ? document.activeElement.textContent : null;
  change();
  if (at != null) RQ.focusLink(table, at);
  return table;
};
RQ.focusLink = (table, text) => {
  const link = [...table.querySelectorAll("button")].find((each) => each.textContent === text);
  if (link) link.focus({preventScroll: true});
};
}
