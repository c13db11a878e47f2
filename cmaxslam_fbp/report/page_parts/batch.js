"use strict";
// Shows the chosen figure in every run of the matrix, and marks the best of each recording: the smallest error or
// time, the largest of what grows with quality.
{
  const figures = JSON.parse(document.getElementById("data").textContent);
  const choice = document.getElementById("figure");
  const larger = /real_time_factor|overlap|match/;
  const plain = /^run\.(events|event_rate|start|end|duration|windows$)|poses|pairs|start_s|duration_s|step_s/;
  const units = [[/_deg_s(\.|$)/, "°/s"], [/_deg(\.|$)/, "°"], [/_ns$/, " ns"], [/_s$|seconds$/, " s"], [/_mb$/, " MB"]];

  const words = (value, unit) => {
    const size = Math.abs(value);
    const text = size >= 1000 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
    return text + unit;
  };

  const show = () => {
    const name = choice.value;
    const unit = (units.find(([pattern]) => pattern.test(name)) || [null, ""])[1];
    for (const row of document.querySelectorAll(".matrix tbody tr")) {
      const runs = [...row.querySelectorAll("a.run")].map((run) => [run, figures[run.dataset.run][name]]);
      const known = runs.map(([, value]) => value).filter((value) => value !== undefined);
      const best = larger.test(name) ? Math.max(...known) : Math.min(...known);
      for (const [run, value] of runs) {
        const place = run.querySelector(".figure");
        place.textContent = value === undefined ? "-" : words(value, unit);
        place.classList.toggle("best", known.length > 1 && value === best && !plain.test(name));
      }
    }
  };

  choice.addEventListener("change", show);
  show();
}
