// the newest events: shares of the window across and up, and times

const MOST = 100000;
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
export const floatsOf = (text) => new Float32Array(bytesOf(text));
const doublesOf = (text) => new Float64Array(bytesOf(text));

export class Events {
  constructor() {
    this.x = new Float32Array(MOST);
    this.y = new Float32Array(MOST);
    this.seconds = new Float64Array(MOST);
    this.arrived = new Float64Array(MOST);
    this.next = 0; // the number of the event to come
    this.kept = 0;
  }

  // takes an answer of v1/page/recent; returns how many events were new
  take(answer, now) {
    const d = answer.dimension, positions = floatsOf(answer.positions);
    const seconds = doublesOf(answer.seconds);
    const fresh = this.next === 0 ? -Infinity : now;
    for (let i = 0; i < seconds.length; i++) {
      const at = (answer.first + i) % MOST;
      this.x[at] = positions[d * i];
      this.y[at] = d > 1 ? positions[d * i + 1] : 0.5;
      this.seconds[at] = seconds[i];
      this.arrived[at] = fresh;
    }
    this.next = answer.next;
    this.kept = Math.min(this.kept + seconds.length, MOST);
    return seconds.length;
  }

  // calls `each(x, y, seconds, arrived)`, the oldest first
  forEach(each) {
    for (let n = this.next - this.kept; n < this.next; n++) {
      const at = n % MOST;
      each(this.x[at], this.y[at], this.seconds[at], this.arrived[at]);
    }
  }
}
