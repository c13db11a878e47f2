// The page: one time for everything on it.

const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);

function begin() {
  const path = new Path(data.times, data.quaternions, data.positions), image = element("panorama");
  const state = { time: 0, hover: null, playing: false, waiting: false };
  const refresh = () => {
    if (!state.waiting) { state.waiting = true; requestAnimationFrame(drawAll); }
  };
  const sphere = new Sphere(element("sphere"), path, data.fieldOfView, refresh);
  // The first view looks at the middle of what was seen.
  const used = data.map.used;
  sphere.start = [2 * Math.PI * ((used[0] + used[2]) / 2 - 0.5),
    -2 * Math.PI * ((used[1] + used[3]) / 2 - 0.5) * data.map.height / data.map.width];
  sphere.home();
  const flat = new FlatMap(element("flat"), image, data.map, path, data.fieldOfView);
  const photograph = element("brightness-map");
  element("brightness").hidden = !photograph;
  const showBrightness = (on) => {
    if (!photograph) return;
    for (const view of [sphere, flat]) view.show(on ? photograph : image, on);
  };
  const pick = (time, pressed) => {
    state.hover = pressed ? null : time;
    if (pressed) setTime(time);
    refresh();
  };
  const charts = data.charts.map((spec) => new Chart(spec, data.duration, data.lost, element("charts"), pick));

  function setTime(time) {
    state.time = Math.max(0, Math.min(data.duration, time));
    element("slider").value = state.time / data.duration;
    refresh();
  }

  function drawAll() {
    state.waiting = false;
    sphere.draw(state.time);
    flat.draw(state.time);
    for (const chart of charts) chart.show(state.time, state.hover);
    element("clock").innerHTML = `${state.time.toFixed(2)} s<span class="clock-total"> of ${data.duration.toFixed(2)} s</span>`;
    for (const [id, pressed] of [["globe", sphere.globe], ["follow", sphere.follow], ["whole", flat.whole], ["brightness", flat.photograph]]) {
      element(id).setAttribute("aria-pressed", pressed);
    }
  }

  function layout() {
    for (const chart of charts) chart.layout();
    refresh();
  }

  let played = 0;
  function play(now) {
    if (!state.playing) return;
    setTime(state.time + Math.min((now - played) / 1000, 0.1));
    played = now;
    if (state.time >= data.duration) setPlaying(false); else requestAnimationFrame(play);
  }

  function setPlaying(on) {
    state.playing = on;
    element("play").querySelector("path").setAttribute("d", on ? "M3.5 2.5h3.2v11H3.5zM9.3 2.5h3.2v11H9.3z" : "M4 2.5v11l9-5.5z");
    element("play").setAttribute("aria-label", on ? "Pause" : "Play");
    if (!on) return;
    if (state.time >= data.duration) setTime(0);
    played = performance.now();
    requestAnimationFrame(play);
  }

  const toggle = { globe: () => { sphere.globe = !sphere.globe; sphere.zoom = 1; }, follow: () => { sphere.follow = !sphere.follow; },
    whole: () => { flat.whole = !flat.whole; }, brightness: () => showBrightness(!flat.photograph), home: () => { sphere.home(); sphere.follow = false; } };
  for (const [id, act] of Object.entries(toggle)) element(id).addEventListener("click", () => { act(); refresh(); });
  element("play").addEventListener("click", () => setPlaying(!state.playing));
  element("slider").addEventListener("input", (event) => setTime(event.target.value * data.duration));
  element("copy").addEventListener("click", () => {
    getSelection().selectAllChildren(element("command"));
    document.execCommand("copy");
    element("copy").textContent = "Copied";
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || ["BUTTON", "INPUT"].includes(event.target.tagName)) return;
    const act = { " ": () => setPlaying(!state.playing), g: toggle.globe, f: toggle.follow, b: toggle.brightness,
      ",": () => setTime(state.time - 0.01 * data.duration), ".": () => setTime(state.time + 0.01 * data.duration) }[event.key];
    if (act) { act(); event.preventDefault(); refresh(); }
  });
  window.addEventListener("resize", layout);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { flat.retint(); refresh(); });

  // An address that ends in #t=0.7 opens the page at 70 % of the time; &globe, &follow, &whole and &brightness press the buttons;
  // &count writes into the page how much of the sphere is printed, for tests.
  function readHash() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    sphere.globe = wanted.has("globe");
    sphere.follow = wanted.has("follow");
    flat.whole = wanted.has("whole");
    showBrightness(wanted.has("brightness"));
    setTime((parseFloat(wanted.get("t")) || 0) * data.duration);
  }
  window.addEventListener("hashchange", readHash);

  if (!sphere.begin(image)) {
    element("sphere-message").hidden = false;
    element("sphere-message").textContent = "This browser has no WebGL 2: the sphere is not shown.";
  }
  readHash();
  layout();
  drawAll();
  if (location.hash.includes("&count")) document.documentElement.dataset.inkedPixels = sphere.gl ? sphere.inkedPixels() : 0;
}

const pictures = [element("panorama"), element("brightness-map")].filter(Boolean);
Promise.all(pictures.map((picture) => picture.decode())).then(begin);
