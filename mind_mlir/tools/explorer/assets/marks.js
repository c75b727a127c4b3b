/** Which lines of a text are for which operations: runs of lines, each with the number of a set of operations. */
class Marks {
  /** `runs` holds a count of lines and a set's number, by turns. */
  constructor(runs) {
    const count = runs.length / 2;
    this.firsts = new Uint32Array(count + 1);
    this.sets = new Uint32Array(count);
    for (let run = 0; run < count; run += 1) {
      this.firsts[run + 1] = this.firsts[run] + runs[2 * run];
      this.sets[run] = runs[2 * run + 1];
    }
  }

  setOf(line) {
    const run = above(this.firsts, line) - 1;
    return run >= 0 && run < this.sets.length ? this.sets[run] : 0;
  }

  /** The stretches of lines whose set is lit, first lines and the lines after the last, ascending. */
  places(lit) {
    const found = [];
    for (let run = 0; run < this.sets.length; run += 1) {
      if (!lit[this.sets[run]]) continue;
      const last = found[found.length - 1];
      if (last && last[1] === this.firsts[run]) last[1] = this.firsts[run + 1];
      else found.push([this.firsts[run], this.firsts[run + 1]]);
    }
    return found;
  }
}

/** From operations to the sets that hold them, for one program. */
class Sets {
  constructor(sets, operations) {
    this.sets = sets;
    this.holding = Array.from({ length: operations }, () => []);
    sets.forEach((set, number) => set.forEach((operation) => this.holding[operation]?.push(number)));
  }

  /** For each set, 1 where it holds one of the operations. */
  lit(operations) {
    const found = new Uint8Array(this.sets.length);
    for (const operation of operations) for (const set of this.holding[operation] ?? []) found[set] = 1;
    return found;
  }
}

function total(places) {
  return places.reduce((sum, [first, end]) => sum + end - first, 0);
}

/** The place to show of several: the nearest to a share of the text's height, or the first. */
function nearest(places, share, lines) {
  if (!places.length) return -1;
  const wanted = share * lines;
  let best = 0;
  places.forEach(([first], number) => {
    if (Math.abs(first - wanted) < Math.abs(places[best][0] - wanted)) best = number;
  });
  return best;
}

/** The place after line `line`, or before it; the last is followed by the first. */
function neighbour(places, line, step) {
  if (!places.length) return -1;
  if (step > 0) {
    const next = places.findIndex(([first]) => first > line);
    return next < 0 ? 0 : next;
  }
  for (let number = places.length - 1; number >= 0; number -= 1) if (places[number][0] < line) return number;
  return places.length - 1;
}

/** The operations of another program for those of this one: `same` says which of the first each of the second is. */
function translated(operations, same, forward) {
  if (!forward) return operations.map((operation) => same[operation]).filter((operation) => operation >= 0);
  const wanted = new Set(operations);
  const found = [];
  same.forEach((one, other) => wanted.has(one) && found.push(other));
  return found;
}
