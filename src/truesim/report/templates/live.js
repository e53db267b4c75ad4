// Asks for a snapshot every second and draws it; says so when the process has ended.
const at = (id) => document.getElementById(id);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const SHADES = ["fitted", "before", "good", "warn", "bad", "idle"];
let last = null;

const shade = (i) => color(SHADES[i % SHADES.length]);
const dash = (i) => ["solid", "dash", "dot"][Math.floor(i / SHADES.length) % 3];

const element = (name, text) => { const made = document.createElement(name); made.textContent = text; return made; };

const draw = () => {
  if (!last) return;
  at("title").textContent = last.title;
  at("sentence").textContent = last.sentence;
  last.charts.forEach((chart) => {
    const id = "chart " + chart.title;
    if (!at(id)) {
      const box = document.createElement("div");
      const plot = Object.assign(document.createElement("div"), { id, className: "plot" });
      box.append(element("h2", chart.title), plot);
      at("charts").append(box);
    }
    const isTold = chart.curves.every((curve) => last.table.some((cells) => cells[0] === curve.name));  // the table is the key
    const named = !isTold && chart.curves.length > 1 && chart.curves.length < 9;
    const isNarrow = at(id).clientWidth < 480;  // the legend goes below
    at(id).style.height = named && isNarrow ? `${280 + 20 * chart.curves.length}px` : "";
    const axis = { gridcolor: color("line"), linecolor: color("line"), zeroline: false, automargin: true, exponentformat: "SI" };
    const layout = {
      margin: { l: 56, r: 10, t: 8, b: 40 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: color("ink"), size: 12 }, showlegend: named,
      legend: isNarrow ? { orientation: "h", y: -0.25, yanchor: "top" } : {},
      xaxis: { ...axis, title: { text: chart.axis, standoff: 6 } }, yaxis: { ...axis, ...(chart.logarithmic ? { type: "log", tickformat: "~g", dtick: 1 } : { type: "linear", exponentformat: "power" }) },
    };
    const data = chart.curves.map((curve, i) => ({ ...curve, mode: curve.x.length < 100 ? "lines+markers" : "lines", marker: { size: 4 }, line: { color: shade(i), dash: dash(i), width: 1.8 } }));
    Plotly.react(id, data, layout, { responsive: true, displayModeBar: false });
  });
  at("table").replaceChildren(...last.table.map((cells, k) => {
    const row = document.createElement("tr");
    row.append(...cells.map((cell, i) => Object.assign(element(k ? "td" : "th", cell), { className: i ? "n" : "" })));
    if (k) row.firstChild.prepend(key(cells[0]));
    return row;
  }));
};

// Line in the color and dashes of the curve of that name, where several share a chart.
const key = (name) => {
  const chart = last.charts.find((own) => own.curves.length > 1 && own.curves.some((curve) => curve.name === name));
  if (!chart) return "";
  const i = chart.curves.findIndex((curve) => curve.name === name);
  const made = Object.assign(document.createElement("span"), { className: "key" });
  made.style.borderTop = `2px ${{ solid: "solid", dash: "dashed", dot: "dotted" }[dash(i)]} ${shade(i)}`;
  return made;
};

const ask = async () => {
  try {
    last = await (await fetch("progress.json")).json();
    if (last.ended) {
      at("time").textContent = "ended";
      at("head").className = "good";
      draw();
      return;
    }
    at("time").textContent = last.seconds === null ? "running" : `running for ${last.seconds.toFixed(0)} s`;
    draw();
    setTimeout(ask, 1000);
  } catch {
    at("time").textContent = "ended; this is the last state";
    at("head").className = "good";
  }
};
ask();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
