/** What differs between two texts: blocks of four numbers, the lines of the first and those of the second. */
class Changes {
  constructor(blocks) {
    this.count = blocks.length / 4;
    this.sides = [0, 2].map((side) => {
      const firsts = new Uint32Array(this.count);
      const ends = new Uint32Array(this.count);
      for (let block = 0; block < this.count; block += 1) {
        firsts[block] = blocks[4 * block + side];
        ends[block] = blocks[4 * block + side + 1];
      }
      return { firsts, ends };
    });
  }

  /** How a line of side 0 or 1 differs: "changed", "only" where the other has none, "gap" above which it has more. */
  kind(side, line) {
    const { firsts, ends } = this.sides[side];
    const other = this.sides[1 - side];
    const block = above(firsts, line) - 1;
    if (block < 0) return "";
    if (line < ends[block]) return other.firsts[block] < other.ends[block] ? "changed" : "only";
    return firsts[block] === line ? "gap" : "";
  }

  /** Where a line of one side is on the other. */
  across(side, line) {
    const { firsts, ends } = this.sides[side];
    const other = this.sides[1 - side];
    const block = above(firsts, line) - 1;
    if (block < 0) return line;
    if (line >= ends[block]) return other.ends[block] + line - ends[block];
    const share = (line - firsts[block]) / (ends[block] - firsts[block]);
    return other.firsts[block] + Math.floor(share * (other.ends[block] - other.firsts[block]));
  }

  /** Where a side with `count` lines differs; more at the end of the other is at the last line of this one. */
  places(side, count) {
    const { firsts, ends } = this.sides[side];
    this.sides[side].places ??= Array.from(firsts, (place, block) => {
      const first = Math.max(0, Math.min(place, count - 1));
      return [first, Math.max(ends[block], first + 1)];
    });
    return this.sides[side].places;
  }

  /** The line that a changed one stands against, where as many lines stand in place of as many; -1 for none. */
  against(side, line) {
    const { firsts, ends } = this.sides[side];
    const other = this.sides[1 - side];
    const block = above(firsts, line) - 1;
    if (block < 0 || line >= ends[block]) return -1;
    const same = ends[block] - firsts[block] === other.ends[block] - other.firsts[block];
    return same ? other.firsts[block] + line - firsts[block] : -1;
  }
}

/** The part of a line in which it differs from another: first character and the one after the last. */
function differing(line, other) {
  const most = Math.min(line.length, other.length);
  let first = 0;
  while (first < most && line[first] === other[first]) first += 1;
  let rest = 0;
  while (rest < most - first && line[line.length - 1 - rest] === other[other.length - 1 - rest]) rest += 1;
  return [first, line.length - rest];
}
