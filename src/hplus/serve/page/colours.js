// from night blue through red to light yellow, in steps of lightness that look even
const STOPS = (
  "100f37 22124c 38155d 4f176a 691971 821d73 9b2470 b32f6a c83e61 d85058 e56550 ee7d4c f39551 " +
  "f5ad60 f5c477 f5d994 f6edb3"
).split(" ").map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));

const packed = ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r;
export const ramp = Uint32Array.from({ length: 256 }, (_, i) => {
  const at = (i / 255) * (STOPS.length - 1), low = Math.min(Math.floor(at), STOPS.length - 2);
  return packed(STOPS[low].map((c, k) => Math.round(c + (at - low) * (STOPS[low + 1][k] - c))));
});

// what the colours mean: a rate has the colour (rate / top)^power of the ramp
export function shading(values) {
  const known = Float32Array.from(values).filter((v) => v >= 0).sort();
  if (!known.length) return { top: 1, power: 1 };
  let sum = 0, half = 0, top = 0;
  const total = known.reduce((a, b) => a + b, 0);
  for (const v of known) {
    sum += v;
    if (sum <= 0.5 * total) half = v;
    if (sum <= 0.98 * total) top = v;
  }
  const peak = known[known.length - 1];
  top = (peak > 2 * top ? top : peak) || 1;
  const power = 0.5 ** ((top > 2.5 * half ? 1 : 0) + (top > 16 * half ? 1 : 0));
  return { top, power };
}

export const inkOf = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();
