// The flat map with the camera's path and field of view: the part that was seen, or the whole panorama.

class FlatMap {
  constructor(canvas, image, map, path, fieldOfView) {
    Object.assign(this, { canvas, image, map, path, fieldOfView });
    this.whole = false;
    this.photograph = false;
    this.retint();
  }

  // Show the map of edges, or a photograph.
  show(image, photograph) {
    Object.assign(this, { image, photograph });
    this.retint();
  }

  // Print the map in the colours of the theme.
  retint() {
    const picture = document.createElement("canvas");
    picture.width = this.image.naturalWidth;
    picture.height = this.image.naturalHeight;
    const context = picture.getContext("2d", { willReadFrequently: true });
    context.drawImage(this.image, 0, 0);
    this.picture = picture;
    if (this.photograph) return;
    const pixels = context.getImageData(0, 0, picture.width, picture.height), data = pixels.data;
    const paper = themeRgb("paper"), print = themeRgb("print");
    for (let i = 0; i < data.length; i += 4) {
      const share = data[i] / 255;
      for (let c = 0; c < 3; c++) data[i + c] = 255 * (share * paper[c] + (1 - share) * print[c]);
    }
    context.putImageData(pixels, 0, 0);
  }

  // The shown part in fractions of the map: left, top, width, height, in the shape of the canvas.
  part(width, height) {
    const used = this.map.used, margin = 0.02, aspect = this.map.width / this.map.height;
    let [left, top, right, bottom] = [used[0] - margin, used[1] - margin, used[2] + margin, used[3] + margin];
    if (this.whole || right - left > 0.94) [left, top, right, bottom] = [0, 0, 1, 1];
    let w = right - left, h = bottom - top;
    const wanted = width / height / aspect;
    if (w / h < wanted) { left -= (h * wanted - w) / 2; w = h * wanted; } else { top -= (w / wanted - h) / 2; h = w / wanted; }
    return [left, top, w, h];
  }

  draw(time) {
    const [width, height, scale] = fitCanvas(this.canvas);
    const context = this.canvas.getContext("2d");
    const [left, top, w, h] = this.part(width, height);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = themeColor("void");
    context.fillRect(0, 0, width, height);
    context.imageSmoothingQuality = "high";
    context.drawImage(this.picture, (-left * width) / w, (-top * height) / h, width / w, height / h);

    const focal = 1 / (2 * Math.PI), aspect = this.map.width / this.map.height;
    const place = ([x, y, z]) => [
      ((0.5 + focal * Math.atan2(x, z) - left) * width) / w,
      ((0.5 + focal * aspect * Math.atan2(y, Math.hypot(x, z)) - top) * height) / h,
    ];
    // A line that leaves the map at one side comes in at the other: it is cut there.
    const cut = (points) => points.flatMap((point, i) =>
      i && Math.abs(point[0] - points[i - 1][0]) > width / w / 2 ? [null, point] : [point]);
    const camera = this.path.matrixAt(time), here = rotate(camera, [0, 0, 1]);
    strokeLine(context, cut(this.path.axes.map(place)), themeColor("path"), 1.1, 0.3);
    strokeLine(context, cut([...this.path.recent(time), here].map(place)), themeColor("path"), 1.8, 0.9);
    const border = this.fieldOfView.map((direction) => place(rotate(camera, direction)));
    if (border.length) {
      const line = cut([...border, border[0]]);
      strokeLine(context, line, themeColor("accent"), 2.2);
      if (!line.includes(null)) { context.globalAlpha = 0.1; context.fillStyle = themeColor("accent"); context.fill(); context.globalAlpha = 1; }
    }
    const dot = place(here);
    context.beginPath();
    context.arc(dot[0], dot[1], 3.5, 0, 7);
    context.fillStyle = themeColor("accent");
    context.fill();
  }
}
