"use strict";

/** A text of many lines as one string; lines are cut out of it when they are shown. */
class Lines {
  constructor(joined) {
    this.joined = joined;
    let count = 1;
    for (let at = joined.indexOf("\n"); at >= 0; at = joined.indexOf("\n", at + 1)) count += 1;
    this.count = count;
    this.starts = new Uint32Array(count + 1);
    this.widest = 0;
    for (let line = 0, at = 0; line < count; line += 1) {
      const end = joined.indexOf("\n", at);
      const next = (end < 0 ? joined.length : end) + 1;
      this.starts[line] = at;
      this.starts[line + 1] = next;
      this.widest = Math.max(this.widest, next - 1 - at);
      at = next;
    }
  }

  line(number) {
    return this.joined.slice(this.starts[number], this.starts[number + 1] - 1);
  }

  /** The number of the line that a place in the string is in. */
  lineAt(place) {
    return above(this.starts, place, this.count) - 1;
  }
}

/** How many of the first `count` ascending numbers are at most `value`. */
function above(numbers, value, count = numbers.length) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function escaped(text) {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]);
}

/** The greatest of any number of numbers; `Math.max` takes some ten thousand. */
function greatest(numbers, least = 0) {
  return numbers.reduce((one, other) => Math.max(one, other), least);
}

/** A number with a mark at each thousand, as English has it. */
function grouped(number) {
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function counted(number, word, words = `${word}s`) {
  return `${grouped(number)} ${number === 1 ? word : words}`;
}

function rounded(number) {
  return number >= 100 ? grouped(Math.round(number)) : String(Number(number.toPrecision(3)));
}

function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; number >= 1024 && unit < units.length - 1; unit += 1) number /= 1024;
  return `${rounded(number)} ${units[unit]}`;
}

function duration(seconds) {
  if (seconds >= 1) return `${rounded(seconds)} s`;
  return seconds >= 1e-3 ? `${rounded(seconds * 1e3)} ms` : `${rounded(seconds * 1e6)} µs`;
}

/** Round numbers between two others, `about` of them. */
function ticks(from, to, about, base = 10) {
  const step = (to - from) / Math.max(1, about);
  if (!(step > 0)) return [];
  const power = base ** Math.floor(Math.log(step) / Math.log(base) + 1e-9);
  const factors = base === 10 ? [1, 2, 5, 10] : [1, 2];
  const wide = power * (factors.find((factor) => factor * power >= step) ?? base);
  const found = [];
  for (let at = Math.ceil(from / wide); at * wide <= to; at += 1) found.push(at * wide);
  return found;
}
