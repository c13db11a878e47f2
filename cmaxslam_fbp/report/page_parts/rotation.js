// Rotations: quaternions x y z w, and matrices as nine numbers, row by row. Axes: x right, y down, z forward.

function matrixOfQuaternion(x, y, z, w) {
  return [
    1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w),
    2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
    2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y),
  ];
}

// Turn by a yaw to the right, then by a pitch upwards: R_y(yaw) R_x(pitch).
function matrixOfAngles(yaw, pitch) {
  const cy = Math.cos(yaw), sy = Math.sin(yaw), cp = Math.cos(pitch), sp = Math.sin(pitch);
  return [cy, sy * sp, sy * cp, 0, cp, -sp, -sy, cy * sp, cy * cp];
}

function anglesOfMatrix(m) {
  return [Math.atan2(m[2], m[8]), Math.asin(Math.max(-1, Math.min(1, -m[5])))];
}

function rotate(m, v) {
  return [
    m[0] * v[0] + m[1] * v[1] + m[2] * v[2],
    m[3] * v[0] + m[4] * v[1] + m[5] * v[2],
    m[6] * v[0] + m[7] * v[1] + m[8] * v[2],
  ];
}

function rotateBack(m, v) {
  return [
    m[0] * v[0] + m[3] * v[1] + m[6] * v[2],
    m[1] * v[0] + m[4] * v[1] + m[7] * v[2],
    m[2] * v[0] + m[5] * v[1] + m[8] * v[2],
  ];
}

// The index of the last of the rising times that is not after t.
function indexAt(times, t) {
  let low = 0, high = times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (times[middle] <= t) low = middle; else high = middle - 1;
  }
  return low;
}

const TRAIL_S = 1.5;

class Path {
  constructor(times, quaternions, positions) {
    this.times = times;
    this.quaternions = quaternions;
    this.positions = positions;
    this.axes = times.map((_, i) => rotate(matrixOfQuaternion(...quaternions.slice(4 * i, 4 * i + 4)), [0, 0, 1]));
  }

  // Where the camera looked in the last seconds before a time.
  recent(t) {
    return this.axes.slice(indexAt(this.times, t - TRAIL_S), indexAt(this.times, t) + 1);
  }

  // R_wc at a time: the normalised mean of the neighbours, which are close to each other.
  matrixAt(t) {
    const i = indexAt(this.times, t), j = Math.min(i + 1, this.times.length - 1);
    const span = this.times[j] - this.times[i];
    const share = span > 0 ? Math.max(0, Math.min(1, (t - this.times[i]) / span)) : 0;
    const a = this.quaternions.slice(4 * i, 4 * i + 4), b = this.quaternions.slice(4 * j, 4 * j + 4);
    const sign = a.reduce((sum, value, k) => sum + value * b[k], 0) < 0 ? -1 : 1;
    const mixed = a.map((value, k) => (1 - share) * value + share * sign * b[k]);
    const length = Math.hypot(...mixed);
    return matrixOfQuaternion(...mixed.map((value) => value / length));
  }
}
