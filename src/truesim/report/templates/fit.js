"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const plain = (name) => name.replace(/&/g, "&amp;").replace(/</g, "&lt;"); // plotly reads tags in its texts
  const HELD = "held_out";

  // Signals, unpacked on first use.

  function bytes(text) {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  }

  function unpacked({ middle, step, steps }) {
    return Float64Array.from(new Int16Array(bytes(steps)), (k) => (k === -32768 ? NaN : middle + step * k));
  }

  const cache = new Map();

  function panel(log, channel) {
    const key = `${log}/${channel}`;
    if (!cache.has(key)) {
      const packed = data.logs[log].panels[channel];
      const measured = unpacked(packed.measured);
      const residual = unpacked(packed.fitted);
      const start = unpacked(packed.start);
      cache.set(key, {
        time: Float64Array.from(new Float32Array(bytes(packed.time))),
        measured,
        residual,
        fitted: measured.map((m, k) => m + residual[k]),
        start: measured.map((m, k) => m + start[k]),
      });
    }
    return cache.get(key);
  }

  function extent(...arrays) {
    let low = Infinity, high = -Infinity;
    for (const values of arrays) for (const x of values) if (isFinite(x)) { low = Math.min(low, x); high = Math.max(high, x); }
    if (low > high) return [-1, 1];
    const room = 0.06 * (high - low) || 0.1 * Math.abs(high) || 1;
    return [low - room, high + room];
  }

  // Selection.

  const chosen = { log: 0, channel: 0, range: null };

  function choose(change) {
    if ("log" in change && change.log !== chosen.log && !("range" in change)) chosen.range = null;
    Object.assign(chosen, change);
    element("log").value = chosen.log;
    element("channel").value = chosen.channel;
    drawSignals();
    drawResiduals();
    drawWindows();
    drawThumbnails();
  }

  // Plots.

  const config = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const still = { displayModeBar: false, responsive: true };

  function axis(title, more) {
    return {
      title: { text: title, standoff: 8 }, gridcolor: color("line"), zeroline: false, linecolor: color("line"),
      tickcolor: color("line"), automargin: true, exponentformat: "power", ...more,
    };
  }

  const printing = () => document.documentElement.classList.contains("print");

  function layout(id, more) {
    const { clientWidth: width, clientHeight: height } = element(id);
    return {
      ...(printing() ? { width, height } : {}),
      font: { family: "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif", size: 12, color: color("ink") },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 64, r: 12, t: 12, b: 40 },
      hoverlabel: { bgcolor: color("panel"), bordercolor: color("line"), font: { color: color("ink") } },
      legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom" }, modebar: { bgcolor: "rgba(0,0,0,0)", color: color("start"), activecolor: color("fitted") },
      ...more,
    };
  }

  function line(x, y, name, stroke, more) {
    return { type: "scatter", mode: "lines", x, y, name, line: { color: stroke, width: 1.5 }, ...more };
  }

  function logarithmic(title, values) {
    const known = values.filter((x) => x > 0);
    const wide = Math.max(...known) > 30 * Math.min(...known);
    return axis(title, { type: "log", tickformat: "~g", dtick: wide ? 1 : "D2" });
  }

  function drawSignals() {
    const { name, unit, noise } = data.channels[chosen.channel];
    const p = panel(chosen.log, chosen.channel);
    const withUnit = (text) => (unit ? `${text} [${unit}]` : text);
    const traces = [
      line(p.time, p.start, "simulated, start values", color("before"), {
        visible: element("start").checked, line: { color: color("before"), width: 1.5, dash: "dot" },
      }),
      line(p.time, p.fitted, "simulated, fitted", color("fitted"), { line: { color: color("fitted"), width: 3.5 }, opacity: 0.8 }),
      line(p.time, p.measured, "measured", color("ink"), { line: { color: color("ink"), width: 1 } }),
      line(p.time, p.residual, "residual", color("fitted"), { yaxis: "y2", showlegend: false, line: { color: color("fitted"), width: 1 } }),
    ];
    const band = noise
      ? [{ type: "rect", xref: "paper", x0: 0, x1: 1, yref: "y2", y0: -2 * noise, y1: 2 * noise, fillcolor: color("start"), opacity: 0.25, line: { width: 0 }, layer: "below" }]
      : [];
    const range = chosen.range || [p.time[0], p.time[p.time.length - 1]];
    const visible = (values) => values.filter((_, k) => range[0] <= p.time[k] && p.time[k] <= range[1]);
    Plotly.react("signals-plot", traces, layout("signals-plot", {
      xaxis: axis("time [s]", { anchor: "y2", range, hoverformat: ".4~f" }),
      yaxis: axis(withUnit(plain(name)), { domain: [0.38, 1], range: extent(visible(p.measured), visible(p.fitted)), hoverformat: ".5~g" }),
      yaxis2: axis(withUnit("residual"), { domain: [0, 0.32], range: extent(visible(p.residual), noise ? [-2.2 * noise, 2.2 * noise] : []), zeroline: true, zerolinecolor: color("start"), hoverformat: ".3~g" }),
      shapes: band, hovermode: "x", uirevision: null,
    }), config);
  }

  function drawWindows() {
    const { name, unit } = data.channels[chosen.channel];
    const groups = { train: [], [HELD]: [], start: [] };
    const ticks = [], labels = [], shapes = [];
    let place = 0;
    data.logs.forEach((log, index) => {
      const first = place;
      log.panels[chosen.channel].errors.forEach(([fitted, start], k) => {
        const [begin, end] = log.windows[k];
        const point = { x: place, log: index, begin, end, text: `${plain(log.name)}, ${begin.toFixed(2)} to ${end.toFixed(2)} s` };
        groups[log.part].push({ ...point, y: fitted });
        groups.start.push({ ...point, y: start });
        place += 1;
      });
      ticks.push((first + place - 1) / 2);
      labels.push(plain(log.name.replace(/\.[^.]*$/, "")));
      if (index % 2) shapes.push({ type: "rect", yref: "paper", y0: 0, y1: 1, x0: first - 0.5, x1: place - 0.5, fillcolor: color("start"), opacity: 0.12, line: { width: 0 }, layer: "below" });
    });
    const dots = (points, title, shade, more) => ({
      type: "scatter", mode: "markers", name: title, x: points.map((p) => p.x), y: points.map((p) => p.y), text: points.map((p) => p.text),
      customdata: points.map((p) => [p.log, p.begin, p.end]), hovertemplate: "%{text}<br>%{y:.3g} " + unit + "<extra>" + title + "</extra>",
      marker: { color: shade, size: 6, ...more },
    });
    const traces = [dots(groups.start, "start values", color("before"), { symbol: "circle-open", size: 5 }), dots(groups.train, "fitted, logs of the fit", color("fitted"))];
    if (groups[HELD].length) traces.push(dots(groups[HELD], "fitted, held-out logs", color("held"), { symbol: "diamond", size: 7 }));
    Plotly.react("windows-plot", traces, layout("windows-plot", {
      xaxis: axis("", { tickvals: ticks, ticktext: labels, showgrid: false, range: [-0.7, place - 0.3] }),
      yaxis: logarithmic(`${plain(name)}: RMS error${unit ? ` [${unit}]` : ""}`, traces.flatMap((trace) => trace.y)), shapes, hovermode: "closest", showlegend: true,
    }), still);
  }

  function drawResiduals() {
    const { name, unit } = data.channels[chosen.channel];
    const dots = data.residuals[chosen.channel];
    const inUnit = (text, more = "") => (unit ? `${text} [${unit}${more}]` : text);
    for (const [id, field, title] of [["rate-plot", "rate", inUnit(`rate of ${plain(name)}`, "/s")], ["value-plot", "value", inUnit(plain(name))]]) {
      const trend = dots.trend[field];
      Plotly.react(id, [
        { type: "scatter", mode: "markers", x: dots[field], y: dots.residual, marker: { color: color("start"), size: 3, opacity: 0.6 }, hoverinfo: "skip" },
        line(trend.map((p) => p[0]), trend.map((p) => p[1]), "median", color("fitted"), { line: { color: color("fitted"), width: 2.5 } }),
      ], layout(id, {
        xaxis: axis(title, {}), yaxis: axis(inUnit("residual"), { zeroline: true, zerolinecolor: color("start") }), showlegend: false, hovermode: "closest",
      }), still);
    }
  }

  function drawConvergence() {
    const iteration = data.convergence.map((h) => h.iteration);
    const begins = data.convergence.filter((h, k) => k && h.stage !== data.convergence[k - 1].stage).map((h) => h.iteration - 0.5);
    const shapes = begins.map((x) => ({ type: "line", yref: "paper", y0: 0, y1: 1, x0: x, x1: x, line: { color: color("start"), width: 1, dash: "dot" } }));
    for (const [id, field, title] of [["cost-plot", "relative", "cost, relative"], ["step-plot", "step", "largest step"]]) {
      const values = data.convergence.map((h) => h[field] || null);
      const trace = line(iteration, values, title, color("fitted"), { mode: "lines+markers", marker: { size: 5 } });
      Plotly.react(id, [trace], layout(id, {
        xaxis: axis("iteration", { tickformat: "d" }), yaxis: logarithmic(title, values), showlegend: false, shapes,
      }), still);
    }
  }

  function drawCorrelations() {
    const { names, matrix } = data.correlations;
    const shown = names.length <= 14;
    const short = (name) => plain(name.replace(/^(bodies|joints|actuators|sensors)\//, ""));
    const height = Math.max(260, 150 + names.length * (shown ? 30 : 20));
    element("correlations-plot").style.height = `${height}px`;
    const scale = [[0, color("cold")], [0.5, color("middle")], [1, color("hot")]];
    const labels = names.map(short);
    const unique = new Set(labels).size === labels.length ? labels : names.map(plain);
    const numbers = matrix.flatMap((row, i) => row.map((z, j) => ({
      x: unique[j], y: unique[i], text: z === null ? "" : z.toFixed(2).replace(/^-(?=.*[1-9])/, "−").replace("-", ""), showarrow: false,
      font: { color: Math.abs(z) > 0.6 ? color("page") : color("ink"), size: 12 },
    })));
    const width = Math.min(element("correlations-plot").clientWidth, 330 + names.length * 62);
    const narrow = (width - 230) / names.length < 34; // [px] of a cell: too few for numbers and slanted names
    Plotly.react("correlations-plot", [{
      type: "heatmap", x: unique, y: unique, z: matrix, zmin: -1, zmax: 1, colorscale: scale, xgap: 1, ygap: 1,
      hovertemplate: "%{y}<br>%{x}<br>%{z:.3f}<extra></extra>", colorbar: { thickness: 10, outlinewidth: 0, tickvals: [-1, -0.5, 0, 0.5, 1] },
    }], layout("correlations-plot", {
      annotations: shown && !narrow ? numbers : [],
      xaxis: axis("", { type: "category", showgrid: false, tickangle: narrow ? -90 : -40, tickvals: unique }),
      yaxis: axis("", { type: "category", showgrid: false, autorange: "reversed", tickvals: unique }), width,
    }), { ...still, responsive: false });
  }

  // Thumbnails of all channels; a click selects the channel.

  function path(time, values, [left, right], [low, high]) {
    const stride = Math.max(1, Math.floor(values.length / 600));
    let text = "", pen = "M";
    for (let k = 0; k < values.length; k += stride) {
      if (!isFinite(values[k])) { pen = "M"; continue; }
      text += `${pen}${(100 * (time[k] - left) / (right - left)).toFixed(2)} ${(40 * (high - values[k]) / (high - low)).toFixed(2)}`;
      pen = "L";
    }
    return text;
  }

  function deviation(values, aboutMean = false) {
    const known = values.filter(isFinite);
    const mean = aboutMean ? known.reduce((sum, x) => sum + x, 0) / known.length : 0;
    return Math.sqrt(known.reduce((sum, x) => sum + (x - mean) ** 2, 0) / known.length);
  }

  function thumbnail(channel) {
    const p = panel(chosen.log, channel);
    const width = [p.time[0], p.time[p.time.length - 1]], height = extent(p.measured, p.fitted);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "thumbnail";
    button.title = `Show ${data.channels[channel].name}`;
    button.innerHTML = `<svg viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true"><path d="${path(p.time, p.measured, width, height)}"/><path class="fitted" d="${path(p.time, p.fitted, width, height)}"/></svg><div><span></span><span></span></div>`;
    const [name, size] = button.querySelectorAll("span");
    name.textContent = data.channels[channel].name;
    const part = 100 * deviation(p.residual) / deviation(p.measured, true);
    size.textContent = isFinite(part) ? `${part < 99 ? part.toPrecision(2) : part.toFixed(0)} %` : "";
    button.addEventListener("click", () => choose({ channel }));
    return button;
  }

  let thumbnailLog = null;

  function drawThumbnails() {
    const box = element("thumbnails");
    if (thumbnailLog !== chosen.log) {
      thumbnailLog = chosen.log;
      box.replaceChildren(...data.channels.map((_, channel) => thumbnail(channel)));
    }
    [...box.children].forEach((button, channel) => button.setAttribute("aria-pressed", channel === chosen.channel));
  }

  // Controls.

  function show(log, [begin, end]) {
    const room = 0.05 * (end - begin);
    choose({ log, range: [begin - room, end + room] });
  }

  function worst() {
    const { errors } = data.logs[chosen.log].panels[chosen.channel];
    const sizes = errors.map(([fitted]) => (fitted === null ? Infinity : fitted));
    show(chosen.log, data.logs[chosen.log].windows[sizes.indexOf(Math.max(...sizes))]);
  }

  const turned = (by) => (chosen.channel + by + data.channels.length) % data.channels.length;
  element("log").addEventListener("change", (event) => choose({ log: Number(event.target.value) }));
  element("channel").addEventListener("change", (event) => choose({ channel: Number(event.target.value) }));
  element("previous").addEventListener("click", () => choose({ channel: turned(-1) }));
  element("following").addEventListener("click", () => choose({ channel: turned(1) }));
  element("start").addEventListener("change", drawSignals);
  element("worst").addEventListener("click", worst);
  element("whole").addEventListener("click", () => choose({ range: null }));
  for (const link of document.querySelectorAll("[data-channel]")) {
    const channel = data.channels.findIndex(({ name }) => name === link.dataset.channel);
    link.addEventListener("click", () => choose({ channel }));
  }

  // Replay in 3-D: a page of its own, unpacked when it is asked for.

  async function playReplay() {
    const packed = new Blob([bytes(element("replay-page").textContent)]).stream().pipeThrough(new DecompressionStream("gzip"));
    const page = new Blob([await new Response(packed).arrayBuffer()], { type: "text/html" });
    const frame = document.createElement("iframe");
    frame.title = "Replay of the robot in 3-D";
    frame.src = URL.createObjectURL(page);
    element("replay-frame").replaceChildren(frame);
    element("replay-frame").hidden = false;
    element("play-replay").hidden = true;
  }

  if (element("play-replay")) element("play-replay").addEventListener("click", playReplay);

  function draw() {
    drawConvergence();
    if (element("correlations-plot")) drawCorrelations();
    choose({});
  }

  draw();
  element("signals-plot").on("plotly_relayout", (change) => {
    if ("xaxis.range[0]" in change) chosen.range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (change["xaxis.autorange"]) chosen.range = null;
  });
  element("windows-plot").on("plotly_click", ({ points }) => {
    const [log, begin, end] = points[0].customdata;
    show(log, [begin, end]);
    element("signals").scrollIntoView();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", () => { document.documentElement.classList.add("print"); draw(); });
  addEventListener("afterprint", () => { document.documentElement.classList.remove("print"); draw(); });
})();
