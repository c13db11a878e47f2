// Curves over time as SVG: lines, grid, the slider's time, and the values at it in the legend.

function svgElement(name, attributes, parent) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
}

// A round step that divides a span into about so many parts.
function roundStep(span, parts) {
  const raw = span / parts, power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((step) => step * power >= raw * 0.999);
}

// From and to of the parts of a list without null.
function stretches(values) {
  const found = [];
  values.forEach((value, i) => {
    if (value === null) return;
    if (i && values[i - 1] !== null) found[found.length - 1][1] = i + 1;
    else found.push([i, i + 1]);
  });
  return found;
}

class Chart {
  constructor(spec, duration, lost, host, pick) {
    Object.assign(this, { spec, duration, lost, pick });
    this.margin = { left: 48, right: 10, top: 8, bottom: 24 };
    this.shown = spec.series.filter((series) => series.style !== "frontend");
    this.card = document.createElement("section");
    this.card.className = spec.half ? "card" : "card wide";
    this.card.id = "chart-" + spec.id;
    const unit = spec.unit ? ` [${spec.unit}]` : "";
    this.card.innerHTML = `<header><h2>${spec.title}${unit}</h2><p>${spec.note}</p></header><div class="legend"></div>`;
    this.svg = svgElement("svg", { class: "chart", role: "img", "aria-label": spec.title }, this.card);
    host.append(this.card);
    this.fillLegend();
    this.listen();
  }

  fillLegend() {
    const legend = this.card.querySelector(".legend"), has = (style) => this.spec.series.some((series) => series.style === style);
    this.values = [];
    for (const series of this.spec.series.filter((one) => ["estimate", "line", "area"].includes(one.style))) {
      const entry = document.createElement("span");
      entry.innerHTML = `<i style="background:var(--c${series.color})"></i>${series.name} <b></b>`;
      this.values.push([series, entry.querySelector("b")]);
      legend.append(entry);
    }
    if (has("truth")) {
      const words = this.spec.note.includes("gyroscope") ? "gyroscope" : "ground truth";
      legend.insertAdjacentHTML("beforeend", `<span><i></i>estimate</span><span><i class="wide-line"></i>${words}</span>`);
    }
    if (has("frontend")) {
      legend.insertAdjacentHTML("beforeend", '<label><input type="checkbox">show the frontend\'s</label>');
      legend.querySelector("input").addEventListener("change", (event) => {
        this.shown = this.spec.series.filter((series) => event.target.checked || series.style !== "frontend");
        this.layout();
      });
    }
  }

  limits() {
    let low = this.spec.zero ? 0 : Infinity, high = this.spec.zero ? 0 : -Infinity;
    for (const series of this.shown) for (const value of series.v) {
      if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); }
    }
    if (!(high > low)) { low = Number.isFinite(low) ? low : 0; high = low + 1; }
    const room = 0.05 * (high - low);
    return [this.spec.zero && low === 0 ? 0 : low - room, high + room];
  }

  layout() {
    const { left, right, top, bottom } = this.margin;
    this.width = this.card.clientWidth - 32;
    this.height = this.spec.half || this.spec.series.length === 1 ? 150 : 230;
    const [low, high] = this.limits();
    this.x = (t) => left + ((this.width - left - right) * t) / this.duration;
    const y = (v) => this.height - bottom - ((this.height - top - bottom) * (v - low)) / (high - low);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.style.height = this.height + "px";
    this.svg.replaceChildren();
    for (const [from, to] of this.lost) {
      svgElement("rect", { class: "lost", x: this.x(from), width: Math.max(this.x(to) - this.x(from), 1), y: top, height: this.height - top - bottom }, this.svg);
    }
    const step = roundStep(high - low, this.height > 200 ? 6 : 4), digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let k = Math.ceil(low / step); k * step <= high; k++) {
      svgElement("line", { class: k ? "grid" : "zero", x1: left, x2: this.width - right, y1: y(k * step), y2: y(k * step) }, this.svg);
      svgElement("text", { x: left - 7, y: y(k * step) + 4, "text-anchor": "end" }, this.svg).textContent = (k * step).toFixed(digits);
    }
    const seconds = roundStep(this.duration, Math.max(3, this.width / 110)), decimals = Math.max(0, -Math.floor(Math.log10(seconds) + 1e-9));
    for (let k = 0; k * seconds <= this.duration * 1.0001; k++) {
      const last = (k + 1) * seconds > this.duration * 1.0001;
      svgElement("text", { x: this.x(k * seconds), y: this.height - 6, "text-anchor": last ? "end" : "middle" }, this.svg).textContent =
        (k * seconds).toFixed(decimals) + (last ? " s" : "");
    }
    for (const series of this.shown.filter((one) => one.style === "band")) {
      for (const [from, to] of stretches(series.v)) {
        const points = [];
        for (let i = from; i < to; i++) points.push([series.t[i], series.v[i]]);
        for (let i = to - 1; i >= from; i--) points.push([series.t[i], series.w[i]]);
        const d = "M" + points.map(([t, v]) => `${this.x(t).toFixed(1)} ${y(v).toFixed(1)}`).join("L") + "Z";
        svgElement("path", { class: "fill", d, style: `fill:var(--c${series.color})` }, this.svg);
      }
    }
    for (const series of this.shown.filter((one) => one.style !== "band")) {
      let path = "", pen = false;
      series.v.forEach((value, i) => {
        if (value === null) { pen = false; return; }
        path += `${pen ? "L" : "M"}${this.x(series.t[i]).toFixed(1)} ${y(value).toFixed(1)}`;
        pen = true;
      });
      const color = `var(--c${series.color})`;
      if (series.style === "area" && path) {
        const closed = `${path}L${this.x(series.t[series.t.length - 1]).toFixed(1)} ${y(low)}L${this.x(series.t[0]).toFixed(1)} ${y(low)}Z`;
        svgElement("path", { class: "fill", d: closed, style: `fill:${color}` }, this.svg);
      }
      svgElement("path", { class: series.style, d: path, style: `stroke:${color}` }, this.svg);
    }
    const upright = { y1: top, y2: this.height - bottom };
    this.hoverLine = svgElement("line", { class: "hover", visibility: "hidden", ...upright }, this.svg);
    this.nowLine = svgElement("line", { class: "now", ...upright }, this.svg);
  }

  show(time, hover) {
    for (const [line, t] of [[this.nowLine, time], [this.hoverLine, hover]]) {
      line.setAttribute("visibility", t === null ? "hidden" : "visible");
      if (t !== null) { line.setAttribute("x1", this.x(t)); line.setAttribute("x2", this.x(t)); }
    }
    for (const [series, place] of this.values) {
      const i = indexAt(series.t, hover === null ? time : hover), value = series.v[i];
      place.textContent = value === null || value === undefined ? "–" : Number(value.toPrecision(4)).toString();
    }
  }

  listen() {
    const timeOf = (event) => {
      const box = this.svg.getBoundingClientRect(), { left, right } = this.margin;
      return Math.max(0, Math.min(1, (event.clientX - box.left - left) / (box.width - left - right))) * this.duration;
    };
    this.svg.addEventListener("pointermove", (event) => this.pick(timeOf(event), event.buttons > 0));
    this.svg.addEventListener("pointerdown", (event) => this.pick(timeOf(event), true));
    this.svg.addEventListener("pointerleave", () => this.pick(null, false));
  }
}
