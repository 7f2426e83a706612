"use strict";
// Draws two loads side by side on one time axis. Text goes in by textContent only: names of
// resources come from pages and are never markup.
(function () {
  const data = JSON.parse(document.getElementById("waterfall-data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const PHASES = ["blocked", "dns", "connect", "send", "wait", "receive"];
  const ROW = 17, TOP = 40;
  const sides = ["left", "right"].map(function (name) {
    return {
      select: document.getElementById("load-" + name),
      title: document.getElementById("title-" + name),
      box: document.getElementById("fall-" + name),
      detail: document.getElementById("detail-" + name),
    };
  });
  const difference = document.getElementById("fall-difference");
  if (!data.loads.length || !sides[0].select) return;

  function node(parent, name, attributes, text) {
    const made = document.createElementNS(SVG, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }
  function ms(tenths) { return (tenths / 10).toFixed(1) + " ms"; }
  function end(row) { return row.slice(1, 8).reduce(function (a, b) { return a + b; }, 0); }
  function shorten(url, letters) {
    const path = url.replace(/^[a-z]+:\/\//, "");
    const host = path.split("/")[0], tail = path.slice(host.length);
    const shown = tail.length > 1 ? tail : host;
    return shown.length > letters ? "…" + shown.slice(1 - letters) : shown;
  }
  function step(span) {
    const unit = Math.pow(10, Math.floor(Math.log10(span / 4)));
    return [1, 2, 5, 10].map(function (n) { return n * unit; })
      .find(function (s) { return span / s <= 5; });
  }
  function describe(row) {
    const phases = PHASES.map(function (name, i) {
      return row[2 + i] ? name + " " + ms(row[2 + i]) : "";
    }).filter(Boolean).join(", ");
    return data.urls[row[0]] + ": status " + row[8] + ", " + row[9].toLocaleString("en") +
      " B, starts at " + ms(row[1]) + (phases ? " (" + phases + ")" : "");
  }
  function compare(left, right) {
    const saved = left.plt - right.plt;
    if (left === right) return "Both sides show the same load.";
    const how = left.pair === right.pair
      ? { right: right.arm || "The right load", left: left.arm || "the left load" }
      : { right: "the right load", left: "the left load" };
    const text = saved === 0
      ? how.right + ": complete after the same time as " + how.left + "."
      : how.right + ": complete " + ms(Math.abs(saved)) + " (" +
        (left.plt ? (Math.abs(saved) / left.plt * 100).toFixed(1) : "–") + " %) " +
        (saved > 0 ? "sooner" : "later") + " than " + how.left + ".";
    return text[0].toUpperCase() + text.slice(1);
  }
  function draw(side, load, other, span) {
    const width = Math.max(side.box.clientWidth, 240);
    const label = Math.round(Math.min(width * 0.34, 190)), room = width - label - 12;
    const at = function (tenths) { return label + (tenths / span) * room; };
    const height = TOP + load.rows.length * ROW + 6;
    side.box.textContent = "";
    side.title.textContent = (load.arm ? load.arm + ": " : "") + "load complete after " +
      ms(load.plt) + ", " + load.rows.length + " requests";
    const svg = node(side.box, "svg", {
      width: width, height: height, viewBox: "0 0 " + width + " " + height, role: "img",
      "aria-label": side.title.textContent + "; as a list in the table of values below",
    });
    const gap = step(span);
    for (let t = 0; t <= span; t += gap) {
      node(svg, "line", { class: "grid", x1: at(t), x2: at(t), y1: TOP - 22, y2: height });
      node(svg, "text", { class: "soft", x: at(t), y: 12, "text-anchor": t ? "middle" : "start" },
        gap >= 1000 ? t / 10000 + " s" : t / 10 + " ms");
    }
    load.rows.forEach(function (row, index) {
      const y = TOP + index * ROW;
      const group = node(svg, "g", { class: index % 2 ? "row" : "row even" });
      node(group, "rect", { class: "stripe", x: 0, y: y, width: width, height: ROW });
      node(group, "text", { class: row[8] >= 400 || row[8] === 0 ? "bad" : "soft", x: 2,
        y: y + 12 }, shorten(data.urls[row[0]], Math.floor(label / 7)));
      let from = row[1];
      PHASES.forEach(function (name, i) {
        const length = row[2 + i];
        if (length > 0) {
          node(group, "rect", { class: name, x: at(from), y: y + 3, height: ROW - 6,
            width: Math.max((length / span) * room, 0.7) });
        }
        from += length;
      });
      node(group, "title", {}, describe(row));
      const show = function () { side.detail.textContent = describe(row); };
      group.addEventListener("mouseenter", show);
      group.addEventListener("click", show);
    });
    [[other, "plt other"], [load, "plt own"]].forEach(function (one) {
      node(svg, "line", { class: one[1], x1: at(one[0].plt), x2: at(one[0].plt), y1: TOP - 8,
        y2: height });
    });
    // The label stands on the side of its line where there is room.
    const late = load.plt > span / 2;
    node(svg, "text", { class: "pltname", x: at(load.plt) + (late ? -5 : 5), y: TOP - 12,
      "text-anchor": late ? "end" : "start" }, "load complete " + ms(load.plt));
  }
  function tabulate(loads) {
    const body = document.getElementById("fall-values");
    body.textContent = "";
    loads.forEach(function (load) {
      load.rows.forEach(function (row) {
        const line = body.insertRow();
        [load.arm || load.pair, data.urls[row[0]], String(row[8]), row[9].toLocaleString("en"),
          (row[1] / 10).toFixed(1), (end(row) / 10).toFixed(1)].forEach(function (text, i) {
          const cell = line.insertCell();
          cell.textContent = text;
          if (i < 2) cell.className = i ? "text wrap" : "text";
        });
      });
    });
  }
  function refresh() {
    const loads = sides.map(function (side) { return data.loads[side.select.value]; });
    const span = Math.max.apply(null, loads.map(function (load) {
      return Math.max.apply(null, [load.plt, 10].concat(load.rows.map(end)));
    })) * 1.02;
    sides.forEach(function (side, i) { draw(side, loads[i], loads[1 - i], span); });
    difference.textContent = compare(loads[0], loads[1]);
    if (document.getElementById("fall-table").open) tabulate(loads);
  }
  function partner(index) {
    const load = data.loads[index];
    const found = data.loads.findIndex(function (other, i) {
      return i !== Number(index) && other.pair === load.pair;
    });
    return found < 0 ? index : found;
  }
  const order = data.loads.map(function (_, i) { return i; }).sort(function (a, b) {
    return data.loads[a].place - data.loads[b].place;
  });
  sides.forEach(function (side) {
    order.forEach(function (index) {
      const option = document.createElement("option");
      option.value = index;
      option.textContent = data.loads[index].pair +
        (data.loads[index].arm ? " – " + data.loads[index].arm : "");
      side.select.appendChild(option);
    });
    side.select.addEventListener("change", function () {
      if (side === sides[0]) sides[1].select.value = partner(side.select.value);
      refresh();
    });
  });
  sides[0].select.value = order[0];
  sides[1].select.value = partner(order[0]);
  document.getElementById("fall-table").addEventListener("toggle", refresh);
  let wait = 0;
  window.addEventListener("resize", function () {
    clearTimeout(wait);
    wait = setTimeout(refresh, 120);
  });
  document.getElementById("falls").hidden = false;
  refresh();
})();
