// What the drawings share: colours of the theme, canvases as sharp as the screen.

function themeColor(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function themeRgb(name) {
  const value = parseInt(themeColor(name).slice(1, 7), 16);
  return [(value >> 16) / 255, ((value >> 8) & 255) / 255, (value & 255) / 255];
}

// Fit a canvas to its place; returns width and height in CSS pixels.
function fitCanvas(canvas) {
  const box = canvas.getBoundingClientRect(), scale = Math.min(window.devicePixelRatio || 1, 2);
  const width = Math.max(1, Math.round(box.width * scale)), height = Math.max(1, Math.round(box.height * scale));
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  return [box.width, box.height, scale];
}

// Draw lines through points; null breaks the line.
function strokeLine(context, points, color, width, alpha = 1) {
  context.beginPath();
  let pen = false;
  for (const point of points) {
    if (point === null) pen = false;
    else if (pen) context.lineTo(point[0], point[1]);
    else { context.moveTo(point[0], point[1]); pen = true; }
  }
  Object.assign(context, { strokeStyle: color, lineWidth: width, globalAlpha: alpha, lineJoin: "round", lineCap: "round" });
  context.stroke();
  context.globalAlpha = 1;
}
