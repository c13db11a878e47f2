// The map as a sphere. The eye stands in its centre, or further back, and sees the far wall: nothing is mirrored.

const SPHERE_VERTEX = `#version 300 es
in vec2 corner;
void main() { gl_Position = vec4(corner, 0.0, 1.0); }`;

const SPHERE_FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D map;
uniform vec2 size, mapSize;
uniform mat3 turn;
uniform float focal, back;
uniform vec3 paper, print, outside;
uniform bool photograph;
out vec4 color;
const float PI = 3.14159265;
float lines(float angle, float width, float step) {
  float distance = abs(fract(angle / step + 0.5) - 0.5) * step;
  return 1.0 - smoothstep(0.0, 1.6, distance / max(width, 1e-6));
}
void main() {
  vec3 ray = normalize(vec3(gl_FragCoord.x - size.x / 2.0, size.y / 2.0 - gl_FragCoord.y, focal));
  float along = back * ray.z, room = along * along - back * back + 1.0;
  vec3 hit = vec3(0.0, 0.0, -back) + ray * (along + sqrt(max(room, 0.0)));
  vec3 world = turn * hit;
  float longitude = atan(world.x, world.z), latitude = asin(clamp(world.y, -1.0, 1.0));
  float behind = atan(-world.x, -world.z);  // the same without the jump at the seam
  float dx = abs(dFdx(longitude)) < abs(dFdx(behind)) ? dFdx(longitude) : dFdx(behind);
  float dy = abs(dFdy(longitude)) < abs(dFdy(behind)) ? dFdy(longitude) : dFdy(behind);
  vec2 scale = vec2(mapSize.x / (2.0 * PI)) / mapSize;
  vec2 place = vec2(0.5) + 0.5 / mapSize + scale * vec2(longitude, latitude);
  vec2 right = scale * vec2(dx, dFdx(latitude)), down = scale * vec2(dy, dFdy(latitude));
  float inMap = step(0.0, place.y) * step(place.y, 1.0);
  vec4 texel = inMap * textureGrad(map, place, right, down);
  float strength = inMap * (1.0 - texel.r);
  float level = cos(latitude);
  float grid = max(lines(latitude, length(vec2(dFdx(latitude), dFdy(latitude))), PI / 6.0),
                   lines(longitude, length(vec2(dx, dy)), PI / 6.0) * smoothstep(0.02, 0.1, level));
  vec3 wall = mix(paper, print, 0.10 * grid);
  wall = photograph ? mix(wall, texel.rgb, texel.a) : mix(wall, print, pow(strength, 0.8));
  float edge = clamp(dot(hit, ray), 0.0, 1.0);
  wall = mix(mix(wall, outside, 0.6), wall, smoothstep(0.0, 0.55, edge));
  float rim = back > 1.0 ? smoothstep(0.0, 0.012, room) : 1.0;
  color = vec4(mix(outside, wall, rim), 1.0);
}`;

class Sphere {
  constructor(host, path, fieldOfView, changed) {
    Object.assign(this, { host, path, fieldOfView, changed });
    this.canvas = host.querySelector("#sphere-map");
    this.overlay = host.querySelector("#sphere-lines");
    this.home();
    this.follow = false;
    this.listen();
  }

  home() {
    [this.yaw, this.pitch] = this.start || [0, 0];
    this.zoom = 1;
    this.globe = false;
  }

  // Compile the shader and load the map; false where the browser has no WebGL.
  begin(image) {
    const gl = this.canvas.getContext("webgl2", { antialias: false, preserveDrawingBuffer: true });
    if (!gl) return false;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, SPHERE_VERTEX], [gl.FRAGMENT_SHADER, SPHERE_FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-1, -1, 3, -1, -1, 3]), gl.STATIC_DRAW);
    gl.enableVertexAttribArray(gl.getAttribLocation(program, "corner"));
    gl.vertexAttribPointer(gl.getAttribLocation(program, "corner"), 2, gl.FLOAT, false, 0, 0);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    this.uniform = (name) => gl.getUniformLocation(program, name);
    this.gl = gl;
    this.show(image, false);
    return true;
  }

  // Put an image on the sphere: the map of edges, printed in the colours of the theme, or a photograph.
  show(image, photograph) {
    const gl = this.gl;
    if (!gl) return;
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, image);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.REPEAT);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
    gl.generateMipmap(gl.TEXTURE_2D);
    this.mapSize = [image.naturalWidth, image.naturalHeight];
    this.photograph = photograph;
  }

  // How far the eye stands back, and the focal length in units of the view's smaller side.
  eye() {
    if (this.globe) return [2.6, 1.1 * this.zoom];
    return this.follow ? [0, 0.75 * this.zoom] : [0.7, 0.66 * this.zoom];
  }

  draw(time) {
    const gl = this.gl;
    if (!gl) return;
    const [width, height, scale] = fitCanvas(this.canvas);
    const [back, lens] = this.eye();
    const focal = lens * Math.min(width, height);
    const turn = this.follow ? this.path.matrixAt(time) : matrixOfAngles(this.yaw, this.pitch);
    if (this.follow) [this.yaw, this.pitch] = anglesOfMatrix(turn);
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.uniform2f(this.uniform("size"), this.canvas.width, this.canvas.height);
    gl.uniform2f(this.uniform("mapSize"), ...this.mapSize);
    gl.uniformMatrix3fv(this.uniform("turn"), true, turn);
    gl.uniform1f(this.uniform("focal"), focal * scale);
    gl.uniform1f(this.uniform("back"), back);
    gl.uniform1i(this.uniform("photograph"), this.photograph ? 1 : 0);
    gl.uniform3f(this.uniform("paper"), ...themeRgb("paper"));
    gl.uniform3f(this.uniform("print"), ...themeRgb("print"));
    gl.uniform3f(this.uniform("outside"), ...themeRgb("void"));
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    this.drawLines(time, turn, back, focal);
  }

  // Where the camera looked and its field of view, over the sphere; inside it, where a hand-held camera was.
  drawLines(time, turn, back, focal) {
    const [width, height, scale] = fitCanvas(this.overlay);
    const context = this.overlay.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const nearest = back > 1 ? -1 / back : 0.04 - back;
    const place = (direction) => {
      const [x, y, z] = rotateBack(turn, direction);
      return z < nearest ? null : [width / 2 + (focal * x) / (z + back), height / 2 + (focal * y) / (z + back)];
    };
    strokeLine(context, this.path.axes.map(place), themeColor("path"), 1.2, 0.3);
    const camera = this.path.matrixAt(time);
    const here = rotate(camera, [0, 0, 1]);
    strokeLine(context, [...this.path.recent(time), here].map(place), themeColor("path"), 2, 0.9);
    const border = this.fieldOfView.map((direction) => place(rotate(camera, direction)));
    if (border.length) {
      strokeLine(context, [...border, border[0]], themeColor("accent"), 2.2);
      if (!border.includes(null)) { context.globalAlpha = 0.1; context.fillStyle = themeColor("accent"); context.fill(); }
      context.globalAlpha = 1;
    }
    if (!this.follow) strokeLine(context, this.path.positions.map(place), themeColor("accent"), 1, 0.8);
    const dot = place(here);
    if (dot) { context.beginPath(); context.arc(dot[0], dot[1], 3.5, 0, 7); context.fillStyle = themeColor("accent"); context.fill(); }
  }

  // How many pixels differ from the first one: what a blank view has none of.
  inkedPixels() {
    const gl = this.gl, width = this.canvas.width, height = this.canvas.height, pixels = new Uint8Array(4 * width * height);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    let count = 0;
    for (let i = 0; i < pixels.length; i += 4) count += Math.abs(pixels[i] - pixels[0]) > 60;
    return count;
  }

  look(dx, dy) {
    const [back, lens] = this.eye();
    const box = this.canvas.getBoundingClientRect(), rate = (1 + back) / (lens * Math.min(box.width, box.height));
    this.follow = false;
    this.yaw -= dx * rate;
    this.pitch = Math.max(-1.57, Math.min(1.57, this.pitch + dy * rate));
    this.changed();
  }

  magnify(factor) {
    this.zoom = Math.max(0.45, Math.min(8, this.zoom * factor));
    this.changed();
  }

  listen() {
    const held = new Map();
    this.canvas.addEventListener("pointerdown", (event) => {
      held.set(event.pointerId, [event.clientX, event.clientY]);
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!held.has(event.pointerId)) return;
      const before = held.get(event.pointerId), after = [event.clientX, event.clientY];
      const other = [...held.entries()].find(([id]) => id !== event.pointerId);
      held.set(event.pointerId, after);
      if (!other) return this.look(after[0] - before[0], after[1] - before[1]);
      const apart = (point) => Math.hypot(point[0] - other[1][0], point[1] - other[1][1]);
      this.magnify(apart(after) / Math.max(apart(before), 1));
    });
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, (event) => held.delete(event.pointerId));
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.magnify(Math.exp(-0.0016 * event.deltaY * (event.deltaMode ? 20 : 1)));
    }, { passive: false });
    this.canvas.addEventListener("dblclick", () => { this.home(); this.follow = false; this.changed(); });
    this.host.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [30, 0], ArrowRight: [-30, 0], ArrowUp: [0, 30], ArrowDown: [0, -30] }[event.key];
      if (step) this.look(...step);
      else if (event.key === "+" || event.key === "=") this.magnify(1.15);
      else if (event.key === "-") this.magnify(1 / 1.15);
      else if (event.key === "Home") { this.home(); this.follow = false; this.changed(); }
      else return;
      event.preventDefault();
    });
  }
}
