"use strict";
// Draws the charts with many points by uPlot, each when its details are opened. The static charts and tables beside
// them hold the same figures.
const plots = JSON.parse(document.getElementById("plots").textContent);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const drawn = new Map();

const draw = (place) => {
  const plot = plots[place.dataset.plot];
  const boxes = [...place.querySelectorAll("input")];
  const lines = plot.lines.filter((_, index) => boxes[index].checked);
  drawn.get(place)?.destroy();
  drawn.delete(place);
  const chart = place.querySelector(".drawing");
  if (!lines.length) return;
  const percent = (value) => value <= 1 ? "min" : `${+(100 - 100 / value).toFixed(5)} %`;
  const text = (value) => value == null ? "–" : value.toLocaleString("en", { maximumSignificantDigits: 3 });
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--grid") }, ticks: { stroke: colour("--grid") }, font: "12px system-ui, sans-serif" };
  const series = lines.map((line, index) => ({
    label: line.name, width: 2, spanGaps: true, points: { show: line.x.length < 30 },
    stroke: colour(`--k${1 + (index % 7)}`), dash: index < 7 ? undefined : [6, 4],
    value: (_, value) => `${text(value)} ${plot.y}`.trim(),
  }));
  const x = { label: plot.percentiles ? "percentile" : plot.x, value: (_, value) => value == null ? "–" : plot.percentiles ? percent(value) : `${text(value)} ${plot.x}` };
  const ticks = (_, values) => values.map((value) => value == null ? "" : plot.percentiles ? percent(value) : text(value));
  const options = {
    width: chart.clientWidth, height: 320,
    scales: { x: { time: false, distr: plot.log_x ? 3 : 1 }, y: { distr: plot.log_y ? 3 : 1, range: plot.log_y ? undefined : (_, low, high) => [0, high * 1.05] } },
    axes: [{ ...axis, values: ticks, label: plot.percentiles ? "percentile" : plot.x, labelSize: 20, labelFont: axis.font }, { ...axis, values: (_, values) => values.map((value) => value == null ? "" : text(value)), size: 60 }],
    series: [x, ...series],
  };
  drawn.set(place, new uPlot(options, uPlot.join(lines.map((line) => [line.x, line.y])), chart));
};

const set_up = (place) => {
  const plot = plots[place.dataset.plot];
  const choice = document.createElement("fieldset");
  const legend = document.createElement("legend");
  legend.textContent = `${plot.title}: point at it to read it`;
  choice.append(legend);
  for (const line of plot.lines) {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = line.shown;
    box.addEventListener("change", () => draw(place));
    label.append(box, ` ${line.name}`);
    choice.append(label);
  }
  const chart = document.createElement("div");
  chart.className = "drawing";
  place.append(choice, chart);
  place.hidden = false;
  const redraw = () => { if (place.clientWidth) draw(place); };
  new ResizeObserver(() => { if (place.clientWidth && drawn.get(place)?.width !== chart.clientWidth) redraw(); }).observe(chart);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  redraw();
};
for (const place of document.querySelectorAll(".plot")) set_up(place);
