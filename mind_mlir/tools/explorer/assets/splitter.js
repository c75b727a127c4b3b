/**
 * A line between two parts that can be moved by pointer and arrow keys. `moved` gets how far in pixels, `share`
 * says which part of the room the first has then, and `across` whether it moves to the left and right.
 */
function splitter(label, moved, share, across = () => true) {
  let from = null;
  const move = (pixels) => {
    moved(pixels);
    element.setAttribute("aria-valuenow", Math.round(100 * share()));
  };
  const at = (event) => (across() ? event.clientX : event.clientY);
  const element = make("div", {
    class: "splitter",
    role: "separator",
    tabindex: "0",
    "aria-label": label,
    "aria-valuenow": Math.round(100 * share()),
    onpointerdown: (event) => {
      from = at(event);
      element.setPointerCapture(event.pointerId);
      event.preventDefault();
    },
    onpointermove: (event) => {
      if (from === null) return;
      move(at(event) - from);
      from = at(event);
    },
    onpointerup: () => (from = null),
    onpointercancel: () => (from = null),
    onkeydown: (event) => {
      const step = { ArrowLeft: -24, ArrowUp: -24, ArrowRight: 24, ArrowDown: 24 }[event.key];
      if (!step) return;
      move(step);
      event.preventDefault();
      event.stopPropagation();
    },
  });
  element.setAttribute("aria-orientation", across() ? "vertical" : "horizontal");
  return element;
}
